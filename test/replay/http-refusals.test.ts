import type { RequestListener } from 'node:http';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { expect, test } from 'vitest';
import { readBody, startServer } from '../support/http.ts';
import { startHttpMock } from '../support/http-mock.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { connectByPost, toolCall } from '../support/modes.ts';
import { tempStore } from '../support/tapedeck.ts';

const GREETING = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };

/** Talks to a server through a recorder; gives the store. */
async function recorded(listener: RequestListener, talk: (url: URL) => Promise<unknown>): Promise<string> {
  const db = tempStore();
  const { url } = await startServer(listener);
  const recorder = await recordUrlInProcess(`${url}/mcp`, { db });
  await talk(recorder.url);
  await recorder.stop();
  return db;
}

/** A server that forgets its sessions, as one does that is started anew. */
function createForgetful(): { listener: RequestListener; forget(): void } {
  let session = 0;
  let isKnown = false;
  const json = { 'content-type': 'application/json' };
  const lost = JSON.stringify({
    jsonrpc: '2.0',
    error: { code: -32001, message: 'Session not found' },
    id: null,
  });
  const missing = JSON.stringify({
    jsonrpc: '2.0',
    error: { code: -32000, message: 'No session id' },
    id: null,
  });
  const listener: RequestListener = async (request, response) => {
    const { id, method } = JSON.parse((await readBody(request)).toString() || '{}');
    const named = request.headers['mcp-session-id'];
    if (method === 'initialize') {
      session += 1;
      isKnown = true;
      const headers = { ...json, 'mcp-session-id': `session-${session}` };
      response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result: GREETING }));
    } else if (named === undefined) response.writeHead(400, json).end(missing);
    else if (!isKnown) response.writeHead(404, json).end(lost);
    else if (id === undefined) response.writeHead(202).end();
    else response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id, result: { session } }));
  };
  return {
    listener,
    forget() {
      isKnown = false;
    },
  };
}

const heardOf = async (answer: Promise<Response>) => {
  const response = await answer;
  const { result, error } = JSON.parse(await response.text());
  return [response.status, result?.session ?? error?.code];
};

test('a session that the recorded server had lost is no answer to one that the mock has opened', async () => {
  const { listener, forget } = createForgetful();
  const db = await recorded(listener, async (url) => {
    const post = await connectByPost(url);
    expect(await heardOf(post(toolCall(1, 'a')))).toEqual([200, 1]);
    forget();
    expect(await heardOf(post(toolCall(2, 'a')))).toEqual([404, -32001]);
    expect(await heardOf(post(toolCall(3, 'b')))).toEqual([404, -32001]);
  });
  const { url, recording } = await startHttpMock(db);
  expect(recording.script.size).toBe(2);
  const post = await connectByPost(url);
  expect(await heardOf(post(toolCall(1, 'a')))).toEqual([200, 1]);
  expect(await heardOf(post(toolCall(2, 'a')))).toEqual([200, 1404]);
  expect(await heardOf(post(toolCall(3, 'b')))).toEqual([200, 1404]);
});

test.each([401, 404, 405, 500])(
  'a stream that was only refused, with %i, is refused so again',
  async (status) => {
    const ask = (url: URL) => fetch(url, { headers: { accept: 'text/event-stream' } });
    const db = await recorded(
      (_, response) => response.writeHead(status, { 'content-type': 'text/plain' }).end('no'),
      async (url) => expect((await ask(url)).status).toBe(status),
    );
    const { url } = await startHttpMock(db);
    expect((await ask(url)).status).toBe(status);
    const transport = new SSEClientTransport(url);
    await expect(transport.start()).rejects.toThrow();
    await transport.close();
  },
);
