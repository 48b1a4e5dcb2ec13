import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type DeckOptions, openRecording } from '../../src/index.ts';
import { connect } from '../support/kit.ts';
import { say, toolCall } from '../support/modes.ts';
import { inFull } from '../support/scale.ts';
import { FAKE_SECRETS } from '../support/secrets.ts';
import { fixture, tempFolder } from '../support/tapedeck.ts';
import { WAYS } from '../support/ways.ts';

const SERVER = [process.execPath, fixture('echo.js')] as const;
const upstream = { command: SERVER[0], args: SERVER.slice(1) };
const TOKENS = FAKE_SECRETS.filter(({ rule }) => rule === 'github-token').map(({ text }) => text);
const RIGHT = TOKENS[0] ?? '';
const WRONG = TOKENS[0]?.replace(/.$/, 'Z') ?? '';
const THIRD = TOKENS[0]?.replace(/.$/, 'Y') ?? '';

beforeEach(() => {
  vi.stubEnv('CI', '');
  vi.stubEnv('TAPEDECK_MODE', '');
});
afterEach(() => vi.unstubAllEnvs());

type Way = (typeof WAYS)[keyof typeof WAYS];

/** What the client gets for each text; `null` for a miss. */
async function echoed(
  file: string,
  texts: readonly string[],
  options: DeckOptions = {},
  way: Way = WAYS['the transport'],
) {
  const deck = await openRecording(file, { upstream, ...options });
  const client = await connect(await way(deck));
  const answers: (string | null)[] = [];
  for (const text of texts) {
    const call = client.callTool({ name: 'echo', arguments: { text } });
    const { content } = (await call.catch(() => ({ content: [{ text: null }] }))) as {
      content: { text: string | null }[];
    };
    answers.push(content[0]?.text ?? null);
  }
  await client.close();
  await deck.close();
  return answers;
}

const numbered = (number: number) => `[redacted:github-token:${String(number).padStart(12, '0')}]`;

for (const [name, way] of Object.entries(WAYS)) {
  (name === 'the transport' ? test : inFull)(
    `by ${name}, calls that differ in a secret alone get each its own answer, and an unknown secret none`,
    async () => {
      const file = join(tempFolder(), 'a.ndjson');
      await echoed(file, [RIGHT, WRONG, RIGHT], {}, way);
      const recorded = readFileSync(file, 'utf8');
      for (const secret of [RIGHT, WRONG]) expect(recorded).not.toContain(secret);

      const repeat = { repeat: 'last', mode: 'none' } as const;
      expect(await echoed(file, [RIGHT, WRONG, RIGHT, THIRD, WRONG], repeat, way)).toEqual([
        numbered(1),
        numbered(2),
        numbered(1),
        null,
        numbered(2),
      ]);
      // What a server gave as a placeholder comes back as one.
      expect(await echoed(file, [numbered(2), WRONG, RIGHT], repeat, way)).toEqual([
        numbered(2),
        numbered(1),
        numbered(2),
      ]);
    },
  );
}

test('the secrets of two clients are told apart by the clients, whoever calls first', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  const calls = async (order: readonly ('a' | 'b')[], mode: 'once' | 'none') => {
    const deck = await openRecording(file, { upstream, mode });
    const secrets = { a: RIGHT, b: WRONG };
    const clients = {
      a: new Client({ name: 'a', version: '1' }),
      b: new Client({ name: 'b', version: '1' }),
    };
    for (const name of ['a', 'b'] as const) await clients[name].connect(deck.transport());
    const answers: Record<string, unknown> = {};
    for (const name of order)
      answers[name] = (
        await clients[name].callTool({ name: 'echo', arguments: { text: secrets[name] } })
      ).content;
    for (const client of Object.values(clients)) await client.close();
    await deck.close();
    return answers;
  };
  await calls(['a', 'b'], 'once');
  const replayed = { a: [{ type: 'text', text: numbered(1) }], b: [{ type: 'text', text: numbered(2) }] };
  expect(await calls(['a', 'b'], 'none')).toEqual(replayed);
  expect(await calls(['b', 'a'], 'none')).toEqual(replayed);
});

