import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseFilter } from '../../../src/inspect/filter/filter.ts';
import { eachSessionWith, selectFrames } from '../../../src/inspect/filter/sql.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { type BareFrame, eachFrame } from '../../../src/store/read/frames.ts';
import { eachSession, findSession } from '../../../src/store/read/sessions.ts';
import { holds, rowsOf } from '../../support/filter-rows.ts';
import { anyFilter, anySession, anyText, FILTERED_AT, recordingOf } from '../../support/filters.ts';
import { scale } from '../../support/scale.ts';
import { ROOT, tempStore } from '../../support/tapedeck.ts';

import { importText } from '../../support/text-recording.ts';

/** The frames that a filter selects by SQL, and those for which it holds in memory. */
function bothWays(store: Store, filter: string): { bySql: string[]; inMemory: string[] } {
  const parsed = parseFilter(filter, FILTERED_AT);
  const only = selectFrames(store, parsed);
  const sessions = [...eachSession(store)];
  const bySql = sessions.flatMap((session) =>
    [...eachFrame(store, session, only)].map(({ seq }) => `${session.id} ${seq}`),
  );
  const inMemory = sessions.flatMap((session) => {
    const held = rowsOf(store, session).filter(({ row }) => holds(parsed, row));
    return [...new Set(held.map(({ seq }) => `${session.id} ${seq}`))];
  });
  return { bySql, inMemory };
}

test('SQL selects the frames for which a filter holds in memory, of random sessions', {
  timeout: 120_000,
}, async () => {
  let selected = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(anySession, { minLength: 1, maxLength: 3 }),
      fc.array(anyFilter, { minLength: 10, maxLength: 10 }),
      async (sessions, filters) => {
        const store = openStore(tempStore());
        for (const one of sessions) await importText(store, recordingOf(one));
        for (const text of filters) {
          const { bySql, inMemory } = bothWays(store, text);
          expect(bySql, text).toEqual(inMemory);
          selected += bySql.length;
          const having = new Set(inMemory.map((place) => place.split(' ')[0]));
          const found = [...eachSessionWith(store, parseFilter(text, FILTERED_AT))].map(({ id }) => id);
          expect(found, text).toEqual(expect.arrayContaining([...having]));
        }
        store.close();
      },
    ),
    { numRuns: scale(60, 15) },
  );
  expect(selected).toBeGreaterThan(scale(1000));
});

test('SQL selects the lines that have not ended for which a filter holds in memory', {
  timeout: 60_000,
}, async () => {
  const rest = fc.record({ channel: fc.constantFrom('stdin', 'stdout'), text: anyText });
  const rests = fc.uniqueArray(rest, { selector: ({ channel }) => channel, minLength: 1 });
  let selected = 0;
  await fc.assert(
    fc.asyncProperty(
      anySession,
      rests,
      fc.array(anyFilter, { minLength: 10, maxLength: 10 }),
      async (one, unfinished, filters) => {
        const store = openStore(tempStore());
        const lines = unfinished.map((line) => JSON.stringify({ ms: 1, unfinished: true, ...line }));
        await importText(store, recordingOf({ ...one, lines: [...one.lines.slice(0, 3), ...lines] }));
        const whole = findSession(store, 'latest');
        for (const text of filters) {
          const parsed = parseFilter(text, FILTERED_AT);
          const bySql = unfinishedIn([...eachFrame(store, whole, selectFrames(store, parsed))]);
          const held = rowsOf(store, whole).filter(({ row }) => holds(parsed, row));
          const inMemory = unfinishedIn(held.map(({ frame }) => frame));
          expect(bySql, text).toEqual(inMemory);
          selected += bySql.length;
        }
        store.close();
      },
    ),
    { numRuns: scale(30, 10) },
  );
  expect(selected).toBeGreaterThan(scale(100, 30));
});

test('SQL selects the same as memory of real recordings, by HTTP too', async () => {
  const store = openStore(tempStore());
  for (const name of ['everything-http', 'everything-stdio', 'modern-http']) {
    await importText(store, readFileSync(join(ROOT, 'recordings', `${name}.ndjson`)));
  }
  await fc.assert(
    fc.asyncProperty(anyFilter, async (text) => {
      const { bySql, inMemory } = bothWays(store, text);
      expect(bySql, text).toEqual(inMemory);
    }),
    { numRuns: scale(300) },
  );
  expect(bothWays(store, 'http=200 tool~/./ kind=result').bySql).not.toEqual([]);
  expect(bothWays(store, 'channel=sse').bySql).not.toEqual([]);
  store.close();
});

function unfinishedIn(frames: readonly BareFrame[]): string[] {
  return frames.filter(({ isUnfinished }) => isUnfinished).map(({ channel }) => channel);
}

