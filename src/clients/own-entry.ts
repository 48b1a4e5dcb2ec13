/**
 * The entry of `tapedeck mcp` in a client's config. It is put in as one piece of text, which is kept: without that piece the file is
 * what it was, byte for byte. Whatever wraps or unwraps the file's servers first takes it out.
 */

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { applyEdits, modify } from 'jsonc-parser';
import { TapedeckError } from '../errors.ts';
import { makeFolder } from '../store/file/path.ts';
import { type Config, readConfig } from './config.ts';
import { literal } from './edits.ts';
import { encode, readClientConfig, replaceClientConfig, writeConfig } from './file.ts';
import type { Keeper } from './keeper.ts';
import { lineEndOf, type Node, parseJson } from './source.ts';
import type { Target } from './targets.ts';

/** What the entry is called. */
export const OWN_ENTRY = 'tapedeck';

/** The words of the entry; null: there was none. Throws `TapedeckError` where the file cannot be read or written. */
export function takeOut(target: Target, keeper: Keeper): readonly string[] | null {
  const file = readClientConfig(target.file);
  const note = notePath(keeper, file.path);
  if (!existsSync(note)) return null;
  const { text: piece, words } = JSON.parse(readFileSync(note, 'utf8')) as { text: string; words: string[] };
  const at = file.text.indexOf(piece);
  const rest =
    at >= 0 ? file.text.slice(0, at) + file.text.slice(at + piece.length) : withoutChanged(file.text, target);
  if (rest !== file.text) replaceClientConfig(file, encode(rest, file.hasMark));
  rmSync(note);
  return words;
}

/** False: there is a server of that name already. Throws `TapedeckError` with the reason where the file is refused; then it is as before. */
export function putIn(target: Target, words: readonly string[], keeper: Keeper): boolean {
  const file = readClientConfig(target.file);
  const { text } = file;
  const path = pathIn(text, target);
  const before = readConfig(text, target.format, target.sections);
  if (before.entries.some((entry) => isDeepStrictEqual(entry.path, path))) return false;
  const { at, piece } = insertion(text, path, words, target);
  const after = text.slice(0, at) + piece + text.slice(at);
  if (!isAdded(before, after, path, words, target)) throw cannotAdd();
  const note = notePath(keeper, file.path);
  makeFolder(keeper.folderOf(file.path), 0o700);
  // First, so that it can be taken out whenever this is interrupted.
  writeConfig(note, Buffer.from(`${JSON.stringify({ text: piece, words })}\n`));
  try {
    replaceClientConfig(file, encode(after, file.hasMark));
  } catch (error) {
    rmSync(note);
    throw error;
  }
  return true;
}

/** Whether these words start `tapedeck mcp`. */
export function isOwnServer(words: readonly string[]): boolean {
  const at = words.indexOf('mcp');
  return at > 0 && /(?:^|[\\/])(?:mcp-)?tapedeck(?:\.js)?(?:@[^\\/]*)?$/.test(words[at - 1] ?? '');
}

function notePath(keeper: Keeper, file: string): string {
  return join(keeper.folderOf(file), 'mcp.json');
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

/** Throws `TapedeckError` `refused` where it would take more than one piece of text. */
function insertion(
  text: string,
  path: readonly string[],
  [command = '', ...args]: readonly string[],
  { format }: Target,
): { at: number; piece: string } {
  if (format === 'toml') {
    const end = lineEndOf(text);
    const gap = text === '' ? '' : text.endsWith('\n') ? end : end + end;
    const list = args.map(literal).join(', ');
    const lines = [`[${path.join('.')}]`, `command = ${literal(command)}`, `args = [${list}]`, ''];
    return { at: text.length, piece: gap + lines.join(end) };
  }
  const servers = at(parseJson(text), path.slice(0, -1));
  const last = servers?.kind === 'map' ? servers.members.at(-1) : undefined;
  if (last !== undefined) {
    const source = `{ "command": ${literal(command)}, "args": [${args.map(literal).join(', ')}] }`;
    return { at: last.value.end, piece: last.beside(OWN_ENTRY, source) };
  }
  const [edit, ...more] = modify(text, [...path], { command, args }, {});
  if (edit === undefined || edit.length > 0 || more.length > 0) throw cannotAdd();
  return { at: edit.offset, piece: edit.content };
}

function cannotAdd(): TapedeckError {
  return new TapedeckError(
    'refused',
    'no server can be added to it without changing more: add it by hand, as `tapedeck help agents` says',
  );
}

/** Whether the text can be read, and the only difference is the new entry. */
function isAdded(
  before: Config,
  text: string,
  path: readonly string[],
  words: readonly string[],
  { format, sections }: Target,
): boolean {
  const after = readOrNull(text, format, sections);
  if (after === null) return false;
  const isNew = (entry: Config['entries'][number]) => isDeepStrictEqual(entry.path, path);
  const added = after.entries.find(isNew);
  const wordsOf = ({ entries }: Config) =>
    entries.filter((entry) => !isNew(entry)).map(({ path: its, server }) => [its, server.kind]);
  return (
    added?.server.kind === 'stdio' &&
    isDeepStrictEqual(added.server.words, words) &&
    isDeepStrictEqual(wordsOf(before), wordsOf(after))
  );
}

function readOrNull(...config: Parameters<typeof readConfig>): Config | null {
  try {
    return readConfig(...config);
  } catch {
    return null;
  }
}

/** Where its client has written the entry anew. In TOML such a one is left to its user. */
function withoutChanged(text: string, target: Target): string {
  if (target.format === 'toml') return text;
  return applyEdits(text, modify(text, pathIn(text, target), undefined, {}));
}
