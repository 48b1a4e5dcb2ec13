import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RequestMessage } from '../../../src/protocol/message/message.ts';
import { createMatching, type MatchingOptions } from '../../../src/replay/match/matching.ts';
import { joinRecordings } from '../../../src/replay/recording/joined.ts';
import { type Recording, readRecording } from '../../../src/replay/recording/recording.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import { parseOne } from '../../support/messages.ts';
import { inFull, scale } from '../../support/scale.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

const SESSION = {
  basis: 'stdio-process',
  transport: 'stdio',
  target: 'x',
  startedAt: '2026-01-01T00:00:00Z',
};

type Said = [client: number, method: string, result: unknown, params?: object];

const hello = (name: string, capabilities = {}) => ({
  protocolVersion: '2025-11-25',
  capabilities,
  clientInfo: { name, version: '1' },
});

const greeted = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };

/** Who shakes hands like this. */
const enter = (client: number, name: string): Said => [client, 'initialize', greeted, hello(name)];

async function recordingOf(said: readonly Said[]): Promise<Recording> {
  const lines = said.flatMap(([client, method, result, params], i) => {
    const whose = client === 1 ? {} : { client };
    const [id, jsonrpc] = [i + 1, '2.0'];
    return [
      { ms: 1, ...whose, channel: 'stdin', message: { jsonrpc, id, method, params } },
      { ms: 1, ...whose, channel: 'stdout', message: { jsonrpc, id, result } },
    ];
  });
  const store = openStore(tempStore());
  const text = [{ tapedeck: 1, session: SESSION }, ...lines].map((line) => `${JSON.stringify(line)}\n`);
  await importText(store, text.join(''));
  return readRecording(store, findSession(store, 'latest'));
}

/** Live clients of a recording. What they get is the recorded result, or the reason why there is none. */
async function stage(said: readonly Said[] | Recording, options: Partial<MatchingOptions> = {}) {
  const recording = 'script' in said ? said : await recordingOf(said);
  const matching = createMatching(recording, { repeat: 'error', ignore: [], ignoreTool: [], ...options });
  return {
    matching,
    connect() {
      const client = matching.connect();
      const ask = (method: string, params?: object) => {
        const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
        const decision = client.decide(parseOne(json) as RequestMessage, json);
        if (decision.kind === 'refuse') return (decision.refusal.error.data as { reason: string }).reason;
        if (decision.kind === 'answer') return JSON.parse(decision.json);
        const answer = recording.script.stepsOf(decision.call).at(-1);
        return JSON.parse(recording.load(answer?.place ?? { seq: 0, n: 0 }).toString()).result;
      };
      const why = (method: string) => {
        const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method }));
        const decision = client.decide(parseOne(json) as RequestMessage, json);
        return decision.kind === 'refuse' ? decision.refusal.line : '';
      };
      return { ...client, ask, why, enter: (name: string) => ask('initialize', hello(name)) };
    },
  };
}

/** Two clients of one counter, which took turns. */
const COUNTER: readonly Said[] = [
  enter(1, 'twin'),
  enter(2, 'twin'),
  [1, 'count', 1],
  [2, 'count', 2],
  [1, 'count', 3],
  [2, 'count', 4],
];

test('two clients of one counter get what each of them got, in whatever order they come and ask', async () => {
  for (const order of [
    [0, 1, 0, 1],
    [1, 0, 0, 1],
    [0, 0, 1, 1],
  ]) {
    const { connect } = await stage(COUNTER);
    const clients = [connect(), connect()];
    for (const client of clients) client.enter('twin');
    const heard: unknown[][] = [[], []];
    for (const i of order) heard[i]?.push(clients[i]?.ask('count'));
    expect(heard).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(clients[0]?.ask('count')).toBe('used-up');
  }
});

test('clients are told apart by their handshake, whoever comes first', async () => {
  const { connect, matching } = await stage([
    enter(1, 'a'),
    [1, 'count', 'of a'],
    enter(2, 'b'),
    [2, 'count', 'of b'],
  ]);
  const [b, a] = [connect(), connect()];
  b.enter('b');
  a.enter('a');
  expect([a.ask('count'), b.ask('count')]).toEqual(['of a', 'of b']);
  expect(matching.unasked()).toEqual([]);
});

