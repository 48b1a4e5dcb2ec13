/** What stands in the way of recording, in words, and whether waiting may help. */
import { TapedeckError } from '../../errors.ts';

/** `hasRoom`: a file beside the one with the trouble could be written. */
export type Trouble = { text: string; isPassing: boolean; hasRoom: boolean };

const PASSING: readonly [code: string, text: string][] = [
  ['SQLITE_FULL', 'the disk is full'],
  ['SQLITE_BUSY', 'another process keeps it locked'],
  ['SQLITE_LOCKED', 'another process keeps it locked'],
  ['SQLITE_IOERR', 'the disk reports an error'],
];

const LASTING: readonly [code: string, text: string][] = [
  ['SQLITE_CORRUPT', 'the file is damaged'],
  ['SQLITE_NOTADB', 'the file is not an SQLite database'],
  ['SQLITE_READONLY', 'it is read-only'],
  ['SQLITE_CANTOPEN', 'it cannot be opened'],
  ['EACCES', 'access is denied'],
  ['EPERM', 'access is denied'],
  ['EROFS', 'the file system is read-only'],
  ['ENOTDIR', 'its folder is not a folder'],
  ['EISDIR', 'it is a folder'],
];

/** Explains why the store could not be opened or written. */
export function troubleOf(error: unknown): Trouble {
  const { code = '', message } = error as { code?: string; message: string };
  if (error instanceof TapedeckError) return { text: message, isPassing: false, hasRoom: true };
  const passing = PASSING.find(([prefix]) => code.startsWith(prefix));
  const hasRoom = !code.startsWith('SQLITE_FULL');
  if (passing !== undefined) return { text: `${passing[1]} (${code})`, isPassing: true, hasRoom };
  const lasting = LASTING.find(([prefix]) => code.startsWith(prefix));
  return { text: lasting === undefined ? message : `${lasting[1]} (${code})`, isPassing: false, hasRoom };
}
