/** What is kept once a session has ended: what the filter asks for, and a share of the rest. */
import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { decideEnded } from '../../../src/inspect/sample/judge.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { drawOf, type OpenDecision } from '../../../src/store/sample/sampling.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

const FAILED = { id: 1, error: { code: -32000, message: 'the quota is used up' } };
const OK = { id: 1, result: { content: [] } };

/** A call of `tool`, answered after so many milliseconds. */
function addCall(store: Store, name: string, tool: string, ms: number, answer: object): Promise<string> {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool } };
  const lines = [
    {
      tapedeck: 1,
      session: {
        name,
        basis: 'stdio-process',
        transport: 'stdio',
        target: 'x',
        command: ['x'],
        startedAt: '2026-11-20T10:00:00.000000Z',
      },
    },
    { ms: 0, channel: 'stdin', message: call },
    { ms, channel: 'stdout', message: { jsonrpc: '2.0', ...answer } },
  ];
  return importText(store, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

function leaveOpen(
  store: Store,
  id: string,
  { rate = 0, draw = 0.5, keep = null }: Partial<OpenDecision>,
): void {
  const decision: OpenDecision = { rate, draw, keep };
  store
    .prepare("UPDATE session SET sampling = ?, end_reason = 'stopped' WHERE id = ?")
    .run(JSON.stringify(decision), id);
}

const samples = (store: Store) =>
  store
    .prepare<[], [string, number]>('SELECT name, sample FROM session WHERE sampling IS NULL ORDER BY number')
    .raw()
    .all();

test.each([
  ['status~error', ['failed']],
  ['status~error or dur>2s', ['failed', 'slow']],
  ['dur>500ms not tool=read', ['slow']],
  ['tool=read', ['plain', 'failed']],
  ['quota', ['failed']],
  ['text~/used\\s+up/', ['failed']],
  ['code=-32000', ['failed']],
  ['name=slow', ['slow']],
  ['transport=http', []],
  ['not status~error', ['plain', 'slow']],
])('%s keeps the sessions that list shows with it', async (keep, kept) => {
  const store = openStore(tempStore());
  const ids = [
    await addCall(store, 'plain', 'read', 5, OK),
    await addCall(store, 'failed', 'read', 5, FAILED),
    await addCall(store, 'slow', 'write', 3000, OK),
  ];
  for (const id of ids) leaveOpen(store, id, { keep });
  expect(decideEnded(store)).toBe(0);
  expect(samples(store)).toEqual(
    ['plain', 'failed', 'slow'].map((name) => [name, kept.includes(name) ? 1 : 0]),
  );
  store.close();
});

test('of the rest exactly those stay whose draw says so, and each stands for as many as were not kept', async () => {
  const store = openStore(tempStore());
  const names = Array.from({ length: 30 }, (_, i) => `key-${i}`);
  for (const name of names)
    leaveOpen(store, await addCall(store, name, 'read', 5, OK), {
      rate: 0.25,
      draw: drawOf(name),
      keep: 'status~error',
    });
  decideEnded(store);
  expect(samples(store)).toEqual(names.map((name) => [name, drawOf(name) < 0.25 ? 0.25 : 0]));
  store.close();
});

test('a session that is recorded still waits; one whose recorder was killed before it could name it stays', async () => {
  const store = openStore(tempStore());
  const open = await addCall(store, 'open', 'read', 5, OK);
  leaveOpen(store, open, { keep: 'status~error' });
  store
    .prepare(
      'UPDATE session SET end_reason = NULL, imported_at = NULL, host = ?, pid = ?, process_started = NULL WHERE id = ?',
    )
    .run(hostname(), process.pid, open);
  leaveOpen(store, await addCall(store, 'unnamed', 'read', 5, OK), {});
  expect(decideEnded(store)).toBe(1);
  expect(samples(store)).toEqual([['unnamed', null]]);
  store.prepare("UPDATE session SET end_reason = 'stopped' WHERE id = ?").run(open);
  expect(decideEnded(store)).toBe(0);
  expect(samples(store)).toEqual([
    ['open', 0],
    ['unnamed', null],
  ]);
  store.close();
});
