import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeHome, type TestHome } from '../../support/configs.ts';
import { BIN, ROOT, start, tapedeckInProcess, until } from '../../support/tapedeck.ts';

const CURSOR = JSON.stringify({
  mcpServers: { files: { command: 'files' }, docs: { url: 'https://docs.example/mcp' } },
});

/** A terminal on which somebody types `answer` at the question. */
async function sit(home: TestHome, answer: string, env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await tapedeckInProcess([], {
    env: { ...home.env, CI: '', NO_COLOR: '1', TERM: 'dumb', ...env },
    cwd: home.project,
    stdin: answer,
    terminal: { isTTY: true, columns: 100 },
  });
  return { code, stdout: stdout.toString().replaceAll(home.home, '~'), stderr };
}

test('on a terminal it shows clients, servers, recordings and what to do, and asks', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', CURSOR);
  const { code, stdout, stderr } = await sit(home, '\n');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(
    'Cursor: ~/.cursor/mcp.json\n    files  stdio  not wrapped\n    docs   http   not wrapped\n',
  );
  expect(stdout).toContain('Recordings: none yet; they will be in ~/recordings.db\n');
  expect(stdout).toMatch(/^Viewer: +tapedeck ui$/m);
  expect(stdout).toContain('2 servers not wrapped.');
  expect(stdout).toContain('only while this runs:\n  tapedeck record --wrapped\n');
  expect(stdout).toContain('Wrap all of them? [y/N] ');
});

test.each(['\n', 'n\n', 'what\n', ''])('the answer %j changes nothing', async (answer) => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', CURSOR);
  await sit(home, answer);
  expect(readFileSync(file, 'utf8')).toBe(CURSOR);
});

test.each(['y\n', 'Yes\n'])(
  'the answer %j wraps every server, and then nothing is asked any more',
  async (answer) => {
    const home = makeHome();
    const file = home.put('.cursor/mcp.json', CURSOR);
    const { code, stdout } = await sit(home, answer);
    expect(code).toBe(0);
    expect(stdout).toMatch(/\n {2}files {2}wrapped\n/);
    expect(stdout).toContain('`tapedeck unwrap all` puts it back');
    expect(JSON.parse(readFileSync(file, 'utf8')).mcpServers.files.args).toContain('record');
    const again = await sit(home, 'y\n');
    expect(again.stdout).toMatch(/files +stdio +wrapped/);
    expect(again.stdout).not.toContain('Wrap all');
    await home.runInProcess('unwrap', 'all');
    expect(readFileSync(file, 'utf8')).toBe(CURSOR);
  },
);

test('it says how much is recorded, and asks nothing where there is no client', async () => {
  const home = makeHome();
  await home.runInProcess('import', join(ROOT, 'recordings/everything-stdio.ndjson'));
  const { stdout } = await sit(home, 'y\n');
  expect(stdout).toContain('No config of a known client was found.');
  expect(stdout).toMatch(/^Recordings: ~\/recordings\.db \(1 session, the newest of 20\d\d-.*; \d.* kB\)$/m);
  expect(stdout).not.toContain('[y/N]');
});

test('a store that cannot be read is said, and the rest is shown', async () => {
  const home = makeHome();
  home.put('recordings.db', 'no database');
  const { code, stdout } = await sit(home, '');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Recordings: ~\/recordings\.db: .*\S$/m);
  expect(stdout).toContain('Help:');
});

test('in CI, or where stdin or stdout is no terminal, it is the help', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', CURSOR);
  const inCi = await sit(home, 'y\n', { CI: 'true' });
  const piped = await home.runInProcess();
  for (const stdout of [inCi.stdout, piped.stdout.toString()])
    expect(stdout).toMatch(/^tapedeck <command>\n/);
});

const hasScript = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux') === true;

test.runIf(hasScript)('a real terminal is asked, and Ctrl+C is a no', async () => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', CURSOR);
  const { child, stdout, ended } = start('script', ['-qec', `'${process.execPath}' '${BIN}'`, '/dev/null'], {
    env: { ...home.env, CI: '', TERM: 'xterm' },
    cwd: home.project,
  });
  await until('it asks', () => stdout().includes('Wrap all of them? [y/N]'));
  child.stdin.write('\u0003');
  expect((await ended).code).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe(CURSOR);
});
