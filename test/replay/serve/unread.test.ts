/**
 * Over HTTP, too, a call in its recorded text is answered without being read. What goes out is the same: status, headers,
 * form and body, whoever asks and whatever else is sent.
 */

import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readBody, startServer } from '../../support/http.ts';
import { type OpenHttpMock, startHttpMock } from '../../support/http-mock.ts';
import { recordUrlInProcess } from '../../support/http-record.ts';
import { storeOnce } from '../../support/once.ts';
import { scale } from '../../support/scale.ts';
import { send } from '../../support/send.ts';

const INITIALIZE =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}';

const NEWS = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}';

/** How the server answers a call of each tool. */
const TOOLS: Record<string, (response: ServerResponse, answer: string) => void> = {
  json: (response, answer) => respond(response, 200, 'application/json', answer),
  charset: (response, answer) => respond(response, 200, 'application/json; charset=utf-8', answer),
  refused: (response, answer) => {
    const error = answer.replace('"result":{', '"error":{"code":-32000,"message":"no","data":1,');
    respond(response, 400, 'application/json', error);
  },
  stream: (response, answer) => respond(response, 200, 'text/event-stream', eventOf(answer)),
  news: (response, answer) => respond(response, 200, 'text/event-stream', eventOf(NEWS) + eventOf(answer)),
  long: (response, answer) =>
    respond(response, 200, 'application/json', answer.replace('"é":1', `"é":"${'x'.repeat(70_000)}"`)),
};

function respond(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'Content-Type': type, 'X-Server': 'told' }).end(body);
}

function eventOf(json: string): string {
  return `event: message\ndata: ${json}\n\n`;
}