test('of several with one handshake, a client is the one that asked what it asks', async () => {
  const recorded: Said[] = [
    enter(1, 'twin'),
    enter(2, 'twin'),
    [1, 'left', 1],
    [2, 'right', 2],
    [1, 'count', 'left'],
    [2, 'count', 'right'],
  ];
  const { connect } = await stage(recorded);
  const [one, two] = [connect(), connect()];
  one.enter('twin');
  two.enter('twin');
  expect(one.ask('right')).toBe(2);
  expect(two.ask('left')).toBe(1);
  expect([one.ask('count'), two.ask('count')]).toEqual(['right', 'left']);
});

test('a client that was answered as one is not answered as another', async () => {
  const { connect } = await stage([...COUNTER, [2, 'right', 'r']]);
  const [one, two] = [connect(), connect()];
  one.enter('twin');
  two.enter('twin');
  expect(one.ask('count')).toBe(1);
  expect(one.ask('right')).toBe('never-recorded');
  expect(one.why('right')).toContain('client 2 of the recording asked this, and this client is client 1');
  expect(two.ask('count')).toBe(2);
  expect(two.ask('right')).toBe('r');
});

test('one more client than were recorded begins anew as the one that has left, or else as the first', async () => {
  const { connect } = await stage(COUNTER);
  const clients = [connect(), connect()];
  for (const client of clients) client.enter('twin');
  clients[1]?.leave();
  const third = connect();
  third.enter('twin');
  expect(third.ask('count')).toBe(2);
  const fourth = connect();
  fourth.enter('twin');
  expect(fourth.ask('count')).toBe(1);
  expect(fourth.boundTo()).toBe(1);
});

test('where a live server answers the rest, one more client is a new one, with a number of its own', async () => {
  const { connect } = await stage(COUNTER, { sharesClients: false });
  const clients = [connect(), connect(), connect(), connect()];
  const heard = clients.map(
    (client) => (client.enter('twin') as { serverInfo?: unknown }).serverInfo !== undefined,
  );
  expect(heard).toEqual([true, true, false, false]);
  expect(clients.map((client) => client.number())).toEqual([1, 2, 3, 4]);
});

test('a client of another version is the one of its name; of another name it is nobody, unless names tell nothing', async () => {
  const two = await stage([enter(1, 'a'), [1, 'count', 1], enter(2, 'b'), [2, 'count', 2]]);
  const newer = two.connect();
  newer.ask('initialize', { ...hello('b', { roots: {} }), clientInfo: { name: 'b', version: '2' } });
  expect(newer.ask('count')).toBe(2);
  const stranger = two.connect();
  expect([stranger.enter('c'), stranger.ask('count')]).toEqual(['unknown-client', 'unknown-client']);
  const twins = await stage(COUNTER);
  const anybody = twins.connect();
  anybody.enter('c');
  expect(anybody.ask('count')).toBe(1);
});

test('a client that asks something before it says who it is is taken for who it is', async () => {
  const { connect } = await stage(
    [[1, 'ping', {}], enter(1, 'a'), [1, 'count', 1], [2, 'ping', {}], enter(2, 'b'), [2, 'count', 2]],
    { sharesClients: false },
  );
  const b = connect();
  expect([b.ask('ping'), b.boundTo()]).toEqual([{}, 1]);
  b.enter('b');
  expect([b.boundTo(), b.ask('count')]).toEqual([2, 2]);
  const a = connect();
  a.enter('a');
  expect(a.ask('count')).toBe(1);
});

test('a recording of one client is there for any number of clients under any name', async () => {
  const { connect } = await stage([enter(1, 'a'), [1, 'count', 1]]);
  for (const name of ['a', 'b', 'a']) {
    const client = connect();
    client.enter(name);
    expect(client.ask('count')).toBe(1);
  }
});

