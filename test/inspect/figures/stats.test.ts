import { existsSync, rmSync } from 'node:fs';
import pc from 'picocolors';
import { expect, test } from 'vitest';
import { figuresText, readFigures } from '../../../src/inspect/figures/call-figures.ts';
import { eachFigures, summedFigures } from '../../../src/inspect/figures/kept-figures.ts';
import { prepareFigures } from '../../../src/inspect/figures/session-figures.ts';
import { type Grouping, putTogether } from '../../../src/inspect/figures/stats.ts';
import { parseFilter } from '../../../src/inspect/filter/filter.ts';
import { selectFrames } from '../../../src/inspect/filter/sql.ts';
import { groupJson, statsLines, totalJson } from '../../../src/inspect/view/stats.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { forgetSessions, openSideFile } from '../../../src/store/keep/side-file.ts';
import { eachSession, findSession } from '../../../src/store/read/sessions.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

const say = (channel: string, ms: number, message: object) => ({
  ms,
  channel,
  message: { jsonrpc: '2.0', ...message },
});
const call = (id: number, name: string) => ({ id, method: 'tools/call', params: { name } });

const PLAIN = { colors: pc.createColors(false), width: 120 };

/** Three calls of `echo` at once, of which one fails; one that is cancelled, one open; a question of the server. */
const FRAMES = [
  say('stdin', 0, call(1, 'echo')),
  say('stdin', 1, call(2, 'echo')),
  say('stdin', 1, call(3, 'echo')),
  say('stdout', 9, { id: 1, result: { content: [] } }),
  say('stdout', 9, { id: 2, result: { content: [], isError: true } }),
  say('stdout', 80, { id: 3, error: { code: 1, message: 'no' } }),
  say('stdin', 1, call(4, 'slow')),
  say('stdin', 1, { method: 'notifications/cancelled', params: { requestId: 4 } }),
  say('stdin', 1, call(5, 'never')),
  say('stdout', 1, { id: 1, method: 'sampling/createMessage', params: {} }),
  say('stdin', 4, { id: 1, result: {} }),
  say('stdin', 1, { id: 6, method: 'ping' }),
  say('stdout', 2, { id: 6, result: {} }),
];

