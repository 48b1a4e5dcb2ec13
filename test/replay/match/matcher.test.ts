import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMatcher, type Hit, type NoHit } from '../../../src/replay/match/matcher.ts';
import type { Repeat } from '../../../src/replay/match/repeat.ts';
import { createDigestTable } from '../../../src/replay/recording/columns.ts';
import { createTopics } from '../../../src/replay/recording/topics.ts';
import { call, keyOf, recordedCalls } from '../../support/replay.ts';
import { scale } from '../../support/scale.ts';

const TOOLS = ['a', 'b'];
const some = fc.tuple(fc.constantFrom(...TOOLS), fc.nat(2));
const keyFor = ([tool, x]: [string, number]) => call(tool, { x });

function recordedAs(calls: readonly [string, number][]) {
  return recordedCalls(calls.map(keyFor));
}

/** What a simple model answers: which of the recorded calls, or null. */
function modelled(
  recorded: readonly [string, number][],
  asked: [string, number],
  count: number,
  repeat: Repeat,
): number | null {
  const same = recorded.flatMap(([tool, x], i) => (tool === asked[0] && x === asked[1] ? [i] : []));
  if (count < same.length) return same[count] ?? null;
  if (same.length === 0 || repeat === 'error') return null;
  return (repeat === 'last' ? same.at(-1) : same[count % same.length]) ?? null;
}

test('each client gets the k-th answer for its k-th identical call, in whatever order clients and calls come', () => {
  const asks = fc.array(fc.tuple(fc.nat(2), some), { maxLength: 40 });
  const policy = fc.constantFrom<Repeat>('error', 'last', 'cycle');
  fc.assert(
    fc.property(fc.array(some, { maxLength: 12 }), asks, policy, (recorded, asked, repeat) => {
      const matcher = createMatcher(recordedAs(recorded), repeat);
      const clients = [matcher.connect(), matcher.connect(), matcher.connect()];
      const counts = new Map<string, number>();
      for (const [client, one] of asked) {
        const name = `${client} ${one}`;
        const count = counts.get(name) ?? 0;
        const answer = clients[client]?.next(keyFor(one));
        const expected = modelled(recorded, one, count, repeat);
        if (expected === null) expect(answer).toMatchObject({ kind: 'miss' });
        else {
          counts.set(name, count + 1);
          const isRepeat = count >= recorded.filter((other) => String(other) === String(one)).length;
          expect(answer).toEqual({ kind: 'hit', call: expected, isRepeat });
        }
      }
    }),
    { numRuns: scale(300) },
  );
});

test('a miss has the one reason that is true', () => {
  fc.assert(
    fc.property(fc.array(some, { maxLength: 6 }), fc.array(some, { maxLength: 12 }), (recorded, asked) => {
      const client = createMatcher(recordedAs(recorded)).connect();
      for (const [tool, x] of asked) {
        const answer = client.next(keyFor([tool, x]));
        if (answer.kind === 'hit') continue;
        const sameTool = recorded.filter(([name]) => name === tool);
        const same = sameTool.filter(([, value]) => value === x);
        const expected: NoHit =
          same.length > 0
            ? { kind: 'miss', reason: 'used-up', recorded: same.length }
            : sameTool.length > 0
              ? { kind: 'miss', reason: 'arguments-differ', recorded: sameTool.length }
              : { kind: 'miss', reason: 'never-recorded', recorded: 0, isMethodKnown: recorded.length > 0 };
        expect(answer).toEqual(expected);
      }
    }),
    { numRuns: scale(300) },
  );
});

