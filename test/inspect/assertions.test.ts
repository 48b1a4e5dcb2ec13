import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  type AssertionKind,
  type Breach,
  breachJson,
  eachBreach,
  isAbout,
  readAssertions,
} from '../../src/inspect/assertions.ts';
import { parseFilter } from '../../src/inspect/filter/filter.ts';
import { openTemporaryStore } from '../../src/store/file/open.ts';
import { findSession } from '../../src/store/read/sessions.ts';
import { ROOT } from '../support/tapedeck.ts';
import { importText } from '../support/text-recording.ts';

const NOW = Date.now() * 1000;

const STDIO = readFileSync(join(ROOT, 'recordings/everything-stdio.ndjson'), 'utf8');

const HTTP = readFileSync(join(ROOT, 'recordings/everything-http.ndjson'), 'utf8');

/** What breaks an assertion in a recording; null where it is about other sessions. */
async function held(
  recording: string,
  kind: AssertionKind,
  filter: string,
  within?: string,
): Promise<Breach[] | null> {
  const store = openTemporaryStore();
  onTestFinished(() => void store.close());
  const session = findSession(store, await importText(store, recording));
  const [assertion] = readAssertions({ expect: [], forbid: [], max: [], [kind]: [filter] }, NOW);
  if (assertion === undefined) throw new Error('no assertion');
  if (!isAbout(store, session, assertion)) return null;
  const only = within === undefined ? undefined : parseFilter(within, NOW);
  return [...eachBreach(store, session, assertion, only)];
}

async function places(...args: Parameters<typeof held>): Promise<unknown> {
  return (await held(...args))?.map(({ seq, side, seen }) => [seq, side, seen]);
}

/** A recording of these messages, a tenth of a second apart. */
function recordingOf(...messages: [channel: string, message: unknown][]): string {
  const [header = ''] = STDIO.split('\n', 1);
  const frames = messages.map(([channel, message]) => JSON.stringify({ ms: 100, channel, message }));
  return [header, ...frames, ''].join('\n');
}

const call = (id: number, name: string): [string, object] => [
  'stdin',
  { jsonrpc: '2.0', id, method: 'tools/call', params: { name, _meta: { progressToken: id } } },
];

const answer = (id: number): [string, object] => ['stdout', { jsonrpc: '2.0', id, result: { content: [] } }];

const progress = (id: number): [string, object] => [
  'stdout',
  { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: 1 } },
];

const PLAYED = recordingOf(
  call(1, 'slow'),
  call(2, 'quick'),
  answer(2),
  progress(1),
  answer(1),
  call(3, 'slow'),
);

test('a call that breaks an assertion is told once, by the frame of its request', async () => {
  expect(await places(PLAYED, 'forbid', 'tool=slow')).toEqual([
    [1, 'client', expect.stringMatching(/^tools\/call slow, ok after 400 ms, \d+ B$/)],
    [6, 'client', expect.stringMatching(/^tools\/call slow, unanswered, \d+ B$/)],
  ]);
  expect(await places(STDIO, 'forbid', 'tool~long')).toEqual([
    [15, 'client', 'tools/call trigger-long-running-operation, ok after 202 ms, 164 B'],
  ]);
});

test('what stands alone is told where it stands: an answer, a notification, a line of stderr', async () => {
  expect(await places(STDIO, 'forbid', 'tool=echo kind=result')).toEqual([
    [10, 'server', 'result of tools/call echo, ok after 2.23 ms, 91 B'],
  ]);
  expect(await places(PLAYED, 'forbid', 'tool=slow dir=server')).toEqual([
    [4, 'server', expect.stringMatching(/^notifications\/progress slow, /)],
    [5, 'server', expect.stringMatching(/^result of tools\/call slow, /)],
  ]);
  expect(await places(STDIO, 'forbid', 'channel=stderr')).toEqual([
    [2, 'server', expect.stringMatching(/^no message on stderr, \d+ B$/)],
  ]);
  const odd = recordingOf(['stdout', [1]]);
  expect(await places(odd, 'forbid', 'kind=invalid')).toEqual([
    [1, 'server', expect.stringMatching(/^invalid message on stdout, \d+ B$/)],
  ]);
});

