/** What an agent is told while an answer cannot be whole yet: before there is an index, and while a large session is redacted. */

import { Client as SecondClient } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as FirstStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { expect, onTestFinished, test, vi } from 'vitest';
import { beginCopy, type Copy } from '../../src/mcp/read/copies.ts';
import { openForReading } from '../../src/store/file/open.ts';
import { findSession } from '../../src/store/read/sessions.ts';
import { callOf, type Line, replies, resultOf, says, stdioSession } from '../support/hand-made.ts';
import { type Agent, agentOf, askStore, type Json, storeOfTexts } from '../support/mcp.ts';
import { inFull } from '../support/scale.ts';
import { FAKE_SECRETS } from '../support/secrets.ts';
import { BIN, fixture, until } from '../support/tapedeck.ts';

const TOKEN = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';

/** Each call has a secret in its argument. */
function callsWithSecrets(count: number): Line[] {
  return Array.from({ length: count }, (_, i) => [
    says(10 + 2 * i, callOf(i, `tool-${i % 7}`, { q: `${TOKEN} needle-${i}` })),
    replies(11 + 2 * i, resultOf(i)),
  ]).flat();
}

/** Begins copies of one session. */
async function copiesOf(text: string): Promise<(mostBytes?: number) => Copy> {
  const store = openForReading(await storeOfTexts(text));
  onTestFinished(() => void store.close());
  return (mostBytes) => {
    const copy = beginCopy(store, findSession(store, 'latest'), mostBytes);
    onTestFinished(() => copy.close());
    return copy;
  };
}

/** Without what the key of each copy makes of a secret. */
function rowsOf({ store }: Copy): string {
  const rows = [
    'SELECT seq, channel, size, CAST(payload AS TEXT) FROM frame ORDER BY seq',
    'SELECT seq, kind, id, method, target, to_seq, outcome FROM message ORDER BY seq, n',
    'SELECT frames, indexed, bytes, exchanges, errors FROM session',
  ].map((sql) => store.prepare(sql).all());
  return JSON.stringify(rows).replaceAll(/\[redacted:github-token:\w+\]/g, '[redacted]');
}

test('a copy that is made piece by piece is the beginning of the session, and at last what one made at once is', async () => {
  const count = 600;
  const text = stdioSession(callsWithSecrets(count), { endedAt: 90_000 });
  const begin = await copiesOf(text);
  const copy = begin();
  // Each look at the clock finds it a millisecond on: the same pieces on any machine.
  let now = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now++);
  onTestFinished(() => clock.mockRestore());
  await copy.advance(0);
  const first = copy.done();
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThan(2 * count);
  expect(copy.isOver()).toBe(false);
  expect(copy.session().endReason).toBeNull();
  for (let before = first; !copy.isOver(); before = copy.done()) {
    await copy.advance(0);
    expect(copy.done()).toBeGreaterThanOrEqual(before);
  }
  clock.mockRestore();
  expect(copy.done()).toBe(2 * count);
  const whole = begin();
  await whole.advance(Number.POSITIVE_INFINITY);
  expect(rowsOf(copy)).toBe(rowsOf(whole));
  expect(rowsOf(copy)).not.toContain(TOKEN);
  expect(rowsOf(copy)).toContain('[redacted]');
});

inFull('of a session that is too large the copy has the beginning', async () => {
  const begin = await copiesOf(stdioSession(callsWithSecrets(600)));
  const copy = begin(100_000);
  while (!copy.isOver()) await copy.advance(1000);
  expect(copy.done()).toBeGreaterThan(100);
  expect(copy.done()).toBeLessThan(1200);
});

