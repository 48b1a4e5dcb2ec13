/** Recordings that several tests of a file need: made by the first of them, copied for all others. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tempStore } from './tapedeck.ts';

/** `make` fills a new store, and has closed it when it settles. Each call returns the path of a copy. */
export function storeOnce(make: (db: string) => Promise<unknown>): () => Promise<string> {
  let files: Promise<ReadonlyMap<string, Buffer>> | undefined;

  async function made(): Promise<ReadonlyMap<string, Buffer>> {
    const db = tempStore();
    await make(db);
    const folder = dirname(db);
    return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  }

  return async () => {
    files ??= made();
    const db = tempStore();
    for (const [name, bytes] of await files) writeFileSync(join(dirname(db), name), bytes);
    return db;
  };
}
