import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { ROOT, start, tempStore } from '../../support/tapedeck.ts';

const moduleAt = (path: string) => JSON.stringify(pathToFileURL(join(ROOT, path)).href);

/** Makes handles of every kind, closed and not, drops them, and says how many the garbage collector took. */
const SCRIPT = `
import { createRequire } from 'node:module';
const Database = createRequire(${moduleAt('package.json')})('better-sqlite3');
if (process.argv[1] === 'held') {
  const { holdHandles } = await import(${moduleAt('build/store/file/handles.js')});
  holdHandles(() => new Database(':memory:'), 'always');
}
const dropped = [];
(() => {
  for (let i = 0; i < 20; i += 1) {
    const database = new Database(':memory:');
    database.exec('CREATE TABLE t (a)');
    const statement = database.prepare('SELECT 1 AS one');
    const rows = statement.iterate();
    dropped.push(new WeakRef(statement), new WeakRef(rows));
    for (const _ of rows);
    const native = Object.getOwnPropertySymbols(database).map((key) => database[key]).find((one) => one?.prepare);
    dropped.push(new WeakRef(native));
    if (i % 2 === 0) database.close();
  }
})();
await new Promise((resolve) => setImmediate(resolve));
gc();
await new Promise((resolve) => setImmediate(resolve));
gc();
console.log(dropped.filter((one) => one.deref() === undefined).length);
`;

async function countCollected(how: 'held' | 'loose'): Promise<number> {
  const args = ['--expose-gc', '--input-type=module', '-e', SCRIPT, how];
  const { code, stdout, stderr } = await start(process.execPath, args).ended;
  expect([code, stderr]).toEqual([0, '']);
  return Number(stdout.toString());
}

test('handles that are held are never collected, closed or not: newer Node does not survive that', async () => {
  expect(await countCollected('held')).toBe(0);
});

test('a process that opens stores and drops what it got from them lives, whatever is collected when', async () => {
  const script = `
    const { openStore } = await import(${moduleAt('build/store/file/open.js')});
    for (const name of ['one', 'two', 'three']) {
      const store = openStore(process.argv[1] + name);
      for (let i = 0; i < 300; i += 1) {
        for (const _ of store.prepare('SELECT 1').iterate());
        // The garbage collector is fatal amid promises alone, where no context is entered; gc() is called in one.
        Array.from({ length: 2000 }, (_, n) => [n]);
        await null;
      }
      store.close();
    }`;
  const args = ['--input-type=module', '-e', script, tempStore()];
  const { code, signal, stderr } = await start(process.execPath, args).ended;
  expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
});