test('a secret that is new to a recording is asked live, and gets the next number', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  await echoed(file, [RIGHT]);
  const options = { mode: 'new_episodes' } as const;
  expect(await echoed(file, [RIGHT, WRONG], options)).toEqual([numbered(1), WRONG]);
  expect(readFileSync(file, 'utf8')).toContain(numbered(2));
  expect(await echoed(file, [RIGHT, WRONG], { mode: 'none' })).toEqual([numbered(1), numbered(2)]);
});

test('the placeholders of a recording are the same when it is recorded again', async () => {
  const placeholders = async (file: string) => {
    await echoed(file, [RIGHT, WRONG, 'x']);
    return readFileSync(file, 'utf8').match(/\[redacted:[^\]]*\]|"redaction":\{[^}]*\}/g);
  };
  const first = await placeholders(join(tempFolder(), 'a.ndjson'));
  expect(first).toContain(numbered(2));
  expect(await placeholders(join(tempFolder(), 'b.ndjson'))).toEqual(first);
});

inFull('a recording that is made again of an unchanged server is the same file, byte for byte', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  const texts = [RIGHT, 'x', WRONG, 'y'];
  for (const [name, way] of Object.entries(WAYS)) {
    await echoed(file, texts, { mode: 'all' }, way);
    const before = readFileSync(file, 'utf8');
    await echoed(file, texts, { mode: 'all' }, way);
    expect(readFileSync(file, 'utf8'), name).toBe(before);
  }
});

inFull(
  'rules and paths of the project and of the options count in every record mode, in decks and on the command line',
  async () => {
    const folder = tempFolder();
    writeFileSync(
      join(folder, 'tapedeck.config.json'),
      JSON.stringify({ redact: { rules: ['badge=/BADGE-\\d+/'], paths: ['$..card'] } }),
    );
    const texts = ['BADGE-12 and TICKET-34', 'BADGE-13 and TICKET-34'];
    const tests = join(folder, 'test');
    mkdirSync(tests);
    const file = (name: string) => join(tests, `${name}.ndjson`);
    const redactRule = ['ticket=/TICKET-\\d+/'];
    for (const [name, way] of Object.entries(WAYS)) {
      await echoed(file(name), texts.slice(0, 1), { redactRule }, way);
      await echoed(file(name), texts, { redactRule, mode: 'new_episodes' }, way);
      expect(await echoed(file(name), texts, { redactRule, mode: 'none' }, way)).not.toContain(null);
      await echoed(file(`${name} anew`), texts, { redactRule, mode: 'all' }, way);
    }
    for (const mode of ['once', 'new_episodes', 'all']) {
      const call = { ...toolCall(1, 'echo', { text: texts[0], card: '4711-0815' }) };
      const args = [file(mode), '--mode', mode, '--redact-rule', redactRule[0] ?? '', '--', ...SERVER];
      // The process has another folder, so it names the file; the kit finds it by itself.
      expect(
        (await say(['--config', join(folder, 'tapedeck.config.json'), ...args], [call])).answers,
      ).toHaveLength(1);
      expect(readFileSync(file(mode), 'utf8')).toMatch(/\[redacted:path:0{11}\d\]/);
    }
    for (const name of [
      ...Object.keys(WAYS).flatMap((way) => [way, `${way} anew`]),
      'once',
      'new_episodes',
      'all',
    ])
      expect(readFileSync(file(name), 'utf8'), name).not.toMatch(/BADGE-1|TICKET-3|4711/);
  },
);

test('a rule that is new leaves what was recorded before it playable, and counts for what is added', async () => {
  const file = join(tempFolder(), 'a.ndjson');
  await echoed(file, ['TICKET-1']);
  const options = { redactRule: ['ticket=/TICKET-\\d+/'] };
  expect(await echoed(file, ['TICKET-1', 'TICKET-2'], { ...options, mode: 'new_episodes' })).toEqual([
    'TICKET-1',
    'TICKET-2',
  ]);
  expect(readFileSync(file, 'utf8')).not.toContain('TICKET-2');
  expect(await echoed(file, ['TICKET-1', 'TICKET-2'], { ...options, mode: 'none' })).toEqual([
    'TICKET-1',
    '[redacted:ticket:000000000001]',
  ]);
});

test('the project says which arguments do not count', async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'tapedeck.config.json'), JSON.stringify({ ignoreTool: ['echo:$.text'] }));
  const file = join(folder, 'a.ndjson');
  await echoed(file, ['one']);
  for (const way of Object.values(WAYS)) expect(await echoed(file, ['two'], {}, way)).toEqual(['one']);
});