test('a batch is told where one of its messages stands for itself', async () => {
  const batch = recordingOf(call(1, 'slow'), ['stdout', [answer(1)[1], progress(9)[1]]]);
  expect(((await places(batch, 'forbid', 'tool=slow')) as unknown[]).length).toBe(2);
  const alone = recordingOf(call(1, 'slow'), ['stdout', [answer(1)[1]]]);
  expect(((await places(alone, 'forbid', 'tool=slow')) as unknown[]).length).toBe(1);
});

test('a bound is held to its own scope, and only where there is a value', async () => {
  const seqs = async (filter: string) => (await held(PLAYED, 'max', filter))?.map(({ seq }) => seq);
  expect(await seqs('dur<150ms')).toEqual([1]);
  expect(await seqs('tool=slow dur<150ms')).toEqual([1]);
  expect(await seqs('tool=quick dur<150ms')).toEqual([]);
  expect(await seqs('tool=slow dur<1s')).toEqual([]);
  // The bound itself is within `<=`, and beyond `<`.
  expect(await seqs('tool=quick dur<=100ms')).toEqual([]);
  expect(await seqs('tool=quick dur<100ms')).toEqual([2]);
  // Each of several bounds must hold; a comparison the other way is scope.
  expect(await seqs('tool=quick (dur<1s size<10)')).toEqual([2]);
  expect(await seqs('tool=slow dur>300ms dur<350ms')).toEqual([1]);
  expect(await seqs('tool=slow dur>1s dur<350ms')).toEqual([]);
  const [breach] = (await held(PLAYED, 'max', 'tool=slow dur<150ms')) ?? [];
  expect(breach).toMatchObject({ expected: 'tool=slow dur<150ms', seen: expect.stringContaining('400 ms') });
});

test('what is expected and does not come has no frame', async () => {
  expect(await held(STDIO, 'expect', 'tool=echo status=ok')).toEqual([]);
  const [breach] = (await held(STDIO, 'expect', 'tool=delete')) ?? [];
  expect(breachJson('a.ndjson', 'id', breach as Breach)).toEqual({
    ...{ recording: 'a.ndjson', session: 'id', rule: 'expect', filter: 'tool=delete', severity: 'error' },
    ...{ side: null, seq: null, n: null, http: null, expected: 'a frame with tool=delete' },
    ...{ seen: 'none in 24 frames', url: null },
  });
});

test('over HTTP a frame that breaks an assertion has its HTTP exchange', async () => {
  expect(await held(HTTP, 'forbid', 'tool=echo')).toMatchObject([{ seq: 8, http: 5, side: 'client' }]);
});

test('a filter that names sessions is about those alone', async () => {
  expect(await held(STDIO, 'expect', 'transport=http tool=echo')).toBeNull();
  expect(await held(HTTP, 'expect', 'transport=http tool=echo')).toEqual([]);
  expect(await held(STDIO, 'expect', 'tool=echo server=other')).toBeNull();
});

test('within a filter only its frames count', async () => {
  expect(await held(STDIO, 'forbid', 'tool=echo', 'tool=get-sum')).toEqual([]);
  expect(await held(STDIO, 'forbid', 'tool=echo', 'kind=result')).toMatchObject([{ seq: 10 }]);
  expect(await held(STDIO, 'expect', 'tool=echo', 'tool=get-sum')).toHaveLength(1);
});

test('a filter that is wrong is refused with its option, its column and the nearest word', () => {
  const refusal = (kind: AssertionKind, filter: string) => {
    try {
      readAssertions({ expect: [], forbid: [], max: [], [kind]: [filter] }, NOW);
    } catch (error) {
      expect(error).toMatchObject({ code: 'usage' });
      return (error as Error).message;
    }
    throw new Error('it was taken');
  };
  expect(refusal('expect', 'tol=echo')).toBe(
    '`expect`: Expected a field at column 1 of the filter, got `tol`. Nearest: `tool`. To look for a text with an operator in it, quote it.',
  );
  expect(refusal('max', 'dur>2s')).toBe(
    "`max`: expected a bound with < or <=, such as 'tool=search dur<2s', got one without in 'dur>2s'.",
  );
  // Neither a time nor a choice of several is a bound.
  expect(refusal('max', 'until=now')).toContain('expected a bound');
  expect(refusal('max', 'dur<2s or size<1kb')).toContain('expected a bound');
  expect(refusal('forbid', ' ')).toBe("`forbid`: expected a filter, got none. Example: 'tool=delete'");
});
