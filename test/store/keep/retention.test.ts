import { hostname } from 'node:os';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { processStarted } from '../../../src/store/file/process.ts';
import type { RetentionLimits } from '../../../src/store/keep/limits.ts';
import { type Candidate, planNamed, planRetention } from '../../../src/store/keep/retention.ts';

const DAY_US = 24 * 3600 * 1e6;
const NOW = 1.8e15;
const NONE: RetentionLimits = {
  olderThanMs: null,
  maxBytes: null,
  maxSessions: null,
  keepErrors: false,
  localKeepMs: null,
  maxUnshippedBytes: null,
};

/** Ended so many days ago. */
function session(number: number, days: number, change: Partial<Candidate> = {}): Candidate {
  return {
    number,
    id: `id${number}`,
    name: null,
    target: 'server',
    transport: 'stdio',
    startedAt: NOW - days * DAY_US - 1e6,
    lastAt: NOW - days * DAY_US,
    endReason: 'client-closed',
    host: hostname(),
    pid: process.pid,
    processStarted: processStarted(process.pid),
    frames: 10,
    indexed: 10,
    bytes: 100_000,
    errors: 0,
    shipping: null,
    isLeftOut: 0,
    isUndecided: 0,
    ...change,
  };
}

const OPEN = { endReason: null };

function plan(sessions: readonly Candidate[], limits: Partial<RetentionLimits>, bytesInUse = 1e6): string[] {
  const { departures } = planRetention(sessions, { ...NONE, ...limits }, { now: NOW, bytesInUse });
  return departures.map((one) => `${one.session.number} ${one.reason}`);
}

test('sessions that ended longer ago go, and open ones stay however old they are', () => {
  const sessions = [session(1, 40, OPEN), session(2, 31), session(3, 29), session(4, 0)];
  expect(plan(sessions, { olderThanMs: (30 * DAY_US) / 1000 })).toEqual(['2 age']);
});

test('the oldest go until the others keep to the size and the number', () => {
  const sessions = [session(1, 5), session(2, 4, OPEN), session(3, 3), session(4, 2), session(5, 1)];
  expect(plan(sessions, { maxBytes: 600_000 })).toEqual(['1 size', '3 size']);
  expect(plan(sessions, { maxSessions: 3 })).toEqual(['1 count', '3 count']);
  expect(plan(sessions, { maxSessions: 0 })).toEqual(['1 count', '3 count', '4 count', '5 count']);
});

test('what open sessions alone take above the limit is told', () => {
  const sessions = [session(1, 2), session(2, 1, OPEN)];
  const limits = { ...NONE, maxBytes: 100_000 };
  const { departures, excessBytes } = planRetention(sessions, limits, { now: NOW, bytesInUse: 1e6 });
  expect(departures.map((one) => one.session.number)).toEqual([1]);
  expect(excessBytes).toBe(400_000);
});

test('sessions with errors are spared by age, and are the last to go for size and number', () => {
  const failed = [{ errors: 1 }, { endReason: 'not-started' as const }, { indexed: 9 }];
  const sessions = [...failed.map((change, i) => session(i + 1, 90, change)), session(4, 80), session(5, 1)];
  expect(plan(sessions, { olderThanMs: DAY_US / 1000, keepErrors: true })).toEqual(['4 age']);
  expect(plan(sessions, { maxSessions: 2, keepErrors: true })).toEqual(['4 count', '5 count', '1 count']);
});

test('a session of another host without an end counts as open for a week of silence', () => {
  const elsewhere = { ...OPEN, host: 'elsewhere' };
  const sessions = [session(1, 8, elsewhere), session(2, 6, elsewhere)];
  expect(plan(sessions, { maxSessions: 0 })).toEqual(['1 count']);
});

test('a session whose recorder was killed goes like any other', () => {
  expect(plan([session(1, 2, { ...OPEN, processStarted: 'another' })], { maxSessions: 0 })).toEqual([
    '1 count',
  ]);
});

test('named sessions go, whatever their age', () => {
  const { departures } = planNamed([session(1, 2), session(2, 1)], new Set([2]), 'named', 1e6);
  expect(departures.map((one) => [one.session.number, one.reason, one.bytes])).toEqual([
    [2, 'named', 500_000],
  ]);
});

