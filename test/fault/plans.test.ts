/** One seed, fifty runs, twelve calls in flight: live and by the mock, over stdio and over HTTP, always the same faults. */
import { expect, test } from 'vitest';
import { recordUrlInProcess } from '../support/http-record.ts';
import { startInProcess } from '../support/in-process.ts';
import { fixture, showFrames, tapedeck, tempStore, until } from '../support/tapedeck.ts';

const RUNS = 50;

/** So many runs at one time: they share the machine, and come in another order each time. */
const AT_ONCE = 5;

const CALLS = 12;

const RULES = ['tool=echo error(-32050) p=0.3', 'tool=echo delay=uniform(1ms,30ms) p=0.5'];

const FAULTS = [...RULES.flatMap((rule) => ['--fault', rule]), '--seed', '11'];

const ECHO = [process.execPath, fixture('echo.js')];

const INITIALIZE = {
  id: 'first',
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'tester', version: '1.0.0' },
  },
};

const INITIALIZED = { method: 'notifications/initialized' };

const lineOf = (message: object) => JSON.stringify({ jsonrpc: '2.0', ...message });

/** In an order that is another one in each run. */
function callsOf(run: number): object[] {
  return Array.from({ length: CALLS }, (_, i) => {
    const n = (i * 5 + run) % CALLS;
    return {
      id: run * 100 + n,
      method: 'tools/call',
      params: { name: 'echo', arguments: { text: `call ${n}` } },
    };
  });
}

/** What became of each call: `3 ok`, `4 -32050`. */
function fatesOf(run: number, texts: readonly string[]): string[] {
  const fates = texts.flatMap((text) => {
    const [, id] = /"id":(\d+)/.exec(text) ?? [];
    return id === undefined ? [] : [`${Number(id) - run * 100} ${/"code":(-?\d+)/.exec(text)?.[1] ?? 'ok'}`];
  });
  return fates.sort();
}

type Run = { child: { stdin: NodeJS.WritableStream }; stdout(): Buffer };

async function talkByStdio({ child, stdout }: Run, run: number): Promise<string[]> {
  child.stdin.write(`${[INITIALIZE, INITIALIZED, ...callsOf(run)].map(lineOf).join('\n')}\n`);
  await until('all are answered', () => stdout().toString().split('\n').length > CALLS + 1);
  child.stdin.end();
  return fatesOf(run, stdout().toString().split('\n'));
}

async function talkByHttp(url: URL, run: number): Promise<string[]> {
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
  };
  const post = (message: object) => fetch(url, { method: 'POST', headers, body: lineOf(message) });
  const first = await post(INITIALIZE);
  await first.text();
  headers['Mcp-Session-Id'] = first.headers.get('mcp-session-id') ?? '';
  await (await post(INITIALIZED)).text();
  const answers = callsOf(run).map(async (call) => (await post(call)).text());
  return fatesOf(run, await Promise.all(answers));
}

const planOf = (stderr: string) => stderr.split('\n').filter((line) => line.includes('plan: '));

const countOf = (stderr: string) => /\d+ faults were put in on purpose \(.*\)/.exec(stderr)?.[0];

/** The marks of each session of a store, by what was asked for. */
async function marksOf(db: string, session: string): Promise<string[]> {
  const frames = (await showFrames(db, session)) as (Awaited<ReturnType<typeof showFrames>>[number] & {
    fault?: { number: number; action: string };
  })[];
  return frames
    .flatMap(({ fault, messages: [message] }) => {
      const asked = frames.find(({ seq }) => seq === message?.replyTo);
      if (fault === undefined || asked === undefined) return [];
      return [`${JSON.parse(asked.text ?? '').params.arguments.text} ${fault.number} ${fault.action}`];
    })
    .sort();
}

/** All that a run shows of its faults, as one text. */
type Shown = Record<string, unknown>;

async function ofAllRuns(shownBy: (run: number) => Promise<Shown>): Promise<Shown> {
  const seen = new Map<string, Shown>();
  for (let run = 0; run < RUNS; run += AT_ONCE) {
    const some = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => shownBy(run + i + 1)));
    for (const shown of some) seen.set(JSON.stringify(shown), shown);
  }
  expect([...seen.keys()]).toHaveLength(1);
  return [...seen.values()][0] as Shown;
}

async function listening(args: readonly string[]) {
  const run = startInProcess([...args, '--listen', '127.0.0.1:0']);
  await until('it listens', () => /listening on \S+;/.test(run.stderr()));
  return { run, url: new URL(/listening on (\S+);/.exec(run.stderr())?.[1] ?? '') };
}

test('each run has the same plan, the same marks and the same answers', { timeout: 300_000 }, async () => {
  const plain = tempStore();
  const recorded = tapedeck(['record', '--db', plain, '--name', 'plain', '--', ...ECHO]);
  expect((await talkByStdio(recorded, 0)).filter((fate) => !fate.endsWith('ok'))).toEqual([]);
  await recorded.ended;
  const replay = ['replay', 'plain', '--db', plain];

  const live = await ofAllRuns(async (run) => {
    const db = tempStore();
    const recording = tapedeck(['record', '--db', db, ...FAULTS, '--fault-plan', '--', ...ECHO]);
    const fates = await talkByStdio(recording, run);
    const { stderr } = await recording.ended;
    return { plan: planOf(stderr), count: countOf(stderr), fates, marks: await marksOf(db, 'latest') };
  });
  expect(live).toMatchObject({ plan: expect.any(Array), count: expect.any(String) });
  expect((live['marks'] as string[]).length).toBeGreaterThan(3);
  expect(new Set((live['fates'] as string[]).map((fate) => fate.split(' ')[1]))).toEqual(
    new Set(['ok', '-32050']),
  );

  const upstream = await listening([...replay, '--repeat', 'last']);
  const liveByHttp = await ofAllRuns(async (run) => {
    const recording = await recordUrlInProcess(upstream.url, { args: [...FAULTS, '--fault-plan'] });
    const fates = await talkByHttp(recording.url, run);
    await recording.stop();
    const stderr = recording.run.stderr();
    const marks = await marksOf(recording.db, 'latest');
    return { plan: planOf(stderr), count: countOf(stderr), fates, marks };
  });
  expect(liveByHttp).toEqual(live);

  const { count, fates } = live;
  const mocked = await ofAllRuns(async (run) => {
    const mock = startInProcess([...replay, ...FAULTS]);
    const got = await talkByStdio(mock, run);
    return { count: countOf((await mock.ended).stderr), fates: got };
  });
  expect(mocked).toEqual({ count, fates });

  const mockedByHttp = await ofAllRuns(async (run) => {
    const { run: mock, url } = await listening([...replay, ...FAULTS]);
    const got = await talkByHttp(url, run);
    mock.child.kill('SIGTERM');
    return { count: countOf((await mock.ended).stderr), fates: got };
  });
  expect(mockedByHttp).toEqual({ count, fates });
});
