/**
 * The entry of `tapedeck mcp` in a client's config. It is put in as one piece of text, which is kept: without that piece the file is
 * what it was, byte for byte. Whatever wraps or unwraps the file's servers first takes it out.
 */

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { applyEdits, modify, parse } from 'jsonc-parser';
import { TapedeckError } from '../errors.ts';
import { makeFolder } from '../store/file/path.ts';
import { type Config, type Entry, readConfig } from './config.ts';
import { applyTextEdits, literal } from './edits.ts';
import { type ClientConfigFile, changedTo, replaceClientConfig, writeConfig } from './file.ts';
import type { Keeper } from './keeper.ts';
import { lineEndOf, type Node, parseJson, tomlTables } from './source.ts';
import type { Target } from './targets.ts';

/** What the entry is called. */
export const OWN_ENTRY = 'tapedeck';

/** `edited`: its source, where somebody has changed what it says. */
export type OwnEntry = { words: readonly string[]; edited: string | null };

/** What is kept of an entry that was put in: the piece of text, and the words that it has. */
type Note = { text: string; words: string[] };

/**
 * The file without the entry, and the entry; null: there is none that was put in. Nothing is written. Throws `TapedeckError`
 * `refused` where it cannot be taken out alone.
 */
export function withoutOwn(
  file: ClientConfigFile,
  target: Target,
  keeper: Keeper,
): { file: ClientConfigFile; own: OwnEntry | null } {
  const note = readNote(keeper, file.path);
  const { text } = file;
  const path = pathIn(text, target);
  const entry = note && ownEntry(readConfig(text, target.format, target.sections), path);
  // No entry: somebody has taken it out.
  if (note === null || !entry) return { file, own: null };
  const ways = [() => withoutPiece(text, note.text), () => withoutEntry(text, path, note, target)];
  const rest = ways.map((way) => way()).find((one) => isAdded(one, text, path, target));
  if (rest === undefined)
    throw new TapedeckError(
      'refused',
      `its server \`${OWN_ENTRY}\` was edited so that it cannot be taken out alone: take it out by hand`,
    );
  const edited = isAsPutIn(entry, note) ? null : sourceOf(text, path, target);
  return { file: changedTo(file, rest), own: { words: note.words, edited } };
}

/** Writes the file without the entry, as `withoutOwn` gave it. */
export function takeOut(before: ClientConfigFile, after: ClientConfigFile, keeper: Keeper): void {
  if (!after.bytes.equals(before.bytes)) replaceClientConfig(before, after.bytes);
  rmSync(notePath(keeper, before.path), { force: true });
}

/** The file with the entry, and the piece of text that it is. */
export type WithOwn = { file: ClientConfigFile; own: OwnEntry; piece: string };

/** Null: there is a server of that name already. Nothing is written. Throws `TapedeckError` with the reason where it cannot be added. */
export function withOwn(file: ClientConfigFile, target: Target, own: OwnEntry): WithOwn | null {
  const { text } = file;
  const path = pathIn(text, target);
  if (ownEntry(readConfig(text, target.format, target.sections), path) !== undefined) return null;
  const { at, piece } = insertion(text, path, own, target);
  const after = text.slice(0, at) + piece + text.slice(at);
  if (!isAdded(text, after, path, target)) throw cannotAdd();
  return { file: changedTo(file, after), own, piece };
}

/** Writes the file with the entry, as `withOwn` gave it. Throws `TapedeckError` with the reason where the file is refused; then it is as before. */
export function putIn(before: ClientConfigFile, { file, own, piece }: WithOwn, keeper: Keeper): void {
  const note = notePath(keeper, file.path);
  makeFolder(keeper.folderOf(file.path), 0o700);
  const kept: Note = { text: piece, words: [...own.words] };
  // First, so that it can be taken out whenever this is interrupted.
  writeConfig(note, Buffer.from(`${JSON.stringify(kept)}\n`));
  try {
    replaceClientConfig(before, file.bytes);
  } catch (error) {
    rmSync(note);
    throw error;
  }
}

/** Whether these words start `tapedeck mcp`. */
export function isOwnServer(words: readonly string[]): boolean {
  const at = words.indexOf('mcp');
  return at > 0 && /(?:^|[\\/])(?:mcp-)?tapedeck(?:\.js)?(?:@[^\\/]*)?$/.test(words[at - 1] ?? '');
}

function notePath(keeper: Keeper, file: string): string {
  return join(keeper.folderOf(file), 'mcp.json');
}

