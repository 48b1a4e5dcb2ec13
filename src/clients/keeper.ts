/**
 * Keeps, for each config that was wrapped, a copy of the file without tapedeck in it and the URLs that it had. Both may
 * hold secrets, so only the user can read them.
 */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { TapedeckError } from '../errors.ts';
import { makeFolder } from '../store/file/path.ts';
import { writeConfig } from './file.ts';

/** A URL entry whose server is reached through a local port. */
export type WrappedUrl = {
  port: number;
  url: string;
  /** The URL as it stood in the file, quotes and escapes and all. */
  source: string;
  /** The store to record into, where one was named. */
  db: string | null;
};

export type WrapRecord = {
  file: string;
  /** SHA-256 of the file as tapedeck has written it. While the file is that, the copy is what it was before. */
  writtenAs: string;
  urls: readonly WrappedUrl[];
};

export type Keeper = {
  /** What is kept of this file (its real path); null where it was never wrapped. */
  of(file: string): WrapRecord | null;
  all(): WrapRecord[];
  /** Null if somebody has removed it. */
  copyOf(file: string): Buffer | null;
  /** Where the copy is. */
  folderOf(file: string): string;
  /** Writes the copy first: alone, it means nothing. */
  keep(kept: WrapRecord, copy: Buffer): void;
  forget(file: string): void;
};

const STATE = 'wrapped.json';

export function openKeeper(folder: string): Keeper {
  const folderOf = (file: string) => join(folder, `${basename(file)}-${sha256(file).slice(0, 12)}`);
  const copyPath = (file: string) => join(folderOf(file), `original${extname(file)}`);
  return {
    folderOf,
    of: (file) => readRecord(join(folderOf(file), STATE)),
    all() {
      const folders = existsSync(folder) ? readdirSync(folder).toSorted() : [];
      return folders.flatMap((name) => readRecord(join(folder, name, STATE)) ?? []);
    },
    copyOf: (file) => (existsSync(copyPath(file)) ? readFileSync(copyPath(file)) : null),
    keep(kept, copy) {
      makeFolder(folderOf(kept.file), 0o700);
      writeConfig(copyPath(kept.file), copy);
      writeConfig(join(folderOf(kept.file), STATE), Buffer.from(`${JSON.stringify(kept)}\n`));
    },
    forget: (file) => rmSync(folderOf(file), { recursive: true, force: true }),
  };
}

export function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

function readRecord(path: string): WrapRecord | null {
  if (!existsSync(path)) return null;
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as WrapRecord;
  } catch (error) {
    throw new TapedeckError(
      error instanceof SyntaxError ? 'corrupt' : 'io',
      `${path} cannot be read: ${(error as Error).message}`,
      { cause: error },
    );
  }
}
