import Database from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { answered, asked, ended, JSON_TYPE, rpc, startRecording } from '../../support/http-store.ts';
import { scale } from '../../support/scale.ts';

const INITIALIZE = rpc({
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'soak', version: '1' } },
});
const GREETED = rpc({
  id: 0,
  result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } },
});
/** In `npm test` a hundredth: each takes a third of a millisecond. */
const SESSIONS = scale(200_000) < 200_000 ? 2000 : 200_000;
const PARTS = 10;
const AT_ONCE = 200;

/** A session is opened, and left open or, every other one, deleted. */
function sessionEvents(number: number) {
  const first = number * 2 + 1;
  const id = ['Mcp-Session-Id', `s-${number}`];
  return [
    ...asked(first, { body: INITIALIZE }),
    ...answered(first, { headers: [...JSON_TYPE, ...id], body: GREETED }),
    ended(first),
    ...(number % 2 === 0
      ? []
      : [...asked(first + 1, { method: 'DELETE', headers: id }), ...answered(first + 1), ended(first + 1)]),
  ];
}

test('however many sessions come and go or stay open, each takes the same time', {
  timeout: 600_000,
}, async () => {
  const recording = startRecording();
  const millis: number[] = [];
  for (let part = 0; part < PARTS; part += 1) {
    const began = performance.now();
    const end = ((part + 1) * SESSIONS) / PARTS;
    for (let number = (part * SESSIONS) / PARTS; number < end; number += AT_ONCE) {
      for (let n = number; n < Math.min(end, number + AT_ONCE); n += 1) recording.feed(...sessionEvents(n));
      recording.save(true);
    }
    millis.push(performance.now() - began);
  }
  await recording.close();
  expect(recording.all('SELECT count(*) AS count FROM session')).toEqual([{ count: SESSIONS }]);
  // Those that are deleted were open for a moment too.
  const crowdedOut = Math.max(0, SESSIONS / 2 - 10_000 + 1);
  expect(recording.all(`SELECT count(*) AS count FROM session WHERE end_reason = 'crowded-out'`)).toEqual([
    { count: crowdedOut },
  ]);
  expect(recording.notices.length).toBe(crowdedOut > 0 ? 1 : 0);
  expect(Math.max(...millis.slice(-2))).toBeLessThan(5 * Math.max(...millis.slice(0, 2)) + 1000);
});

test('a session more takes no statement more, of which nobody would see what memory is left behind', async () => {
  const recording = startRecording();
  const prepare = vi.spyOn(Database.prototype, 'prepare');
  const take = (from: number, count: number) => {
    for (let number = from; number < from + count; number += 1) {
      recording.feed(...sessionEvents(number));
      recording.save();
    }
    return prepare.mock.calls.length;
  };
  // At full size more are open than keep their index at hand, so that those that follow begin theirs anew.
  const first = scale(2100, 100);
  const before = take(0, first);
  expect(take(first, 50)).toBe(before);
  prepare.mockRestore();
  await recording.close();
  const behind = recording.all('SELECT count(*) AS sessions FROM session WHERE indexed < frames');
  expect(behind).toEqual([{ sessions: 0 }]);
});
