import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Difference, diffOf, jsonPointer } from '../../../src/protocol/json/diff.ts';
import { COMMAND_LINE_WORDS, type HintWords, TEST_KIT_WORDS } from '../../../src/replay/match/hints.ts';
import { createIgnoreWatch, readIgnoreRules } from '../../../src/replay/match/ignore.ts';
import type { RequestKey } from '../../../src/replay/match/key.ts';
import { createMatcher } from '../../../src/replay/match/matcher.ts';
import {
  explainMiss,
  type MissContext,
  type MissExplanation,
  unreadableMiss,
} from '../../../src/replay/match/miss.ts';
import { missRefusal, NO_RECORDED_ANSWER } from '../../../src/replay/match/refusal.ts';
import { sortedText } from '../../support/json-text.ts';
import { call, keyOf, recordedCalls, smallArguments, smallJson } from '../../support/replay.ts';
import { scale } from '../../support/scale.ts';

const missError = (miss: MissExplanation) => missRefusal(miss).error;

const missLine = (miss: MissExplanation) => missRefusal(miss).line;

const missReport = (miss: MissExplanation) => missRefusal(miss).text;

/** Makes the changes one after the other, as RFC 6902 says. */
function applied(value: unknown, differences: readonly Difference[]): unknown {
  const root = { value: structuredClone(value) };
  for (const { change, path, to } of differences) {
    // biome-ignore lint/suspicious/noExplicitAny: the value can be anything
    let parent: any = root;
    let last: string | number = 'value';
    for (const step of path) {
      parent = parent[last];
      last = step;
    }
    if (change === 'removed' && Array.isArray(parent)) parent.splice(Number(last), 1);
    else if (change === 'removed') delete parent[last];
    else if (change === 'added' && Array.isArray(parent))
      parent.splice(Number(last), 0, JSON.parse(String(to)));
    else parent[last] = JSON.parse(String(to));
  }
  return root.value;
}

/** Asks each key in turn of one client; the miss of the last. */
function missOf(recorded: readonly RequestKey[], asked: readonly RequestKey[]): MissExplanation {
  const matcher = createMatcher(recordedCalls(recorded));
  const client = matcher.connect();
  for (const key of asked.slice(0, -1)) client.next(key);
  const key = asked.at(-1);
  const answer = key && client.next(key);
  if (key === undefined || answer?.kind !== 'miss') throw new Error('there is no miss');
  return explainMiss(key, answer, client, lookInto(recorded, matcher.methods));
}

function explainAs(words: HintWords, recorded: RequestKey, asked: RequestKey): MissExplanation {
  const matcher = createMatcher(recordedCalls([recorded]));
  const client = matcher.connect();
  const answer = client.next(asked);
  if (answer.kind !== 'miss') throw new Error('there is no miss');
  return explainMiss(asked, answer, client, { ...lookInto([recorded], matcher.methods), words });
}

function lookInto(recorded: readonly RequestKey[], methods: readonly string[]): MissContext {
  return {
    methods,
    keyAt: ({ seq }) => recorded[seq] ?? null,
    originOf: ({ seq }) => ({ seq, session: null }),
    effort: { compared: 0 },
    knownTargets: (asked) => ({
      names: recorded.flatMap(({ method, target }) => (method === asked && target !== null ? [target] : [])),
      isListed: false,
    }),
    remarks: () => [],
    words: COMMAND_LINE_WORDS,
  };
}

test('of very many misses the later ones are compared with the next few calls only, and say so', () => {
  const recorded = Array.from({ length: 150 }, (_, x) => call('add', { x }));
  const matcher = createMatcher(recordedCalls(recorded));
  const client = matcher.connect();
  client.next(call('add', { x: 40 }));
  const into = lookInto(recorded, matcher.methods);
  const misses = Array.from({ length: 200 }, (_, n) => {
    const key = call('add', { x: 41, n });
    const answer = client.next(key);
    if (answer.kind !== 'miss') throw new Error('there is no miss');
    return explainMiss(key, answer, client, into);
  });
  expect(misses[0]).toMatchObject({ compared: 150, isCut: false });
  expect(misses.at(-1)).toMatchObject({ compared: 10, isCut: true, near: [{ place: { seq: 41 } }, {}, {}] });
  expect(missReport(misses.at(-1) as MissExplanation)).toContain('compared with 10 recorded calls only');
});

