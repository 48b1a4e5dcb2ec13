import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { StreamableHTTPClientTransport as SecondHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import type { Deck } from '../../src/index.ts';
import {
  connect,
  createSecondClient,
  EVERYTHING_HTTP,
  EVERYTHING_STDIO,
  echo,
  MODERN_HTTP,
  openDeck,
} from '../support/kit.ts';
import { inFull } from '../support/scale.ts';
import { tempFolder } from '../support/tapedeck.ts';

const WAYS: Record<string, (deck: Deck) => Promise<Transport>> = {
  'the in-process transport': async (deck) => deck.transport(),
  'a URL': async (deck) => new StreamableHTTPClientTransport(new URL((await deck.listen()).url)) as Transport,
  'a command line': async (deck) => new StdioClientTransport({ ...deck.command(), stderr: 'ignore' }),
};

/** All that the recorded client asked, and what the live one saw. */
async function converse(transport: Transport): Promise<unknown> {
  const client = await connect(transport);
  const progress: number[] = [];
  const call = (name: string, args: Record<string, unknown>) =>
    client.callTool({ name, arguments: args }, undefined, {
      onprogress: (one) => void progress.push(one.progress),
    });
  const seen = {
    server: client.getServerVersion(),
    tools: (await client.listTools()).tools.length,
    echo: await echo(client, 'Hello, tape.'),
    sum: await client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 } }),
    wrong: await client.callTool({ name: 'get-sum', arguments: { a: 'one' } }),
    long: await call('trigger-long-running-operation', { duration: 0.2, steps: 2 }),
    prompt: await client.getPrompt({ name: 'no-such-prompt' }).catch(String),
    sampling: await client.callTool({
      name: 'trigger-sampling-request',
      arguments: { prompt: 'The answer?', maxTokens: 20 },
    }),
    progress,
  };
  await client.close();
  return seen;
}

for (const [name, open] of Object.entries(WAYS)) {
  test(`by ${name} a client sees what the recorded one saw, and the deck what was called`, async () => {
    const deck = await openDeck(EVERYTHING_STDIO);
    const seen = await converse(await open(deck));
    expect(seen).toMatchObject({
      server: { name: 'mcp-servers/everything' },
      echo: { content: [{ type: 'text', text: 'Echo: Hello, tape.' }] },
      wrong: { isError: true },
      prompt: expect.stringContaining('no-such-prompt not found'),
    });
    // By a pipe, the SDK's first generation loses progress that it reads together with the answer.
    if (name !== 'a command line') expect(seen).toMatchObject({ progress: [1, 2] });
    expect(JSON.stringify(seen)).toContain('Forty-two.');

    expect(deck.calls.map(({ method, target, outcome }) => [method, target, outcome])).toEqual([
      ['initialize', null, 'ok'],
      ['tools/list', null, 'ok'],
      ['tools/call', 'echo', 'ok'],
      ['tools/call', 'get-sum', 'ok'],
      ['tools/call', 'get-sum', 'tool-error'],
      ['tools/call', 'trigger-long-running-operation', 'ok'],
      ['prompts/get', 'no-such-prompt', 'error'],
      ['tools/call', 'trigger-sampling-request', 'ok'],
    ]);
    expect(deck.calls[2]?.params).toEqual({ name: 'echo', arguments: { message: 'Hello, tape.' } });
    expect(deck.unused).toEqual([]);
    deck.assertAllUsed();
    deck.assertNoMisses();
    deck.assertOrder(['initialize', 'tools/call echo', ['tools/call', { arguments: { a: 1, b: 2 } }]]);
  });

  test(`by ${name} a call that the recording lacks is a miss that explains itself`, async () => {
    const deck = await openDeck(EVERYTHING_STDIO);
    const client = await connect(await open(deck));
    await expect(echo(client, 'Hello, disc.')).rejects.toThrow(/no recorded answer to tools\/call "echo"/);
    expect(deck.misses).toMatchObject([
      { reason: 'arguments-differ', call: { method: 'tools/call', target: 'echo', outcome: 'miss' } },
    ]);
    expect(deck.misses[0]?.report).toContain(
      '/arguments/message changed: recorded "Hello, tape.", live "Hello, disc."',
    );
    expect(deck.unused.map(({ method, target }) => [method, target])).toContainEqual(['tools/call', 'echo']);
    await client.close();
  });
}

