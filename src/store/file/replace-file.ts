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

/** Takes the pieces of a file, and puts it in its place at the end; false: it is not wanted any more. `drop` leaves nothing behind. */
type FileWriter = { add(piece: string | Uint8Array): void; end(): boolean; drop(): void };

/**
 * Puts a file of these pieces at `target`, which is no symbolic link. What fails leaves nothing behind. Returns false
 * where `confirm` said no. Throws the system's errors.
 */
export function writeWhole(target: string, pieces: Pieces, replacement: Replacement): boolean {
  return writeAll(createWhole(target, replacement), pieces);
}

function writeAll(writer: FileWriter, pieces: Pieces): boolean {
  try {
    for (const piece of pieces) writer.add(piece);
    return writer.end();
  } finally {
    writer.drop();
  }
}

function createWhole(
  target: string,
  { part, mode, owner, confirm = () => true, as = 'replace', rights = OWNER_ONLY }: Replacement,
): FileWriter {
  rmSync(part, { force: true });
  // Nobody else may read it before it has the mode of the file that it replaces.
  let file: number | null = openSync(part, 'wx', mode === undefined ? rights : OWNER_ONLY);
  const pieces = createPieces(file);
  function close(): void {
    if (file !== null) closeSync(file);
    file = null;
  }
  return {
    add: pieces.add,
    end() {
      if (file === null) return false;
      pieces.flush();
      if (owner !== undefined) setOwner(file, owner);
      if (mode !== undefined) fchmodSync(file, mode & 0o7777);
      fsyncSync(file);
      close();
      if (!confirm()) return false;
      // A link fails where there is a file; a rename does not.
      if (as === 'new') linkSync(part, target);
      else renameSync(part, target);
      return true;
    },
    drop() {
      close();
      rmSync(part, { force: true });
    },
  };
}

/** What is no file to be replaced: it is written to. */
function createDevice(target: string): FileWriter {
  const file = openSync(target, 'w');
  const { add, flush } = createPieces(file);
  const end = () => {
    flush();
    return true;
  };
  return { add, end, drop: () => closeSync(file) };
}

function setOwner(file: number, { uid, gid }: { uid: number; gid: number }): void {
  const own = fstatSync(file);
  if (own.uid !== uid || own.gid !== gid) fchownSync(file, uid, gid);
}

/** Small pieces are written together. */
function createPieces(file: number) {
  let waiting = '';
  function flush(): void {
    if (waiting !== '') writeFileSync(file, waiting);
    waiting = '';
  }
  function add(piece: string | Uint8Array): void {
    if (typeof piece === 'string') {
      waiting += piece;
      if (waiting.length >= PIECE_CHARS) flush();
    } else {
      flush();
      writeFileSync(file, piece);
    }
  }
  return { add, flush };
}

type Options = Pick<Replacement, 'as' | 'confirm' | 'rights'>;

/**
 * A file is replaced once the new one is whole, keeps its permissions, and is readable only by its owner unless it was
 * there before or `rights` say otherwise. Of a symbolic link, what it leads to is replaced; a pipe or a device is written to. Returns false
 * where `confirm` said no. Throws `TapedeckError` `io` where it cannot be done.
 */
export function replaceFile(path: string, pieces: Pieces, options: Options = {}): boolean {
  try {
    return writeAll(createWriter(path, options), pieces);
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

/** The same with pieces that take their time. */
export async function replaceFileSlowly(path: string, pieces: AsyncIterable<string>): Promise<void> {
  try {
    const writer = createWriter(path, {});
    try {
      for await (const piece of pieces) writer.add(piece);
      writer.end();
    } finally {
      writer.drop();
    }
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

function createWriter(path: string, options: Options): FileWriter {
  const target = targetOf(path);
  const before = existsSync(target) ? statSync(target) : null;
  if (before !== null && !before.isFile()) return createDevice(target);
  // Others may write the same file at the same time.
  const part = `${target}.${process.pid}.part`;
  return createWhole(target, { part, mode: before?.mode, ...options });
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