test('a call that is taken in step counts as one that was read, whoever else asks and whatever comes after', () => {
  let inStep = 0;
  let alike = 0;
  const asks = fc.array(fc.tuple(fc.nat(2), fc.option(some, { freq: 1 }), fc.boolean(), fc.nat(5)), {
    maxLength: 60,
    size: 'max',
  });
  const policy = fc.constantFrom<Repeat>('error', 'last', 'cycle');
  fc.assert(
    fc.property(fc.array(some, { maxLength: 12 }), asks, policy, (recorded, asked, repeat) => {
      const [stepping, plain] = [played(recorded, repeat), played(recorded, repeat)];
      const numbers = (calls: Iterable<number | { call: number }>) => [...calls];
      for (const [who, other, isReady, look] of asked) {
        const [client, twin] = [stepping.clients[who], plain.clients[who]];
        const next = client?.nextInStep() ?? -1;
        // What comes next in the recording, or anything.
        const one = other ?? recorded[next] ?? (['a', 0] as [string, number]);
        const key = keyFor(one);
        const expected = twin?.next(key);
        // Any recorded one like it, which may have been read or not.
        const likes = recorded.flatMap((other, call) => (String(other) === String(one) ? [call] : []));
        const like = isReady && likes.length > 0 ? client?.nextLike(likes[look % likes.length] ?? 0) : null;
        if (like != null) {
          expect(like).toEqual(expected);
          client?.takeLike(like);
          alike += 1;
        } else if (next >= 0 && String(recorded[next]) === String(one)) {
          expect(expected).toEqual({ kind: 'hit', call: next, isRepeat: false });
          if (!isReady) client?.takeInStep();
          else expect(client?.next(key)).toEqual(expected);
          inStep += Number(!isReady);
        } else expect(client?.next(key)).toEqual(expected);
        // To look reads calls, too.
        if (look === 0) expect(numbers(stepping.matcher.unasked())).toEqual(numbers(plain.matcher.unasked()));
      }
      expect(numbers(stepping.matcher.unasked())).toEqual(numbers(plain.matcher.unasked()));
      for (const [who, client] of stepping.clients.entries())
        expect(numbers(client.unplayed())).toEqual(numbers(plain.clients[who]?.unplayed() ?? []));
      expect(numbers(stepping.matcher.unplayed())).toEqual(numbers(plain.matcher.unplayed()));
    }),
    { numRuns: scale(600, 300) },
  );
  expect(Math.min(inStep, alike)).toBeGreaterThan(0);
});

/** A matcher with three clients. */
function played(recorded: readonly [string, number][], repeat: Repeat) {
  const matcher = createMatcher(recordedAs(recorded), repeat);
  return { matcher, clients: [matcher.connect(), matcher.connect(), matcher.connect()] };
}

test('what was played to no client is known at the end, and per client', () => {
  const recorded = recordedAs([
    ['a', 0],
    ['a', 0],
    ['a', 1],
    ['b', 0],
  ]);
  const matcher = createMatcher(recorded, 'cycle');
  const [one, two] = [matcher.connect(), matcher.connect()];
  one.next(call('a', { x: 0 }));
  two.next(call('a', { x: 0 }));
  for (let i = 0; i < 5; i += 1) two.next(call('b', { x: 0 }));
  const numbers = (unplayed: Iterable<{ call: number }>) => [...unplayed].map(({ call }) => call);
  expect(numbers(matcher.unplayed())).toEqual([1, 2]);
  expect(numbers(one.unplayed())).toEqual([1, 2, 3]);
  expect(numbers(two.unplayed())).toEqual([1, 2]);
});

test.each(['error', 'last', 'cycle'] as const)(
  'with --repeat %s, a handshake, a ping and lists repeat their last answer',
  (repeat) => {
    for (const method of [
      'initialize',
      'ping',
      'server/discover',
      'tools/list',
      'acme/things/list',
      'tasks/get',
    ]) {
      const key = keyOf(method);
      const client = createMatcher(recordedCalls([key, key]), repeat).connect();
      const answers = [1, 2, 3, 4].map(() => client.next(key)) as Hit[];
      expect(answers.map(({ call }) => call)).toEqual([0, 1, 1, 1]);
      expect(answers.map(({ isRepeat }) => isRepeat)).toEqual([false, false, true, true]);
    }
  },
);

test('candidates are those of the same target, unplayed first, from the last hit onwards', () => {
  const matcher = createMatcher(
    recordedAs([
      ['a', 0],
      ['a', 1],
      ['b', 0],
      ['a', 2],
      ['a', 0],
    ]),
  );
  const client = matcher.connect();
  client.next(call('a', { x: 1 }));
  const { candidates, isCut } = client.candidates(call('a', { x: 9 }), 3);
  expect(candidates.map(({ place }) => place.seq)).toEqual([3, 4, 0]);
  expect(isCut).toBe(true);
  const all = client.candidates(call('a', { x: 9 }), 9);
  expect(all.candidates.map(({ isPlayed }) => isPlayed)).toEqual([false, false, false, true]);
  expect(all.isCut).toBe(false);
  const foreign = client.candidates(call('c', {}), 9).candidates;
  expect(foreign.every(({ isSameTarget }) => !isSameTarget)).toBe(true);
  expect(foreign).toHaveLength(5);
  expect(client.candidates(keyOf('ping'), 9).candidates).toEqual([]);
});