test('an answer that was written on several lines comes by all three ways', async () => {
  const file = join(tempFolder(), 'pretty.ndjson');
  const server = { capabilities: { tools: {} }, serverInfo: { name: 'pretty', version: '1' } };
  const answers = {
    initialize: { protocolVersion: '2025-11-25', ...server },
    'tools/call': { content: [{ type: 'text', text: 'on\nlines, héllo' }] },
  };
  const session = { basis: 'stateless', transport: 'http', target: 'http://x/mcp' };
  const header = { tapedeck: 1, session: { ...session, startedAt: '2026-01-01T00:00:00.000000Z' } };
  const json = [['content-type', 'application/json']];
  const lines = Object.entries(answers).flatMap(([method, result], i) => {
    const params = method === 'tools/call' ? { name: 'echo', arguments: { message: 'x' } } : {};
    const answer = JSON.stringify({ jsonrpc: '2.0', id: i, result }, null, 2);
    return [
      { http: i + 1, request: { method: 'POST', path: '/mcp', version: '1.1', client: 'a', headers: json } },
      { http: i + 1, channel: 'request', message: { jsonrpc: '2.0', id: i, method, params } },
      { http: i + 1, response: { status: 200, statusText: 'OK', headers: json } },
      { http: i + 1, channel: 'response', text: answer },
    ];
  });
  writeFileSync(file, [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''));
  const deck = await openDeck(file);
  for (const open of Object.values(WAYS)) {
    const client = await connect(await open(deck));
    expect(await echo(client, 'x')).toEqual(answers['tools/call']);
    await client.close();
  }
});

test('the options hold for all three ways', async () => {
  const deck = await openDeck(EVERYTHING_STDIO, { ignoreTool: ['echo:$.message'], repeat: 'last' });
  for (const open of Object.values(WAYS)) {
    const client = await connect(await open(deck));
    const first = await echo(client, 'anything');
    expect(first).toEqual({ content: [{ type: 'text', text: 'Echo: Hello, tape.' }] });
    expect(await echo(client, 'something else')).toEqual(first);
    await client.close();
  }
  deck.assertNoMisses();
  deck.assertCalled('tools/call echo', undefined, { times: 6 });
});

test('the second generation of the SDK takes the transport, in the era that was recorded', async () => {
  const legacy = await openDeck(EVERYTHING_HTTP);
  const old = createSecondClient('auto');
  await old.connect(legacy.transport());
  expect(old.getNegotiatedProtocolVersion()).toBe('2025-11-25');
  expect(await echo(old, 'Hello, tape.')).toMatchObject({ content: [{ text: 'Echo: Hello, tape.' }] });

  for (const way of ['transport', 'listen'] as const) {
    const modern = await openDeck(MODERN_HTTP);
    const client = createSecondClient('auto');
    await client.connect(
      way === 'transport' ? modern.transport() : new SecondHttp(new URL((await modern.listen()).url)),
    );
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    await client.callTool({ name: 'test_simple_text' });
    const progress: number[] = [];
    const onprogress = (one: { progress: number }) => void progress.push(one.progress);
    await client.callTool({ name: 'test_tool_with_progress' }, { onprogress });
    expect(progress).toEqual([0, 50, 100]);
    expect(await client.callTool({ name: 'test_input_required_result_multi_round' })).toMatchObject({
      content: [{ text: 'Ada likes blue' }],
    });
    await client.callTool({ name: 'test_error_handling' });
    await client.callTool({ name: 'nothing' }).catch(() => {});
    modern.assertAllUsed();
    modern.assertNoMisses();
    expect(modern.calls.map(({ outcome }) => outcome)).toEqual([
      ...['ok', 'ok', 'ok', 'input-required', 'input-required', 'ok', 'tool-error', 'error'],
    ]);
    await client.close();
  }
});

inFull('many clients of one deck, and many decks, do not see each other', async () => {
  const decks = await Promise.all(Array.from({ length: 20 }, () => openDeck(EVERYTHING_STDIO)));
  await Promise.all(
    decks.map(async (deck, i) => {
      const ways = i === 0 ? Object.values(WAYS) : Object.values(WAYS).slice(0, 2);
      await Promise.all(ways.map(async (open) => converse(await open(deck))));
      await deck.close();
      deck.assertNoMisses();
      deck.assertAllUsed();
      expect(deck.calls).toHaveLength(8 * ways.length);
    }),
  );
});

test('closing the deck closes its transports and ports, removes its files, and keeps what was called', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const client = await connect(deck.transport());
  const { url } = await deck.listen();
  const calls = deck.command().args.at(-1) ?? '';
  expect(existsSync(dirname(calls))).toBe(true);
  await connect(new StreamableHTTPClientTransport(new URL(url)) as Transport);
  const closed = new Promise<void>((resolve) => {
    client.onclose = resolve;
  });
  const pending = client.callTool({
    name: 'trigger-long-running-operation',
    arguments: { duration: 0.2, steps: 2 },
  });
  const failed = expect(pending).rejects.toThrow(/closed/i);
  await Promise.all([deck.close(), deck.close()]);
  await closed;
  await failed;
  await expect(fetch(url)).rejects.toThrow();
  expect(existsSync(dirname(calls))).toBe(false);
  expect(deck.calls.map(({ method }) => method)).toEqual(['initialize', 'initialize', 'tools/call']);
  expect(deck.unused).toHaveLength(6);
  expect(() => deck.transport()).toThrow(/The deck is closed/);
  await expect(deck.listen()).rejects.toThrow(/The deck is closed/);
  expect(() => deck.command()).toThrow(/The deck is closed/);
});
