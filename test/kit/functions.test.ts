import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type DeckOptions, openRecording, type StoredMessage } from '../../src/index.ts';
import { readIgnoreRules } from '../../src/replay/match/ignore.ts';
import { blocksOf } from '../support/documents.ts';
import { connect, EVERYTHING_STDIO, echo, openDeck } from '../support/kit.ts';
import { call } from '../support/replay.ts';
import { fixture, tempFolder } from '../support/tapedeck.ts';

const upstream = { command: process.execPath, args: [fixture('echo.js')] };
const said = { content: [{ type: 'text', text: 'Echo: Hello, tape.' }] };

beforeEach(() => {
  vi.stubEnv('CI', '');
  vi.stubEnv('TAPEDECK_MODE', '');
});
afterEach(() => vi.unstubAllEnvs());

async function echoed(file: string, text: string, options: DeckOptions = {}) {
  const deck = await openRecording(file, { upstream, ...options });
  const client = await connect(deck.transport());
  const { content } = await client.callTool({ name: 'echo', arguments: { text } });
  await client.close();
  await deck.close();
  deck.assertNoMisses();
  return (content as { text: string }[])[0]?.text;
}

test('one answer is overridden, and the next call gets what was recorded', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const client = await connect(deck.transport());
  deck.override('tools/call echo', { error: { code: -32000, message: 'not now' } });
  await expect(echo(client, 'Hello, tape.')).rejects.toThrow('not now');
  expect(await echo(client, 'Hello, tape.')).toEqual(said);
  expect(deck.calls.map(({ outcome, frame }) => [outcome, frame !== null])).toEqual([
    ['ok', true],
    ['error', false],
    ['ok', true],
  ]);
  deck.assertNoMisses();
});

test('an override may be of some params only, may hold for good, and may be a function', async () => {
  const deck = await openDeck(EVERYTHING_STDIO, { repeat: 'last' });
  const client = await connect(deck.transport());
  const one = { result: { content: [{ type: 'text', text: 'one' }] } };
  deck.override('tools/call', one, { params: { arguments: { message: 'never recorded' } }, times: 2 });
  for (const _ of [1, 2]) expect(await echo(client, 'never recorded')).toEqual(one.result);
  await expect(echo(client, 'never recorded')).rejects.toThrow(/no recorded answer/);
  deck.override(
    'tools/call echo',
    ({ params }) => {
      const { message } = (params as { arguments: { message: string } }).arguments;
      return message === 'Hello, tape.'
        ? undefined
        : { result: { content: [{ type: 'text', text: message }] } };
    },
    { times: Number.POSITIVE_INFINITY },
  );
  for (const text of ['a', 'b'])
    expect(await echo(client, text)).toEqual({ content: [{ type: 'text', text }] });
  expect(await echo(client, 'Hello, tape.')).toEqual(said);
  expect(() => deck.command()).toThrow(/Expected no `override` beside `command`/);
});

test('`matchBy` says what counts of a request, and never makes one tool answer for another', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  await echoed(file, 'Bern');
  const matchBy: DeckOptions['matchBy'] = ({ params }) => {
    const { name, arguments: args } = params as { name?: string; arguments?: { text?: string } };
    return name === undefined ? undefined : { name: 'any', arguments: { text: args?.text?.toLowerCase() } };
  };
  expect(await echoed(file, 'BERN', { matchBy, mode: 'none' })).toBe('Bern');
  await expect(echoed(file, 'Bonn', { matchBy, mode: 'none' })).rejects.toThrow(/the arguments differ/);
  const deck = await openRecording(file, { matchBy });
  const client = await connect(deck.transport());
  await expect(client.callTool({ name: 'size', arguments: { text: 'bern' } })).rejects.toThrow(
    /never recorded/,
  );
  expect(() => deck.command()).toThrow(/`matchBy` beside `command`/);
  await deck.close();
});

test('`beforeStoring` changes what is stored and not what passes, and a client that sends the same is still known', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  const beforeStoring = (message: StoredMessage): StoredMessage =>
    JSON.parse(JSON.stringify(message).replaceAll('Ada', 'NAME'));
  expect(await echoed(file, 'I am Ada', { beforeStoring })).toBe('I am Ada');
  expect(readFileSync(file, 'utf8')).not.toContain('Ada');
  expect(await echoed(file, 'I am Ada', { beforeStoring, mode: 'none' })).toBe('I am NAME');
});

