/**
 * Writes a recording that was made again so that git shows what changed in the server, and nothing else. A re-recording has
 * other times, and where a call came or went, all later ids, HTTP exchanges and numbers of secrets are others. Lines that are
 * equal but for these take them from the old file. What is new gets names that the old file does not use. Where nothing else
 * differs, the old file comes out.
 */

import { diffArrays } from 'diff';
import { type Substitution, sourceAt, substitute } from '../../protocol/json/edit.ts';

type Line = { text: Buffer; key: string; names: Name[]; placeholders: string[] };

/** What a line calls by a number that means nothing by itself. `path`: where the number stands in it. */
type Name = { kind: 'call' | 'http'; path: readonly string[]; number: string };

/** More is no recording that anybody reads the diff of, and costs much to compare. */
const MAX_BYTES = 32 * 1024 * 1024;

const MAX_CHANGES = 4000;

/** The time of an old header that is younger stays, where nothing else has changed. In milliseconds. */
const SAME_TIME = 30 * 24 * 60 * 60 * 1000;

const TIMES = ['startedAt', 'endedAt', 'recordedWith'];

const PLACEHOLDER = /(\[redacted:[a-z0-9-]+:|masked-)([0-9a-f]{12})/g;

/** `before` and the result are whole files; `now` is in pieces. */
export function steadyText(before: string, now: Iterable<string>): string {
  const text = [...now].join('');
  if (text.length + before.length > MAX_BYTES) return text;
  try {
    return steady(linesOf(before), linesOf(text)) ?? text;
  } catch {
    // The old file was written by hand, in some other way.
    return text;
  }
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

/** Null where too much differs. */
function steady(before: readonly string[], now: readonly string[]): string | null {
  const [oldHeader = '', ...oldLines] = before;
  const [header = '', ...lines] = now;
  const known = readLines(oldLines);
  const read = readLines(lines);
  const pairs = pairsOf(known, read);
  if (pairs === null) return null;
  const rename = renamesOf(known, read, pairs);
  const isNumbered = keyOf(oldHeader) === keyOf(header);
  const digits = isNumbered ? secretsOf(known, read, pairs) : new Map<string, string>();
  const withSecrets = (text: string) =>
    text.replaceAll(PLACEHOLDER, (_, begin, own) => begin + (digits.get(own) ?? own));
  const written = read.map((line, i) =>
    withSecrets(renamed(line, rename, known[pairs.get(i) ?? -1] ?? null)),
  );
  const isSame = written.length === oldLines.length && written.every((line, i) => line === oldLines[i]);
  const head = isSame ? headerAsBefore(oldHeader, withSecrets(header)) : withSecrets(header);
  return [head, ...written].map((line) => `${line}\n`).join('');
}

function keyOf(header: string): string | undefined {
  return sourceAt(Buffer.from(header), ['session', 'redaction', 'key']);
}

function headerAsBefore(before: string, now: string): string {
  const [old, own] = [Buffer.from(before), Buffer.from(now)];
  const at = (header: Buffer) => Date.parse(JSON.parse(sourceAt(header, ['session', 'startedAt']) ?? '""'));
  if (!(at(own) - at(old) < SAME_TIME)) return now;
  const times = TIMES.flatMap((name): Substitution[] => {
    const path = ['session', name];
    const text = sourceAt(old, path);
    return text === undefined ? [] : [{ path, text }];
  });
  return substitute(own, times).toString();
}

type Parsed = {
  ms?: unknown;
  http?: unknown;
  channel?: string;
  request?: { body?: { ms?: unknown } };
  message?: Record<string, unknown>;
};

/** The lines of an HTTP exchange go by what was asked in it, because their own text is much the same in all. */
function readLines(lines: readonly string[]): Line[] {
  const read = lines.map(readLine);
  const httpOf = ({ names }: Line) => names.find(({ kind }) => kind === 'http')?.number;
  const asked = new Map<string, string>();
  for (const line of read) {
    const number = httpOf(line);
    const isAsking = line.names.some(({ kind }) => kind === 'call');
    if (number !== undefined && isAsking && !asked.has(number)) asked.set(number, line.key);
  }
  return read.map((line) => ({ ...line, key: `${line.key}${asked.get(httpOf(line) ?? '') ?? ''}` }));
}

function readLine(line: string): Line {
  const text = Buffer.from(line);
  const parsed = JSON.parse(line) as Parsed;
  const names = namesIn(text, parsed);
  delete parsed.ms;
  if (parsed.request?.body !== undefined) delete parsed.request.body.ms;
  for (const { path } of names) setAt(parsed, path);
  const key = JSON.stringify(parsed);
  const placeholders = [...line.matchAll(PLACEHOLDER)].map(([, , digits = '']) => digits);
  return { text, key: key.replaceAll(PLACEHOLDER, '$1'), names, placeholders };
}

/** Ids of the client's requests, and what repeats them. The server's own ids are its own. */
function namesIn(text: Buffer, { channel, message, http }: Parsed): Name[] {
  const names: Name[] = [];
  const add = (kind: Name['kind'], path: readonly string[]) => {
    const number = sourceAt(text, path);
    if (number !== undefined && /^\d+$/.test(number)) names.push({ kind, path, number });
  };
  if (http !== undefined) add('http', ['http']);
  if (message === undefined || message === null || typeof message !== 'object') return names;
  const isClients = channel === 'stdin' || channel === 'request';
  if (isClients === 'method' in message) add('call', ['message', 'id']);
  const params = ['message', 'params'];
  if (isClients) add('call', [...params, 'requestId']);
  else add('call', [...params, 'progressToken']);
  for (const name of ['progressToken', 'io.modelcontextprotocol/subscriptionId'])
    add('call', [...params, '_meta', name]);
  return names;
}

function setAt(value: object, path: readonly string[]): void {
  let inner = value as Record<string, unknown>;
  for (const name of path.slice(0, -1)) inner = inner[name] as Record<string, unknown>;
  inner[path.at(-1) ?? ''] = '#';
}

/** By the number of a new line, that of the old one that it equals; null where too many differ. */
function pairsOf(known: readonly Line[], read: readonly Line[]): Map<number, number> | null {
  const keys = (lines: readonly Line[]) => lines.map(({ key }) => key);
  const parts = diffArrays(keys(known), keys(read), { maxEditLength: MAX_CHANGES });
  if (parts === undefined) return null;
  const pairs = new Map<number, number>();
  let [old, own] = [0, 0];
  for (const { added, removed, count } of parts) {
    if (!added && !removed) for (let i = 0; i < count; i += 1) pairs.set(own + i, old + i);
    if (!added) old += count;
    if (!removed) own += count;
  }
  return pairs;
}

/** New names by old ones. A pair of equal lines binds its names; others keep theirs, unless the old file has it. */
function renamesOf(
  known: readonly Line[],
  read: readonly Line[],
  pairs: ReadonlyMap<number, number>,
): Map<string, string> {
  const nameOf = ({ kind, number }: Name) => `${kind} ${number}`;
  const bound = bind(
    read.map(({ names }) => names.map(nameOf)),
    known.map(({ names }) => names.map(nameOf)),
    pairs,
  );
  const last = { call: 0, http: 0 };
  for (const { names } of [...known, ...read])
    for (const { kind, number } of names) last[kind] = Math.max(last[kind], Number(number));
  return withFree(
    bound,
    read.flatMap(({ names }) => names.map(nameOf)),
    (name) => {
      const kind = name.startsWith('call') ? 'call' : 'http';
      last[kind] += 1;
      return `${kind} ${last[kind]}`;
    },
  );
}

function secretsOf(
  known: readonly Line[],
  read: readonly Line[],
  pairs: ReadonlyMap<number, number>,
): Map<string, string> {
  const placeholders = (lines: readonly Line[]) => lines.map((line) => line.placeholders);
  const [old, own] = [placeholders(known), placeholders(read)];
  let last = Math.max(
    0,
    ...[...old, ...own].flat().map((digits) => (/^\d+$/.test(digits) ? Number(digits) : 0)),
  );
  return withFree(bind(own, old, pairs), own.flat(), () => {
    last += 1;
    return String(last).padStart(12, '0');
  });
}

/** What the lines call alike, pair by pair; the first pair counts, and no two get one name. */
function bind(
  own: readonly (readonly string[])[],
  old: readonly (readonly string[])[],
  pairs: ReadonlyMap<number, number>,
): Map<string, string> {
  const bound = new Map<string, string>();
  const taken = new Set<string>();
  for (const [i, k] of pairs)
    for (const [n, name] of (own[i] ?? []).entries()) {
      const to = old[k]?.[n];
      if (to === undefined || bound.has(name) || taken.has(to)) continue;
      bound.set(name, to);
      taken.add(to);
    }
  return bound;
}

function withFree(
  bound: Map<string, string>,
  names: readonly string[],
  next: (name: string) => string,
): Map<string, string> {
  const taken = new Set(bound.values());
  for (const name of names) {
    if (bound.has(name)) continue;
    const to = taken.has(name) ? next(name) : name;
    bound.set(name, to);
    taken.add(to);
  }
  return bound;
}

/** The line with its names as they are now, and with the time of the old one that it equals. */
function renamed({ text, names }: Line, rename: ReadonlyMap<string, string>, twin: Line | null): string {
  const substitutions = names.map(({ kind, path, number }): Substitution => {
    const [, to = number] = (rename.get(`${kind} ${number}`) ?? '').split(' ');
    return { path, text: to };
  });
  for (const path of [['ms'], ['request', 'body', 'ms']]) {
    const ms = twin === null ? undefined : sourceAt(twin.text, path);
    if (ms !== undefined) substitutions.push({ path, text: ms });
  }
  return substitute(text, substitutions).toString();
}