inFull(
  'a large session that was never redacted is answered for as far as it is redacted, and at last whole',
  async () => {
    const count = 26_000;
    const db = await storeOfTexts(stdioSession(callsWithSecrets(count), { endedAt: 9_000_000 }));
    const agent = await askStore(db);
    const first = await agent.call('list_calls', { limit: 1 });
    const [lack] = first.structuredContent?.incomplete ?? [];
    expect(lack).toMatchObject({ what: 'redaction', of: 2 * count, unit: 'frames' });
    expect(lack?.['done']).toBeLessThan(2 * count);
    expect(first.structuredContent?.leftOut?.join()).toContain('ask the same again in some seconds');
    const late = await agent.call('get_frame', { seq: 2 * count });
    if (late.isError) expect(late.content[0]?.text).toMatch(/there is none.* was recorded without redaction/);
    let cursor: string | undefined = first.structuredContent?.cursor;
    let done = 0;
    // What is asked again with the cursor goes on where there was nothing more yet.
    await until(
      'all of it is redacted',
      async () => {
        const { structuredContent } = await agent.call('list_calls', { limit: 1, ...(cursor && { cursor }) });
        const lack = structuredContent?.incomplete?.[0];
        expect(lack?.['done'] ?? 2 * count).toBeGreaterThanOrEqual(done);
        done = lack?.['done'] ?? 2 * count;
        cursor = structuredContent?.cursor;
        return lack === undefined;
      },
      100_000,
    );
    const { payload } = await agent.recorded('get_frame', { seq: 2 * count - 1 });
    expect(JSON.stringify(payload)).toContain('[redacted:github-token:');
    const found = await wholeSearch(agent, `needle-${count - 1}`);
    expect(found).toHaveLength(1);
    expect(await wholeSearch(agent, TOKEN.slice(8, 30))).toEqual([]);
    expect(JSON.stringify(found)).not.toContain(TOKEN);
    const { groups } = await agent.recorded('stats');
    expect(groups.reduce((sum: number, { count: its }: Json) => sum + its, 0)).toBe(count);
  },
  400_000,
);

/** A search has its time, in which no machine need come to the end of it: its cursor goes on from there. */
async function wholeSearch(agent: Agent, text: string): Promise<Json[]> {
  const hits: Json[] = [];
  let cursor: string | undefined;
  do {
    const { structuredContent } = await agent.call('search', { text: [text], ...(cursor && { cursor }) });
    hits.push(...(structuredContent?.recorded['hits'] ?? []));
    const before = cursor;
    cursor = structuredContent?.cursor;
    // Else it would never end.
    if (cursor !== undefined) expect(cursor).not.toBe(before);
  } while (cursor !== undefined);
  return hits;
}

const CLOCK = { NODE_OPTIONS: `--import ${fixture('fast-clock.js')}` };

const CLIENTS = {
  first: async (command: ConstructorParameters<typeof FirstStdioTransport>[0]) => {
    const client = new Client({ name: 'first', version: '1' });
    await client.connect(new FirstStdioTransport(command));
    return client;
  },
  second: async (command: ConstructorParameters<typeof StdioClientTransport>[0]) => {
    const client = new SecondClient({ name: 'second', version: '2' });
    await client.connect(new StdioClientTransport(command));
    return client;
  },
};

inFull.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])(
  'a search before there is an index says what was searched, what was not and what to do (%s line of the official client)',
  async (line) => {
    const many = (word: string, at: number) =>
      stdioSession(callsWithSecrets(1500), { name: word, redaction: null }, at);
    const rare = stdioSession([says(1, callOf(1, 'find', { q: 'the-oldest-of-all' }))], {}, 0);
    const db = await storeOfTexts(rare, many('one', 60_000), many('two', 120_000));
    const client = await CLIENTS[line]({
      ...{ command: process.execPath, args: [BIN, 'mcp', '--db', db], stderr: 'ignore' },
      env: { ...(process.env as Record<string, string>), ...CLOCK },
    });
    onTestFinished(() => client.close());
    // Its schema is looked at by the client from then on.
    await client.listTools();
    const { call } = agentOf(client as SecondClient);
    const asked = { text: ['the-oldest-of-all'] };
    const { structuredContent } = await call('search', asked);
    expect(structuredContent?.recorded['hits']).toEqual([]);
    expect(structuredContent?.cursor).toBeDefined();
    expect(structuredContent?.incomplete).toEqual([
      { what: 'search', done: expect.any(Number), of: 3, unit: 'sessions' },
      { what: 'index', done: expect.any(Number), of: 6001, unit: 'frames' },
    ]);
    const words = structuredContent?.leftOut?.join('\n');
    expect(words).toMatch(/^Only the newest \d of 3 sessions, and a part of the one of .* were searched/);
    expect(words).toMatch(/index for searching is being made.*wait a little, ask the same without a cursor/);
    await until('the same question is answered by the index', async () => {
      const again = await call('search', asked);
      return again.structuredContent?.recorded['hits'].length === 1 && !again.structuredContent?.incomplete;
    });
  },
);