/** The `seq` of the frames of one session for which a filter holds. */
async function selectOf(lines: readonly object[], filter: string): Promise<number[]> {
  const store = openStore(tempStore());
  const text = recordingOf({ name: 'one', labels: {}, lines: lines.map((one) => JSON.stringify(one)) });
  const { number } = findSession(store, await importText(store, text));
  const { sql, values } = selectFrames(store, parseFilter(filter, FILTERED_AT));
  const found = store.prepare<[object], number>(`SELECT DISTINCT seq FROM (${sql}) ORDER BY seq`).pluck();
  const seqs = found.all({ ...values, session: number });
  store.close();
  return seqs;
}

const say = (channel: string, ms: number, message: object) => ({
  ms,
  channel,
  message: { jsonrpc: '2.0', ...message },
});
const CALLS = [
  say('stdin', 0, { id: 1, method: 'tools/call', params: { name: 'slow', _meta: { progressToken: 9 } } }),
  say('stdin', 0, { id: 2, method: 'tools/call', params: { name: 'quick' } }),
  say('stdout', 3, { id: 2, result: { content: [], isError: true } }),
  say('stdout', 500, { method: 'notifications/progress', params: { progressToken: 9, progress: 1 } }),
  say('stdout', 900, { id: 1, result: { content: [] } }),
  { ms: 1, channel: 'stderr', text: 'slow was slow' },
  say('stdin', 1, { id: 3, method: 'tools/call', params: { name: 'never' } }),
  say('stdin', 1, { id: 4, method: 'ping' }),
  say('stdin', 1, { method: 'notifications/cancelled', params: { requestId: 3 } }),
];

test.each([
  ['tool=slow', [1, 4, 5], 'a call with its progress and its answer'],
  ['tool=slow dur>1s', [1, 4, 5], 'the duration is that of the call'],
  ['dur<1s', [2, 3], 'what has no duration is not below one'],
  ['not dur>=1s', [2, 3, 6, 7, 8, 9], 'not turns everything round'],
  ['status=tool-error', [2, 3], 'a tool that failed, asked and answered'],
  ['status=cancelled', [7, 9], 'a call and what cancelled it'],
  ['status=unanswered', [8], 'a request that nobody answered'],
  ['method=notifications/progress', [4], 'a notification by its own method'],
  ['method=tools/call kind=result', [3, 5], 'an answer by the method that it answers'],
  ['slow', [1, 6], 'a word, in the text'],
  ['slow channel=stderr', [6], 'a word and a field'],
  ['tool!=slow kind=request', [2, 7, 8], 'another tool, or none'],
  ['tool=quick or tool=never dir=client', [2, 3, 7, 9], 'and binds more than or'],
  ['(tool=quick or tool=never) dir=client', [2, 7, 9], 'unless parentheses say otherwise'],
  ['id=1', [1, 4, 5], 'a call by its id'],
])('%s selects %j: %s', async (filter, seqs) => {
  expect(await selectOf(CALLS, filter)).toEqual(seqs);
});

test('of a batch, one message must meet all that is asked', async () => {
  const batch = [
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a' } },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
  ];
  const lines = [{ ms: 0, channel: 'stdin', message: batch }];
  expect(await selectOf(lines, 'tool=a kind=request')).toEqual([1]);
  expect(await selectOf(lines, 'tool=a kind=notification')).toEqual([]);
});

test('a text is found wherever a large frame is cut into parts', async () => {
  const MIB = 1024 * 1024;
  const text = `${'ä'.repeat(MIB / 2 - 2)}NEEDLE${'b'.repeat(2 * MIB)}end`;
  const lines = [{ ms: 0, channel: 'stderr', text }];
  expect(await selectOf(lines, 'text~needle')).toEqual([1]);
  expect(await selectOf(lines, 'text~/N[A-Z]+Eb+end$/')).toEqual([1]);
  expect(await selectOf(lines, 'text~needles')).toEqual([]);
});

test('an expression that would take others for ever takes no time', { timeout: 10_000 }, async () => {
  const lines = [{ ms: 0, channel: 'stderr', text: `${'a'.repeat(100_000)}!` }];
  expect(await selectOf(lines, 'text~/(a+)+$/')).toEqual([]);
  expect(await selectOf(lines, 'text~/(a|a)*b/ or text~/(.*)*=/')).toEqual([]);
});

test('values are bound, never part of the SQL', async () => {
  const evil = `'); DROP TABLE frame; --`;
  const lines = [say('stdin', 0, { id: 1, method: 'tools/call', params: { name: evil } })];
  expect(await selectOf(lines, `tool="${evil}"`)).toEqual([1]);
});
