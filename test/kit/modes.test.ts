import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Deck, type DeckOptions, openRecording } from '../../src/index.ts';
import { connect, EVERYTHING_STDIO, echo, openDeck } from '../support/kit.ts';
import { inFull } from '../support/scale.ts';
import { EVERYTHING, startEverything } from '../support/servers.ts';
import { tempFolder, tempStore } from '../support/tapedeck.ts';
import { WAYS } from '../support/ways.ts';

const UPSTREAM = { command: process.execPath, args: [EVERYTHING, 'stdio'] };
const NOWHERE = { command: 'tapedeck-test-no-such-command' };

beforeEach(() => {
  vi.stubEnv('CI', '');
  vi.stubEnv('TAPEDECK_MODE', '');
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

const newFile = () => join(tempFolder(), 'made', 'on the way', 'new.ndjson');
const said = (text: string) => ({ content: [{ type: 'text', text: `Echo: ${text}` }] });

/** Opens, says the words by the way, closes; gives the deck. */
async function sayAll(
  file: string,
  options: DeckOptions,
  words: readonly string[],
  open: (deck: Deck) => Promise<Transport> = async (deck) => deck.transport(),
): Promise<Deck> {
  const deck = await openRecording(file, options);
  const client = await connect(await open(deck));
  for (const word of words) expect(await echo(client, word)).toEqual(said(word));
  await client.close();
  await deck.close();
  return deck;
}

for (const [name, open] of Object.entries(WAYS)) {
  (name === 'the transport' ? test : inFull)(
    `by ${name}, what is recorded once is replayed from then on`,
    async () => {
      const file = newFile();
      const first = await sayAll(file, { upstream: UPSTREAM }, ['one', 'two'], open);
      expect(first.mode).toBe('once');
      expect(first.calls.map(({ target, outcome, frame }) => [target, outcome, frame])).toEqual([
        [null, 'ok', null],
        ['echo', 'ok', null],
        ['echo', 'ok', null],
      ]);
      first.assertNoMisses();
      first.assertAllUsed();

      const second = await sayAll(file, { upstream: NOWHERE }, ['one', 'two'], open);
      second.assertAllUsed();
      second.assertCalled('tools/call', {}, { times: 2 });
      expect(second.calls.every(({ frame }) => frame !== null)).toBe(true);

      const before = readFileSync(file, 'utf8');
      const added = await sayAll(file, { mode: 'new_episodes', upstream: UPSTREAM }, ['one', 'three'], open);
      added.assertNoMisses();
      expect(added.unused.map(({ params }) => params)).toMatchObject([{ arguments: { message: 'two' } }]);
      const after = readFileSync(file, 'utf8');
      expect(after.startsWith(before)).toBe(true);
      expect(after).toContain('Echo: three');

      await sayAll(file, { mode: 'all', upstream: UPSTREAM }, ['four'], open);
      const anew = readFileSync(file, 'utf8');
      expect(anew).toContain('Echo: four');
      expect(anew).not.toContain('Echo: one');
      (await sayAll(file, {}, ['four'], open)).assertAllUsed();
    },
  );
}

inFull('a real server by HTTP is recorded, with the headers that it wants', async () => {
  const url = await startEverything('streamableHttp');
  const file = newFile();
  const upstream = { url, headers: { 'X-Test': 'yes' } };
  await sayAll(file, { upstream }, ['by HTTP']);
  await sayAll(file, { upstream, mode: 'new_episodes' }, ['by HTTP', 'more'], WAYS['a command line']);
  const deck = await sayAll(file, { upstream: 'http://127.0.0.1:9/mcp' }, ['by HTTP', 'more']);
  deck.assertAllUsed();
  expect(readFileSync(file, 'utf8')).not.toContain('X-Test');
});

inFull('a session of the store is recorded once, too', async () => {
  const db = tempStore();
  await sayAll(EVERYTHING_STDIO, {}, ['Hello, tape.']);
  const { openStore } = await import('../../src/store/file/open.ts');
  openStore(db).close();
  await sayAll('fresh', { db, upstream: UPSTREAM }, ['stored']);
  for (const open of Object.values(WAYS))
    (await sayAll('fresh', { db, upstream: NOWHERE }, ['stored'], open)).assertAllUsed();
});

test('TAPEDECK_MODE comes before CI, the option before both, and a typing error is told', async () => {
  const modeOf = async (options: DeckOptions) => (await openDeck(EVERYTHING_STDIO, options)).mode;
  const open = { mode: undefined, upstream: UPSTREAM };
  expect(await modeOf(open)).toBe('once');
  for (const ci of ['true', '1', 'yes']) {
    vi.stubEnv('CI', ci);
    expect(await modeOf(open)).toBe('none');
  }
  for (const ci of ['false', '0', '']) {
    vi.stubEnv('CI', ci);
    expect(await modeOf(open)).toBe('once');
  }
  vi.stubEnv('CI', 'true');
  vi.stubEnv('TAPEDECK_MODE', 'new_episodes');
  expect(await modeOf(open)).toBe('new_episodes');
  expect(await modeOf({ ...open, mode: 'none' })).toBe('none');
  // A whole run is recorded anew, and some of its tests have nothing to record from.
  expect(await modeOf({ mode: undefined })).toBe('none');
  vi.stubEnv('TAPEDECK_MODE', 'never');
  await expect(openRecording(EVERYTHING_STDIO, open)).rejects.toThrow(
    'Expected none, once, new_episodes, all as `TAPEDECK_MODE`, got "never".',
  );
});

test('without a recording, and without what would make one, the error says what is lacking', async () => {
  const file = newFile();
  await expect(openRecording(file)).rejects.toThrow(
    `There is no recording at ${file}. To record one, name the real server in the option \`upstream\`.`,
  );
  await expect(openRecording(file, { mode: 'none', upstream: UPSTREAM })).rejects.toThrow(
    `There is no recording at ${file}. To record one, run the test with TAPEDECK_MODE=once; mode none makes none.`,
  );
  await expect(openRecording(EVERYTHING_STDIO, { mode: 'all' })).rejects.toThrow(
    /Expected the option `upstream`, the server that mode all asks/,
  );
  for (const upstream of ['ftp://x', 'no url', { url: 'file:///etc' }, {} as never, { command: '' }])
    await expect(openRecording(file, { upstream })).rejects.toThrow(/as the option `upstream`, got/);
  expect(existsSync(file)).toBe(false);
});

test('a server that does not answer is a miss, and nothing is recorded', async () => {
  for (const [name, open] of Object.entries(WAYS)) {
    const file = newFile();
    const deck = await openDeck(file, { mode: 'once', upstream: NOWHERE });
    await expect(open(deck).then(connect), name).rejects.toThrow(
      /cannot start `tapedeck-test-no-such-command`/,
    );
    await deck.close();
    expect(deck.misses, name).toMatchObject([{ reason: 'live-failed', call: { method: 'initialize' } }]);
    expect(() => deck.assertNoMisses()).toThrow(/no answer from the live server: cannot start/);
    expect(existsSync(file), name).toBe(false);
  }
});

inFull('clocks that a test replaces do not hold up a recording', async () => {
  vi.useFakeTimers();
  const file = newFile();
  const deck = await openRecording(file, { upstream: UPSTREAM });
  const client = await connect(deck.transport());
  expect(await echo(client, 'in no time')).toEqual(said('in no time'));
  await expect(client.getPrompt({ name: 'no-such-prompt' })).rejects.toThrow(/not found/);
  await client.close();
  await deck.close();
  vi.useRealTimers();
  expect(readFileSync(file, 'utf8')).toContain('Prompt no-such-prompt not found');
});

inFull('many decks record at once, each into its own file', async () => {
  const folder = tempFolder();
  const words = ['a', 'b', 'c', 'd'];
  const file = (word: string) => join(folder, `${word}.ndjson`);
  await Promise.all(words.map((word) => sayAll(file(word), { upstream: UPSTREAM }, [word, `${word}!`])));
  const decks = await Promise.all(words.map((word) => sayAll(file(word), {}, [word, `${word}!`])));
  for (const deck of decks) deck.assertAllUsed();
});

test('a deck that is closed in the middle of a call ends the real server, and keeps what was answered', async () => {
  const file = newFile();
  const deck = await openRecording(file, { upstream: UPSTREAM });
  const client = await connect(deck.transport());
  expect(await echo(client, 'whole')).toEqual(said('whole'));
  const long = { name: 'trigger-long-running-operation', arguments: { duration: 600, steps: 2 } };
  const failed = expect(client.callTool(long)).rejects.toThrow(/closed/i);
  await deck.close();
  await failed;
  expect(readFileSync(file, 'utf8')).not.toContain('600');
  (await sayAll(file, {}, ['whole'])).assertAllUsed();
});

test('a recording that cannot be stored is told when the deck is closed', async () => {
  const file = join(tempFolder(), 'x.ndjson');
  const deck = await openRecording(file, { upstream: UPSTREAM });
  const client = await connect(deck.transport());
  await echo(client, 'lost');
  const { mkdirSync } = await import('node:fs');
  mkdirSync(file);
  await client.close();
  await expect(deck.close()).rejects.toThrow(/x\.ndjson cannot be written/);
});
