import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, expect, test, vi } from 'vitest';
import { type DeckTransport, type JsonRpcMessage, openRecording } from '../../src/index.ts';
import { connect, EVERYTHING_STDIO, echo, openDeck } from '../support/kit.ts';
import { tempFolder, until } from '../support/tapedeck.ts';

afterEach(() => void vi.useRealTimers());

type Said = { id?: number; method?: string; result?: unknown; error?: { code: number } };

/** Starts the transport; what comes is kept. */
async function listenTo(transport: DeckTransport): Promise<{ said: Said[]; errors: Error[] }> {
  const heard = { said: [] as Said[], errors: [] as Error[] };
  transport.onmessage = (message) => heard.said.push(message as Said);
  transport.onerror = (error) => heard.errors.push(error);
  await transport.start();
  return heard;
}

function request(id: number, method: string, params?: object): JsonRpcMessage {
  return { jsonrpc: '2.0', id, method, params } as JsonRpcMessage;
}

const call = (id: number, name: string, args: object, meta?: object) =>
  request(id, 'tools/call', { name, arguments: args, _meta: meta });

/** A text recording of a stdio session in a file of its own. */
function writeRecording(lines: readonly string[]): string {
  const file = join(tempFolder(), 'recording.ndjson');
  const session = { name: 'made', basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'] };
  const header = { tapedeck: 1, session: { ...session, startedAt: '2026-01-01T00:00:00.000000Z' } };
  writeFileSync(file, [JSON.stringify(header), ...lines, ''].join('\n'));
  return file;
}

test('answers come after the call of send, one a turn, in their order', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const transport = deck.transport();
  const { said } = await listenTo(transport);
  const order: string[] = [];
  transport.onmessage = (message) => {
    said.push(message as Said);
    order.push('message');
    queueMicrotask(() => order.push('its microtask'));
  };
  const long = { duration: 0.2, steps: 2 };
  const sent = transport.send(call(7, 'trigger-long-running-operation', long, { progressToken: 'mine' }));
  expect(said).toEqual([]);
  await sent;
  await until('the answer came', () => said.length === 3);
  expect(order).toEqual(Array.from({ length: 3 }, () => ['message', 'its microtask']).flat());
  expect(said).toMatchObject([
    { method: 'notifications/progress', params: { progress: 1, progressToken: 'mine' } },
    { method: 'notifications/progress', params: { progress: 2, progressToken: 'mine' } },
    { id: 7, result: {} },
  ]);
});

test('a transport serves one connection, and says so', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const transport = deck.transport();
  await expect(transport.send(request(1, 'ping'))).rejects.toThrow(/not started/);
  const { said } = await listenTo(transport);
  await expect(transport.start()).rejects.toThrow(/in use/);
  await expect(transport.send({ jsonrpc: '2.0', id: 1n } as JsonRpcMessage)).rejects.toThrow(/BigInt/);
  await expect(transport.send({ id: 1 } as never)).rejects.toThrow(
    'Expected a JSON-RPC 2.0 message, got something else (no-jsonrpc).',
  );
  const onclose = vi.fn();
  transport.onclose = onclose;
  await transport.send(request(2, 'ping'));
  await transport.close();
  await transport.close();
  expect(onclose).toHaveBeenCalledTimes(1);
  await expect(transport.send(request(3, 'ping'))).rejects.toThrow(/closed/);
  await expect(transport.start()).rejects.toThrow(/closed/);
  // What was under way is not delivered any more.
  await new Promise(setImmediate);
  expect(said).toEqual([]);
});

test('a client that throws at a message is told, and hears the next', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const transport = deck.transport();
  const { errors } = await listenTo(transport);
  const seen: Said[] = [];
  transport.onmessage = (message) => {
    seen.push(message as Said);
    if (seen.length === 1) throw new Error('not that');
  };
  await transport.send(request(1, 'ping'));
  await transport.send(request(2, 'ping'));
  await until('both came', () => seen.length === 2);
  expect(errors.map(String)).toEqual(['Error: not that']);
});

test('a call that its client takes back gets no answer, and is called cancelled', async () => {
  // At this speed an answer is minutes away: nothing waits for it.
  const deck = await openDeck(EVERYTHING_STDIO, { speed: 0.001 });
  const transport = deck.transport();
  const { said } = await listenTo(transport);
  await transport.send(call(1, 'trigger-long-running-operation', { duration: 0.2, steps: 2 }));
  expect(deck.calls[0]?.outcome).toBe('unanswered');
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } } as const;
  await transport.send(cancelled);
  expect(deck.calls[0]?.outcome).toBe('cancelled');
  await deck.close();
  expect(said).toEqual([]);
});

test('clocks that a test replaces hold up nothing, at any speed and by any way', async () => {
  const deck = await openDeck(EVERYTHING_STDIO, { speed: 'recorded' });
  vi.useFakeTimers();
  const client = await connect(deck.transport());
  expect(await echo(client, 'Hello, tape.')).toMatchObject({ content: [{ text: 'Echo: Hello, tape.' }] });
  const { url } = await deck.listen();
  const open = fetch(url, { headers: { accept: 'text/event-stream' } });
  expect((await open).status).toBe(400);
  await deck.close();
  deck.assertOrder(['initialize', 'tools/call echo']);
});