test('a digest keeps its number among many, and an unknown one has none', () => {
  const table = createDigestTable();
  const digests = Array.from({ length: 5000 }, (_, i) => call('t', { i }).digest);
  expect(digests.map((digest) => table.add(digest))).toEqual(digests.map((_, i) => i));
  expect(digests.map((digest) => table.add(digest))).toEqual(digests.map((_, i) => i));
  expect(table.size()).toBe(5000);
  expect(digests.map((_, i) => table.at(i))).toEqual(digests);
  expect(table.find(call('t', { i: -1 }).digest)).toBe(-1);
  // The same beginning, so the same slot: only the rest tells them apart.
  const twin = Buffer.from(digests[0] ?? '', 'latin1');
  twin[15] = (twin[15] ?? 0) ^ 1;
  expect(table.find(twin.toString('latin1'))).toBe(-1);
});

test('a call is read when a live one may be it, and no call of another tool for that', () => {
  const names = ['a', 'b', 'a', 'b', 'a'];
  const read: number[] = [];
  const calls = recordedCalls(names.map((name, x) => call(name, { x })));
  const digestOf = (number: number) => {
    read.push(number);
    return calls.digestOf(number);
  };
  const matcher = createMatcher({ ...calls, digestOf });
  expect(read).toEqual([]);
  expect(matcher.connect().next(call('a', { x: 2 }))).toMatchObject({ call: 2 });
  expect(read).toEqual([0, 2]);
  expect(matcher.connect().next(call('a', { x: 9 }))).toMatchObject({ kind: 'miss', recorded: 3 });
  expect(read).toEqual([0, 2, 4]);
  expect([...matcher.unplayed()].map(({ call }) => call)).toEqual([0, 1, 3, 4]);
});

test('no call is read that a client takes in step, until it asks for another one', () => {
  const read: number[] = [];
  const calls = recordedCalls([0, 1, 0, 2, 3].map((x) => call('a', { x })));
  const digestOf = (number: number) => {
    read.push(number);
    return calls.digestOf(number);
  };
  const matcher = createMatcher({ ...calls, digestOf });
  const client = matcher.connect();
  for (const next of [0, 1, 2]) {
    expect(client.nextInStep()).toBe(next);
    client.takeInStep();
  }
  expect([...matcher.unasked()]).toEqual([3, 4]);
  expect(read).toEqual([]);
  expect(client.next(call('a', { x: 0 }))).toMatchObject({ kind: 'miss', reason: 'used-up', recorded: 2 });
  expect(client.next(call('a', { x: 3 }))).toMatchObject({ kind: 'hit', call: 4 });
  expect(read).toEqual([0, 1, 2, 3, 4]);
  expect(client.nextInStep()).toBe(3);
  client.takeInStep();
  expect(client.nextInStep()).toBe(-1);
  expect([...matcher.unasked()]).toEqual([]);
});

test('a recording of two hundred thousand calls takes a few bytes for each, and so does a client that has them all', () => {
  const SIZE = scale(200_000, 50_000);
  const topics = createTopics();
  const topic = topics.add({ method: 'tools/call', target: 't' });
  const digestOf = (number: number) => {
    const digest = Buffer.alloc(16);
    digest.writeUInt32LE(Math.imul(number, 0x9e3779b1) >>> 0, 0);
    digest.writeUInt32LE(number, 4);
    return digest.toString('latin1');
  };
  const keyAt = (number: number) => ({ method: 'tools/call', target: 't', digest: digestOf(number) });
  const placeOf = (seq: number) => ({ seq, n: 0 });
  const bytes = () => {
    globalThis.gc?.();
    return process.memoryUsage().arrayBuffers;
  };
  const before = bytes();
  const matcher = createMatcher({ size: SIZE, topics, topicOf: () => topic, placeOf, digestOf });
  const client = matcher.connect();
  for (let i = 0; i < SIZE; i += 1) expect(client.next(keyAt(i))).toMatchObject({ call: i });
  const played = bytes();
  expect((played - before) / SIZE).toBeLessThan(100);
  for (let i = 0; i < SIZE; i += 1) client.next(keyAt(i));
  const another = matcher.connect();
  for (let i = 0; i < SIZE; i += 1000) another.next(keyAt(i));
  expect((bytes() - played) / SIZE).toBeLessThan(100);
});
