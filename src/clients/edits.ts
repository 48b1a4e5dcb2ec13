/** Edits of a config's text. They change only what must change, so that they can be undone. */
import type { StdioServer, UrlServer } from './config.ts';
import { indentAt, type ListNode, lineEndOf, type Member, type StringNode } from './source.ts';

/** Takes out what is between the offsets and puts the text there. */
export type TextEdit = { start: number; end: number; text: string };

export function applyTextEdits(text: string, edits: readonly TextEdit[]): string {
  let done = 0;
  const pieces = edits
    .toSorted((a, b) => a.start - b.start)
    .map((edit) => {
      const piece = text.slice(done, edit.start) + edit.text;
      done = edit.end;
      return piece;
    });
  return pieces.join('') + text.slice(done);
}

/** A string literal: what JSON and TOML both take. */
export function literal(value: string): string {
  // JSON may leave this one as it is, TOML may not.
  return JSON.stringify(value).replaceAll('\u007f', '\\u007f');
}

/** Puts tapedeck's words before the server's own. The source of the command moves as it stands, and the arguments stay. */
export function wrapEdits(
  text: string,
  { command, args }: StdioServer,
  [first = '', ...more]: readonly string[],
): TextEdit[] {
  const sources = [...more.map(literal), sourceOf(text, command.value)];
  const { start, end } = command.value;
  if (args !== null) return [{ start, end, text: literal(first) }, insertFirst(text, args.value, sources)];
  return [{ start, end, text: literal(first) + command.beside('args', `[${sources.join(', ')}]`) }];
}

/**
 * Undoes `wrapEdits`: removes the first `ownWords` words, and makes the next one the command again.
 * `hadArgs`: whether the entry is to keep its list of arguments where nothing is left in it.
 */
export function unwrapEdits(
  text: string,
  server: StdioServer,
  ownWords: number,
  hadArgs: boolean,
): TextEdit[] {
  const { command, args } = server;
  const original = args?.value.items[ownWords - 1];
  if (args === null || original === undefined) return [];
  const { start, end } = command.value;
  const back = sourceOf(text, original);
  const isAsInserted = text.slice(end, args.value.end) === command.beside('args', sourceOf(text, args.value));
  if (!hadArgs && args.value.items.length === ownWords && isAsInserted)
    return [{ start, end: args.value.end, text: back }];
  return [{ start, end, text: back }, removeFirst(text, args.value, ownWords)];
}

/** Starts tapedeck with other words: those before `record`, which is the word of this number, are replaced. */
export function relaunchEdits(
  text: string,
  { command, args }: StdioServer,
  recordAt: number,
  [first = '', ...more]: readonly string[],
): TextEdit[] {
  const record = args?.value.items[recordAt - 1];
  if (args === null || record === undefined) return [];
  const { start, end } = command.value;
  const added = insertFirst(text, args.value, more.map(literal));
  return [
    { start, end, text: literal(first) },
    { ...added, end: record.start },
  ];
}

export function urlEdit({ url }: UrlServer, source: string): TextEdit {
  return { start: url.value.start, end: url.value.end, text: source };
}

/** New items, each on a line of its own where the first one is. */
function insertFirst(text: string, list: ListNode, sources: readonly string[]): TextEdit {
  const [first] = list.items;
  if (first === undefined) {
    const inside = list.start + 1;
    return { start: inside, end: inside, text: sources.join(', ') };
  }
  const indent = indentAt(text, first.start);
  const gap = indent === null ? ', ' : `,${lineEndOf(text)}${indent}`;
  return { start: first.start, end: first.start, text: sources.map((source) => source + gap).join('') };
}

function removeFirst(text: string, { items }: ListNode, count: number): TextEdit {
  const start = items[0]?.start ?? 0;
  const next = items[count];
  if (next !== undefined) return { start, end: next.start, text: '' };
  const last = items[count - 1]?.end ?? start;
  // A comma that a formatter has put behind the last one.
  const comma = /^\s*,/.exec(text.slice(last))?.[0].length ?? 0;
  return { start, end: last + comma, text: '' };
}

function sourceOf(text: string, { start, end }: { start: number; end: number }): string {
  return text.slice(start, end);
}

/** The members of an entry that say how its server is reached. */
export function serverMembers(server: StdioServer | UrlServer): Member[] {
  if (server.kind === 'url') return [server.url as Member<StringNode>];
  return server.args === null ? [server.command] : [server.command, server.args];
}