test('what the recorded server said without being asked comes to every client', async () => {
  const file = writeRecording([
    '{"ms":1,"channel":"stdout","message":{"jsonrpc":"2.0","method":"notifications/first"}}',
    '{"ms":1,"channel":"stdin","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}',
    '{"ms":1,"channel":"stdout","message":{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}}',
    '{"ms":1,"channel":"stdout","message":{"jsonrpc":"2.0","method":"notifications/last"}}',
  ]);
  const deck = await openDeck(file);
  for (let i = 0; i < 2; i += 1) {
    const transport = deck.transport();
    const { said } = await listenTo(transport);
    await until('the first came', () => said.length === 1);
    await transport.send(request(5, 'tools/list'));
    await until('all came', () => said.length === 3);
    expect(said.map(({ method, id }) => method ?? id)).toEqual([
      'notifications/first',
      5,
      'notifications/last',
    ]);
  }
});

const HEADER_ONLY: readonly string[] = [];
const QUESTION = '{"channel":"stdin","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}';

test('a recording that is none, or broken, is refused with its file and line', async () => {
  const folder = tempFolder();
  const none = join(folder, 'none.ndjson');
  await expect(openRecording(none)).rejects.toThrow(`There is no recording at ${none}`);
  await expect(openRecording(new URL(`file://${none}`))).rejects.toThrow(`There is no recording at ${none}`);
  await expect(openRecording('no-such-session', { db: join(folder, 'no.db') })).rejects.toThrow(
    /no store at .*no\.db/,
  );
  const broken = writeRecording([QUESTION, '{"channel":"stdout","message":{"jsonrpc']);
  await expect(openRecording(broken)).rejects.toThrow(`${broken}, line 3:`);
  const folderNamed = join(tempFolder());
  await expect(openRecording(`${folderNamed}/x.ndjson/y.ndjson`)).rejects.toThrow(/There is no recording/);
  const deck = await openDeck(writeRecording(HEADER_ONLY));
  deck.assertAllUsed();
  expect(deck.unused).toEqual([]);
});

test('hostile recordings harm neither the client nor the deck', async () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const file = writeRecording([
    QUESTION,
    `{"channel":"stdout","text":${JSON.stringify(`{"jsonrpc":"2.0","id":1,"result":{"__proto__":{"polluted":1},"deep":${deep}}}`)}}`,
    '{"channel":"stdout","text":"\\u001b[31m no JSON"}',
    `{"channel":"stdin","text":${JSON.stringify(`{"jsonrpc":"2.0","id":2,"method":"deep","params":{"a":${deep}}}`)}}`,
    '{"channel":"stdout","message":{"jsonrpc":"2.0","id":2,"result":{}}}',
    '{"channel":"stdin","message":{"jsonrpc":"2.0","id":3,"method":"never/answered"}}',
  ]);
  const deck = await openDeck(file);
  const transport = deck.transport();
  const { said, errors } = await listenTo(transport);
  await transport.send(request(1, 'tools/list'));
  await transport.send(request(2, 'never/answered'));
  await until('both were heard', () => said.length + errors.length === 2);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect(said.at(-1)?.error?.code).toBe(1404);
  expect(deck.misses.map(({ reason }) => reason)).toEqual(['never-answered']);
  expect(deck.unused.map(({ method }) => method)).toEqual(['deep']);
  expect(() => deck.assertAllUsed()).toThrow('frame 4: deep (cannot be shown)');
});

test('options without sense are refused in words', async () => {
  const open = (options: object) => openRecording(EVERYTHING_STDIO, options);
  await expect(open({ mode: 'sometimes' })).rejects.toThrow(/as the option `mode`, got "sometimes"/);
  await expect(open({ repeat: 'lsat' })).rejects.toThrow(
    /Expected error, last, cycle as the option `repeat`/,
  );
  for (const speed of [0, -1, Number.NaN, 'slow'])
    await expect(open({ speed })).rejects.toThrow(/as the option `speed`/);
  await expect(open({ ignore: ['no path'] })).rejects.toThrow(/--ignore/);
  await expect(open({ ignoreTool: ['echo'] })).rejects.toThrow(/--ignore-tool echo: expected/);
});

test('another answer to the server’s own question than the recorded one is told, and is no silent success', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const client = await connect(deck.transport());
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Forty-\u001b[31mthree.' },
  }));
  const prompt = { prompt: 'The answer?', maxTokens: 20 };
  await client.callTool({ name: 'trigger-sampling-request', arguments: prompt });
  expect(deck.misses).toEqual([]);
  expect(deck.notices).toHaveLength(1);
  expect(deck.notices[0]).toMatch(/^sampling\/createMessage: the client’s answer is not the recorded one/);
  expect(deck.notices[0]).toContain('Forty-\\u001b[31mthree.');
  expect(() => deck.assertNoMisses()).toThrow(/^1 message of a client is not as recorded\.\n/);
});
