/** Who reads by other ways than a command that prints: of an engine they see what they see of the store. */
import { gunzipSync } from 'node:zlib';
import { afterEach, expect, vi } from 'vitest';
import { withEngine } from '../support/engine.ts';
import { type Fleet, fleet, ship } from '../support/fleet.ts';
import { startInProcess } from '../support/in-process.ts';
import { connect, echo, openDeck } from '../support/kit.ts';
import { inFull } from '../support/scale.ts';
import { tapedeckInProcess, until } from '../support/tapedeck.ts';
import { startUi, storeOf } from '../support/ui.ts';

const RECORDINGS = ['everything-stdio', 'everything-http', 'modern-http'];

async function shipped(): Promise<{ own: Fleet; file: string }> {
  const own = await fleet();
  const file = await storeOf(...RECORDINGS);
  await ship(own, file);
  return { own, file };
}

afterEach(() => void vi.unstubAllEnvs());

/** All that the viewer asks for, of a session and of all. */
const ABOUT_ALL = [
  '/api/sessions',
  '/api/sessions?filter=status~error&sort=name&limit=2',
  '/api/stats',
  '/api/stats?by=session&filter=kind%3Drequest',
  // While the index is being made, what is in it comes first.
  '/api/search?q=echo&limit=20&index=no',
  '/api/search?filter=dur%3E1ms&index=no',
  '/api/diff?a=everything-stdio&b=everything-http',
  '/api/complete?filter=tool%3D&at=5',
  '/api/runs',
];

const ABOUT_ONE = [
  '',
  '?findings',
  '/outline',
  '/frames?limit=50',
  '/frames/3',
  '/frames/4/bytes',
  '/http',
  '/http/1',
  '/select?filter=status~error',
  '/check',
  '/stats?by=method',
];

const ABOUT_FRAMES = ['/api/snippet/everything-http/3?as=curl', '/api/snippet/everything-http/http/1'];

/** A report says when it was made, in the first of its packed blocks. */
function undated(text: string): string {
  return text.replace(/(id="block-0">)([^<]*)/, (_, begin: string, packed: string) => {
    const block = gunzipSync(Buffer.from(packed, 'base64')).toString();
    expect(block).toContain('"madeAt":"2');
    return begin + block.replace(/"madeAt":"[^"]*"/, '');
  });
}

withEngine('other readers of an engine', () => {
  inFull('the viewer answers what it answers of the store', async () => {
    const { own, file } = await shipped();
    const [here, there] = await Promise.all([file, own.reader].map((db) => startUi(db, [], 0, own.env)));
    const answers = async (path: string) =>
      Promise.all(
        [here, there].map(async (ui) => {
          const answer = await ui?.get(path);
          // Where the next page begins is for the viewer that said it alone.
          const body = undated((await answer?.text()) ?? '').replace(/"next":"\w+"/, '"next":"…"');
          return { path, status: answer?.status, body };
        }),
      );
    const exports = ['ndjson', 'html', 'har'].map((format) => `/api/export/modern-http?format=${format}`);
    const paths = [
      ...ABOUT_ALL,
      ...RECORDINGS.flatMap((name) => ABOUT_ONE.map((rest) => `/api/sessions/${name}${rest}`)),
      ...ABOUT_FRAMES,
      ...exports,
    ];
    let bytes = 0;
    for (const path of paths) {
      const [local, central] = await answers(path);
      expect(central).toEqual(local);
      bytes += local?.status === 200 ? (local.body?.length ?? 0) : 0;
    }
    expect(bytes).toBeGreaterThan(100_000);
    expect(there?.run.stderr()).toContain('the newest 50 sessions of the engine as they are now');
  });

  inFull('a report as one file is the same', async () => {
    const { own, file } = await shipped();
    const [here, there] = await Promise.all(
      [file, own.reader].map(async (db) => {
        const words = ['export', 'everything-http', '--format', 'html', '--db', db];
        return undated(String((await tapedeckInProcess(words, { env: own.env })).stdout));
      }),
    );
    expect(there?.length).toBeGreaterThan(100_000);
    expect(there).toBe(here);
  });

  inFull('a test finds in a deck what it finds in one of the store', async () => {
    const { own, file } = await shipped();
    vi.stubEnv('XDG_CACHE_HOME', String(own.env['XDG_CACHE_HOME']));
    const seen = async (recording: string, db?: string) => {
      const deck = await openDeck(recording, db === undefined ? {} : { db });
      const client = await connect(deck.transport());
      const answers = {
        tools: await client.listTools(),
        echo: await echo(client, 'Hello, tape.'),
        sum: await client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 } }),
        prompt: await client.getPrompt({ name: 'no-such-prompt' }).catch(String),
      };
      await client.close();
      const calls = deck.calls.map(({ method, params }) => ({ method, params }));
      return { answers, calls };
    };
    const local = await seen('everything-stdio', file);
    expect(local.calls.length).toBeGreaterThan(3);
    expect(await seen('everything-stdio', own.reader)).toEqual(local);
    expect(await seen(`${own.reader}#everything-stdio`)).toEqual(local);
  });

  inFull('an agent is answered by every tool, resource and prompt as of the store', async () => {
    const { own, file } = await shipped();
    const [local, central] = [await told(file, own), await told(own.reader, own)];
    expect(local.length).toBeGreaterThanOrEqual(CALLS.length + RECORDINGS.length);
    expect(central).toEqual(local);
  });
});

