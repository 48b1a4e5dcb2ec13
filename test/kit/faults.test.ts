import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import { connect, EVERYTHING_STDIO, openDeck } from '../support/kit.ts';

type Caller = Awaited<ReturnType<typeof connect>>;

/** What a test of one's own client tries: a call is made again where it failed. */
async function withRetry(client: Caller, attempts: number): Promise<number> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    try {
      await client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 } });
      return attempt;
    } catch {}
  }
  return 0;
}

test('a client that tries again gets through, after as many attempts in every run', async () => {
  const attempts = new Set<number>();
  for (let run = 0; run < 3; run += 1) {
    const faults = ['tool=get-sum error(-32000,"try later") p=0.5'];
    const deck = await openDeck(EVERYTHING_STDIO, { faults, seed: 3, repeat: 'last' });
    const client = await connect(deck.transport() as Transport);
    const needed = await withRetry(client, 20);
    deck.assertCalled('tools/call get-sum', {}, { times: needed });
    attempts.add(needed);
  }
  expect(attempts.size).toBe(1);
  expect([...attempts][0]).toBeGreaterThan(1);
});

test('faults come over every door of a deck that can have them', async () => {
  const deck = await openDeck(EVERYTHING_STDIO, {
    faults: ['tool=get-sum tool-error("no")'],
    repeat: 'last',
  });
  const { url } = await deck.listen();
  const clients = [
    await connect(deck.transport() as Transport),
    await connect(new StreamableHTTPClientTransport(new URL(url)) as Transport),
  ];
  for (const client of clients) {
    const answer = await client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 } });
    expect(answer).toMatchObject({ isError: true, content: [{ text: 'no' }] });
  }
  const { args } = deck.command();
  expect(args).toContain('--fault=tool=get-sum tool-error("no")');
  expect(args.join(' ')).toContain('--seed 0');
});

test('in the process itself a message can be late, lost, broken, or the last', async () => {
  const open = async (fault: string) => {
    const deck = await openDeck(EVERYTHING_STDIO, { faults: [`tool=get-sum ${fault}`], repeat: 'last' });
    const client = await connect(deck.transport() as Transport);
    const errors: string[] = [];
    client.onerror = (error) => errors.push(error.message);
    const call = (timeout = 60_000) =>
      client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 } }, undefined, { timeout });
    return { call, errors };
  };
  const late = await open('delay=20ms');
  expect(await late.call()).toMatchObject({ content: [{ type: 'text' }] });
  const lost = await open('drop');
  await expect(lost.call(50)).rejects.toThrow(/timed out/);
  const broken = await open('truncate(5)');
  await expect(broken.call(50)).rejects.toThrow(/timed out/);
  expect(broken.errors.join()).toMatch(/JSON/);
  const last = await open('close');
  await expect(last.call()).rejects.toThrow(/closed/i);
});

test('a rule that cannot be read, or not be done there, is an error at once', async () => {
  await expect(openDeck(EVERYTHING_STDIO, { faults: ['tool=a dorp'] })).rejects.toThrow(/Nearest: `drop`/);
  await expect(openDeck(EVERYTHING_STDIO, { faults: ['drop'], seed: -1 })).rejects.toThrow(/`seed`/);
  const deck = await openDeck(EVERYTHING_STDIO, { faults: ['exit(1)'] });
  expect(() => deck.transport()).toThrow(/exit goes with/);
  await expect(deck.listen()).rejects.toThrow(/exit goes with/);
});

test('an expectation that does not hold says by which seed the same faults come again', async () => {
  const rule = 'tool=get-sum text~"it\'s" drop';
  const deck = await openDeck(EVERYTHING_STDIO, { faults: [rule], seed: 3 });
  expect(() => deck.assertCalled('tools/call get-sum')).toThrow(
    `Faults were put in on purpose, seed 3. The deck’s option \`seed: 3\` puts in the same ones again.\nWhich recorded calls get them: npx mcp-tapedeck replay ${EVERYTHING_STDIO} --fault 'tool=get-sum text~"it'\\''s" drop' --seed 3 --fault-plan`,
  );
  const plain = await openDeck(EVERYTHING_STDIO);
  expect(() => plain.assertCalled('tools/call get-sum')).not.toThrow(/on purpose/);
});
