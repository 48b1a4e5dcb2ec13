/** Every example of every `--help` is run, in a folder that has what the examples name. */

import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Argv, CommandModule } from 'yargs';
import { COMMANDS } from '../../src/cli/commands.ts';
import { sample } from '../support/scale.ts';
import { BIN, fixture, ROOT, start, tapedeckInProcess, tempFolder, until } from '../support/tapedeck.ts';

/** The command lines of the examples, as they stand in the help, with `tapedeck` for `$0`. */
async function examplesOf(load: () => Promise<unknown>): Promise<string[]> {
  const { builder } = (await load()) as CommandModule;
  const found: string[] = [];
  const args: Argv = new Proxy({} as Argv, {
    get: (_, name) => (first: unknown) => {
      if (name === 'example') found.push(String(first).replaceAll('$0', 'tapedeck'));
      return args;
    },
  });
  if (typeof builder === 'function') builder(args);
  return found;
}

const EXAMPLES = (await Promise.all(Object.values(COMMANDS).map(examplesOf))).flat();
const RECORDINGS = join(ROOT, 'recordings');

function script(path: string, text: string): void {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
}

function environmentOf(folder: string): Record<string, string> {
  return {
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, '.config'),
    XDG_DATA_HOME: join(folder, '.local/share'),
    TAPEDECK_DB: join(folder, 'r.db'),
    PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`,
  };
}

function git(cwd: string, ...args: string[]): void {
  const { status, stderr } = spawnSync('git', args, { cwd });
  expect(status, String(stderr)).toBe(0);
}

/** Sessions and files of the names that examples use, clients' configs, and programs that stand for servers. */
async function prepare(folder: string): Promise<void> {
  const env = environmentOf(folder);
  for (const name of ['bin', 'test', '.cursor']) mkdirSync(join(folder, name));
  cpSync(RECORDINGS, join(folder, 'recordings'), { recursive: true });
  const recording = join(RECORDINGS, 'everything-stdio.ndjson');
  for (const name of [
    'session',
    'before',
    'a',
    'b',
    'recordings/a',
    'recordings/b',
    'recordings/search',
    'test/search',
    'test/staging',
  ])
    cpSync(recording, join(folder, `${name}.ndjson`));
  const others = { 'calculator.vcr': 'agent-vcr-python.vcr', 'trace.jsonl': 'mcpsnoop.jsonl' };
  for (const [name, from] of Object.entries(others))
    cpSync(fixture(`other-tools/${from}`), join(folder, name));
  script(join(folder, 'bin/tapedeck'), `exec '${process.execPath}' '${BIN}' "$@"`);
  for (const name of ['server', 'bin/npx', 'bin/python', 'bin/uvx'])
    script(join(folder, name), `exec '${process.execPath}' '${fixture('echo.js')}'`);
  script(join(folder, 'bin/jq'), 'exec cat');
  script(join(folder, 'bin/claude'), 'exec true');
  writeFileSync(join(folder, 'client.js'), '');
  script(join(folder, 'bin/ssh'), 'shift; exec "$@"');
  writeFileSync(join(folder, 'other.json'), '{}');
  const config = JSON.stringify({
    mcpServers: { github: { command: 'npx', args: [] }, docs: { url: 'http://127.0.0.1:9/mcp' } },
  });
  for (const name of ['.cursor/mcp.json', '.claude.json', 'mcp.json', '.mcp.json'])
    writeFileSync(join(folder, name), config);
  git(folder, 'init', '-q');
  git(folder, 'add', 'recordings');
  git(folder, '-c', 'user.name=t', '-c', 'user.email=t@localhost', 'commit', '-qm', 'recordings');
  git(folder, 'update-ref', 'refs/remotes/origin/main', 'HEAD');
  // A run of a client.
  const server = join(folder, 'server');
  spawnSync(process.execPath, [BIN, 'record', '--label', 'run=nightly', '--', server], { env, input: '' });
  const http = join(RECORDINGS, 'everything-http.ndjson');
  for (const name of ['demo', 'staging', 'monday', 'tuesday', 'http']) {
    const file = name === 'http' ? http : recording;
    await tapedeckInProcess(['import', file, '--name', name], { env });
  }
  const store = new Database(env['TAPEDECK_DB'] ?? '');
  // Ids are random, and no other one may begin like the one that the examples name.
  store.exec(
    "UPDATE session SET id = printf('%012x', number); UPDATE session SET id = '4f2a00000001' WHERE name = 'monday'",
  );
  // The newest session is one by HTTP: examples that name none are of such.
  store.exec('UPDATE session SET started_at = 1000000000000000 WHERE imported_at IS NULL');
  store.close();
}

let template = '';
beforeAll(async () => {
  template = mkdtempSync(join(tmpdir(), 'tapedeck-examples-'));
  await prepare(template);
});
afterAll(() => rmSync(template, { recursive: true, force: true }));

/** Nothing beyond this machine is asked. What runs on does so by itself, without a pipe. */
function local(example: string): string {
  return example
    .replaceAll(/https:\/\/[a-z.]+(?=\/)/g, 'http://127.0.0.1:9')
    .replaceAll(/--listen \S+/g, '--listen 127.0.0.1:0')
    .replace(/^(tapedeck tail .*) \| .*/, '$1');
}

const RUNS_ON = /^tapedeck (?:tail|record http|record --wrapped)|--listen/;

test.each(sample(EXAMPLES))('%s', async (example) => {
  const folder = tempFolder();
  cpSync(template, folder, { recursive: true });
  const env = environmentOf(folder);
  if (example.includes('--wrapped') || example.includes('unwrap'))
    await tapedeckInProcess(['wrap', 'all'], { env, cwd: folder });
  const run = start('sh', ['-c', `exec ${local(example)}`], { env, cwd: folder });
  if (RUNS_ON.test(example)) {
    let hasEnded = false;
    void run.ended.then(() => {
      hasEnded = true;
    });
    await until(
      'it runs',
      () =>
        hasEnded ||
        /listening|waiting/.test(run.stderr()) ||
        run.stdout().length > 0 ||
        example.startsWith('tapedeck tail'),
    );
    expect(hasEnded, run.stderr()).toBe(false);
    run.child.kill('SIGTERM');
  } else run.child.stdin.end();
  const { code, stderr } = await run.ended;
  expect(stderr).not.toMatch(/See: tapedeck|Unknown|Did you mean|at file:/);
  // What could not be reached may be said with 2; what was found, or was not understood by `diff`, with 1.
  const isRefused = code === 2 && !/reached|ECONNREFUSED|refused/i.test(stderr);
  expect(isRefused, stderr).toBe(false);
});

test('every command has an example', async () => {
  for (const [name, load] of Object.entries(COMMANDS))
    expect((await examplesOf(load)).length, name).toBeGreaterThan(0);
});
