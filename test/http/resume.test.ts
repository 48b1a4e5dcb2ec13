import type { IncomingMessage, ServerResponse } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import { readBody, startServer } from '../support/http.ts';
import {
  exchangesOf,
  expectSameReindexed,
  expectWhole,
  type Recording,
  recordUrlInProcess,
  sessionsOf,
} from '../support/http-record.ts';
import { inFull } from '../support/scale.ts';
import { startDualEra } from '../support/servers.ts';

async function connect(url: URL): Promise<Client> {
  const client = new Client({ name: 'tester', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(url) as Transport);
  return client;
}

/** Where the call and its answer stand. */
function placesOf({ rows }: Recording, tool: string) {
  return rows(
    `SELECT asking.method AS asked_by, answering.method AS answered_by, asking.number < answering.number AS is_later
     FROM exchange JOIN session ON session.id = exchange.session
     JOIN frame AS asked ON asked.session = session.number AND asked.seq = exchange.request_seq
     JOIN frame AS said ON said.session = session.number AND said.seq = exchange.answer_seq
     JOIN http_exchange AS asking ON asking.session = session.number AND asking.number = asked.http
     JOIN http_exchange AS answering ON answering.session = session.number AND answering.number = said.http
     WHERE exchange.target = ?`,
    tool,
  );
}

inFull('an answer that waits for a resumed stream belongs to the call, and is counted once', async () => {
  const { url } = await startDualEra();
  const recording = await recordUrlInProcess(url);
  const seen: unknown[] = [];
  for (const where of [url, recording.url]) {
    const client = await connect(where);
    seen.push(await client.callTool({ name: 'test_reconnection' }));
    await (client.transport as StreamableHTTPClientTransport).terminateSession();
    await client.close();
  }
  expect(seen[1]).toEqual(seen[0]);
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  expect(sessionsOf(recording)).toMatchObject([{ errors: 0, unanswered: 0, ended: 'deleted' }]);
  expect(exchangesOf(recording)).toEqual(['initialize ok', 'tools/call test_reconnection ok']);
  expect(placesOf(recording, 'test_reconnection')).toEqual([
    { asked_by: 'POST', answered_by: 'GET', is_later: 1 },
  ]);
  // The event that says how to resume holds no message.
  expect(
    recording.rows(`SELECT DISTINCT frame.flags, retry FROM sse_event JOIN frame USING (session, seq)
      WHERE retry IS NOT NULL`),
  ).toEqual([{ flags: 'block', retry: '500' }]);
});

/** Drops the stream of a call after some progress, and says that again to a client that resumes it. */
async function startRepeating(): Promise<URL> {
  let call: unknown;
  const eventOf = (id: string, message: object) =>
    `id: ${id}\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
  const progress = (step: number) =>
    eventOf(`s/${step}`, {
      method: 'notifications/progress',
      params: { progressToken: call, progress: step },
    });
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = (await readBody(request)).toString();
    const { id, method } = body === '' ? { id: 0, method: request.method } : JSON.parse(body);
    const from = request.headers['last-event-id'];
    if (method === 'initialize') {
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'repeating', version: '1' },
      };
      response.setHeader('Mcp-Session-Id', 'one');
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    } else if (id === undefined) response.writeHead(202).end();
    else if (method === 'tools/call') {
      call = id;
      response.setHeader('Content-Type', 'text/event-stream');
      response.end(`id: s/0\nretry: 1\ndata: \n\n${progress(1)}${progress(2)}`);
    } else if (from === 's/2') {
      response.setHeader('Content-Type', 'text/event-stream');
      const content = [{ type: 'text', text: 'done' }];
      const result = eventOf('s/3', { id: call, result: { content } });
      response.end(`${progress(1)}${progress(2)}${result}${result}`);
    } else response.writeHead(405).end();
  };
  const { url } = await startServer((request, response) => void answer(request, response));
  return new URL('/mcp', url);
}

test('events that a server sends again to a client that resumes are marked, and not counted twice', async () => {
  const recording = await recordUrlInProcess(await startRepeating());
  const client = await connect(recording.url);
  const heard: number[] = [];
  const called = await client.callTool({ name: 'slow' }, undefined, {
    onprogress: ({ progress }) => void heard.push(progress),
  });
  expect(called.content).toEqual([{ type: 'text', text: 'done' }]);
  await client.close();
  await recording.stop();

  await expectSameReindexed(recording);
  expect(sessionsOf(recording)).toMatchObject([{ errors: 0, unanswered: 0 }]);
  expect(recording.rows('SELECT exchanges, dropped FROM session')).toEqual([{ exchanges: 2, dropped: 0 }]);
  expect(exchangesOf(recording)).toEqual(['initialize ok', 'tools/call slow ok']);
  expect(placesOf(recording, 'slow')).toEqual([{ asked_by: 'POST', answered_by: 'GET', is_later: 1 }]);
  const events = recording.rows(`SELECT sse_event.id, flags, relation, problem FROM sse_event
    JOIN frame USING (session, seq) LEFT JOIN message USING (session, seq) ORDER BY frame.seq`);
  const again = { flags: 'replayed', relation: null, problem: 'replayed' };
  expect(events).toEqual([
    { id: 's/0', flags: 'block', relation: null, problem: null },
    { id: 's/1', flags: null, relation: 'progress', problem: null },
    { id: 's/2', flags: null, relation: 'progress', problem: null },
    { id: 's/1', ...again },
    { id: 's/2', ...again },
    { id: 's/3', flags: null, relation: 'reply', problem: null },
    { id: 's/3', ...again },
  ]);
});
