/** Who reads by other ways than a command that prints: the viewer, a test with a deck, an agent. All that each says of a store. */
import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import type { SessionDetail, SessionPage } from '../../src/web/api.ts';
import { startInProcess } from './in-process.ts';
import { connect, echo, openDeck } from './kit.ts';
import { until } from './tapedeck.ts';
import type { Ui } from './ui.ts';

/** Of these the store has to be made. */
export const RECORDINGS = ['everything-stdio', 'everything-http', 'modern-http'];

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

/** The URLs of all that the viewer is asked here. A completion (`/api/complete`) has what was found in its time. */
export const VIEWER_PATHS = [
  ...ABOUT_ALL,
  ...RECORDINGS.flatMap((name) => ABOUT_ONE.map((rest) => `/api/sessions/${name}${rest}`)),
  ...ABOUT_FRAMES,
  ...['ndjson', 'html', 'har'].map((format) => `/api/export/modern-http?format=${format}`),
];

/** What there was no time for is asked for again. */
export async function wholeAnswer(ui: Ui | undefined, path: string) {
  const hasLines = /^\/api\/sessions(\/[\w-]+)?(\?|$)/.test(path);
  let status: number | undefined;
  let body = '';
  await until(`all lines of errors of ${path}`, async () => {
    const answer = await ui?.get(path);
    status = answer?.status;
    // Where the next page begins is for the viewer that said it alone, and how far it has come is said now and then.
    body = undated((await answer?.text()) ?? '')
      .replace(/"next":"\w+"/, '"next":"…"')
      .replace(/^\{"progress":\{"done":\d+,"total":\d+\}\}\n/gm, '');
    return !hasLines || !lacksLines(body);
  });
  return { path, status, body };
}

/** A session that has errors has the line of them, or null where there was no time to count them. */
function lacksLines(body: string): boolean {
  const answer = JSON.parse(body) as SessionPage | SessionDetail;
  const sessions = 'sessions' in answer ? answer.sessions : [answer.session];
  expect(sessions.length).toBeGreaterThan(0);
  return sessions.some(({ errors, errorsOverTime }) => errors > 0 && errorsOverTime === null);
}

/** A report says when it was made, in the first of its packed blocks. */
export function undated(text: string): string {
  return text.replace(/(id="block-0">)([^<]*)/, (_, begin: string, packed: string) => {
    const block = gunzipSync(Buffer.from(packed, 'base64')).toString();
    expect(block).toContain('"madeAt":"2');
    return begin + block.replace(/"madeAt":"[^"]*"/, '');
  });
}

/** What a test finds in a deck. */
export async function seenInDeck(recording: string, db?: string) {
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
  expect(calls.length).toBeGreaterThan(3);
  return { answers, calls };
}

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

/** Everything that the server for agents offers, and what it answers to it, as text. */
export async function toldToAgent(db: string, env: Record<string, string> = {}): Promise<string[]> {
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
  const answers: Answer[] = [];
  const tools = (await ask('tools/list')).result?.['tools'] as { name: string }[];
  const called = new Set(CALLS.map(([name]) => name));
  expect(tools.map(({ name }) => name).filter((name) => !called.has(name))).toEqual([]);
  for (const [name, args] of CALLS) {
    const result = await wholeResult((wanted) => ask('tools/call', { name, arguments: wanted }), name, args);
    answers.push({ result: name === 'search' ? foundIn(result, 'text' in args) : result });
  }
  const resources = (await ask('resources/list')).result?.['resources'] as { uri: string }[];
  for (const { uri } of resources) {
    let answer: Answer = {};
    await until(`all of ${uri}`, async () => {
      answer = await ask('resources/read', { uri });
      return !ASK_AGAIN.test(JSON.stringify(answer));
    });
    answers.push(answer);
  }
  answers.push(await ask('prompts/list'), await ask('resources/templates/list'), await ask('resources/list'));
  run.child.stdin.end();
  await run.ended;
  expect(answers.length).toBeGreaterThanOrEqual(CALLS.length + RECORDINGS.length);
  for (const answer of answers) expect(answer.error).toBeUndefined();
  return answers.map(({ result, error }) => JSON.stringify({ result, error }));
}

type Result = {
  content: { text: string }[];
  structuredContent: {
    note: string;
    recorded?: Record<string, unknown>;
    cursor?: string;
    leftOut?: string[];
  };
};

/** What an answer lacks for want of time where it says this is there when the same is asked again. */
const ASK_AGAIN = /ask the same again|More calls that failed/;

/** Asks as the answers say: the same again, and for the next page with the cursor, to the end. */
async function wholeResult(
  ask: (args: Record<string, unknown>) => Promise<Answer>,
  name: string,
  args: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const recorded: Record<string, unknown> = {};
  let cursor: string | undefined;
  for (;;) {
    let page: Answer = {};
    await until(`all of ${name}`, async () => {
      page = await ask({ ...args, ...(cursor !== undefined && { cursor }) });
      const { structuredContent: said } = page.result as Result;
      return !said.leftOut?.some((sentence) => ASK_AGAIN.test(sentence));
    });
    const { content, structuredContent } = page.result as Result;
    if (structuredContent.recorded === undefined) return page.result ?? {};
    const { note, ...said } = structuredContent;
    expect(content).toEqual([{ type: 'text', text: `${note}\n${JSON.stringify(said)}` }]);
    for (const [key, value] of Object.entries(structuredContent.recorded)) {
      const before = recorded[key];
      recorded[key] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
    }
    if (said.cursor === undefined) return { note, recorded, leftOut: said.leftOut };
    expect(said.cursor).not.toBe(cursor);
    cursor = said.cursor;
  }
}

/** While the index is being made, what is in it comes first: so the order says when a text was searched. */
function foundIn(result: Record<string, unknown>, isText: boolean): Record<string, unknown> {
  const { hits } = result['recorded'] as { hits: object[] };
  expect(hits.length).toBeGreaterThan(isText ? 5 : 0);
  return isText ? { hits: hits.map((hit) => JSON.stringify(hit)).toSorted() } : result;
}

type Answer = { id?: number; result?: Record<string, unknown>; error?: unknown };

function linesOf(bytes: Buffer): Answer[] {
  const lines = bytes.toString().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Answer);
}