const CALLS: readonly (readonly [tool: string, args: Record<string, unknown>])[] = [
  ['list_sessions', {}],
  ['list_sessions', { filter: 'status~error', limit: 1 }],
  ['get_session', { session: 'everything-stdio' }],
  ['search', { text: 'echo', limit: 50 }],
  ['search', { filter: 'tool=echo' }],
  ['list_calls', { session: 'everything-http' }],
  ['list_calls', { session: 'modern-http', filter: 'not status=ok' }],
  ['get_call', { session: 'everything-stdio', seq: 1 }],
  ['get_frame', { session: 'everything-http', seq: 2 }],
  ['stats', { all: true }],
  ['stats', { session: 'everything-stdio', by: 'method', filter: 'dur>1ms' }],
  ['check', { session: 'everything-stdio' }],
  ['diff', { a: 'everything-stdio', b: 'everything-http' }],
  ['filter_help', {}],
];

/** Everything that the server offers, and what it answers to it, as text. */
async function told(db: string, { env }: Fleet): Promise<string[]> {
  const run = startInProcess(['mcp', '--db', db], { env });
  let sent = 0;
  const ask = async (method: string, params: Record<string, unknown> = {}) => {
    sent += 1;
    const id = sent;
    run.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    const find = () => linesOf(run.stdout()).find((line) => line.id === id);
    await until(`an answer to ${method}: ${run.stderr()}`, () => find() !== undefined);
    return find() ?? {};
  };
  const clientInfo = { name: 'agent', version: '1' };
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  run.child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  const answers = [];
  const tools = (await ask('tools/list')).result?.['tools'] as { name: string }[];
  const called = new Set(CALLS.map(([name]) => name));
  expect(tools.map(({ name }) => name).filter((name) => !called.has(name))).toEqual([]);
  for (const [name, args] of CALLS) {
    const answer = await ask('tools/call', { name, arguments: args });
    answers.push('text' in args ? hitsIn(answer) : answer);
  }
  const resources = (await ask('resources/list')).result?.['resources'] as { uri: string }[];
  for (const { uri } of resources) answers.push(await ask('resources/read', { uri }));
  answers.push(await ask('prompts/list'), await ask('resources/templates/list'), await ask('resources/list'));
  run.child.stdin.end();
  await run.ended;
  for (const answer of answers) expect(answer.error).toBeUndefined();
  return answers.map((answer) => JSON.stringify(answer));
}

/** While the index is being made, what is in it comes first: so the order says when it was asked. */
function hitsIn({ result, error }: Answer): Answer {
  const found = result?.['structuredContent'] as Found | undefined;
  const hits = found?.recorded.hits ?? [];
  expect([hits.length > 5, found?.recorded.cursor]).toEqual([true, undefined]);
  return { result: { hits: hits.map((hit) => JSON.stringify(hit)).toSorted() }, error };
}

type Found = { recorded: { hits: object[]; cursor?: string } };

type Answer = { id?: number; result?: Record<string, unknown>; error?: unknown };

function linesOf(bytes: Buffer): Answer[] {
  const lines = bytes.toString().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Answer);
}