test('a function that fails is told, and nothing that it was to change is stored', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  const beforeStoring = (message: StoredMessage) => {
    if (JSON.stringify(message).includes('Ada')) throw new Error('no Ada');
    return message;
  };
  await expect(echoed(file, 'I am Ada', { beforeStoring })).rejects.toThrow(
    '`beforeStoring` has failed: no Ada',
  );
  expect(readFileSync(file, 'utf8')).not.toContain('Ada');
  const other = (message: StoredMessage) => ({ ...message, id: 'other' });
  await expect(echoed(file, 'x', { beforeStoring: other, mode: 'all' })).rejects.toThrow(
    'Expected a message with the same `id` and `method`',
  );
});

test('what may have any value must be there, and elements in any order are all compared', () => {
  const rules = (anyValue: string[], anyOrder: string[]) => readIgnoreRules([], [], anyValue, anyOrder);
  const key = (args: object, by: ReturnType<typeof rules>) => call('t', args, by).digest;
  const now = rules(['t:$.now', '$.arguments.list[*].id', 'other:$.x'], []);
  expect(key({ now: 1, x: 1 }, now)).toBe(key({ now: { deep: [2] }, x: 1 }, now));
  expect(key({ now: 1 }, now)).not.toBe(key({}, now));
  expect(key({ now: 1, x: 1 }, now)).not.toBe(key({ now: 1, x: 2 }, now));
  expect(key({ list: [{ id: 1 }, { id: 2 }] }, now)).toBe(key({ list: [{ id: 3 }, { id: null }] }, now));
  expect(key({ list: [{ id: 1 }] }, now)).not.toBe(key({ list: [{ id: 1 }, { id: 2 }] }, now));

  const tags = rules([], ['t:$.tags', '$.arguments.tags[*].inner']);
  const inner = (...values: number[]) => ({ inner: values });
  expect(key({ tags: ['b', 'a', 'b'] }, tags)).toBe(key({ tags: ['b', 'b', 'a'] }, tags));
  expect(key({ tags: ['b', 'a', 'b'] }, tags)).not.toBe(key({ tags: ['a', 'b', 'a'] }, tags));
  expect(key({ tags: [inner(1, 2), inner(3)] }, tags)).toBe(key({ tags: [inner(3), inner(2, 1)] }, tags));
  expect(key({ tags: [], more: [2, 1] }, tags)).not.toBe(key({ tags: [], more: [1, 2] }, tags));

  const name = rules(['$.name', '$.*'], []);
  expect(call('a', {}, name).digest).not.toEqual(call('b', {}, name).digest);
  expect(() => rules(['$'], [])).toThrow('--any-value $: expected a path into the params');
});

/** What the code of a page uses, and does not make itself. */
type Given = { upstream: DeckOptions['upstream']; file: string; tags: string[] };

/** Runs the block of the page that has an option in it, with a file of its own. */
async function runExample(option: string, { file, ...given }: Given): Promise<void> {
  const [example] = blocksOf('docs/test-kit.md').filter(({ text }) => text.includes(`  ${option}:`));
  const code = (example?.text ?? '').replace(/'[^']*\.ndjson'/, JSON.stringify(file));
  const names = { openRecording, Client, ...given };
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
  await new AsyncFunction(...Object.keys(names), code)(...Object.values(names));
}

test('the example of calls that are not quite equal runs, and does what it says', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  await runExample('anyValue', { upstream, file, tags: ['a', 'b'] });
  const recorded = readFileSync(file, 'utf8');
  await runExample('anyValue', { upstream, file, tags: ['b', 'a'] });
  expect(readFileSync(file, 'utf8')).toBe(recorded);
  vi.stubEnv('TAPEDECK_MODE', 'new_episodes');
  await runExample('anyValue', { upstream, file, tags: ['c'] });
  expect(readFileSync(file, 'utf8')).toContain('["c"]');
  vi.stubEnv('TAPEDECK_MODE', 'none');

  // The next run asks for the second call only: the first one goes, and the age is told.
  writeFileSync(file, readFileSync(file, 'utf8').replace(/"startedAt":"\d{4}/, '"startedAt":"2020'));
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    await runExample('anyValue', { upstream, file, tags: ['c'] });
    expect(stderr.mock.calls.join()).toMatch(/was recorded \d{4} days ago/);
  } finally {
    stderr.mockRestore();
  }
  expect(readFileSync(file, 'utf8')).not.toContain('["a","b"]');
});
