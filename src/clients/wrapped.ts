/** Which servers of a config are wrapped, and how the file was, or would be, without that. */

import { isDeepStrictEqual } from 'node:util';
import { TapedeckError } from '../errors.ts';
import { withoutByteOrderMark } from '../protocol/text.ts';
import { type Config, type Entry, readConfig } from './config.ts';
import { applyTextEdits, serverMembers, type TextEdit, unwrapEdits, urlEdit } from './edits.ts';
import { type ClientConfigFile, encode, readClientConfig, replaceClientConfig } from './file.ts';
import { type Keeper, sha256, type WrappedUrl, type WrapRecord } from './keeper.ts';
import { countOwnWords } from './launcher.ts';
import { type Member, meaningOf, type Node } from './source.ts';
import type { Target } from './targets.ts';
import { localPort, localUrl, originalUrl } from './url.ts';

export type OpenConfig = {
  target: Target;
  file: ClientConfigFile;
  config: Config;
  kept: WrapRecord | null;
  /** Of all configs: one that was moved or copied is still known by its ports. */
  urls: readonly WrappedUrl[];
  /** What the copy has, where there is one. */
  original: { bytes: Buffer; config: Config } | null;
  /** The file is as tapedeck has written it. */
  isUntouched: boolean;
};

/** `file`: as it was read, or would be. Throws `TapedeckError` with the reason, where the file cannot be read or understood. */
export function openConfig(
  target: Target,
  keeper: Keeper,
  file: ClientConfigFile = readClientConfig(target.file),
): OpenConfig {
  const config = readConfig(file.text, target.format, target.sections);
  const kept = keeper.of(file.path);
  const original = kept === null ? null : readOriginal(target, keeper, file.path);
  const isUntouched = kept !== null && kept.writtenAs === sha256(file.bytes);
  const urls = keeper.all().flatMap((one) => one.urls);
  return { target, file, config, kept, urls, original, isUntouched };
}

function readOriginal({ format, sections }: Target, keeper: Keeper, path: string): OpenConfig['original'] {
  const bytes = keeper.copyOf(path);
  if (bytes === null) return null;
  try {
    const text = withoutByteOrderMark(bytes.toString());
    return { bytes, config: readConfig(text, format, sections) };
  } catch {
    // Somebody has edited it: then it is of no use.
    return null;
  }
}

/** Where this URL entry leads to, if it is wrapped. */
export function wrappedUrlOf({ server }: Entry, { urls }: OpenConfig): WrappedUrl | undefined {
  if (server.kind !== 'url') return undefined;
  const port = localPort(server.url.value.value);
  return urls.find((one) => one.port === port);
}

export function isWrapped(entry: Entry, open: OpenConfig): boolean {
  const { server } = entry;
  return server.kind === 'stdio' ? countOwnWords(server.words) > 0 : wrappedUrlOf(entry, open) !== undefined;
}

/** Whether it was wrapped before `tapedeck wrap` came, by hand: then `unwrap` leaves it so, unless it is named. */
export function isHandmade(entry: Entry, { original }: OpenConfig): boolean {
  const before = original && entryAt(original.config, entry.path);
  return before?.server.kind === 'stdio' && countOwnWords(before.server.words) > 0;
}

function entryAt({ entries }: Config, path: readonly string[]): Entry | undefined {
  return entries.find(
    (entry) => entry.path.length === path.length && entry.path.every((key, i) => key === path[i]),
  );
}

/** What takes tapedeck out of this entry; nothing where it is not in it. */
export function unwrapEditsOf(entry: Entry, open: OpenConfig): TextEdit[] {
  const { file, original } = open;
  const { server } = entry;
  if (server.kind === 'stdio') {
    const before = original && entryAt(original.config, entry.path);
    const hadArgs = before?.server.kind !== 'stdio' || before.server.args !== null;
    return unwrapEdits(file.text, server, countOwnWords(server.words), hadArgs);
  }
  const wrapped = wrappedUrlOf(entry, open);
  if (server.kind !== 'url' || wrapped === undefined) return [];
  return [urlEdit(server, urlSource(server.url.value.value, wrapped))];
}

