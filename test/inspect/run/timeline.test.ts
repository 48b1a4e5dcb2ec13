import pc from 'picocolors';
import { expect, test } from 'vitest';
import { readTimeline } from '../../../src/inspect/run/timeline.ts';
import { runJson, runLines, shownStretches } from '../../../src/inspect/run/view.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { findRun } from '../../../src/store/read/runs.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

const SECOND = 1000;

type Call = { at: number; took: number | null; tool: string; fails?: boolean };

/** A recording of these calls, times in milliseconds since its start, as one of the client `process`. */
async function addSession(
  store: Store,
  name: string,
  process: string | null,
  calls: readonly Call[],
  end = 3600 * SECOND,
) {
  const events = calls.flatMap(({ at, took, tool, fails = false }, id) => [
    { at, channel: 'stdin', message: { jsonrpc: '2.0', id, method: 'tools/call', params: { name: tool } } },
    ...(took === null
      ? []
      : [
          {
            at: at + took,
            channel: 'stdout',
            message: { jsonrpc: '2.0', id, result: { content: [], isError: fails } },
          },
        ]),
  ]);
  let last = 0;
  const lines = events
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, ...frame }) => {
      const ms = at - last;
      last = at;
      return JSON.stringify({ ms, ...frame });
    });
  const started = Date.parse('2026-11-20T10:00:00Z');
  const session = {
    ...{ name, basis: 'stdio-process', transport: 'stdio', target: name },
    startedAt: new Date(started).toISOString(),
    ...{ endedAt: new Date(started + end).toISOString(), endReason: 'client-closed' },
    ...(process === null ? { labels: { run: 'one' } } : { run: { evidence: 'process', process } }),
  };
  await importText(
    store,
    [JSON.stringify({ tapedeck: 1, session }), ...lines].map((line) => `${line}\n`).join(''),
  );
}

const GAP = 300_000_000;

test('calls of all servers stand on one clock, with what came after each failure', async () => {
  const store = openStore(tempStore());
  await addSession(store, 'one', 'p', [
    { at: 0, took: 100, tool: 'read' },
    { at: 1000, took: 500, tool: 'read', fails: true },
    { at: 2000, took: 100, tool: 'read' },
  ]);
  await addSession(store, 'two', 'p', [
    { at: 1200, took: 1000, tool: 'write' },
    { at: 3000, took: 10, tool: 'write', fails: true },
    { at: 4000, took: null, tool: 'hang' },
  ]);
  const timeline = readTimeline(store, findRun(store, 'latest'), { gap: GAP });
  expect(timeline.lanes.map(({ name, calls, errors }) => [name, calls, errors])).toEqual([
    ['one', 3, 1],
    ['two', 3, 1],
  ]);
  expect(timeline.calls.map(({ lane, target, at }) => [lane, target, at - timeline.startedAt])).toEqual([
    [0, 'read', 0],
    [0, 'read', 1_000_000],
    [1, 'write', 1_200_000],
    [0, 'read', 2_000_000],
    [1, 'write', 3_000_000],
    [1, 'hang', 4_000_000],
  ]);
  expect(timeline.calls[1]?.next).toEqual({ call: 3, isSame: true, after: 500_000 });
  expect(timeline.calls[4]?.next).toEqual({ call: 5, isSame: false, after: 990_000 });
  // 0–100, 1000–2200 and 3000–3010; what never ended is nothing that can be counted.
  expect([timeline.waiting, timeline.thinking]).toEqual([1_310_000, 4_000_000 - 1_310_000]);
  expect(timeline.stretches).toHaveLength(1);
  const text = [
    ...runLines(timeline, timeline.stretches, { colors: pc.createColors(false), width: 120 }),
  ].join('\n');
  expect(text).toMatch(/\+1\.000 +one +tools\/call read +500 ms +tool-error +again after 500 ms/);
  expect(text).toMatch(/\+3\.000 +two +tools\/call write +10 ms +tool-error +hang after 990 ms/);
  expect(text).toContain('1.3 s waiting for servers, 2.7 s thinking');
  store.close();
});

test('a gap cuts a run into stretches, and a stretch has a name of its own', async () => {
  const store = openStore(tempStore());
  const long = 301 * SECOND;
  await addSession(store, 'one', 'p', [
    { at: 0, took: 10, tool: 'a', fails: true },
    { at: long, took: 10, tool: 'b' },
  ]);
  const run = findRun(store, 'latest');
  const timeline = readTimeline(store, run, { gap: GAP });
  expect(
    timeline.stretches.map(({ number, calls, errors, first }) => [number, calls, errors, first]),
  ).toEqual([
    [1, 1, 1, 0],
    [2, 1, 0, 1],
  ]);
  expect(timeline.calls[0]?.next).toBeNull();
  expect(timeline.thinking).toBe(0);
  expect(shownStretches(timeline, 2).map(({ number }) => number)).toEqual([2]);
  expect(
    JSON.parse(runJson(timeline, shownStretches(timeline, 2))).calls.map(
      (call: { target: string }) => call.target,
    ),
  ).toEqual(['b']);
  expect(() => shownStretches(timeline, 3)).toThrow(/from 1 to 2, got 3/);
  expect(readTimeline(store, run, { gap: GAP * 2 }).stretches).toHaveLength(1);
  store.close();
});

test('what was recorded on another clock is said, and can be moved', async () => {
  const store = openStore(tempStore());
  await addSession(store, 'one', null, [{ at: 0, took: 10, tool: 'a' }]);
  await addSession(store, 'two', null, [{ at: 5, took: 10, tool: 'b' }]);
  const run = findRun(store, 'one');
  const timeline = readTimeline(store, run, { gap: GAP });
  expect(timeline.clocks).toHaveLength(2);
  expect(timeline.calls.map(({ target }) => target)).toEqual(['a', 'b']);
  const moved = readTimeline(store, run, { gap: GAP, offsets: new Map([[1, -1_000_000]]) });
  expect(moved.calls.map(({ target }) => target)).toEqual(['b', 'a']);
  store.close();
});