test('what the server says by itself follows the calls of the client that it was said to', async () => {
  const store = openStore(tempStore());
  const line = (client: number, channel: string, message: object) =>
    JSON.stringify({ ms: 1, client, channel, message: { jsonrpc: '2.0', ...message } });
  const lines = [
    JSON.stringify({ tapedeck: 1, session: SESSION }),
    line(1, 'stdin', { id: 1, method: 'a' }),
    line(1, 'stdout', { id: 1, result: {} }),
    line(2, 'stdout', { method: 'notifications/first' }),
    line(2, 'stdin', { id: 2, method: 'b' }),
    line(1, 'stdout', { method: 'notifications/message' }),
    line(2, 'stdout', { id: 2, result: {} }),
  ];
  await importText(store, `${lines.join('\n')}\n`);
  const { script } = readRecording(store, findSession(store, 'latest'));
  const seqs = (steps: readonly { place: { seq: number } }[]) => steps.map(({ place }) => place.seq);
  expect(script.clients).toEqual([1, 2]);
  expect(seqs(script.aftermathOf(0))).toEqual([5]);
  expect(seqs(script.stepsOf(1))).toEqual([6]);
  expect([seqs(script.prologue(1)), seqs(script.prologue(2))]).toEqual([[], [3]]);
});

test('the same client of recordings that are joined is one', async () => {
  const parts = await Promise.all(
    [0, 10].map((more) =>
      recordingOf([enter(1, 'a'), enter(2, 'b'), [1, 'count', more + 1], [2, 'count', more + 2]]),
    ),
  );
  const { connect } = await stage(joinRecordings(parts));
  const b = connect();
  b.enter('b');
  expect([b.ask('count'), b.ask('count')]).toEqual([2, 12]);
});

test('identical calls count as asked for as often as all clients together asked for them', async () => {
  const { connect, matching } = await stage([
    enter(1, 'a'),
    enter(1, 'a'),
    [1, 'tools/list', { tools: [] }],
    enter(1, 'a'),
    [1, 'tools/list', { tools: [] }],
    [1, 'never', {}],
  ]);
  const clients = [connect(), connect(), connect()];
  for (const client of clients) client.enter('a');
  expect(matching.unasked()).toEqual([2, 4, 5]);
  for (const client of clients) client.ask('tools/list');
  expect([matching.unasked(), matching.size]).toEqual([[5], 6]);
});

test('whatever is recorded and asked in whatever order, no client hears what was said to two', async () => {
  const turn = fc.tuple(fc.nat(2), fc.constantFrom('list', 'count', 'left', 'right'));
  const names = fc.array(fc.constantFrom('twin', 'other'), { minLength: 3, maxLength: 3 });
  const turns = fc.array(turn, { maxLength: 16 });
  await fc.assert(
    fc.asyncProperty(
      names,
      turns,
      names,
      turns,
      async (recordedNames, recordedTurns, liveNames, liveTurns) => {
        const said = recordedTurns.map(([i, method], n): Said => {
          return [i + 1, method, method === 'list' ? 'the same to all' : { to: i + 1, n }];
        });
        const { connect } = await stage([...recordedNames.map((name, i) => enter(i + 1, name)), ...said]);
        const clients = liveNames.map((name) => {
          const client = connect();
          client.enter(name);
          return client;
        });
        const heard = clients.map(() => new Set<number>());
        for (const [i, method] of liveTurns) {
          const { to } = (clients[i]?.ask(method) ?? {}) as { to?: number };
          if (to !== undefined) heard[i]?.add(to);
        }
        for (const own of heard) expect(own.size).toBeLessThan(2);
        // As many came as were recorded, so nobody had to be who another one is.
        if (recordedNames.toSorted().join() !== liveNames.toSorted().join()) return;
        const all = heard.flatMap((own) => [...own]);
        expect(new Set(all).size).toBe(all.length);
      },
    ),
    { numRuns: scale(60, 20) },
  );
});

