/** Any transport of an SDK, wrapped: what is recorded, and that it stays the transport that it is. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Client as SecondClient,
  InMemoryTransport as SecondMemory,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { McpServer as SecondServer } from '@modelcontextprotocol/server';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { recordedTransport } from '../../src/record/record.ts';
import { talkToDualEra } from '../support/official-clients.ts';
import { framesOf, sessionsOf } from '../support/recorded.ts';
import { inFull } from '../support/scale.ts';
import { startDualEraServer } from '../support/servers.ts';
import {
  fixture,
  listSessions,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const described = { description: 'Says a text', inputSchema: { text: z.string() } };
const say = ({ text }: { text: string }) => ({ content: [{ type: 'text' as const, text }] });

test('both ends of a connection in memory have the same messages, in their order (SDK 1.x)', async () => {
  const db = tempStore();
  const [near, far] = InMemoryTransport.createLinkedPair();
  const server = new McpServer({ name: 'server', version: '1' });
  server.registerTool('say', described, say);
  await server.connect(recordedTransport(far, { db, name: 'server' }));
  const client = new Client({ name: 'client', version: '1' });
  await client.connect(recordedTransport(near, { db, name: 'client' }));
  await client.callTool({ name: 'say', arguments: { text: 'hällo' } });
  await client.close();
  await until(
    'both have ended',
    () => sessionsOf(db).filter(({ ended_at }) => ended_at !== null).length === 2,
  );
  // The era is known once a session is indexed, which comes after its end: by whoever reads it first, where time was short.
  await listSessions(db);
  const frames = framesOf(db, 'client');
  expect(frames.map(({ channel }) => channel)).toEqual(['stdin', 'stdout', 'stdin', 'stdin', 'stdout']);
  expect(framesOf(db, 'server')).toEqual(frames);
  expect(sessionsOf(db)).toMatchObject(
    ['client', 'server'].map(() => ({
      basis: 'sdk-transport',
      end_reason: 'client-closed',
      dropped: 0,
      era: 'legacy',
    })),
  );
  expect(sessionsOf(db).find(({ name }) => name === 'client')).toMatchObject({ client_pid: process.pid });
});

test('the same with the SDK 2.x', async () => {
  const db = tempStore();
  const [near, far] = SecondMemory.createLinkedPair();
  const server = new SecondServer({ name: 'server', version: '2' });
  server.registerTool('say', { ...described, inputSchema: z.object(described.inputSchema) }, say);
  await server.connect(recordedTransport(far, { db, name: 'server' }));
  const client = new SecondClient({ name: 'client', version: '2' });
  await client.connect(recordedTransport(near, { db, name: 'client' }));
  await client.callTool({ name: 'say', arguments: { text: 'hi' } });
  await client.close();
  await until(
    'both have ended',
    () => sessionsOf(db).filter(({ ended_at }) => ended_at !== null).length === 2,
  );
  expect(framesOf(db, 'client').length).toBe(5);
  expect(framesOf(db, 'server')).toEqual(framesOf(db, 'client'));
});

inFull.each(['legacy', 'auto'] as const)(
  'a transport over HTTP works as it does without (%s)',
  async (mode) => {
    const db = tempStore();
    const url = new URL(await startDualEraServer());
    const plain = await talkToDualEra(new StreamableHTTPClientTransport(url), mode);
    const transport = new StreamableHTTPClientTransport(url);
    const recorded = recordedTransport(transport, { db });
    expect(recorded).toBeInstanceOf(StreamableHTTPClientTransport);
    expect(await talkToDualEra(recorded, mode)).toEqual(plain);
    await recorded[Symbol.asyncDispose]();
    await listSessions(db);
    expect(sessionsOf(db)).toMatchObject([
      { era: mode === 'auto' ? 'modern' : 'legacy', target: 'StreamableHTTPClientTransport', dropped: 0 },
    ]);
  },
);

inFull('a client on stdio, and everything that a transport has besides', async () => {
  const db = tempStore();
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [fixture('echo.js')],
    stderr: 'pipe',
  });
  const recorded = recordedTransport(transport, { db });
  const client = new Client({ name: 'client', version: '1' });
  await client.connect(recorded);
  expect(recorded.pid).toBe(transport.pid);
  expect(recorded.stderr).toBe(transport.stderr);
  await client.ping();
  await client.close();
  await recorded.flush();
  await until('it has ended', () => sessionsOf(db)[0]?.ended_at !== null);
  expect(framesOf(db).length).toBe(5);
});

/** With what no interface names: private fields, listeners that were there before, members of a later version. */
class Odd {
  #sent: unknown[] = [];
  onmessage: ((message: unknown, extra?: unknown) => void) | undefined;
  onclose: (() => void) | undefined;
  sessionId = 'one';
  get sent(): readonly unknown[] {
    return this.#sent;
  }
  async send(message: unknown): Promise<string> {
    if (message === 'fails') throw new Error('the transport’s own');
    this.#sent.push(message);
    return 'sent';
  }
  async close(): Promise<void> {
    this.onclose?.();
  }
  receive(message: unknown): void {
    this.onmessage?.(message, { extra: true });
  }
}

