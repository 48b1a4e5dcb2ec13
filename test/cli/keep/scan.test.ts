import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf } from '../../support/documents.ts';
import { startServer } from '../../support/http.ts';
import { recordUrl } from '../../support/http-record.ts';
import { inFull } from '../../support/scale.ts';
import { FAKE_KEY, FAKE_SECRETS } from '../../support/secrets.ts';
import { send } from '../../support/send.ts';
import { BIN, ROOT, record, tapedeckInProcess, tempFolder, tempStore } from '../../support/tapedeck.ts';

const TOKEN = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';

function call(args: object): string {
  return `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: args } })}\n`;
}

async function recordLines(lines: string, options: readonly string[] = []): Promise<string> {
  const db = tempStore();
  const run = record(db, ['cat.js'], options);
  run.child.stdin.end(lines);
  await run.ended;
  return db;
}

async function scan(...args: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess(['scan', ...args]);
  return { code, stderr, lines: stdout.toString().split('\n').slice(0, -1) };
}

test('nothing is found in what was redacted when it was recorded', async () => {
  const db = await recordLines(FAKE_SECRETS.map(({ text }) => call({ text, other: { text } })).join(''));
  expect(await scan('--db', db)).toEqual({
    code: 0,
    lines: [],
    stderr: 'tapedeck: no secrets found in 1 session\n',
  });
});

test('what was recorded with --no-redact is found: session, frame, place, rule, and never the secret', async () => {
  const db = await recordLines(call({ a: [1, { 'b/c': TOKEN }], password: 'hunter2' }), ['--no-redact']);
  const { code, lines, stderr } = await scan('latest', '--db', db, '--json');
  expect(code).toBe(1);
  const session = expect.stringMatching(/^[0-9a-f]{12}$/);
  expect(lines.map((line) => JSON.parse(line))).toEqual(
    ['stdin', 'stdout'].flatMap((channel, i) => [
      { session, seq: i + 1, channel, place: '/params/arguments/a/1/b~1c', rule: 'github-token' },
      { session, seq: i + 1, channel, place: '/params/arguments/password', rule: 'secret-value' },
    ]),
  );
  expect(stderr).toMatch(/^tapedeck: 4 secrets found in 1 session; redact them with: tapedeck redact/);
  const plain = await scan('latest', '--db', db);
  expect(plain.lines[0]).toMatch(
    /^[0-9a-f]{12} {2}frame 1 {2}stdin {2}\/params\/arguments\/a\/1\/b~1c {2}github-token$/,
  );
  expect(plain.lines.join()).not.toContain(TOKEN);
});

test('each rule finds its secret in a store and in a text recording', async () => {
  const db = await recordLines(
    FAKE_SECRETS.map(({ text }) => call({ text })).join('') + FAKE_KEY.replace(/^/, 'no json\n'),
    ['--no-redact'],
  );
  const file = `${db}.ndjson`;
  await tapedeckInProcess(['export', '--db', db, '--output', file]);
  for (const args of [['--db', db], [file]]) {
    const { lines } = await scan(...args, '--json');
    const rules = new Set(lines.map((line) => JSON.parse(line).rule));
    for (const { rule } of FAKE_SECRETS) expect(rules, args[0]).toContain(rule);
  }
  const { lines } = await scan(
    dirname(file),
    '--json',
    '--no-redact-rule',
    'jwt',
    '--redact-rule',
    'named=/"x"/',
  );
  const found = lines.map((line) => JSON.parse(line));
  expect(found.some(({ rule }) => rule === 'jwt')).toBe(false);
  expect(found[0]).toMatchObject({ file, line: 2 });
});

test('secrets in HTTP heads are found', async () => {
  const db = tempStore();
  const { url } = await startServer((_request, response) => void response.end('{}'));
  const { url: proxy, stop } = await recordUrl(`${url}/mcp`, { db, args: ['--no-redact'] });
  await (
    await send(new URL('/mcp?api_key=abc', proxy), {
      headers: { Authorization: 'Bearer abc' },
      body: { method: 'x' },
    })
  ).ended;
  await stop();
  const { lines } = await scan('--db', db, '--json');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { http: 1, place: 'path', rule: 'url-secret' },
    { http: 1, place: 'request header Authorization', rule: 'http-header' },
  ]);
});

test('the recordings of this repository have none', async () => {
  expect((await scan(join(ROOT, 'recordings'))).code).toBe(0);
});

test('a file that is not there is refused', async () => {
  const { code, stderr } = await scan('nowhere/at-all.ndjson');
  expect([code, stderr]).toEqual([
    2,
    'tapedeck: Expected a file or folder, but there is no nowhere/at-all.ndjson.\n',
  ]);
});

inFull(
  'the pre-commit hook of the docs refuses a commit with a secret, and lets one without pass',
  async () => {
    const hook = blocksOf('docs/secrets.md').find(({ text }) => text.startsWith('#!/bin/sh'))?.text ?? '';
    expect(hook).toContain('npx mcp-tapedeck scan');
    const folder = tempFolder();
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    // As npx would start the package that its first argument names.
    writeFileSync(join(bin, 'npx'), `#!/bin/sh\nshift\nexec "${process.execPath}" "${BIN}" "$@"\n`);
    chmodSync(join(bin, 'npx'), 0o755);
    const repository = join(folder, 'repository');
    mkdirSync(repository);
    const env = {
      ...process.env,
      PATH: `${bin}:${process.env['PATH']}`,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
    };
    const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, env, stdio: 'pipe' });
    git('init', '-q');
    git('config', 'user.email', 'someone@example.com');
    git('config', 'user.name', 'Someone');
    writeFileSync(join(repository, '.git/hooks/pre-commit'), hook, { mode: 0o755 });
    for (const [options, passes] of [
      [['--no-redact'], false],
      [[], true],
    ] as const) {
      const db = await recordLines(call({ text: TOKEN }), options);
      const file = join(repository, 'a recording.ndjson');
      await tapedeckInProcess(['export', '--db', db, '--output', file]);
      git('add', '.');
      if (passes) git('commit', '-q', '-m', 'A recording');
      else expect(() => git('commit', '-q', '-m', 'A recording')).toThrow(/github-token/);
    }
    expect(git('log', '--oneline').toString().trim().split('\n')).toHaveLength(1);
  },
);
