import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { recordingPath } from '../../src/index.ts';
import { EVERYTHING_STDIO } from '../support/kit.ts';
import { inFull } from '../support/scale.ts';
import { fixture, ROOT, start, tempFolder } from '../support/tapedeck.ts';

type Report = {
  testResults: { assertionResults: { fullName: string; status: string; failureMessages: string[] }[] }[];
};

const HEAD = `
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { test } from 'mcp-tapedeck/vitest';
import { describe, expect } from 'vitest';
async function ask(deck, message = 'Hello, tape.') {
  const client = new Client({ name: 'inner', version: '1.0.0' });
  await client.connect(deck.transport());
  return client.callTool({ name: 'echo', arguments: { message } });
}
`;

/** A project with these test files, and recordings for the tests named. Runs it, and gives what became of each test. */
async function run(
  files: Record<string, string>,
  recorded: readonly (readonly [file: string, ...names: string[]])[],
) {
  const folder = tempFolder();
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'dir');
  for (const [name, source] of Object.entries(files)) writeFileSync(join(folder, name), withPaths(source));
  for (const [file, ...names] of recorded) {
    const path = recordingPath(join(folder, file), ...names);
    mkdirSync(dirname(path), { recursive: true });
    copyFileSync(EVERYTHING_STDIO, path);
  }
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--root', folder, '--reporter', 'json'];
  const { code, stdout, stderr } = await start(process.execPath, args, {
    cwd: folder,
    env: { NO_COLOR: '1', CI: '', TAPEDECK_MODE: '' },
  }).ended;
  if (stdout.length === 0) throw new Error(stderr);
  const { testResults } = JSON.parse(stdout.toString()) as Report;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const recordings = join(folder, '__recordings__/a.test');
  return {
    code,
    stderr,
    files: Object.fromEntries(
      readdirSync(recordings).map((name) => [name, readFileSync(join(recordings, name), 'utf8')]),
    ),
    results: Object.fromEntries(
      tests.map(({ fullName, status, failureMessages }) => [
        fullName,
        (status === 'failed' ? [status, ...failureMessages] : [status]).join('\n'),
      ]),
    ),
  };
}

/** The package is this clone, which has no node_modules of itself. */
function withPaths(source: string): string {
  return (HEAD + source).replaceAll('mcp-tapedeck/vitest', join(ROOT, 'dist/vitest.js'));
}

inFull('concurrent tests in several files each find their own recording, in suites too', async () => {
  const source = `
    describe.concurrent('the server', () => {
      for (const word of ['ene', 'mene', 'muh'])
        test('says ' + word, async ({ deck }) => {
          expect((await ask(deck)).content[0].text).toBe('Echo: Hello, tape.');
          await ask(deck);
          expect(deck.calls).toHaveLength(4);
        });
      describe('within', () => {
        test('says "Ä/ß?"', async ({ deck }) => void (await ask(deck)));
      });
    });
    test('no recording is left over', ({ orphans }) => expect(orphans).toEqual([]));
  `;
  const names = [
    ...['ene', 'mene', 'muh'].map((word) => ['the server', `says ${word}`]),
    ['the server', 'within', 'says "Ä/ß?"'],
  ];
  const files = ['a.test.js', 'b.test.js', 'c.test.js'];
  const { code, results } = await run(
    Object.fromEntries(files.map((file) => [file, source])),
    files.flatMap((file) => names.map((of) => [file, ...of] as const)),
  );
  expect(results).toEqual({
    'the server says ene': 'passed',
    'the server says mene': 'passed',
    'the server says muh': 'passed',
    'the server within says "Ä/ß?"': 'passed',
    'no recording is left over': 'passed',
  });
  expect(code).toBe(0);
});