/** As it stood in the file, unless somebody has changed its path since. */
function urlSource(local: string, { url, port, source }: WrappedUrl): string {
  return local === localUrl(url, port) ? source : JSON.stringify(originalUrl(local, url));
}

/**
 * The file as it was before `wrap`: `edited` is the result of undoing the edits. The copy has the exact bytes, and is
 * used if nobody has changed either of them since.
 */
export function originalOr(edited: Buffer, { target, original, isUntouched }: OpenConfig): Buffer {
  if (!isUntouched || original === null) return edited;
  const text = withoutByteOrderMark(edited.toString());
  const { root } = readConfig(text, target.format, target.sections);
  const meaning = (node: Node) => meaningOf(node, new Set());
  return isDeepStrictEqual(meaning(root), meaning(original.config.root)) ? original.bytes : edited;
}

/** The file without anything that `wrap` did to it. */
export function withoutWrap(open: OpenConfig): Buffer {
  const { file, config, kept } = open;
  if (kept === null) return file.bytes;
  const ours = config.entries.filter((entry) => isWrapped(entry, open) && !isHandmade(entry, open));
  const edits = ours.flatMap((entry) => unwrapEditsOf(entry, open));
  return originalOr(encode(applyTextEdits(file.text, edits), file.hasMark), open);
}

/** A change of one config: the result for each server, and the file's new bytes. It is proven before it is written. */

/** `unchanged`: there is nothing to do. */
export type EntryOutcome = 'wrapped' | 'unwrapped' | 'unchanged' | 'refused';

export type Row = {
  entry: Entry;
  outcome: EntryOutcome;
  /** Why it is so, or what it means. */
  note: string;
};

export type ConfigChange = {
  target: Target;
  rows: readonly Row[];
  before: Buffer;
  after: Buffer;
  /** Where the copy of the file is, while it is wrapped. */
  copyFolder: string;
};

/** How a server is to be reached after the edit: its words, or its URL alone. */
export type ExpectedServer = { entry: Entry; words: readonly string[] };

/**
 * The file with the edits made. Throws `TapedeckError` `refused` where anything else would be different from before: then
 * the fault is tapedeck's, and the file stays as it is.
 */
export function editConfig(
  open: OpenConfig,
  edits: readonly TextEdit[],
  expected: readonly ExpectedServer[],
): Buffer {
  const { config, file, target } = open;
  const text = applyTextEdits(config.text, edits);
  if (!isProven(config, text, target, expected)) {
    throw new TapedeckError(
      'refused',
      'it cannot be edited without changing more than its servers. This is a fault of tapedeck: please report it',
    );
  }
  return encode(text, file.hasMark);
}

function isProven(
  before: Config,
  text: string,
  { format, sections }: Target,
  expected: readonly ExpectedServer[],
): boolean {
  try {
    const after = readConfig(text, format, sections);
    const newEntries = expected.map(({ entry }) => entryAt(after, entry.path));
    const isAsExpected = newEntries.every((entry, i) =>
      isDeepStrictEqual(wordsOf(entry), expected[i]?.words),
    );
    const oldEntries = expected.map(({ entry }) => entry);
    return isAsExpected && isDeepStrictEqual(rest(before, oldEntries), rest(after, newEntries));
  } catch (error) {
    if (error instanceof TapedeckError) return false;
    throw error;
  }
}

function wordsOf(entry: Entry | undefined): readonly string[] | undefined {
  if (entry?.server.kind === 'stdio') return entry.server.words;
  return entry?.server.kind === 'url' ? [entry.server.url.value.value] : undefined;
}

/** All that the config says, but how these servers are reached. */
function rest({ root }: Config, entries: readonly (Entry | undefined)[]): unknown {
  const members = entries.flatMap((entry) =>
    entry === undefined || entry.server.kind === 'none' ? [] : serverMembers(entry.server),
  );
  return meaningOf(root, new Set<Member>(members));
}

/** Writes the change, unless it is none. */
export function writeChange({ before, after }: ConfigChange, { file }: OpenConfig): void {
  if (!after.equals(before)) replaceClientConfig(file, after);
}
