/** One change of one config: what becomes of each server, and the file's new bytes; proven before it is written. */
import { isDeepStrictEqual } from 'node:util';
import { TapedeckError } from '../errors.ts';
import { type Config, type Entry, readConfig } from './config.ts';
import { applyEdits, type Edit, membersOf } from './edits.ts';
import { encode, replaceConfigFile } from './file.ts';
import { type Member, meaningOf } from './source.ts';
import type { Target } from './targets.ts';
import { entryAt, type OpenConfig } from './wrapped.ts';

/** `unchanged`: there is nothing to do. */
export type Outcome = 'wrapped' | 'unwrapped' | 'unchanged' | 'refused';

export type Row = {
  entry: Entry;
  outcome: Outcome;
  /** Why it is so, or what it means. */
  note: string;
};

export type Change = {
  target: Target;
  rows: readonly Row[];
  before: Buffer;
  after: Buffer;
  /** Where the copy of the file is, while it is wrapped. */
  copyFolder: string;
};

/** How a server is to be reached after the edit: its words, or its URL alone. */
export type Expected = { entry: Entry; words: readonly string[] };

/**
 * The file with the edits made. Throws `TapedeckError` `usage` where anything else would be different from before: then
 * the fault is tapedeck's, and the file stays as it is.
 */
export function editConfig(open: OpenConfig, edits: readonly Edit[], expected: readonly Expected[]): Buffer {
  const { config, file, target } = open;
  const text = applyEdits(config.text, edits);
  if (!isProven(config, text, target, expected)) {
    throw new TapedeckError(
      'usage',
      'it cannot be edited without changing more than its servers. This is a fault of tapedeck: please report it',
    );
  }
  return encode(text, file.hasMark);
}

function isProven(
  before: Config,
  text: string,
  { format, sections }: Target,
  expected: readonly Expected[],
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
    entry === undefined || entry.server.kind === 'none' ? [] : membersOf(entry.server),
  );
  return meaningOf(root, new Set<Member>(members));
}

/** Writes the change, unless it is none. */
export function writeChange({ before, after }: Change, { file }: OpenConfig): void {
  if (!after.equals(before)) replaceConfigFile(file, after);
}
