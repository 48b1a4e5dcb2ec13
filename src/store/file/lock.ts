import { join } from 'node:path';
import Database from 'better-sqlite3';
import { TapedeckError } from '../../errors.ts';
import { holdHandles } from './handles.ts';
import { makeFolder } from './path.ts';
import { troubleOf } from './trouble.ts';

const WAIT_MS = 10_000;

holdHandles(() => new Database(':memory:'), 'ifNeeded');

/**
 * Lets one process at a time work with a folder. The lock is SQLite's own: the system takes it away from a process that
 * dies. Throws `TapedeckError`: `busy` where another one keeps it, `io` where the folder cannot be used.
 */
export async function withLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const lock = take(folder);
  try {
    return await work();
  } finally {
    lock.close();
  }
}

function take(folder: string): Database.Database {
  let lock: Database.Database | undefined;
  try {
    makeFolder(folder, 0o700);
    lock = new Database(join(folder, 'lock.db'), { timeout: WAIT_MS });
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock?.close();
    const isBusy = (error as { code?: string }).code === 'SQLITE_BUSY';
    const reason = isBusy ? 'another tapedeck is at work there; try again' : troubleOf(error).text;
    throw new TapedeckError(isBusy ? 'busy' : 'io', `Cannot use ${folder}: ${reason}`, { cause: error });
  }
}
