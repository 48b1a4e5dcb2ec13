import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { sample } from '../../support/scale.ts';
import { ROOT, tapedeckInProcess, tempFolder } from '../../support/tapedeck.ts';

const BY_NPX = { npm_lifecycle_event: 'npx', npm_lifecycle_script: 'mcp-tapedeck' };

async function run(args: readonly string[], env: Record<string, string> = {}, columns?: number) {
  const terminal = columns === undefined ? {} : { isTTY: true, columns };
  const { code, stdout, stderr } = await tapedeckInProcess(args, {
    env: { NO_COLOR: '1', ...env },
    terminal,
  });
  return { code, stdout: stdout.toString(), stderr };
}

const NAMES = readdirSync(join(ROOT, 'docs')).flatMap((name) => /^(.*)\.md$/.exec(name)?.[1] ?? []);

test('help begins with six commands of a first day, and lists each command once, by its purpose', async () => {
  const { code, stdout } = await run(['--help']);
  expect(code).toBe(0);
  const [first, ...groups] = stdout.split(/\n\n(?=[A-Z][\w ]*:\n)/).slice(1);
  expect(first?.match(/^ {2}tapedeck \w/gm)).toHaveLength(6);
  const titles = groups.map((group) => group.split(':')[0]);
  expect(titles).toEqual(['Begin', 'Record', 'Look', 'Test', 'Keep', 'Fleet', 'Options']);
  const listed = groups.slice(0, -1).flatMap((group) => [...group.matchAll(/^ {2}([a-z]+)/gm)]);
  expect(listed.map(([, name]) => name).toSorted()).toEqual(
    [...Object.keys(COMMANDS), 'completion'].toSorted(),
  );
  for (const words of [[], ['help'], ['-h']]) expect((await run(words)).stdout).toBe(stdout);
});

test('the commands of the first day are commands that there are', async () => {
  const { stdout } = await run(['--help']);
  const [, first = ''] =
    stdout
      .split('\n\n')
      .filter((part) => part.startsWith('The first day:'))[0]
      ?.split(':\n') ?? [];
  for (const [, name = ''] of first.matchAll(/^ {2}tapedeck (\w+)/gm))
    expect(Object.keys(COMMANDS)).toContain(name);
});

test.each(sample([60, 80, undefined]))(
  'no help is wider than 80 columns, or than a terminal of %s',
  async (columns) => {
    const most = columns ?? 80;
    for (const name of ['--help', ...Object.keys(COMMANDS)]) {
      const words = name === '--help' ? [name] : [name, '--help'];
      const { stdout } = await run(words, BY_NPX, columns);
      const wide = stdout.split('\n').filter((line) => stringWidth(line) > most);
      expect(wide, name).toEqual([]);
    }
  },
);

test('help <page> shows the page of the documentation, without the marks of Markdown', async () => {
  for (const name of NAMES) {
    const { code, stdout, stderr } = await run(['help', name]);
    expect({ code, stderr }, name).toEqual({ code: 0, stderr: '' });
    const prose = stdout.split('\n').filter((line) => !line.startsWith('  '));
    expect(
      prose.filter((line) => /^#+ |^```|\]\(|^\||<picture>|\*\*\w/.test(line)),
      name,
    ).toEqual([]);
    expect(
      prose.filter((line) => line.length > 80),
      name,
    ).toEqual([]);
  }
  const { stdout } = await run(['help', 'filter']);
  expect(stdout).toMatch(/^FILTER\n\n\S/);
});

test('a page keeps what is to be copied as it is, and folds its tables', async () => {
  const { stdout } = await run(['help', 'filter']);
  expect(stdout).toContain("  $ npx mcp-tapedeck show everything-stdio --filter 'tool~long'\n");
  const narrow = (await run(['help', 'filter'], {}, 50)).stdout
    .split('\n')
    .filter((line) => !line.startsWith('  '));
  expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(50);
});

test('help of a command that has no page is that of --help', async () => {
  expect((await run(['help', 'list'])).stdout).toBe((await run(['list', '--help'])).stdout);
  expect((await run(['help', 'completion'])).stdout).toContain('completion bash >> ~/.bashrc');
});

test('a page that is not there is answered with those that are like it', async () => {
  const { code, stdout, stderr } = await run(['help', 'filtr']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(
    /^tapedeck: Expected a command or a page after `help`, got `filtr`\. Did you mean filter/,
  );
  for (const name of NAMES) expect(stderr).toContain(name);
});

test('run by npx, help, examples and hints say npx with the package’s name', async () => {
  const [front, show, wrong] = await Promise.all([
    run(['--help'], BY_NPX),
    run(['show', '--help'], BY_NPX),
    run(['show', '--db', '/nowhere/at/all.db'], BY_NPX),
  ]);
  expect(front.stdout).toMatch(/^npx mcp-tapedeck <command>\n/);
  expect(show.stdout).toContain('\n  npx mcp-tapedeck show --run latest\n      ');
  expect(wrong.stderr).toMatch(
    /^tapedeck: There is no store .* first: npx mcp-tapedeck record -- <command>\n$/,
  );
  for (const { stdout } of [front, show])
    expect(stdout).not.toMatch(/(?<!npx mcp-)\btapedeck (?:show|--help)/);
});

test('npx that runs something else changes no word', async () => {
  const { stdout } = await run(['--help'], {
    npm_lifecycle_event: 'npx',
    npm_lifecycle_script: 'vitest run',
  });
  expect(stdout).toMatch(/^tapedeck <command>\n/);
});

test('a configuration file changes nothing about help', async () => {
  const file = join(tempFolder(), 'config.json');
  writeFileSync(file, '{"db": "other.db", "retention": {"maxSize": "2gb"}}');
  expect((await run(['help', 'filter', '--config', file])).stderr).toBe('');
});