test('the differences applied to the one give the other, and there are none exactly between equals', () => {
  fc.assert(
    fc.property(smallJson, smallJson, (a, b) => {
      const { differences, similarity } = diffOf(Buffer.from(sortedText(a)), Buffer.from(sortedText(b)));
      expect(sortedText(applied(a, differences))).toBe(sortedText(b));
      const areEqual = sortedText(a) === sortedText(b);
      expect(differences.length === 0).toBe(areEqual);
      expect(similarity === 1).toBe(areEqual);
      expect(similarity).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: scale(1000) },
  );
});

test('pointers are escaped, and values deeper than the differ goes are compared as a whole', () => {
  expect(jsonPointer(['a/b', 'm~n', 0, ''])).toBe('/a~1b/m~0n/0/');
  const deep = (x: number) => Buffer.from(`${'['.repeat(400)}${x}${']'.repeat(400)}`);
  const { differences } = diffOf(deep(1), deep(2));
  expect(differences).toHaveLength(1);
  expect(differences[0]?.path).toHaveLength(50);
});

test('the suggested options make the nearest call the same as the live one', () => {
  fc.assert(
    fc.property(smallArguments, smallArguments, (recorded, live) => {
      fc.pre(sortedText(recorded) !== sortedText(live));
      const [near] = missOf([call("to'ol", recorded)], [call("to'ol", live)]).near;
      const shell = (near?.options ?? []).map((option) => option.replaceAll("'\\''", '\u0000'));
      const rules = readIgnoreRules(
        [],
        shell.map((option) => (/^--ignore-tool '(.*)'$/s.exec(option)?.[1] ?? '').replaceAll('\u0000', "'")),
      );
      expect(call("to'ol", recorded, rules).digest).toEqual(call("to'ol", live, rules).digest);
    }),
    { numRuns: scale(500) },
  );
});

test('a call that was never recorded says so, and shows no difference where nothing is alike', () => {
  const miss = missOf([keyOf('tools/list'), keyOf('ping')], [call('add', { a: 1 })]);
  expect(missLine(miss)).toBe(
    'tools/call "add": never recorded. The recording has no call of tools/call; options: --mode new_episodes',
  );
  expect(miss.near).toEqual([]);
  expect(missError(miss).data.methods).toEqual(['tools/list', 'ping']);
});

test('a tool that was never recorded shows the others, with no option to take their answers', () => {
  const miss = missOf([call('add', { a: 1 }), call('sub', { a: 1 })], [call('ad', { a: 1 })]);
  expect(missLine(miss)).toContain(
    'tools/call "ad": never recorded. The recording has other calls of tools/call, none of this target. Did you mean "add"? It has "add", "sub"; ',
  );
  expect(miss.near.map(({ target, options }) => [target, options])).toEqual([
    ['add', null],
    ['sub', null],
  ]);
});

test('an ignored path that led to nothing is told, and so is a tool with a slip in its name', () => {
  const watch = createIgnoreWatch(['$.arguments.x', '$.nowhere'], ['add:$.nwo', 'ad:$.x', 'other:$.x']);
  const json = Buffer.from('{"name":"add","arguments":{"x":1,"now":[2]}}');
  watch.see({ method: 'tools/call', target: 'add' }, json, { start: 0, end: json.length, type: 'object' });
  expect(watch.remarks(COMMAND_LINE_WORDS)).toEqual([
    "--ignore '$.nowhere' led to nothing in 1 call",
    "--ignore-tool 'add:$.nwo' led to nothing in 1 call",
    '--ignore-tool \'ad:$.x\': no such tool was called; did you mean "add"?',
  ]);
  expect(watch.remarks(TEST_KIT_WORDS)[1]).toBe("ignoreTool: ['add:$.nwo'] led to nothing in 1 call");
});

test('the message of the error alone has the difference and the options, in the words of its place', () => {
  const [recorded, asked] = [call("it's", { now: 1 }), call("it's", { now: 2 })];
  const miss = missOf([recorded], [asked]);
  const words: [MissExplanation, string][] = [
    [miss, "--ignore-tool 'it'\\''s:$.now', or --mode new_episodes"],
    [
      explainAs(TEST_KIT_WORDS, recorded, asked),
      'ignoreTool: ["it\'s:$.now"], or TAPEDECK_MODE=new_episodes',
    ],
  ];
  for (const [one, options] of words) {
    const { message } = missError(one);
    expect(message).toContain('/arguments/now changed: recorded 1, live 2');
    expect(message.endsWith(`; options: ${options}`)).toBe(true);
  }
});

test('a call that was used up says so before all else, and which options would answer it', () => {
  const miss = missOf(
    [call('add', { a: 1 }), call('add', { a: 2 })],
    [call('add', { a: 1 }), call('add', { a: 1 })],
  );
  expect(missLine(miss)).toMatch(
    /^tools\/call "add": used up\. It was recorded once, and that one has been played; /,
  );
  expect(miss.options.slice(0, 2)).toEqual(['--repeat last', '--repeat cycle']);
  expect(miss.near.map(({ place, isPlayed }) => [place.seq, isPlayed])).toEqual([
    [1, false],
    [0, true],
  ]);
});

test('the nearest unplayed calls are listed with scores, differences and options, played ones after them', () => {
  const recorded = [
    call('now', { city: 'Bern', ts: 1 }),
    call('now', { city: 'Bern', ts: 2 }),
    call('now', { city: 'Lima', ts: 99, unit: 'c' }),
    call('now', { city: 'Rome', ts: 4 }),
    call('now', { city: 'Oslo', ts: 5 }),
  ];
  const miss = missOf(
    recorded,
    [recorded[0], call('now', { city: 'Bern', ts: 3 })].flatMap((key) => key ?? []),
  );
  expect(miss.reason).toBe('arguments-differ');
  expect(miss.compared).toBe(5);
  expect(miss.near).toHaveLength(3);
  const error = missError(miss);
  expect(error.code).toBe(NO_RECORDED_ANSWER);
  expect(error.data.nearest[0]).toMatchObject({
    seq: 1,
    played: false,
    differences: [{ change: 'changed', pointer: '/arguments/ts', recorded: '2', live: '3' }],
    options: ["--ignore-tool 'now:$.ts'"],
  });
  expect(error.data.nearest.every(({ played }) => !played)).toBe(true);
  expect(missLine(miss)).toMatch(
    /^tools\/call "now": the arguments differ\. 5 calls of "now" were recorded, but none with these params; nearest of 5 compared: frame 1, similarity 0\.9\d*: \/arguments\/ts changed: recorded 2, live 3; options: --ignore-tool 'now:\$\.ts', or --mode new_episodes$/,
  );
});

test('exact numbers and long values are clipped in the error and whole in the report', () => {
  const long = 'é'.repeat(5000);
  const recorded = keyOf('tools/call', `{"name":"t","arguments":{"n":12345678901234567890,"s":"${long}"}}`);
  const miss = missOf([recorded], [call('t', { s: 'short' })]);
  const { data } = missError(miss);
  expect(data.nearest[0]?.differences[0]).toMatchObject({
    change: 'removed',
    recorded: '12345678901234567890',
  });
  expect(data.nearest[0]?.differences[1]?.recorded).toBe(`"${'é'.repeat(399)}… (10002 bytes)`);
  expect(missReport(miss)).toContain(long);
  expect(missLine(miss)).not.toContain('\n');
  expect(JSON.parse(JSON.stringify(data))).toEqual(data);
});

test('at most some hundreds of calls are compared, and a cut is said', () => {
  const recorded = Array.from({ length: 1000 }, (_, x) => call('t', { x }));
  const miss = missOf(recorded, [call('t', { x: -1 })]);
  expect(miss.compared).toBe(200);
  expect(miss.isCut).toBe(true);
  expect(missReport(miss)).toContain('compared with 200 recorded calls only: there are more');
});

test('what has no canonical form says why', () => {
  const miss = unreadableMiss({ method: 'tools/call', target: 't' }, 'too-deep', COMMAND_LINE_WORDS);
  expect(missLine(miss)).toBe(
    'tools/call "t": cannot be matched: what it asks is nested more than 200 levels deep',
  );
  expect(missError(miss).data.nearest).toEqual([]);
});
