/** Reads a client's config file, and replaces it whole or not at all. */
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type ErrorCode, readFailure, TapedeckError } from '../errors.ts';
import { type Replacement, writeWhole } from '../store/file/replace-file.ts';

export type ClientConfigFile = {
  /** As it was named. */
  name: string;
  /** Where it really is: behind symbolic links. */
  path: string;
  bytes: Buffer;
  /** Without the byte order mark, if there is one. */
  text: string;
  hasMark: boolean;
};

const MARK = '\ufeff';

/** A config is read as a whole, and the largest seen have a few megabytes. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Throws `TapedeckError`: `not-found`, `io`, `refused` where it is no file or too large, `corrupt` where it is no UTF-8. */
export function readClientConfig(name: string): ClientConfigFile {
  const path = attempt('it cannot be read', () => realpathSync(name));
  const stat = attempt('it cannot be read', () => statSync(path));
  if (!stat.isFile()) throw unfit('refused', 'it is not a file');
  if (stat.size > MAX_BYTES) throw unfit('refused', 'it is larger than 64 MiB: no client has such a config');
  const bytes = attempt('it cannot be read', () => readFileSync(path));
  const whole = decode(bytes);
  const hasMark = whole.startsWith(MARK);
  return { name, path, bytes, text: hasMark ? whole.slice(1) : whole, hasMark };
}

/** The file as it would be with another text. */
export function changedTo(file: ClientConfigFile, text: string): ClientConfigFile {
  return { ...file, text, bytes: encode(text, file.hasMark) };
}

export function encode(text: string, hasMark: boolean): Buffer {
  return Buffer.from(hasMark ? MARK + text : text);
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw unfit('corrupt', 'it is not UTF-8', error);
  }
}

/**
 * Puts new bytes in the file's place, with its mode and owner. Throws `TapedeckError`: `refused` where that is not
 * allowed, `busy` where the file is no longer what was read, `io` where it cannot be written.
 */
export function replaceClientConfig({ path, bytes: old }: ClientConfigFile, bytes: Buffer): void {
  const stat = attempt('it cannot be written', () => statSync(path));
  // To rename another file over it would work, but its owner has said that it shall stay as it is.
  if ((stat.mode & 0o222) === 0) throw unfit('refused', 'it is read-only');
  const confirm = () => readFileSync(path).equals(old);
  if (!writeConfig(path, bytes, { mode: stat.mode, owner: stat, confirm }))
    throw unfit('busy', 'its client has just changed it; try again');
}

/** Writes a file whole or not at all. Returns false where `confirm` said no. Throws `TapedeckError` `io`. */
export function writeConfig(
  path: string,
  bytes: Buffer,
  options: Pick<Replacement, 'mode' | 'owner' | 'confirm'> = {},
): boolean {
  // Always the same name, so that a kill leaves one at most; one tapedeck at a time is at work.
  const part = join(dirname(path), `.${basename(path)}.tapedeck`);
  return attempt('it cannot be written', () => writeWhole(path, [bytes], { part, ...options }));
}

function attempt<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TapedeckError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw unfit(
      readFailure(error),
      `${what}: ${code === 'ENOENT' ? 'there is no such file' : message}`,
      error,
    );
  }
}

function unfit(code: ErrorCode, reason: string, cause?: unknown): TapedeckError {
  return new TapedeckError(code, reason, { cause });
}