function readNote(keeper: Keeper, file: string): Note | null {
  const path = notePath(keeper, file);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null;
}

/** The map of servers that is there, else the first that the client knows. */
function pathIn(text: string, { format, sections }: Target): string[] {
  const plain = sections.filter((section) => !section.includes('*'));
  const root = format === 'json' ? parseJson(text) : null;
  const there = plain.find((section) => root !== null && at(root, section)?.kind === 'map');
  return [...(there ?? plain[0] ?? []), OWN_ENTRY];
}

function at(root: Node, path: readonly string[]): Node | undefined {
  return path.reduce<Node | undefined>(
    (node, key) =>
      node?.kind === 'map' ? node.members.find((member) => member.key === key)?.value : undefined,
    root,
  );
}

function ownEntry({ entries }: Config, path: readonly string[]): Entry | undefined {
  return entries.find((entry) => isDeepStrictEqual(entry.path, path));
}

function isAsPutIn({ server, members }: Entry, { words }: Note): boolean {
  return server.kind === 'stdio' && members === 2 && isDeepStrictEqual(server.words, words);
}

/** Throws `TapedeckError` `refused` where it would take more than one piece of text. */
function insertion(
  text: string,
  path: readonly string[],
  { words: [command = '', ...args], edited }: OwnEntry,
  { format }: Target,
): { at: number; piece: string } {
  const list = args.map(literal).join(', ');
  if (format === 'toml') {
    const end = lineEndOf(text);
    const gap = text === '' ? '' : text.endsWith('\n') ? end : end + end;
    const lines = [`[${path.join('.')}]`, `command = ${literal(command)}`, `args = [${list}]`, ''];
    return { at: text.length, piece: gap + (edited ?? lines.join(end)) };
  }
  const servers = at(parseJson(text), path.slice(0, -1));
  const last = servers?.kind === 'map' ? servers.members.at(-1) : undefined;
  if (last !== undefined) {
    const source = edited ?? `{ "command": ${literal(command)}, "args": [${list}] }`;
    return { at: last.value.end, piece: last.beside(OWN_ENTRY, source) };
  }
  const value = edited === null ? { command, args } : parse(edited);
  const [edit, ...more] = modify(text, [...path], value, {});
  if (edit === undefined || edit.length > 0 || more.length > 0) throw cannotAdd();
  return { at: edit.offset, piece: edit.content };
}

function cannotAdd(): TapedeckError {
  return new TapedeckError(
    'refused',
    'no server can be added to it without changing more: add it by hand, as `tapedeck help agents` says',
  );
}

/** Whether both texts can be read, and the only server that one has more is the entry. */
function isAdded(
  before: string,
  after: string,
  path: readonly string[],
  { format, sections }: Target,
): boolean {
  const [without, with_] = [before, after].map((text) => readOrNull(text, format, sections));
  if (!without || !with_) return false;
  const othersOf = ({ entries }: Config) =>
    entries
      .filter((entry) => !isDeepStrictEqual(entry.path, path))
      .map(({ path: its, server }) => [its, server.kind]);
  return (
    ownEntry(without, path) === undefined &&
    ownEntry(with_, path) !== undefined &&
    isDeepStrictEqual(othersOf(without), othersOf(with_))
  );
}

function readOrNull(...config: Parameters<typeof readConfig>): Config | null {
  try {
    return readConfig(...config);
  } catch {
    return null;
  }
}

/** The text as it was, where nobody has touched the piece. */
function withoutPiece(text: string, piece: string): string {
  const start = text.indexOf(piece);
  return start < 0 ? text : text.slice(0, start) + text.slice(start + piece.length);
}

/** Where its client has written the entry anew, or somebody has edited it. */
function withoutEntry(text: string, path: readonly string[], note: Note, { format }: Target): string {
  if (format === 'json') return applyEdits(text, modify(text, [...path], undefined, {}));
  const gap = /^[\r\n]*/.exec(note.text)?.[0] ?? '';
  const tables = tomlTables(text, path).map(({ start, end }, i) => {
    const hasGap = i === 0 && text.slice(0, start).endsWith(gap);
    return { start: hasGap ? start - gap.length : start, end, text: '' };
  });
  return applyTextEdits(text, tables);
}

/** What `insertion` takes for an entry that was edited. */
function sourceOf(text: string, path: readonly string[], { format }: Target): string {
  const places = format === 'json' ? [at(parseJson(text), path)] : tomlTables(text, path);
  return places.map((place) => text.slice(place?.start, place?.end)).join('');
}