test('what is read ahead answers as what is read when it is asked for', async () => {
  const ask = fc.record({
    method: fc.constantFrom('tools/call', 'resources/read', 'nothing/recorded'),
    n: fc.integer({ min: 0, max: 4 }),
    isSwapped: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(ask, { maxLength: 12 }),
      fc.array(ask, { maxLength: 16 }),
      fc.record({
        repeat: fc.constantFrom('error', 'last', 'cycle'),
        ignoreTool: fc.constantFrom([], [], ['say:$.n'], ['say:$.nothing']),
      }),
      async (recorded, live, options) => {
        const paramsOf = ({ method, n, isSwapped }: { method: string; n: number; isSwapped: boolean }) => {
          if (method !== 'tools/call') return { uri: `x:${n}` };
          return isSwapped ? { arguments: { n }, name: 'say' } : { name: 'say', arguments: { n } };
        };
        const said = recorded
          .filter(({ method }) => method !== 'nothing/recorded')
          .map((one, i): Said => [1, one.method, { i }, paramsOf(one)]);
        const recording = await recordingOf([enter(1, 'a'), ...said]);
        const results = [];
        for (const calls of [0, 2, 100_000]) {
          const { matching, connect } = await stage(recording, options);
          if (calls > 0) matching.readAhead({ calls, ms: 60_000 });
          const client = connect();
          client.ask('initialize', hello('a'));
          const got = live.map((one) => client.ask(one.method, paramsOf(one)));
          results.push([got, matching.unasked(), matching.idlePaths()]);
        }
        expect(results[1]).toEqual(results[0]);
        expect(results[2]).toEqual(results[0]);
      },
    ),
    { numRuns: scale(15, 100) },
  );
});

test('calls that were read ahead are not read once more', async () => {
  const recording = await recordingOf([
    enter(1, 'a'),
    ...[1, 2, 3].map((n): Said => [1, 'tools/call', { n }, { name: 'say', arguments: { n } }]),
  ]);
  let loads = 0;
  const counted: Recording = {
    ...recording,
    load(place) {
      loads += 1;
      return recording.load(place);
    },
  };
  const { matching, connect } = await stage(counted);
  matching.readAhead({ calls: 100_000, ms: 60_000 });
  const before = loads;
  const client = connect();
  client.ask('initialize', hello('a'));
  for (const n of [3, 1, 2]) client.ask('tools/call', { name: 'say', arguments: { n } });
  expect(before).toBeGreaterThan(0);
  // The answers alone.
  expect(loads - before).toBe(4);
});

test('what counts of a request that was read ahead is put together once, however often it is looked at', async () => {
  const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
  const said = numbers.map((n): Said => [1, 'tools/call', { n }, { name: 'say', arguments: { n } }]);
  const asked: string[] = [];
  const { matching, connect } = await stage([enter(1, 'a'), ...said], {
    matchBy(_asked, params) {
      asked.push(String(params));
      return params;
    },
  });
  matching.readAhead({ calls: 100_000, ms: 60_000 });
  const client = connect();
  client.ask('initialize', hello('a'));
  const ask = (n: number) => client.ask('tools/call', { name: 'say', arguments: { n } });
  expect(ask(3)).toEqual({ n: 3 });
  asked.length = 0;
  // It is compared with all the others, to say which is near.
  expect(ask(3)).toBe('used-up');
  const own = JSON.stringify({ name: 'say', arguments: { n: 3 } });
  const others = asked.filter((params) => params !== own);
  expect(others.length).toBeGreaterThan(0);
  expect(others).toEqual([...new Set(others)]);
  // As the live one, and as the recorded one.
  expect(asked.length - others.length).toBeLessThanOrEqual(2);
});

inFull(
  'requests that come again and again take no more memory, however many ways they are written',
  async () => {
    const { connect } = await stage([enter(1, 'a'), [1, 'tools/call', 'said', { name: 'say' }]], {
      repeat: 'last',
    });
    const client = connect();
    client.ask('initialize', hello('a'));
    const ask = (progressToken: number) =>
      client.ask('tools/call', { name: 'say', _meta: { progressToken } });
    const before = bytesOfBuffers();
    for (let token = 0; token < 300_000; token += 1) expect(ask(token)).toBe('said');
    expect(bytesOfBuffers() - before).toBeLessThan(7_500_000);
    expect(ask(299_999)).toBe('said');
  },
);

/** Of those that are in use. */
function bytesOfBuffers(): number {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  collect();
  return process.memoryUsage().arrayBuffers;
}
