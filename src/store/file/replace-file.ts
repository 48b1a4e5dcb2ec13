/** Writes files whole or not at all: after a crash there is the old file or the new one. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
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
import { TapedeckError } from '../../errors.ts';

type Pieces = Iterable<string | Uint8Array>;

export type Replacement = {
  /** Where the new file is written first. In the same folder, so that it takes the old one's place in one step. */
  part: string;
  /** Whose mode it gets; without it the file is for its owner alone. */
  mode?: number | undefined;
  owner?: { uid: number; gid: number };
  /** Called when the new file is whole, just before it takes its place. False: it does not. */
  confirm?: () => boolean;
  /** `new`: fails with EEXIST where there is a file. */
  as?: 'new' | 'replace';
  /** Of a new file, before the umask; without it the file is for its owner alone. */
  rights?: number;
};

const OWNER_ONLY = 0o600;

const PIECE_CHARS = 64 * 1024;

/**
 * Puts a file of these pieces at `target`, which is no symbolic link. What fails leaves nothing behind. Returns false
 * where `confirm` said no. Throws the system's errors.
 */
export function writeWhole(
  target: string,
  pieces: Pieces,
  { part, mode, owner, confirm = () => true, as = 'replace', rights = OWNER_ONLY }: Replacement,
): boolean {
  rmSync(part, { force: true });
  try {
    // Nobody else may read it before it has the mode of the file that it replaces.
    const file = openSync(part, 'wx', mode === undefined ? rights : OWNER_ONLY);
    try {
      writePieces(file, pieces);
      if (owner !== undefined) setOwner(file, owner);
      if (mode !== undefined) fchmodSync(file, mode & 0o7777);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (!confirm()) return false;
    // A link fails where there is a file; a rename does not.
    if (as === 'new') linkSync(part, target);
    else renameSync(part, target);
    return true;
  } finally {
    rmSync(part, { force: true });
  }
}

function setOwner(file: number, { uid, gid }: { uid: number; gid: number }): void {
  const own = fstatSync(file);
  if (own.uid !== uid || own.gid !== gid) fchownSync(file, uid, gid);
}

/** Small pieces are written together. */
function writePieces(file: number, pieces: Pieces): void {
  let waiting = '';
  const write = () => {
    if (waiting !== '') writeFileSync(file, waiting);
    waiting = '';
  };
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      waiting += piece;
      if (waiting.length >= PIECE_CHARS) write();
    } else {
      write();
      writeFileSync(file, piece);
    }
  }
  write();
}

/**
 * A file is replaced once the new one is whole, keeps its permissions, and is readable only by its owner unless it was
 * there before or `rights` say otherwise. Of a symbolic link, what it leads to is replaced; a pipe or a device is written to. Returns false
 * where `confirm` said no. Throws `TapedeckError` `io` where it cannot be done.
 */
export function replaceFile(
  path: string,
  pieces: Pieces,
  options: Pick<Replacement, 'as' | 'confirm' | 'rights'> = {},
): boolean {
  try {
    const target = targetOf(path);
    const before = existsSync(target) ? statSync(target) : null;
    if (before === null || before.isFile()) {
      // Others may write the same file at the same time.
      const part = `${target}.${process.pid}.part`;
      return writeWhole(target, pieces, { part, mode: before?.mode, ...options });
    }
    const file = openSync(target, 'w');
    try {
      writePieces(file, pieces);
    } finally {
      closeSync(file);
    }
    return true;
  } catch (error) {
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

/** The error itself where it is not the file's. */
export function cannotWrite(path: string, error: unknown): unknown {
  const isFileError = error instanceof Error && 'syscall' in error;
  if (!isFileError) return error;
  return new TapedeckError('io', `${path} cannot be written: ${error.message}.`, { cause: error });
}