test('members, listeners, results and failures are the transport’s own', async () => {
  const db = tempStore();
  const odd = new Odd();
  const heard: unknown[] = [];
  const listener = (...args: unknown[]) => void heard.push(args);
  odd.onmessage = listener;
  const recorded = recordedTransport(odd, { db });
  expect(recorded.onmessage).toBe(listener);
  recorded.receive({ id: 1 });
  recorded.onmessage = listener;
  expect(recorded.onmessage).toBe(listener);
  odd.receive({ id: 2 });
  recorded.sessionId = 'two';
  const { receive } = recorded;
  expect(recorded.receive).toBe(receive);
  expect([odd.sessionId, recorded.constructor]).toEqual(['two', Odd]);
  expect(await recorded.send({ id: 12345678901234567890n })).toBe('sent');
  expect(await recorded.send({ id: 3 })).toBe('sent');
  await expect(recorded.send('fails')).rejects.toThrow('the transport’s own');
  expect(heard).toEqual([1, 2].map((id) => [{ id }, { extra: true }]));
  expect(recorded.sent.length).toBe(2);
  await recorded[Symbol.asyncDispose]();
  expect(framesOf(db).map(({ channel, text }) => [channel, text])).toEqual([
    ['stdin', '{"id":1}'],
    ['stdin', '{"id":2}'],
    ['stdout', '{"id":3}'],
    ['stdout', '"fails"'],
  ]);
  expect(sessionsOf(db)).toMatchObject([{ dropped: 1, end_reason: 'server-closed' }]);
});

test('every frame says that it is not what passed, in show, in JSON, in a text recording, and to who replays it', async () => {
  const db = tempStore();
  const odd = new Odd();
  const recorded = recordedTransport(odd, { db });
  recorded.onmessage = () => {};
  await recorded.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
  odd.receive({ jsonrpc: '2.0', id: 1, result: {} });
  await recorded[Symbol.asyncDispose]();
  const run = async (...args: string[]) => (await tapedeckInProcess([...args, '--db', db])).stdout.toString();
  expect(await run('show')).toMatch(/^transport of an SDK: .*\n.*\nended +the client closed the transport/m);
  const json = (await run('show', '--json'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(json).toMatchObject([
    { reserialised: true, text: '{"jsonrpc":"2.0","id":1,"method":"ping"}' },
    { reserialised: true },
  ]);
  const file = join(tempFolder(), 'one.ndjson');
  const text = await run('export', 'latest');
  writeFileSync(file, text);
  expect(text).toContain('"basis":"sdk-transport"');
  expect(text.match(/"part":"reserialised"/g)?.length).toBe(2);
  const again = tempStore();
  await tapedeckInProcess(['import', file, '--db', again]);
  expect(framesOf(again)).toEqual(framesOf(db));
  const replay = await tapedeckInProcess(['replay', file], {
    stdin: '{"jsonrpc":"2.0","id":9,"method":"ping"}\n',
  });
  expect(replay.stdout.toString()).toBe('{"jsonrpc":"2.0","id":9,"result":{}}\n');
  expect(replay.stderr).toContain('whole numbers beyond 2^53');
  const check = await tapedeckInProcess(['check', '--db', db]);
  expect([check.code, check.stdout.toString()]).toEqual([0, expect.stringContaining('Nothing found.')]);
});
