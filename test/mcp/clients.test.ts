/** The official clients of both lines, over stdio and HTTP, and what a recording of them shows. */

import { Client as SecondClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as FirstStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as FirstHttpTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, onTestFinished, test } from 'vitest';
import { callOf, replies, resultOf, says, stdioSession } from '../support/hand-made.ts';
import { recordUrl } from '../support/http-record.ts';
import { agentOf, storeOfTexts } from '../support/mcp.ts';
import { IS_FULL, inFull } from '../support/scale.ts';
import {
  BIN,
  fixture,
  latestSession,
  tapedeck,
  tapedeckInProcess,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const ONE_SESSION = stdioSession([says(1, callOf(1, 'find')), replies(2, resultOf(1))], { name: 'one' });

const words = (db: string) => [BIN, 'mcp', '--db', db];

const env = { ...process.env } as Record<string, string>;

async function second(transport: Parameters<SecondClient['connect']>[0], mode: 'legacy' | 'auto') {
  const client = new SecondClient({ name: 'second', version: '2' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

/** Everything that a client may ask for, once. */
async function askAll(client: SecondClient): Promise<string[]> {
  const agent = agentOf(client);
  const { tools } = await client.listTools();
  await client.listResources();
  await client.listResourceTemplates();
  await client.listPrompts();
  const said = [
    await agent.recorded('list_sessions'),
    await agent.recorded('get_call', { seq: 1 }),
    await agent.recorded('stats'),
    await agent.call('list_calls', { filter: 'tol=x' }),
    await client.readResource({ uri: 'tapedeck://session/one' }),
    await client.readResource({ uri: 'tapedeck://session/none' }).catch(String),
    await client.getPrompt({ name: 'why-did-it-fail', arguments: { session: 'one' } }),
    await client.complete({
      ref: { type: 'ref/resource', uri: 'tapedeck://session/{id}' },
      argument: { name: 'id', value: 'on' },
    }),
  ];
  return [...tools.map(({ name }) => name), JSON.stringify(said)];
}

test.each(IS_FULL ? (['legacy', 'auto'] as const) : (['auto'] as const))(
  'a recording of an official client over stdio (%s) holds to the protocol, and is no part of its own answers',
  async (mode) => {
    const db = await storeOfTexts(ONE_SESSION);
    const recorded = ['record', '--db', db, '--', process.execPath, ...words(db)];
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [BIN, ...recorded],
      env,
      stderr: 'ignore',
    });
    const client = await second(transport, mode);
    const said = await askAll(client);
    expect(said).toContain('get_call');
    expect(said.at(-1)).toContain('"name":"one"');
    expect((await agentOf(client).recorded('list_sessions'))['sessions']).toHaveLength(1);
    await client.close();
    await until('the recording is over', async () => (await latestSession(db)).endReason !== null);
    expect((await latestSession(db)).protocolVersion).toBe(mode === 'auto' ? '2026-07-28' : '2025-11-25');
    const { code, stdout } = await tapedeckInProcess(['check', '--severity', 'note', '--db', db]);
    expect(stdout.toString()).toContain('Nothing found');
    expect(code).toBe(0);
  },
);

inFull('the first line of the official client is served over stdio', async () => {
  const db = await storeOfTexts(ONE_SESSION);
  const client = new Client({ name: 'first', version: '1' });
  await client.connect(
    new FirstStdioTransport({ command: process.execPath, args: words(db), env, stderr: 'ignore' }),
  );
  onTestFinished(() => client.close());
  const said = JSON.stringify([
    await client.listTools(),
    await client.callTool({ name: 'list_sessions', arguments: {} }),
    await client.readResource({ uri: 'tapedeck://session/one/findings' }),
  ]);
  expect(said).toContain('"name":"one"');
});

const TOKEN = 'a-token-for-this-test';

async function listening(db: string): Promise<URL> {
  const { stdout } = tapedeck(['mcp', '--db', db, '--listen', '127.0.0.1:0'], {
    env: { TAPEDECK_MCP_TOKEN: TOKEN },
  });
  await until('the server listens', () => /^Clients send/m.test(stdout().toString()));
  const [url = ''] = /http:\/\/\S+/.exec(stdout().toString()) ?? [];
  return new URL(url);
}

const OWN = { headers: { Authorization: `Bearer ${TOKEN}` } };

test('over HTTP both lines of the official client are served, and nobody without the token or from another page', async () => {
  const db = await storeOfTexts(ONE_SESSION);
  const url = await listening(db);
  for (const mode of ['legacy', 'auto'] as const) {
    const client = await second(new StreamableHTTPClientTransport(url, { requestInit: OWN }), mode);
    expect((await askAll(client)).at(-1)).toContain('"name":"one"');
  }
  const first = new Client({ name: 'first', version: '1' });
  await first.connect(new FirstHttpTransport(url, { requestInit: OWN }));
  expect(JSON.stringify(await first.callTool({ name: 'list_sessions', arguments: {} }))).toContain('one');
  await first.close();
  const post = async (headers: Record<string, string>, path = url.pathname) => {
    const response = await fetch(new URL(path, url), {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    });
    return [response.status, await response.text()];
  };
  expect(await post({})).toEqual([401, expect.stringContaining('Expected the bearer token')]);
  expect(await post({ Authorization: `Bearer ${TOKEN}x` })).toEqual([
    401,
    expect.stringContaining('not the bearer token'),
  ]);
  expect(await post({ ...OWN.headers, Origin: 'https://evil.example' })).toEqual([
    403,
    expect.stringContaining('Origin'),
  ]);
  expect(await post(OWN.headers, '/other')).toEqual([404, expect.stringContaining('/mcp')]);
});

inFull.each(['legacy', 'auto'] as const)(
  'a recording of an official client over HTTP (%s) holds to the protocol',
  async (mode) => {
    const db = await storeOfTexts(ONE_SESSION);
    const proxy = await recordUrl(await listening(db));
    const client = await second(new StreamableHTTPClientTransport(proxy.url, { requestInit: OWN }), mode);
    expect((await askAll(client)).at(-1)).toContain('"name":"one"');
    await client.close();
    await proxy.stop();
    expect((await latestSession(proxy.db)).protocolVersion).toBe(
      mode === 'auto' ? '2026-07-28' : '2025-11-25',
    );
    const { code, stdout } = await tapedeckInProcess(['check', '--severity', 'note', '--db', proxy.db]);
    expect(stdout.toString()).toContain('Nothing found');
    expect(code).toBe(0);
  },
);

inFull('thirty clients at once over HTTP are all answered, each about what it asked', async () => {
  const db = await storeOfTexts(ONE_SESSION);
  const url = await listening(db);
  const answers = await Promise.all(
    Array.from({ length: 30 }, async (_, i) => {
      const mode = i % 2 === 0 ? 'legacy' : 'auto';
      const agent = agentOf(await second(new StreamableHTTPClientTransport(url, { requestInit: OWN }), mode));
      const { groups } = await agent.recorded('stats', { filter: `id=${i}` });
      const error = await agent.call('get_frame', { seq: 100 + i });
      return [groups.length, error.content[0]?.text];
    }),
  );
  expect(answers.map(([count]) => count)).toEqual(Array.from({ length: 30 }, (_, i) => (i === 1 ? 1 : 0)));
  for (const [i, [, text]] of answers.entries()) expect(text).toContain(`got ${100 + i}:`);
});

/** Sends a line to a server that is being recorded, and waits for its answer. */
function recordEcho(db: string) {
  const { child, stdout } = tapedeck([
    'record',
    '--name',
    'live',
    '--db',
    db,
    '--',
    process.execPath,
    fixture('echo.js'),
  ]);
  let id = 0;
  return async () => {
    id += 1;
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...callOf(id, 'echo', {}) })}\n`);
    await until(`answer ${id}`, () => stdout().toString().split('\n').length > id);
  };
}

test.each(IS_FULL ? (['legacy', 'auto'] as const) : (['auto'] as const))(
  'who has subscribed to a session that is being recorded hears that there is more of it (stdio, %s)',
  async (mode) => {
    const db = tempStore();
    const callOnce = recordEcho(db);
    await callOnce();
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: words(db),
      env,
      stderr: 'ignore',
    });
    const client = await second(transport, mode);
    await hearsOfMore(client, mode, callOnce);
  },
);

test.each(IS_FULL ? (['legacy', 'auto'] as const) : (['legacy'] as const))(
  'the same over HTTP (%s)',
  async (mode) => {
    const db = tempStore();
    const callOnce = recordEcho(db);
    await callOnce();
    const url = await listening(db);
    const client = await second(new StreamableHTTPClientTransport(url, { requestInit: OWN }), mode);
    await hearsOfMore(client, mode, callOnce);
  },
);

inFull('what comes right after a subscription is told, and of what is given up nothing more', async () => {
  const db = tempStore();
  const callOnce = recordEcho(db);
  await callOnce();
  const uri = 'tapedeck://session/live';
  const url = await listening(db);
  const client = await second(new StreamableHTTPClientTransport(url, { requestInit: OWN }), 'legacy');
  const other = await second(new StreamableHTTPClientTransport(url, { requestInit: OWN }), 'legacy');
  await until(
    'the session is there',
    async () => (await agentOf(client).recorded('list_sessions'))['sessions'].length === 1,
  );
  const heard: string[] = [];
  const listens = (who: string, one: SecondClient) =>
    one.setNotificationHandler('notifications/resources/updated', () => void heard.push(who));
  listens('one', client);
  listens('other', other);
  await client.subscribeResource({ uri });
  await other.subscribeResource({ uri });
  await other.unsubscribeResource({ uri });
  await callOnce();
  await until('the client hears of it', () => heard.includes('one'));
  expect(heard).not.toContain('other');
});

async function hearsOfMore(client: SecondClient, mode: 'legacy' | 'auto', callOnce: () => Promise<void>) {
  const uri = 'tapedeck://session/live';
  const agent = agentOf(client);
  await until(
    'the session is there',
    async () => (await agent.recorded('list_sessions'))['sessions'].length === 1,
  );
  const heard: string[] = [];
  client.setNotificationHandler(
    'notifications/resources/updated',
    ({ params }) => void heard.push(params.uri),
  );
  if (mode === 'legacy') await client.subscribeResource({ uri });
  else await client.listen({ resourceSubscriptions: [uri] });
  await until('the client hears of more', async () => {
    await callOnce();
    return heard.includes(uri);
  });
  const { calls } = await agent.recorded('list_calls', { session: 'live', limit: 200 });
  expect(calls.length).toBeGreaterThan(1);
}
