/** An engine, a host that ships to it and somebody who reads from it. */
import { expect } from 'vitest';
import { openStore, type Store } from '../../src/store/file/open.ts';
import { type Database, newDatabase } from './engine.ts';
import { tapedeckInProcess, tempFolder, tempStore } from './tapedeck.ts';

/** What an engine with a host's store has to do with it: who writes there, who reads. */
export type Fleet = { database: Database; host: string; reader: string; env: Record<string, string> };

export async function fleet(): Promise<Fleet> {
  const database = await newDatabase();
  const { code, stderr } = await tapedeckInProcess(['engine', 'init', '--to', database.url]);
  if (code !== 0) throw new Error(stderr);
  const [host, reader] = [await database.login('tapedeck_ship'), await database.login('tapedeck_read')];
  return { database, host, reader, env: { XDG_CACHE_HOME: tempFolder() } };
}

export async function ship({ host }: Fleet, file: string): Promise<void> {
  const options = ['--imported', '--ship-unredacted', '--to', host, '--db', file];
  const { code, stderr } = await tapedeckInProcess(['ship', '--once', ...options]);
  if (code !== 0) throw new Error(stderr);
}

export function newStore(fill: (store: Store) => void): string {
  const file = tempStore();
  const store = openStore(file);
  fill(store);
  store.close();
  return file;
}

/** Runs a command on the local store and on the engine. What it prints on the engine is what it prints here. */
export async function expectSame(
  { reader, env }: Fleet,
  file: string,
  words: readonly string[],
): Promise<string> {
  const [local, central] = await Promise.all(
    [file, reader].map((db) =>
      tapedeckInProcess([...words.slice(0, 1), '--db', db, ...words.slice(1)], { env }),
    ),
  );
  expect({ words, ...outcome(central) }).toEqual({ words, ...outcome(local) });
  return String(central?.stdout);
}

function outcome(run: { code: number | null; stdout: Buffer; stderr: string } | undefined) {
  return { code: run?.code, stdout: String(run?.stdout), stderr: run?.stderr };
}