inFull('what goes wrong is told by the test that it concerns', async () => {
  const source = `
    test('misses', async ({ deck }) => { await ask(deck, 'x').catch(() => {}); });
    describe('lenient', () => {
      test.override({ deckOptions: { failOnMiss: false } });
      test('misses too', async ({ deck }) => { await ask(deck, 'x').catch(() => {}); });
    });
    test('is not recorded', async ({ deck }) => { await ask(deck); });
    test('Has one name', async ({ deck }) => { await ask(deck); });
    test('has ONE name?', async ({ deck }) => { await ask(deck); });
    describe('named', () => {
      test.override({ deckOptions: { recording: ${JSON.stringify(EVERYTHING_STDIO)} } });
      test('has one: name', async ({ deck }) => { await ask(deck); });
    });
    test('has no deck', () => {});
    test('is skipped', async ({ deck, skip }) => { await ask(deck, 'x').catch(() => {}); skip(); });
    test('is retried', { retry: 1 }, async ({ deck, task }) => {
      await ask(deck);
      expect(deck.calls).toHaveLength(2);
      expect(task.result.retryCount).toBe(1);
    });
    test('leaves its client open, in the middle of a call', async ({ deck }) => {
      void ask(deck).catch(() => {});
      deck.command();
      await deck.listen();
    });
    test('orphans', ({ orphans }) => { throw new Error(orphans.join()); });
  `;
  const names = ['misses', 'has one name', 'is skipped', 'is retried', 'was renamed', 'lenient misses too'];
  const { code, results } = await run({ 'a.test.js': source }, [
    ...names.map((name) => ['a.test.js', name] as const),
    ['a.test.js', 'lenient', 'misses too'],
    ['a.test.js', 'leaves its client open, in the middle of a call'],
  ]);
  expect(code).toBe(1);
  const { misses, orphans, ...others } = results;
  expect(misses).toMatch(
    /^failed\n.*1 call has no answer in the recording\.\n.*"echo": the arguments differ/,
  );
  expect(orphans).toMatch(/was-renamed\.ndjson/);
  expect(orphans).toMatch(/lenient-misses-too\.ndjson/);
  expect(others).toEqual({
    'lenient misses too': 'passed',
    'is not recorded': expect.stringMatching(
      /^failed\n.*There is no recording at .*__recordings__.a\.test.is-not-recorded\.ndjson/,
    ),
    'Has one name': expect.stringMatching(
      /^failed\n.*The tests "Has one name" and "has ONE name\?" would share the recording has-one-name\.ndjson\. Rename/,
    ),
    'has ONE name?': expect.stringMatching(
      /^failed\n.*The tests "has ONE name\?" and "Has one name" would share/,
    ),
    'named has one: name': 'passed',
    'has no deck': 'passed',
    'is skipped': 'skipped',
    'is retried': 'passed',
    'leaves its client open, in the middle of a call': 'passed',
  });
});

inFull('what a failing test recorded is not stored, so a retry and the next run record anew', async () => {
  const upstream = JSON.stringify({ command: process.execPath, args: [fixture('echo.js')] });
  const source = `
    import { readFileSync } from 'node:fs';
    const say = async (deck, text) => {
      const client = new Client({ name: 'inner', version: '1.0.0' });
      await client.connect(deck.transport());
      return (await client.callTool({ name: 'echo', arguments: { text } })).content[0].text;
    };
    test.override({ deckOptions: { upstream: ${upstream}, mode: 'once' } });
    test('is retried', { retry: 1 }, async ({ deck, task }) => {
      expect(await say(deck, 'try ' + task.result.retryCount)).toBe('try 1');
    });
    test('fails', async ({ deck }) => { await say(deck, 'half'); throw new Error('for some reason'); });
    test.fails('is to fail', async ({ deck }) => { expect(await say(deck, 'as meant')).toBe('other'); });
    test('is skipped amid', async ({ deck, skip }) => { await say(deck, 'half'); skip(); });
    describe('anew', () => {
      test.override({ deckOptions: { upstream: ${upstream}, mode: 'all' } });
      test('keeps the old', async ({ deck }) => { await say(deck, 'half'); expect(1).toBe(2); });
    });
  `;
  const { results, files, stderr } = await run({ 'a.test.js': source }, [
    ['a.test.js', 'anew', 'keeps the old'],
  ]);
  expect(Object.entries(results).map(([name, result]) => [name, result.split('\n')[0]])).toEqual([
    ['is retried', 'passed'],
    ['fails', 'failed'],
    ['is to fail', 'passed'],
    ['is skipped amid', 'skipped'],
    ['anew keeps the old', 'failed'],
  ]);
  expect(Object.keys(files).toSorted()).toEqual([
    'anew.keeps-the-old.ndjson',
    'is-retried.ndjson',
    'is-to-fail.ndjson',
  ]);
  expect(files['is-retried.ndjson']).toContain('try 1');
  expect(files['is-retried.ndjson']).not.toContain('try 0');
  expect(files['anew.keeps-the-old.ndjson']).toBe(readFileSync(EVERYTHING_STDIO, 'utf8'));
  expect(stderr).toContain('"fails" has failed, so what it recorded was not stored');
});

