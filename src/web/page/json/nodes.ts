/**
 * The values of a JSON text by their places in it, so that each is shown as it was written: integers of any size, `1.0`,
 * keys that stand twice. A text may be large, so the work is done in slices.
 */
import { createScanner, type SyntaxKind } from 'jsonc-parser';

/** As the scanner numbers them; its own names exist for its compiler alone. */
const EOF: SyntaxKind = 17;
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, COMMA, COLON]: readonly SyntaxKind[] = [
  1, 2, 3, 4, 5, 6,
];
/** null, true, false and numbers. */
const PLAIN: readonly SyntaxKind[] = [7, 8, 9, 11];

export type JsonNodes = {
  text: string;
  count: number;
  /** Where a value begins and ends in the text. An object's or array's end is behind its bracket. */
  start: Int32Array;
  end: Int32Array;
  /** Where the key of a member begins; -1 for an element or the whole. */
  key: Int32Array;
  /** The index of the object or array that it is in; -1 for the outermost. */
  parent: Int32Array;
  /** The index of the first node that is not inside of it. */
  next: Int32Array;
  /** How many members or elements it has. */
  size: Int32Array;
  /** Where the text stops to be JSON; -1 where all of it is. */
  brokenAt: number;
};

const COLUMNS = ['start', 'end', 'key', 'parent', 'next', 'size'] as const;
const SLICE_MS = 12;

/** Reads all values; gives way to the browser every few milliseconds. Several values after each other are all outermost. */
export async function readNodes(text: string, signal: AbortSignal): Promise<JsonNodes> {
  const work = nodesOf(text);
  for (;;) {
    const until = performance.now() + SLICE_MS;
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < until);
    await new Promise((done) => setTimeout(done));
    signal.throwIfAborted();
  }
}

const TOKENS_A_STEP = 500;

function* nodesOf(text: string): Generator<undefined, JsonNodes> {
  const nodes = emptyNodes(text);
  const scanner = createScanner(text, true);
  let parent = -1;
  let key = -1;
  let isKeyNext = false;
  const take = (start: number, end: number): number => {
    const taken = add(nodes, { start, end, key, parent });
    key = -1;
    return taken;
  };
  for (let tokens = 1; ; tokens += 1) {
    if (tokens % TOKENS_A_STEP === 0) yield;
    const at = skipSpace(text, scanner.getPosition());
    if (text[at] === '"') {
      const end = yield* endOfString(text, at);
      if (end < 0) return broken(nodes, at, parent);
      scanner.setPosition(end);
      if (isKeyNext && key < 0) key = at;
      else take(at, end);
      continue;
    }
    const kind = scanner.scan();
    const start = scanner.getTokenOffset();
    if (kind === EOF) return parent < 0 ? nodes : broken(nodes, start, parent);
    if (kind === COLON) continue;
    if (kind === COMMA) isKeyNext = parent >= 0 && text[nodes.start[parent] ?? 0] === '{';
    else if (kind === OPEN_BRACE || kind === OPEN_BRACKET) {
      parent = take(start, text.length);
      isKeyNext = kind === OPEN_BRACE;
    } else if ((kind === CLOSE_BRACE || kind === CLOSE_BRACKET) && parent >= 0) {
      nodes.end[parent] = start + 1;
      nodes.next[parent] = nodes.count;
      parent = nodes.parent[parent] ?? -1;
      isKeyNext = false;
    } else if (PLAIN.includes(kind)) take(start, start + scanner.getTokenLength());
    else return broken(nodes, start, parent);
  }
}

function emptyNodes(text: string): JsonNodes {
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, new Int32Array(64)]));
  return { text, count: 0, brokenAt: -1, ...(columns as Record<(typeof COLUMNS)[number], Int32Array>) };
}

type Place = { start: number; end: number; key: number; parent: number };

function add(nodes: JsonNodes, { start, end, key, parent }: Place): number {
  const i = nodes.count;
  if (i === nodes.start.length) {
    for (const name of COLUMNS) {
      const larger = new Int32Array(Math.ceil(i * 1.5));
      larger.set(nodes[name]);
      nodes[name] = larger;
    }
  }
  nodes.start[i] = start;
  nodes.end[i] = end;
  nodes.key[i] = key;
  nodes.parent[i] = parent;
  nodes.next[i] = i + 1;
  if (parent >= 0) nodes.size[parent] = (nodes.size[parent] ?? 0) + 1;
  nodes.count = i + 1;
  return i;
}

/** What is open where the text breaks has what came until then. */
function broken(nodes: JsonNodes, at: number, parent: number): JsonNodes {
  for (let open = parent; open >= 0; open = nodes.parent[open] ?? -1) nodes.next[open] = nodes.count;
  nodes.brokenAt = at;
  return nodes;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text[at] ?? '')) at += 1;
  return at;
}

/** Behind the closing quote, or -1. A string may be as large as the whole text, so that its end is looked for by steps. */
function* endOfString(text: string, start: number): Generator<undefined, number> {
  let from = start + 1;
  for (let steps = 1; ; steps += 1) {
    if (steps % TOKENS_A_STEP === 0) yield;
    const at = text.indexOf('"', from);
    if (at < 0) return -1;
    let slashes = 0;
    while (text[at - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return at + 1;
    from = at + 1;
  }
}

/** The key of a member as it was written, quotes and all; '' of an element. */
export function keyText({ key, text }: JsonNodes, i: number): string {
  const start = key[i] ?? -1;
  if (start < 0) return '';
  const work = endOfString(text, start);
  for (let step = work.next(); ; step = work.next()) if (step.done) return text.slice(start, step.value);
}

/** The JSON Pointer (RFC 6901) of a value. */
export function pointerOf(nodes: JsonNodes, i: number): string {
  const steps: string[] = [];
  for (let at = i; (nodes.parent[at] ?? -1) >= 0; at = nodes.parent[at] ?? -1) {
    const key = keyText(nodes, at);
    const name = key === '' ? String(placeIn(nodes, at)) : unquoted(key);
    steps.unshift(name.replaceAll('~', '~0').replaceAll('/', '~1'));
  }
  return steps.map((step) => `/${step}`).join('');
}

/** Which element of its array it is. */
export function placeIn(nodes: JsonNodes, i: number): number {
  let place = 0;
  for (let at = (nodes.parent[i] ?? -1) + 1; at < i; at = nodes.next[at] ?? i) place += 1;
  return place;
}

/** The value at a pointer: the last of several under one key, as readers of JSON have it; -1 where there is none. */
export function findPointer(nodes: JsonNodes, pointer: string): number {
  let at = 0;
  for (const step of pointer.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    const end = nodes.next[at] ?? 0;
    let found = -1;
    let place = 0;
    for (let child = at + 1; child < end; child = nodes.next[child] ?? end) {
      const key = keyText(nodes, child);
      if (key === '' ? String(place) === name : unquoted(key) === name) found = child;
      place += 1;
    }
    if (found < 0) return -1;
    at = found;
  }
  return at < nodes.count ? at : -1;
}

/** What a string says; the text itself where it is no string. */
function unquoted(literal: string): string {
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === 'string' ? value : literal;
  } catch {
    return literal;
  }
}
