/** A thread beside a recorder that reads how far the shipping of its stores is: in a large store that takes longer than traffic should wait. */

import { existsSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { openUnchanged, type Store } from '../store/file/open.ts';
import { readShipFigures, type ShipFigures } from './figures.ts';

const stores = new Map<string, Store>();

/** Undefined: the store cannot be read at this moment. The recorder itself says what is wrong with it. */
function read(file: string): ShipFigures | null | undefined {
  try {
    const store = stores.get(file) ?? (existsSync(file) ? openUnchanged(file) : null);
    if (store === null) return undefined;
    stores.set(file, store);
    return readShipFigures(store);
  } catch {
    stores.get(file)?.close();
    stores.delete(file);
    return undefined;
  }
}

parentPort?.on('message', (files: string[]) =>
  parentPort?.postMessage(files.map((file) => [file, read(file)] as const)),
);
