import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { processStarted } from '../../../src/store/file/process.ts';
import { createTurn } from '../../../src/store/file/turn.ts';
import { start, tempStore } from '../../support/tapedeck.ts';

type Holder = { host: string; pid: number; started: string | null; ageMs: number };

function hold(store: Store, { host, pid, started, ageMs }: Holder): void {
  store
    .prepare('UPDATE upkeep SET host = ?, pid = ?, process_started = ?, at = ?')
    .run(host, pid, started, Date.now() - ageMs);
}

function holder(store: Store): unknown {
  return store.prepare('SELECT pid FROM upkeep').pluck().get();
}

test('the turn is ours until we end it, and may be taken again', () => {
  const store = openStore(tempStore());
  const turn = createTurn(store);
  expect([turn.take(), turn.take(), turn.renew()]).toEqual([true, true, true]);
  expect(holder(store)).toBe(process.pid);
  turn.end();
  expect(holder(store)).toBe(null);
  store.close();
});

test('a process that is alive keeps its turn; one that was killed, or was silent for a minute, loses it', async () => {
  const store = openStore(tempStore());
  const turn = createTurn(store);
  const other = start(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  const pid = other.child.pid ?? 0;
  const started = processStarted(pid);
  hold(store, { host: hostname(), pid, started, ageMs: 10_000 });
  expect(turn.take()).toBe(false);
  turn.end();
  expect(holder(store)).toBe(pid);
  hold(store, { host: hostname(), pid, started, ageMs: 61_000 });
  expect(turn.take()).toBe(true);
  hold(store, { host: hostname(), pid, started: 'another time', ageMs: 0 });
  expect(turn.take()).toBe(true);
  hold(store, { host: hostname(), pid, started, ageMs: 0 });
  other.child.kill('SIGKILL');
  await other.ended;
  expect(turn.take()).toBe(true);
  store.close();
});

test('a process of another host keeps its turn for a minute of silence', () => {
  const store = openStore(tempStore());
  const turn = createTurn(store);
  hold(store, { host: 'elsewhere', pid: 1, started: null, ageMs: 50_000 });
  expect(turn.take()).toBe(false);
  hold(store, { host: 'elsewhere', pid: 1, started: null, ageMs: 61_000 });
  expect(turn.take()).toBe(true);
  store.close();
});
