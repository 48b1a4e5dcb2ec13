import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Deck, type DeckOptions, openRecording, type RecordMode } from '../../src/index.ts';
import { connect } from '../support/kit.ts';
import { inFull } from '../support/scale.ts';
import { fixture, tempFolder, tempStore } from '../support/tapedeck.ts';
import { WAYS } from '../support/ways.ts';

const upstream = { command: process.execPath, args: [fixture('echo.js')] };

beforeEach(() => {
  vi.stubEnv('CI', '');
  vi.stubEnv('TAPEDECK_MODE', '');
});
afterEach(() => vi.unstubAllEnvs());

type Way = (typeof WAYS)[keyof typeof WAYS];

/** Calls the echo server by a deck that is open still. */
async function say(
  file: string,
  words: readonly string[],
  options: DeckOptions,
  way: Way = WAYS['the transport'],
) {
  const deck = await openRecording(file, { upstream, ...options });
  const client = await connect(await way(deck));
  await Promise.all(words.map((text) => client.callTool({ name: 'echo', arguments: { text } })));
  await client.close();
  return deck;
}

const texts = (deck: Deck) => deck.unused.flatMap(({ target, params }) => (target ? [params] : []));

for (const [name, way] of Object.entries(WAYS)) {
  (name === 'the transport' ? test : inFull)(
    `by ${name}, what a discarded deck recorded is not stored, and the old recording stays`,
    async () => {
      const file = join(tempFolder(), 'a.ndjson');
      await (await say(file, ['half'], {}, way)).discard();
      expect(existsSync(file)).toBe(false);

      await (await say(file, ['old'], {}, way)).close();
      const before = readFileSync(file, 'utf8');
      for (const mode of ['all', 'new_episodes'] as const) {
        const deck = await say(file, ['new'], { mode }, way);
        await deck.discard();
        await deck.close();
        expect(readFileSync(file, 'utf8'), mode).toBe(before);
      }
      // What is closed is closed.
      const closed = await say(file, ['more'], { mode: 'new_episodes' }, way);
      await closed.close();
      await closed.discard();
      expect(readFileSync(file, 'utf8').startsWith(before)).toBe(true);
      expect(readFileSync(file, 'utf8')).toContain('more');
    },
  );
}

inFull('a session of the store stays as it was, too', async () => {
  const db = tempStore();
  const replayed = async () => {
    const deck = await openRecording('it', { db });
    await deck.close();
    return texts(deck);
  };
  const change = async (mode: RecordMode, word: string) => say('it', [word], { db, mode });
  await (await change('once', 'lost')).discard();
  await expect(replayed()).rejects.toThrow(/no session/i);
  await (await change('once', 'kept')).close();
  const before = await replayed();
  await (await change('all', 'lost')).discard();
  await (await change('new_episodes', 'lost')).discard();
  expect(await replayed()).toEqual(before);
});

test('a deck that is never closed has stored nothing', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  const deck = await say(file, ['word'], {});
  expect(existsSync(file)).toBe(false);
  await deck.close();
  expect(existsSync(file)).toBe(true);
});

test('a new recording has the rights of any new file, for it is made to be committed', async () => {
  const folder = tempFolder();
  const file = join(folder, 'a.ndjson');
  await (await say(file, ['word'], {})).close();
  writeFileSync(join(folder, 'any'), '');
  expect(statSync(file).mode).toBe(statSync(join(folder, 'any')).mode);
});

test('time never runs back in the recording of calls that were open at one time', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  const words = Array.from({ length: 20 }, (_, i) => `word ${i}`);
  await (await say(file, words, {})).close();
  const lines = readFileSync(file, 'utf8').trim().split('\n').slice(1);
  const times = lines.map((line) => JSON.parse(line).ms as number);
  expect(times.filter((ms) => ms < 0)).toEqual([]);
});

inFull('calls that nobody asks for any more are removed, and every other line stays', async () => {
  for (const [name, way] of Object.entries(WAYS)) {
    const file = join(tempFolder(), 'a.ndjson');
    await (await say(file, ['one', 'two', 'three'], {}, way)).close();
    const before = readFileSync(file, 'utf8').split('\n');
    const options = { mode: 'none', pruneUnused: true } as const;
    await (await say(file, ['one', 'three'], options, way)).discard();
    expect(readFileSync(file, 'utf8').split('\n'), name).toEqual(before);
    await (await say(file, ['one', 'three'], options, way)).close();
    const after = readFileSync(file, 'utf8').split('\n');
    expect(after, name).toEqual(before.filter((line) => !line.includes('two')));
    await (await openRecording(file, options)).close();
    expect(readFileSync(file, 'utf8').split('\n'), name).toEqual(after);
    (await say(file, ['one', 'three'], { mode: 'none' }, way)).assertAllUsed();
  }
});

test('a recording that is older than it may be is told once, with what records it again', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  await (await say(file, ['word'], {})).close();
  const old = readFileSync(file, 'utf8').replace(/"startedAt":"\d{4}/, '"startedAt":"2020');
  writeFileSync(file, old);
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const said = () =>
      stderr.mock.calls.map(([text]) => String(text)).filter((text) => text.includes('recorded'));
    vi.stubEnv('CI', 'true');
    await (await openRecording(file, { upstream })).close();
    expect(said()).toEqual([]);
    vi.stubEnv('CI', '');
    await (await openRecording(file, { upstream })).close();
    await (await openRecording(file, { upstream, maxAge: '1d' })).close();
    expect(said()).toEqual([
      expect.stringMatching(
        /^tapedeck: .*a\.ndjson was recorded \d{4} days ago; TAPEDECK_MODE=all records it again\.\n$/,
      ),
    ]);
    await expect(openRecording(file, { maxAge: 'long' })).rejects.toThrow('Expected a time after `maxAge`');
  } finally {
    stderr.mockRestore();
  }
});