function callOf(tool: string, n: number, id: number | string): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{"n":${n}}}}`;
}

/** All calls, each tool's first one twice. */
const CALLS = [0, 1, 0].flatMap((n) => Object.keys(TOOLS).map((tool) => ({ tool, n })));

async function record(db: string, hasSessions: boolean): Promise<void> {
  const { url } = await startServer(async (request, response) => {
    const { method, id, params } = JSON.parse(String(await readBody(request)));
    if (hasSessions) response.setHeader('Mcp-Session-Id', 'recorded');
    if (method === 'initialize') {
      const result =
        '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}';
      respond(response, 200, 'application/json', `{"jsonrpc":"2.0","id":${id},"result":${result}}`);
      return;
    }
    const { name, arguments: given } = params;
    const answer = `{"result":{"of":"${name}","n":${given.n},"é":1},"jsonrpc":"2.0","id":${id}}`;
    TOOLS[name]?.(response, answer);
  });
  const recorder = await recordUrlInProcess(url, { db });
  const headers = hasSessions ? { 'Mcp-Session-Id': 'recorded' } : {};
  await answered(recorder.url, INITIALIZE, {});
  for (const [i, { tool, n }] of CALLS.entries())
    await answered(recorder.url, callOf(tool, n, i + 1), headers);
  await recorder.stop();
}

async function answered(url: URL, body: string, headers: object) {
  const { status, headers: given, text, ended } = await send(url, { body, headers });
  await ended;
  const { date: _, 'mcp-session-id': session, ...rest } = given;
  return { status, headers: rest, text: text(), session };
}

const stores = {
  'with session ids': storeOnce((db) => record(db, true)),
  'without session ids': storeOnce((db) => record(db, false)),
};

type Post = { body: string; session: 'own' | 'none' | 'other' | 'unknown'; headers: Record<string, string> };

const post: fc.Arbitrary<Post> = fc.record({
  body: fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .tuple(fc.constantFrom(...CALLS), fc.nat(99))
        .map(([{ tool, n }, id]) => callOf(tool, n, id)),
    },
    { weight: 1, arbitrary: fc.constantFrom(...CALLS).map(({ tool, n }) => callOf(tool, n, '"é"')) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(...CALLS)
        .map(({ tool, n }) => `[${callOf(tool, n, 1)},${callOf(tool, n, 2)}]`),
    },
    { weight: 1, arbitrary: fc.constantFrom(...CALLS).map(({ tool, n }) => ` ${callOf(tool, n, 1)}`) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        INITIALIZE,
        callOf('json', 9, 1),
        callOf('json', 0, 1).slice(0, -1),
        '{"jsonrpc":"2.0","id":4,"method":"ping"}',
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      ),
    },
  ),
  session: fc.oneof(
    { weight: 9, arbitrary: fc.constant('own') },
    fc.constantFrom('none', 'other', 'unknown'),
  ),
  headers: fc.oneof(
    { weight: 4, arbitrary: fc.constant({}) },
    fc.constantFrom<Record<string, string>>(
      { accept: 'application/json' },
      { accept: 'text/event-stream' },
      { accept: 'text/html' },
      { 'content-type': 'text/plain' },
      { 'mcp-protocol-version': '2025-11-25' },
      { 'mcp-protocol-version': '2026-07-28' },
      { 'mcp-protocol-version': '1999-01-01' },
      { 'user-agent': 'another' },
    ),
  ),
});

/** All that clients get who send the same. */
async function replayed({ url, misses, matching, unread }: OpenHttpMock, posts: readonly Post[]) {
  const sessions = [];
  for (const agent of ['own', 'other']) {
    const { session } = await answered(url, INITIALIZE, { 'user-agent': agent });
    sessions.push(session);
  }
  const got = [];
  for (const { body, session, headers } of posts) {
    const id = { own: sessions[0], other: sessions[1], none: undefined, unknown: 'unknown' }[session];
    const given = {
      'user-agent': session,
      ...(id === undefined ? {} : { 'mcp-session-id': id }),
      ...headers,
    };
    const { session: named, ...rest } = await answered(url, body, given);
    // A new session has an id of its own.
    got.push({ ...rest, session: named === undefined ? null : sessions.indexOf(named) });
  }
  return { got, unasked: matching.unasked(), misses: misses.map(({ line }) => line), unread: unread() };
}

test.each(Object.entries(stores))(
  'a client sees no difference between an answer over HTTP that needed no reading and one that did: %s',
  async (_how, storeOf) => {
    const db = await storeOf();
    let unread = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(post, { minLength: 1, maxLength: 20, size: 'max' }),
        fc.constantFrom('error' as const, 'last' as const, 'cycle' as const),
        fc.constantFrom(100, 100, 5, 0),
        async (posts, repeat, readsAhead) => {
          const ahead = await startHttpMock(db, { repeat, readsAhead });
          const plain = await startHttpMock(db, { repeat, readsAhead: null });
          const [expected, got] = [await replayed(plain, posts), await replayed(ahead, posts)];
          await Promise.all([plain.stop(), ahead.stop()]);
          expect(got).toEqual({ ...expected, unread: got.unread });
          expect(expected.unread).toBe(0);
          unread += got.unread;
        },
      ),
      { numRuns: scale(120, 25) },
    );
    expect(unread).toBeGreaterThan(0);
  },
);

test('the calls of a recording need no reading over HTTP, whatever status and form their answers have', async () => {
  for (const storeOf of Object.values(stores)) {
    const mock = await startHttpMock(await storeOf(), { repeat: 'cycle' });
    const { session } = await answered(mock.url, INITIALIZE, {});
    const headers = session === undefined ? {} : { 'mcp-session-id': session };
    const got = [];
    for (const [i, { tool, n }] of [...CALLS, ...CALLS].entries())
      got.push(await answered(mock.url, callOf(tool, n, 200 + i), headers));
    expect(got.map(({ status }) => status)).toEqual(
      [...CALLS, ...CALLS].map(({ tool }) => (tool === 'refused' ? 400 : 200)),
    );
    // What comes with news is more than an answer.
    expect(mock.unread()).toBe(2 * CALLS.filter(({ tool }) => tool !== 'news').length);
    for (const [i, { tool, n }] of [...CALLS, ...CALLS].entries()) {
      expect(got[i]?.text).toContain(`"of":"${tool}","n":${n},"é"`);
      expect(got[i]?.text).toContain(`"jsonrpc":"2.0","id":${200 + i}}`);
      expect(got[i]?.headers).toMatchObject({ 'x-server': 'told' });
    }
  }
});
