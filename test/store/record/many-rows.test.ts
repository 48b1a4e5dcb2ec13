/** Frames and HTTP exchanges go into the store many at a time: in however many commits, the rows are the same. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HttpEvent } from '../../../src/protocol/wire/http-event.ts';
import { answered, asked, ended, JSON_TYPE, rpc, startRecording } from '../../support/http-store.ts';

/** More than go into one statement, of frames and of exchanges. */
const EXCHANGES = 70;

/** All requests come before all answers, and each tenth client leaves without waiting for its own. */
function traffic(): HttpEvent[] {
  const numbers = Array.from({ length: EXCHANGES }, (_, i) => i + 1);
  const call = (id: number) => rpc({ id, method: 'tools/call', params: { name: `tool ${id % 7}` } });
  return [
    ...numbers.flatMap((n) =>
      asked(n, { headers: [...JSON_TYPE, 'X-Number', String(n % 3)], body: call(n) }),
    ),
    ...numbers.flatMap((n) => {
      if (n % 10 === 0) return [ended(n, { closedBy: 'client', isComplete: false, error: 'left' })];
      return [...answered(n, { body: rpc({ id: n, result: {} }) }), ended(n)];
    }),
  ];
}

const ROWS = {
  frames: 'SELECT seq, at, channel, http, size, flags, CAST(payload AS TEXT) AS text FROM frame ORDER BY seq',
  exchanges: 'SELECT * FROM http_exchange ORDER BY number',
  calls: 'SELECT request_seq, answer_seq, target, outcome, http FROM exchange ORDER BY request_seq',
} as const;

type Recording = ReturnType<typeof startRecording>;

function rowsOf({ all }: Recording): unknown {
  // Rows of exchanges that changed after they were stored have taken the place of others, and their rowid is another.
  const exchanges = all<{ rowid: number }>(ROWS.exchanges).map(({ rowid: _, ...row }) => row);
  return { frames: all(ROWS.frames), exchanges, calls: all(ROWS.calls) };
}

async function rowsAfter(commitAfter: ReadonlySet<number>): Promise<unknown> {
  const recording = startRecording();
  for (const [i, event] of traffic().entries()) {
    recording.feed(event);
    if (commitAfter.has(i)) recording.save();
  }
  await recording.close();
  return rowsOf(recording);
}

test('wherever commits cut the traffic, the rows are those of a single one', async () => {
  const expected = await rowsAfter(new Set());
  expect(expected).toMatchObject({ exchanges: { length: EXCHANGES }, calls: { length: EXCHANGES } });
  const last = traffic().length - 1;
  const cuts = fc.uniqueArray(fc.integer({ min: 0, max: last }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(cuts, async (some) => {
      expect(await rowsAfter(new Set(some))).toEqual(expected);
    }),
    { numRuns: 15 },
  );
});

test('of a commit in which one row cannot be stored nothing is there, and after that all of it', async () => {
  const recording = startRecording();
  const events = traffic();
  for (const event of events.slice(0, 10)) recording.feed(event);
  recording.save();
  const before = rowsOf(recording);
  const inTheWay =
    "INSERT INTO frame (session, seq, at, channel, size, payload) VALUES (1, 50, 0, 'request', 0, '')";
  recording.store.exec(inTheWay);
  for (const event of events.slice(10)) recording.feed(event);
  expect(() => recording.save()).toThrow('UNIQUE constraint failed');
  expect(recording.store.inTransaction).toBe(false);
  recording.store.exec('DELETE FROM frame WHERE seq = 50');
  expect(rowsOf(recording)).toEqual(before);
  await recording.close();
  expect(rowsOf(recording)).toEqual(await rowsAfter(new Set()));
});

test('an exchange that was given up while it was open is stored once it goes on', async () => {
  const recording = startRecording();
  const call = rpc({ id: 1, method: 'tools/call', params: { name: 'x' } });
  recording.feed(...asked(1, { body: call }));
  recording.intake.giveUp();
  recording.feed(...asked(2, { body: call }));
  recording.save();
  recording.feed(...answered(1, { body: rpc({ id: 1, result: {} }) }), ended(1));
  await recording.close();
  expect(recording.all('SELECT number, status FROM http_exchange ORDER BY number')).toEqual([
    { number: 1, status: 200 },
    { number: 2, status: null },
  ]);
  expect(recording.all('SELECT dropped FROM session')).toEqual([{ dropped: 1 }]);
});
