import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tapedeck, tapedeckInProcess, tempFolder, tempStore } from '../support/tapedeck.ts';

const COMMANDS = ['record', 'list', 'show', 'replay', 'verify', 'reindex', 'wrap', 'unwrap'];

test.each(COMMANDS)('%s --help has a description, its options and examples', async (command) => {
  const { code, stdout } = await tapedeckInProcess([command, '--help']);
  expect(code).toBe(0);
  expect(stdout.toString()).toMatch(/Options:/);
  expect(stdout.toString()).toMatch(new RegExp(`Examples:\\s+tapedeck ${command}`));
});

test('--help lists every command, --version says which this is', async () => {
  const { stdout } = await tapedeckInProcess(['--help']);
  for (const command of COMMANDS) expect(stdout.toString()).toMatch(new RegExp(`^  ${command}\\b`, 'm'));
  const { stdout: version } = await tapedeckInProcess(['--version']);
  expect(version.toString()).toMatch(/^\d+\.\d+\.\d+\n$/);
});

/** Where a command line goes wrong, and what is said about it. `MARK` would be made by the server if it ran. */
const WRONG: [argv: string[], complaint: RegExp][] = [
  [['recrod'], /Did you mean record\? See: tapedeck --help/],
  [['record'], /Expected the server’s command after `--`/],
  [['record', '--'], /Expected the server’s command after `--`/],
  [
    ['record', 'npx', 'MARK', '--name', 'x'],
    /Expected `--` before the server’s command, as it is not clear .* Try: tapedeck record -- npx /,
  ],
  [['record', '--colour', '--', 'node', 'MARK'], /Unknown argument: colour\. See: tapedeck record --help/],
  [['record', '--label', 'nokey', '--', 'node', 'MARK'], /Expected `--label key=value`, got `nokey`/],
  [
    ['record', '--max-frame', 'much', '--', 'node', 'MARK'],
    /Expected a size after `--max-frame`, got `much`\. Examples: 512kb/,
  ],
  [['record', '--max-queue=0', '--', 'node', 'MARK'], /Expected a size after `--max-queue`, got `0`/],
  [['record', '--name', '', '--', 'node', 'MARK'], /Expected a value after `--name`/],
  [['record', '--name', '--', 'node', 'MARK'], /Not enough arguments following: name/],
  [['list', '--limit', 'many'], /Expected a whole number after `--limit`/],
  [['list', '--limit=-1'], /Expected a whole number after `--limit`/],
  [['list', '--db', '/nowhere/a.db', '--db', '/nowhere/b.db'], /no store at \/nowhere\/b\.db yet/],
  [['list', '--jsn'], /Unknown argument: jsn\. See: tapedeck list --help/],
  [['replay', 'x', '--allow-host', 'a'], /Expected `--listen` with `--allow-host`/],
  [['replay', 'x', '--allow-origin', 'http://a'], /Expected `--listen` with `--allow-origin`/],
  [['replay', 'x', '--save', 'y.json'], /Expected `--stub` with `--save`/],
  [['replay', 'x', '--json'], /Expected `--suggest-ignore` with `--json`/],
  [
    ['replay', 'x', '--suggest-ignore', 'y', '--listen', '0'],
    /Expected no `--listen` with `--suggest-ignore`: it answers nobody/,
  ],
  [['list', 'extra'], /Unknown (?:argument|command): extra/],
  [
    ['show', '--db', '/nowhere/at/all.db'],
    /There is no store at \/nowhere\/at\/all\.db yet\. Record something first/,
  ],
];

test.each(WRONG)('tapedeck %j is one clear line, exit 2, and nothing runs', async (argv, complaint) => {
  const marker = join(tempFolder(), 'mark.js');
  const { code, stdout, stderr } = await tapedeckInProcess(
    argv.map((word) => (word === 'MARK' ? marker : word)),
  );
  expect({ code, stdout: stdout.toString() }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(complaint);
  expect(stderr).toMatch(/^tapedeck: [^\n]*\n$/);
});

test('wrong options start no server', async () => {
  const marker = join(tempFolder(), 'ran');
  const script = `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '')`;
  const bad = ['--db', tempStore(), '--max-frame', 'x', '--', process.execPath, '-e', script];
  expect((await tapedeck(['record', ...bad]).ended).code).toBe(2);
  expect(existsSync(marker)).toBe(false);
  const good = ['--db', tempStore(), '--', process.execPath, '-e', script];
  expect((await tapedeck(['record', ...good]).ended).code).toBe(0);
  expect(existsSync(marker)).toBe(true);
});

test('the store is named by --db, else by TAPEDECK_DB', async () => {
  const [byOption, byEnvironment] = [tempStore(), tempStore()];
  const env = { TAPEDECK_DB: byEnvironment };
  await tapedeck(['record', '--', process.execPath, '-e', ''], { env }).ended;
  await tapedeck(['record', '--db', byOption, '--', process.execPath, '-e', ''], { env }).ended;
  expect([existsSync(byOption), existsSync(byEnvironment)]).toEqual([true, true]);
  const { stdout } = await tapedeckInProcess(['list', '--json'], { env });
  expect(stdout.toString().split('\n')).toHaveLength(2);
});

test.each([':memory:', 'spaced ', 'file:x?mode=memory', 'd é/ü.db'])(
  'a store named %j is a private file of that name',
  async (name) => {
    const cwd = tempFolder();
    await tapedeck(['record', '--db', name, '--', process.execPath, '-e', ''], { cwd }).ended;
    expect(statSync(join(cwd, name.trim())).mode & 0o777).toBe(0o600);
    const { stdout } = await tapedeckInProcess(['list', '--db', name, '--json'], { cwd });
    expect(stdout.toString().split('\n')).toHaveLength(2);
  },
);

test('the store is else in the platform’s data folder', async () => {
  const home = tempFolder();
  const env = { HOME: home, XDG_DATA_HOME: join(home, 'data'), LOCALAPPDATA: home, TAPEDECK_DB: '' };
  await tapedeck(['record', '--', process.execPath, '-e', ''], { env }).ended;
  const { stdout } = await tapedeckInProcess(['list', '--json'], { env });
  expect(stdout.toString().split('\n')).toHaveLength(2);
  if (process.platform === 'linux')
    expect(existsSync(join(home, 'data', 'tapedeck', 'recordings.db'))).toBe(true);
});

test('complaints and help are English, whatever the shell speaks', async () => {
  const before = process.env['LC_ALL'];
  process.env['LC_ALL'] = 'de_DE.UTF-8';
  try {
    const [wrong, help] = await Promise.all([
      tapedeckInProcess(['list', '--nope']),
      tapedeckInProcess(['list', '--help']),
    ]);
    expect(wrong.stderr).toContain('Unknown argument: nope');
    expect(help.stdout.toString()).toMatch(/^Options:$/m);
  } finally {
    if (before === undefined) delete process.env['LC_ALL'];
    else process.env['LC_ALL'] = before;
  }
});
