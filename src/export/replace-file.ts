/** Writing a file whole or not at all. */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { TapedeckError } from '../errors.ts';

const PIECE_CHARS = 64 * 1024;

const PERMISSIONS = 0o777;

/**
 * A file is replaced once the new one is whole, keeps its permissions, and is readable only by its owner unless it was
 * there before; of a symbolic link what it leads to. As `new` it must not be there yet. Throws `TapedeckError` `io` where that cannot be done.
 */
export function replaceFile(path: string, pieces: Iterable<string>, as: 'new' | 'replace' = 'replace'): void {
  const target = targetOf(path);
  const before = existsSync(target) ? statSync(target) : null;
  const isPlain = before === null || before.isFile();
  const written = isPlain ? partOf(target) : target;
  try {
    const file = openSync(written, 'w', before === null ? 0o600 : before.mode & PERMISSIONS);
    try {
      writePieces(file, pieces);
      if (isPlain) fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (!isPlain) return;
    if (before !== null && as === 'replace') chmodSync(written, before.mode & PERMISSIONS);
    if (as === 'new') {
      linkSync(written, target);
      rmSync(written);
    } else renameSync(written, target);
  } catch (error) {
    if (isPlain) rmSync(written, { force: true });
    throw cannotWrite(path, error);
  }
}

/** Says beforehand what would go wrong: throws `TapedeckError` `io` where no file can be made beside it. */
export function checkReplaceable(path: string): void {
  try {
    accessSync(dirname(targetOf(path)), constants.W_OK);
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

/** What a path leads to. */
export function targetOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/** Where the new file is written, in the same folder, so that it can take the old one's place in one step. */
export function partOf(target: string): string {
  return `${target}.${process.pid}.part`;
}

export function writePieces(file: number, pieces: Iterable<string>): void {
  let waiting = '';
  for (const piece of pieces) {
    waiting += piece;
    if (waiting.length < PIECE_CHARS) continue;
    writeFileSync(file, waiting);
    waiting = '';
  }
  writeFileSync(file, waiting);
}

/** The error itself where it is not the file's. */
export function cannotWrite(path: string, error: unknown): unknown {
  const isFileError = error instanceof Error && 'syscall' in error;
  if (!isFileError) return error;
  return new TapedeckError('io', `${path} cannot be written: ${error.message}.`, { cause: error });
}
