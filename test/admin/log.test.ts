/** `--log json`: whatever a recorder says, also before it records, is an object a line. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sample } from '../support/scale.ts';
import { fixture, tapedeck, tempFolder } from '../support/tapedeck.ts';

const URL = 'http://127.0.0.1:1/mcp';

const STDIO = ['--', process.execPath, fixture('echo.js')];

const WRONG: [what: string, words: readonly string[], code: string, message: RegExp][] = [
  ['an option that there is not', ['record', URL, '--log=json', '--listne', 'x'], 'usage', /listne/],
  ['a wrong value', ['record', URL, '--log', 'json', '--grace', 'soon'], 'usage', /--grace/],
  ['a wrong rule by stdio', ['record', '--log', 'json', '--redact-rule', 'a=/(/', ...STDIO], 'usage', /a/],
  [
    'a store that cannot be',
    ['record', '--log', 'json', '--db', 'postgres://x/y', ...STDIO],
    'usage',
    /engine/,
  ],
  ['nothing to record', ['run', '--log', 'json', '--', 'no-such-client'], 'usage', /no-such-client/],
];
test.each(sample(WRONG))('%s is told as JSON before anything starts', async (_, words, code, message) => {
  const { code: exit, stdout, stderr } = await tapedeck(words).ended;
  expect([exit, stdout.length]).toEqual([2, 0]);
  expect(JSON.parse(stderr)).toEqual({
    ...{ time: expect.stringMatching(/^\d{4}-.*Z$/), level: 'error', event: 'failed', code },
    message: expect.stringMatching(message),
  });
});

test('so is a configuration file that is broken, or that itself asks for JSON', async () => {
  const file = join(tempFolder(), 'tapedeck.json');
  writeFileSync(file, '{ "log": ');
  const broken = await tapedeck(['record', URL, '--config', file, '--log', 'json']).ended;
  expect(JSON.parse(broken.stderr)).toMatchObject({
    code: 'corrupt',
    message: expect.stringContaining('.json:1:'),
  });
  writeFileSync(file, '{ "log": { "format": "json" } }');
  const wrong = await tapedeck(['record', URL, '--config', file, '--grace', 'soon']).ended;
  expect(JSON.parse(wrong.stderr)).toMatchObject({ code: 'usage', level: 'error' });
});

test('an option of the server that is called the same asks for nothing', async () => {
  const { stderr } = await tapedeck(['record', '--max-frame', 'x', ...STDIO, '--log', 'json']).ended;
  expect(stderr).toMatch(/^tapedeck: /);
});
