import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import { startServer } from '../support/http.ts';
import {
  exchangesOf,
  expectSameReindexed,
  type Recording,
  recordUrl,
  recordUrlInProcess,
  refusesConnections,
  requestsOf,
  sessionsOf,
} from '../support/http-record.ts';
import { startEverything } from '../support/servers.ts';
import { until } from '../support/tapedeck.ts';

async function connect(url: URL): Promise<Client> {
  const client = new Client({ name: 'tester', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(url) as Transport);
  return client;
}

/** A server that can lose its memory. */
async function startForgetful() {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const { url } = await startServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(String(id));
    if (transport === undefined && id !== undefined) {
      const error = { code: -32001, message: 'Session not found' };
      response.writeHead(404, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
      return;
    }
    if (transport === undefined) {
      const opened = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (name) => void sessions.set(name, opened),
      });
      transport = opened;
      const mcp = new McpServer({ name: 'forgetful', version: '1.0.0' });
      mcp.registerTool('tick', {}, () => ({ content: [] }));
      await mcp.connect(transport as Transport);
    }
    await transport.handleRequest(request, response);
  });
  return { url: new URL('/mcp', url), forget: () => sessions.clear() };
}

test('a session that its server has forgotten is gone, and initialize opens another one', async () => {
  const server = await startForgetful();
  const recording = await recordUrlInProcess(server.url);
  const client = await connect(recording.url);
  await client.listTools();
  server.forget();
  expect(await client.listTools().catch(String)).toContain('Session not found');
  await client.close();
  const again = await connect(recording.url);
  await again.listTools();
  await (again.transport as StreamableHTTPClientTransport).terminateSession();
  await again.close();
  await recording.stop();

  await expectSameReindexed(recording);
  const both = { basis: 'session-header', client: 'tester', server: 'forgetful', unanswered: 0 };
  expect(sessionsOf(recording)).toMatchObject([
    { ...both, ended: 'gone', errors: 1 },
    { ...both, ended: 'deleted', errors: 0 },
  ]);
  expect(exchangesOf(recording, 1)).toEqual(['initialize ok', 'tools/list ok', 'tools/list error']);
  expect(exchangesOf(recording, 2)).toEqual(['initialize ok', 'tools/list ok']);
  expect(requestsOf(recording, 1)).toContain('POST /mcp 404');
  expect(recording.rows("SELECT error_code FROM exchange WHERE outcome = 'error'")).toEqual([
    { error_code: -32001 },
  ]);
});

/** A server whose only answer is a stream that stays open. */
async function startEndless() {
  const streams: ServerResponse[] = [];
  const { url } = await startServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n');
    streams.push(response);
  });
  return { url: new URL('/mcp', url), streams };
}

async function openStream(url: URL) {
  const response = await fetch(url, { headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': 'one' } });
  const rest = response.text().then(
    (text) => text,
    () => 'broken off',
  );
  return { rest };
}

const EVENTS = "SELECT 1 FROM frame WHERE channel = 'sse'";

function endsOf({ rows }: Recording) {
  return rows('SELECT closed_by, error, ended_at > 0 AS ended FROM http_exchange');
}

test('a session that is open when tapedeck is stopped was stopped', async () => {
  const recording = await recordUrlInProcess(await startEverything('sse'), { args: ['--grace', '0'] });
  const client = new Client({ name: 'tester', version: '1.0.0' });
  await client.connect(new SSEClientTransport(recording.url));
  await client.listTools();
  await recording.stop();
  await client.close();
  expect(sessionsOf(recording)).toMatchObject([
    { basis: 'sse-endpoint', transport: 'sse', ended: 'stopped', unanswered: 0 },
  ]);
  expect(recording.rows("SELECT closed_by, error FROM http_exchange WHERE method = 'GET'")).toEqual([
    { closed_by: 'proxy', error: 'tapedeck stopped' },
  ]);
});

test('a second signal cuts what is open', async () => {
  const server = await startEndless();
  const recording = await recordUrlInProcess(server.url, { args: ['--grace', '3600'] });
  const { rest } = await openStream(recording.url);
  await until('the stream is recorded', () => recording.rows(EVENTS).length === 1);
  recording.run.child.kill('SIGINT');
  await refusesConnections(recording);
  await recording.stop();
  expect(await rest).toBe('broken off');
  expect(endsOf(recording)).toEqual([{ closed_by: 'proxy', error: 'tapedeck stopped', ended: 1 }]);
  expect(sessionsOf(recording)).toMatchObject([{ basis: 'session-header', ended: 'stopped' }]);
});

test('with time of grace a stream ends by itself', async () => {
  const server = await startEndless();
  const recording = await recordUrlInProcess(server.url, { args: ['--grace', '3600'] });
  const { rest } = await openStream(recording.url);
  recording.run.child.kill('SIGTERM');
  await refusesConnections(recording);
  server.streams[0]?.end(': bye\n\n');
  expect(await rest).toMatch(/: bye\n\n$/);
  expect(await recording.run.ended).toMatchObject({ code: 0, signal: null });
  expect(endsOf(recording)).toEqual([{ closed_by: 'server', error: null, ended: 1 }]);
  expect(recording.rows('SELECT text FROM frame_text ORDER BY seq DESC LIMIT 1')).toEqual([
    { text: ': bye\n\n' },
  ]);
});

test('when the time of grace is over, what is still open is cut', async () => {
  const server = await startEndless();
  const recording = await recordUrlInProcess(server.url, { args: ['--grace', '0.05'] });
  const { rest } = await openStream(recording.url);
  await until('the stream is recorded', () => recording.rows(EVENTS).length === 1);
  await recording.stop();
  expect(await rest).toBe('broken off');
  expect(endsOf(recording)).toEqual([{ closed_by: 'proxy', error: 'tapedeck stopped', ended: 1 }]);
});

test('what had passed when tapedeck was killed is there, and its session is one that was cut off', async () => {
  const server = await startEndless();
  const recording = await recordUrl(server.url);
  await openStream(recording.url);
  await until('the stream is recorded', () => recording.rows(EVENTS).length === 1);
  recording.run.child.kill('SIGKILL');
  await recording.run.ended;
  expect(sessionsOf(recording)).toMatchObject([{ basis: 'session-header', ended: null }]);
  expect(endsOf(recording)).toEqual([{ closed_by: null, error: null, ended: null }]);
});