function addSession(store: Store, name: string, frames: readonly object[] = FRAMES): Promise<string> {
  const startedAt = '2026-11-20T10:00:00.000000Z';
  const session = {
    name,
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'x',
    command: ['x'],
    startedAt,
  };
  const lines = [{ tapedeck: 1, session }, ...frames];
  return importText(store, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

function statsOf(store: Store, by: Grouping) {
  return putTogether(eachFigures(store, null, eachSession(store), 'test'), by, true);
}

const line = (group: Parameters<typeof groupJson>[0]) => JSON.parse(JSON.stringify(groupJson(group)));

test('calls are counted by who asked what, and by how they ended', async () => {
  const store = openStore(tempStore());
  await addSession(store, 'one');
  const { groups, calls, sessions } = statsOf(store, 'tool');
  expect(sessions).toBe(1);
  expect(calls.count).toBe(7);
  const bytesOf = (frame: object | undefined) =>
    JSON.stringify((frame as { message: object }).message).length;
  const found = groups.map(line);
  expect(found.map(({ askedBy, method, target, count }) => [askedBy, method, target, count])).toEqual([
    ['client', 'tools/call', 'echo', 3],
    ['client', 'ping', null, 1],
    ['client', 'tools/call', 'never', 1],
    ['client', 'tools/call', 'slow', 1],
    ['server', 'sampling/createMessage', null, 1],
    ['client', 'notifications/cancelled', null, 1],
  ]);
  expect(found[0]).toMatchObject({ ok: 1, toolErrors: 1, errors: 1, cancelled: 0, unanswered: 0, atOnce: 3 });
  expect(found[0]).toMatchObject({ minMs: 11, p50Ms: expect.closeTo(19, 0), p95Ms: 98, maxMs: 98 });
  expect(found[2]).toMatchObject({ unanswered: 1, minMs: null, p50Ms: null, histogram: [] });
  expect(found[3]).toMatchObject({ cancelled: 1, unanswered: 0 });
  expect(found[5]).toEqual({
    kind: 'notification',
    askedBy: 'client',
    method: 'notifications/cancelled',
    target: null,
    count: 1,
    bytes: bytesOf(FRAMES[7]),
  });
  expect(found[1].bytes).toBe(bytesOf(FRAMES[11]) + bytesOf(FRAMES[12]));
  store.close();
});

test('by method tools are together, by session all calls are; at once counts what is under way together', async () => {
  const store = openStore(tempStore());
  await addSession(store, 'one');
  await addSession(store, 'two', FRAMES.slice(0, 6));
  const [tools] = statsOf(store, 'method').groups.map(line);
  expect(tools).toMatchObject({ method: 'tools/call', target: null, count: 8, unanswered: 1, atOnce: 3 });
  const sessions = statsOf(store, 'session').groups.map(line);
  expect(sessions.map(({ name, count, atOnce }) => [name, count, atOnce]).toSorted()).toEqual([
    ['one', 7, 3],
    ['two', 3, 3],
  ]);
  store.close();
});

test('a filter leaves the calls for which it holds', async () => {
  const store = openStore(tempStore());
  const session = findSession(store, await addSession(store, 'one'));
  const only = selectFrames(store, parseFilter('tool=echo dur>15ms', 0));
  const { topics } = prepareFigures(store, only)(session);
  expect(topics.map(({ target, count }) => [target, count])).toEqual([['echo', 2]]);
  store.close();
});

test('figures that are kept are those that would be made', async () => {
  const store = openStore(tempStore());
  await addSession(store, 'one');
  await addSession(store, 'two', FRAMES.slice(0, 3));
  for (const session of eachSession(store)) {
    const made = prepareFigures(store)(session);
    expect(readFigures(figuresText(made))).toEqual(made);
  }
  store.close();
});

test('the sum is the same made at once, step by step, and after a session is gone or has changed', async () => {
  const store = openStore(tempStore());
  const side = openSideFile(store);
  const summed = (version = 'a') =>
    putTogether(summedFigures(store, side, [...eachSession(store)], version), 'tool', true);
  const isRight = (version = 'a') => expect(summed(version)).toEqual(statsOf(store, 'tool'));

  await addSession(store, 'one');
  isRight();
  const two = await addSession(store, 'two', FRAMES.slice(0, 5));
  isRight();
  await addSession(store, 'three', FRAMES.slice(3));
  isRight();
  isRight();
  isRight('b');
  forgetSessions(store, [two]);
  store.pragma('foreign_keys = ON');
  store.prepare('DELETE FROM session WHERE id = ?').run(two);
  isRight();
  expect(summed().sessions).toBe(2);
  side.close();
  rmSync(`${store.name}.index`);
  expect(existsSync(`${store.name}.index`)).toBe(false);
  store.close();
});

test('the table and its histogram show it to people', async () => {
  const store = openStore(tempStore());
  await addSession(store, 'one');
  const lines = [...statsLines(statsOf(store, 'tool'), PLAIN, { isPlain: true, isWhole: true })];
  expect(lines[0]).toContain('1 session, 7 calls, 2 errors, 1 unanswered');
  expect(lines.slice(1, 3)).toEqual([
    'lost: 1 cancelled',
    'time: server 103 ms, person 4.00 ms, client 4.00 ms',
  ]);
  expect(lines[4]).toMatch(/METHOD +TOOL +COUNT +ERRORS +OPEN +CANCELLED +P50 +P95 +P99 +MAX +AT ONCE +SIZE/);
  expect(lines[5]).toMatch(/→ +tools\/call +echo +3 +2 +0 +0 +19 ms +98 ms +98 ms +98 ms +3 +\d+ B/);
  expect(lines).toContainEqual(expect.stringMatching(/^latency of 5 answered calls$/));
  expect(lines.join('\n')).toMatch(/10 ms – +20 ms {2}#+ 2\n/);
  expect(
    [...statsLines(statsOf(store, 'tool'), PLAIN, { isPlain: false, isWhole: true })].join('\n'),
  ).toMatch(/20 ms {2}█+/);
  store.close();
});

/** Makes what is recorded one of a sample: of so many, as a recorder or the end of its session would. */
function setSample(store: Store, id: string, sample: number): void {
  store.prepare('UPDATE session SET sample = ? WHERE id = ?').run(sample, id);
}

test('sessions of a sample count for as many as they stand for, and what is not in it for nothing', async () => {
  const store = openStore(tempStore());
  const side = openSideFile(store);
  await addSession(store, 'whole');
  setSample(store, await addSession(store, 'one in ten'), 0.1);
  setSample(store, await addSession(store, 'one in four', FRAMES.slice(0, 6)), 0.25);
  setSample(store, await addSession(store, 'kept for its errors'), 1);
  setSample(store, await addSession(store, 'left out'), 0);
  const summed = () => putTogether(summedFigures(store, side, [...eachSession(store)], 'a'), 'tool', true);
  const stats = statsOf(store, 'tool');
  // 7 calls each: 1 + 10 + 1 sessions of them; and 3 calls of 4 sessions.
  expect([stats.sessions, stats.calls.count]).toEqual([16, 12 * 7 + 4 * 3]);
  expect(stats.sample).toEqual({ isScaled: true, recorded: 4, sampled: 2, leftOut: 1 });
  const [echo] = stats.groups.map(line);
  expect(echo).toMatchObject({ target: 'echo', scaled: true, count: 12 * 3 + 4 * 3 });
  expect(echo.ok + echo.toolErrors + echo.errors + echo.cancelled + echo.unanswered).toBe(echo.count);
  expect(totalJson(stats)).toMatchObject({
    sessions: 16,
    scaled: true,
    recordedSessions: 4,
    sampledSessions: 2,
  });
  expect([summed(), summed()]).toEqual([stats, stats]);
  side.close();
  store.close();
});

test('rows of sessions are never scaled, nor is one session, and both say so', async () => {
  const store = openStore(tempStore());
  setSample(store, await addSession(store, 'one in ten'), 0.1);
  setSample(store, await addSession(store, 'left out'), 0);
  const rows = statsOf(store, 'session');
  expect(rows.groups.map(line).map(({ count }) => count)).toEqual([7, 7]);
  const text = [...statsLines(rows, PLAIN, { isPlain: true, isWhole: false })].join('\n');
  expect(text).toContain(
    'not scaled: 1 of 2 sessions stand for more than themselves\nnot in the sample: 1 of them',
  );
  const estimated = [...statsLines(statsOf(store, 'tool'), PLAIN, { isPlain: true, isWhole: false })];
  expect(estimated.slice(0, 3)).toEqual([
    '10 sessions, 70 calls, 20 errors, 10 unanswered',
    'estimated: 1 recorded session for about 10; counts, bytes and times are scaled by the rates',
    'not counted: 1 session, not in the sample',
  ]);
  store.close();
});