inFull(
  'tests that share a recording make it together, in each record mode, and replay it alone',
  async () => {
    const upstream = JSON.stringify({ command: process.execPath, args: [fixture('echo.js')] });
    const source = (mode: string) => `
    const say = async (deck, text) => {
      const client = new Client({ name: 'inner', version: '1.0.0' });
      await client.connect(deck.transport());
      return (await client.callTool({ name: 'echo', arguments: { text } })).content[0].text;
    };
    const recording = new URL('__recordings__/a.test/shared-${mode}.ndjson', import.meta.url);
    test.override({ deckOptions: { upstream: ${upstream}, mode: '${mode}', recording } });
    for (const word of ['one', 'two', 'three'])
      test('${mode} says ' + word, async ({ deck }) => { expect(await say(deck, word)).toBe(word); });
    test('${mode} fails', async ({ deck }) => { await say(deck, 'half'); throw new Error('for some reason'); });
    describe('later', () => {
      test.override({ deckOptions: { mode: 'none', recording } });
      for (const word of ['three', 'one'])
        test('${mode} replays ' + word, async ({ deck }) => { expect(await say(deck, word)).toBe(word); });
    });
  `;
    const { results, files } = await run({ 'a.test.js': source('once'), 'b.test.js': source('all') }, [
      ['a.test.js', 'other'],
      ['a.test.js', 'shared all'],
    ]);
    const failed = Object.entries(results).filter(([, result]) => result !== 'passed');
    expect(failed.map(([name]) => name).toSorted()).toEqual(['all fails', 'once fails']);
    for (const mode of ['once', 'all']) {
      const recorded = files[`shared-${mode}.ndjson`];
      for (const word of ['one', 'two', 'three']) expect(recorded).toContain(`"text":"${word}"`);
      expect(recorded).not.toContain('half');
      expect(recorded).not.toContain('Hello, tape.');
    }
  },
);

inFull('a test that has failed with faults says by which seed they come again', async () => {
  const source = `
    test.override({ deckOptions: { faults: ['tool=echo tool-error("no")'] } });
    test('fails', async ({ deck }) => { expect((await ask(deck)).isError).toBeUndefined(); });
    test('is skipped', async ({ deck, skip }) => { await ask(deck); skip(); });
    test('passes', async ({ deck }) => { expect((await ask(deck)).isError).toBe(true); });
  `;
  const names = ['fails', 'is skipped', 'passes'];
  const { results, stderr } = await run(
    { 'a.test.js': source },
    names.map((name) => ['a.test.js', name] as const),
  );
  expect(results).toMatchObject({ 'is skipped': 'skipped', passes: 'passed' });
  expect(stderr).toContain('tapedeck: "fails" has failed. Faults were put in on purpose, seed 0.');
  expect(stderr).toMatch(/fails\.ndjson --fault 'tool=echo tool-error\("no"\)' --seed 0 --fault-plan/);
  expect(stderr).not.toMatch(/"(?:passes|is skipped)" has failed/);
});