test('whatever the limits: nothing open goes, what is kept fits if it can, and no more goes than has to', () => {
  const some = fc.array(
    fc.record({ days: fc.nat(100), bytes: fc.nat(1e6), errors: fc.nat(1), isOpen: fc.boolean() }),
    { maxLength: 30 },
  );
  const limits = fc.record({
    olderThanMs: fc.option(fc.nat(90).map((days) => (days * DAY_US) / 1000)),
    maxBytes: fc.option(fc.nat(1e7)),
    maxSessions: fc.option(fc.nat(20)),
    keepErrors: fc.boolean(),
    localKeepMs: fc.constant(null),
    maxUnshippedBytes: fc.constant(null),
  });
  fc.assert(
    fc.property(some, limits, (records, wanted) => {
      const sessions = records
        .map(({ days, bytes, errors, isOpen }, i) =>
          session(i + 1, days, { bytes, errors, ...(isOpen ? OPEN : {}) }),
        )
        .sort((a, b) => a.lastAt - b.lastAt || a.number - b.number);
      const bytesInUse = 1e7;
      const { departures, excessBytes } = planRetention(sessions, wanted, { now: NOW, bytesInUse });
      const gone = new Set(departures.map((one) => one.session.number));
      expect(gone.size).toBe(departures.length);
      expect(departures.filter((one) => one.session.endReason === null)).toEqual([]);
      const kept = bytesInUse - departures.reduce((sum, one) => sum + one.bytes, 0);
      const closed = sessions.filter((one) => !gone.has(one.number) && one.endReason !== null);
      if (wanted.maxBytes !== null) {
        expect(excessBytes).toBe(Math.max(0, kept - wanted.maxBytes));
        if (excessBytes > 0) expect(closed).toEqual([]);
        const last = departures.at(-1);
        if (last?.reason === 'size') expect(kept + last.bytes).toBeGreaterThan(wanted.maxBytes);
      }
      if (wanted.maxSessions !== null && closed.length > 0)
        expect(sessions.length - gone.size).toBeLessThanOrEqual(wanted.maxSessions);
    }),
  );
});

const WAITING = { shipping: 'unshipped' as const };

const SEALED = { shipping: 'sealed' as const };

test('what is to be shipped stays, whatever its age and the number of sessions', () => {
  const sessions = [
    session(1, 90, WAITING),
    session(2, 80, SEALED),
    session(3, 70, WAITING),
    session(4, 1, SEALED),
  ];
  expect(plan(sessions, { olderThanMs: DAY_US / 1000 / 2, maxSessions: 0 })).toEqual(['2 age', '4 age']);
});

test('the oldest of what is to be shipped go once all of it takes more than its limit, or than that of the store', () => {
  const sessions = [
    session(1, 5, WAITING),
    session(2, 4, OPEN),
    session(3, 3, WAITING),
    session(4, 2, WAITING),
    session(5, 1, SEALED),
  ];
  expect(plan(sessions, { maxUnshippedBytes: 450_000 })).toEqual(['1 unshipped']);
  expect(plan(sessions, { maxBytes: 450_000 })).toEqual(['5 size', '1 unshipped']);
  expect(plan(sessions, { maxBytes: 450_000, maxUnshippedBytes: 900_000 })).toEqual(['5 size']);
});

test('what may turn out not to be shipped is no loss until that is decided, or nobody is there to decide it', () => {
  const undecided = { ...WAITING, isUndecided: 1 as const };
  const seconds = 1 / 24 / 3600;
  const sessions = [
    session(1, 2, { ...undecided, ...OPEN }),
    session(2, 59 * seconds, undecided),
    session(3, 1 * seconds, WAITING),
  ];
  expect(plan(sessions, { maxUnshippedBytes: 450_000 })).toEqual([]);
  expect(plan(sessions, { maxUnshippedBytes: 250_000 })).toEqual(['3 unshipped']);
  const left = session(2, 61 * seconds, undecided);
  expect(plan([left, session(3, 1 * seconds, WAITING)], { maxUnshippedBytes: 550_000 })).toEqual([
    '2 unshipped',
  ]);
});

test('what the engine has goes after a while of its own', () => {
  const sessions = [session(1, 3, SEALED), session(2, 2, WAITING), session(3, 2), session(4, 1, SEALED)];
  expect(plan(sessions, { localKeepMs: (2 * DAY_US) / 1000 })).toEqual(['1 shipped']);
});

test('what is left out of a sample goes first, and at once where nothing else limits the store', () => {
  const all = [
    session(1, 9),
    session(2, 8),
    session(3, 1, { isLeftOut: 1 }),
    session(4, 0, { isLeftOut: 1, ...OPEN }),
  ];
  expect(plan(all, {})).toEqual(['3 sample']);
  expect(plan(all, { olderThanMs: 8.5 * 24 * 3600_000 })).toEqual(['3 sample', '1 age']);
  expect(plan(all, { maxSessions: 4 })).toEqual([]);
  expect(plan(all, { maxSessions: 3 })).toEqual(['3 sample']);
  expect(plan(all, { maxSessions: 2 })).toEqual(['3 sample', '1 count']);
  expect(plan(all, { maxBytes: 0.9e6 })).toEqual(['3 sample']);
});
