import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Deck, DeckOptions, DeckTransport } from '../../src/index.ts';
import { readBody, startServer } from '../support/http.ts';
import { openDeck } from '../support/kit.ts';
import { connectByPost, HANDSHAKE, linesOf, toolCall } from '../support/modes.ts';
import { inFull } from '../support/scale.ts';
import { tapedeckInProcess, tempFolder, until } from '../support/tapedeck.ts';

type Count = (name?: string) => Promise<unknown>;

/** A server without sessions that counts the calls of all its clients. */
async function startCounter(): Promise<string> {
  let count = 0;
  const reply = (response: ServerResponse, id: number, result: object) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  const { url } = await startServer(async (request, response) => {
    const { id, method } = JSON.parse((await readBody(request)).toString() || '{}');
    const serverInfo = { name: 'counter', version: '1' };
    if (method === 'initialize')
      reply(response, id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
    else if (method === 'tools/call') {
      count += 1;
      reply(response, id, { content: [{ type: 'text', text: String(count) }] });
    } else response.writeHead(id === undefined ? 202 : 405).end();
  });
  return url;
}

const textIn = ({ result, error }: { result?: { content: { text: string }[] }; error?: { code: number } }) =>
  result === undefined ? error?.code : Number(result.content[0]?.text);

/** A client in this process that shakes hands and then counts. */
async function enterHere(deck: Deck): Promise<Count> {
  const transport: DeckTransport = deck.transport();
  const heard = new Map<number, object>();
  transport.onmessage = (message) => void heard.set((message as { id?: number }).id ?? -1, message);
  await transport.start();
  let lastId = 0;
  async function ask(message: object): Promise<object> {
    const { id } = message as { id?: number };
    await transport.send({ jsonrpc: '2.0', ...message });
    if (id === undefined) return {};
    await until(`an answer to ${id}`, () => heard.has(id));
    return heard.get(id) ?? {};
  }
  for (const message of HANDSHAKE) await ask(message);
  return async (name = 'count') => {
    lastId += 1;
    return textIn((await ask(toolCall(lastId, name))) as never);
  };
}

/** The same over HTTP. */
async function enterByHttp(url: string): Promise<Count> {
  const post = await connectByPost(new URL(url));
  let lastId = 0;
  return async (name = 'count') => {
    lastId += 1;
    const body = await (await post(toolCall(lastId, name))).text();
    return textIn(JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? body));
  };
}

const WAYS = {
  transports: async (deck: Deck) => () => enterHere(deck),
  HTTP: async (deck: Deck) => {
    const { url } = await deck.listen();
    return () => enterByHttp(url);
  },
};

/** Two clients that take turns: what the first heard, and the second. */
async function takeTurns(
  file: string,
  options: DeckOptions,
  open: (deck: Deck) => Promise<() => Promise<Count>>,
) {
  const deck = await openDeck(file, options);
  const enter = await open(deck);
  const [a, b] = [await enter(), await enter()];
  const heard = [[await a()], [await b()]];
  heard[0]?.push(await a());
  heard[1]?.push(await b());
  await deck.close();
  return { heard, deck };
}

const TURNS = [
  [1, 3],
  [2, 4],
];

for (const [name, open] of Object.entries(WAYS)) {
  test(`two clients by ${name} are replayed as they were recorded by one deck`, async () => {
    const file = join(tempFolder(), 'two.ndjson');
    const upstream = await startCounter();
    expect((await takeTurns(file, { mode: 'once', upstream }, open)).heard).toEqual(TURNS);
    const { heard, deck } = await takeTurns(file, { mode: 'once', upstream: 'http://127.0.0.1:9/' }, open);
    expect(heard).toEqual(TURNS);
    deck.assertAllUsed();

    const apart = await openDeck(file);
    const enter = await open(apart);
    const [first, second] = [await enter(), await enter()];
    expect([await second(), await second(), await first(), await first()]).toEqual([2, 4, 1, 3]);
    expect(await second()).toBe(1404);
  });
}

inFull('a client of a deck is named in the lines of its recording from the second one on', async () => {
  const file = join(tempFolder(), 'two.ndjson');
  await takeTurns(file, { mode: 'once', upstream: await startCounter() }, WAYS.transports);
  const lines = linesOf(file)
    .slice(1)
    .map((line) => JSON.parse(line));
  const clients = lines.filter(({ channel }) => channel === 'request').map(({ client }) => client);
  expect(clients.filter((client) => client === undefined)).toHaveLength(clients.length / 2);
  expect(new Set(clients)).toEqual(new Set([undefined, 2]));

  const db = join(tempFolder(), 'store.db');
  expect(await tapedeckInProcess(['import', file, '--db', db])).toMatchObject({ code: 0 });
  const { stdout } = await tapedeckInProcess(['export', 'latest', '--db', db]);
  expect(stdout.toString()).toBe(readFileSync(file, 'utf8'));
  const checked = await tapedeckInProcess(['check', file]);
  expect(checked.stdout.toString()).not.toContain('initialize-twice');

  const alone = join(tempFolder(), 'one.ndjson');
  const deck = await openDeck(alone, { mode: 'once', upstream: await startCounter() });
  await (await enterHere(deck))();
  await deck.close();
  expect(readFileSync(alone, 'utf8')).not.toContain('"client":2');
});

test('new_episodes adds what a client asks to what was recorded of it, and one client more as a new one', async () => {
  const file = join(tempFolder(), 'two.ndjson');
  const upstream = await startCounter();
  await takeTurns(file, { mode: 'once', upstream }, WAYS.transports);
  const adding = await openDeck(file, { mode: 'new_episodes', upstream });
  const clients = [await enterHere(adding), await enterHere(adding), await enterHere(adding)];
  expect(await clients[1]?.('more')).toBe(5);
  expect(await clients[2]?.()).toBe(6);
  expect(await clients[0]?.()).toBe(1);
  await adding.close();

  const played = await openDeck(file);
  const again = [await enterHere(played), await enterHere(played), await enterHere(played)];
  expect(await again[2]?.()).toBe(6);
  expect(await again[1]?.('more')).toBe(5);
  expect(await again[0]?.()).toBe(1);
});

test('verify plays one client after the other, each with a handshake of its own', async () => {
  const file = join(tempFolder(), 'two.ndjson');
  await takeTurns(file, { mode: 'once', upstream: await startCounter() }, WAYS.transports);
  const ignoring = ['--ignore-result', '$.content', '--json'];
  const { code, stdout } = await tapedeckInProcess(['verify', file, await startCounter(), ...ignoring]);
  const lines = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const asked = lines.filter(({ type }) => type === 'exchange').map(({ method }) => method);
  const client = ['initialize', 'tools/call', 'tools/call'];
  expect([code, asked]).toEqual([0, [...client, ...client]]);
});
