/** README and docs against the code: what they must name is named, and what they name is there. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { validateWorkflow } from '@action-validator/core';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { CommandModule } from 'yargs';
import yargs from 'yargs';
import { COMMANDS } from '../src/cli/commands.ts';
import { HTTP_OPTIONS } from '../src/cli/record/http-options.ts';
import { RECORD_OPTIONS } from '../src/cli/record/options.ts';
import { CLIENTS } from '../src/clients/clients.ts';
import { CONFIG_OPTIONS } from '../src/config/location.ts';
import { FIELD_NAMES } from '../src/inspect/filter/fields.ts';
import { openStore } from '../src/store/file/open.ts';
import { PICTURES } from './demo/pictures.js';
import {
  anchorsOf,
  type Block,
  blocksOf,
  linksOf,
  PAGES,
  sectionOf,
  shownCommands,
  textOf,
  writtenCommands,
} from './support/documents.ts';
import { connect, EVERYTHING_STDIO, echo, openDeck } from './support/kit.ts';
import { ROOT, tempStore } from './support/tapedeck.ts';

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

test('the README can be read in ten minutes', () => {
  expect(textOf('README.md').split('\n').length).toBeLessThanOrEqual(351);
});

test('every page of docs begins with a title and a paragraph, and the README leads to it', () => {
  for (const page of PAGES.filter((name) => name.startsWith('docs/'))) {
    expect(textOf(page), page).toMatch(/^# \S.*\n\n[A-Z`][^\n]{40}/);
    expect(linksOf('README.md').map((link) => link.split('#')[0])).toContain(page);
  }
});

test('the store’s page documents every column of every table and view', () => {
  const store = openStore(tempStore());
  const names = store
    .prepare<[], string>(
      "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'",
    )
    .pluck()
    .all();
  const lines = textOf('docs/store.md').split('\n');
  for (const name of names) {
    const row = lines.find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
    for (const { name: column } of store.pragma(`table_info(${name})`) as { name: string }[]) {
      expect(row, `${name}.${column}`).toContain(`\`${column}\``);
    }
  }
  store.close();
});

test('the SQL of the store’s page runs', () => {
  const store = openStore(tempStore());
  const sql = blocksOf('docs/store.md').filter(({ language }) => language === 'sql');
  const statements = sql.flatMap(({ text }) => text.split(';')).filter((text) => text.trim() !== '');
  expect(statements).toHaveLength(2);
  for (const statement of statements) expect(store.prepare(statement).all()).toEqual([]);
  store.close();
});

test('every option of record, and every dependency, is explained', () => {
  const options = textOf('docs/options.md');
  for (const option of Object.keys({ ...RECORD_OPTIONS, ...HTTP_OPTIONS }))
    expect(options).toContain(`\`--${option}`);
  expect(options).toContain('| `--wrapped` |');
  for (const dependency of Object.keys(manifest.dependencies))
    expect(textOf('README.md')).toContain(`| \`${dependency}\` |`);
});

test('every field of the filter language is explained', () => {
  const rows = sectionOf('docs/filter.md', '## Fields').split('\n');
  const named = rows.flatMap((line) => /^\| (`[^|]*)\|/.exec(line)?.[1]?.match(/\w+/g) ?? []);
  expect(named.toSorted()).toEqual([...FIELD_NAMES].toSorted());
});

test('every client has a row', () => {
  const lines = textOf('docs/wrap.md').split('\n');
  for (const { id, sections } of CLIENTS) {
    const row = lines.find((line) => line.startsWith(`| \`${id}\` |`));
    expect(row, id).toContain(`\`${sections[0]?.join('.')}\``);
  }
});

test('every command has a row', () => {
  for (const name of [...Object.keys(COMMANDS), 'completion'])
    expect(textOf('README.md')).toMatch(new RegExp(`^\\| \`tapedeck ${name}\\b[^|]*\` \\| \\w`, 'm'));
});

test('every room has a row in the architecture, and every file that the docs name is there', () => {
  const folders = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map(({ parentPath }) => normalize(parentPath).slice(ROOT.length + 1));
  const rows = sectionOf('docs/architecture.md', '## The rooms').matchAll(/^\| `(src[\w/]*)` \|/gm);
  expect([...rows].map(([, room]) => room).toSorted()).toEqual([...new Set(folders)].toSorted());
  for (const page of PAGES)
    for (const [, path = ''] of textOf(page).matchAll(/`((?:src|test|recordings|examples)\/[\w./-]*)`/g))
      expect(existsSync(join(ROOT, path)), `${page} names ${path}`).toBe(true);
});

test('every link leads to a file that is there, and to a heading that it has', () => {
  const links = PAGES.flatMap((page) => linksOf(page).map((link) => ({ page, link })));
  expect(links.length).toBeGreaterThan(50);
  for (const { page, link } of links) {
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? page : normalize(join(dirname(page), file));
    expect(existsSync(join(ROOT, target)), `${page} links to ${link}`).toBe(true);
    if (anchor !== undefined) expect(anchorsOf(target), `${page} links to ${link}`).toContain(anchor);
  }
});

/** Options that a command has, each with its short form. */
async function optionsOf(name: string): Promise<ReadonlySet<string>> {
  const load = COMMANDS[name] as () => Promise<unknown>;
  const { builder } = (await load()) as CommandModule;
  const parser = yargs().options(CONFIG_OPTIONS);
  if (typeof builder === 'function') builder(parser);
  const { key, alias } = (
    parser as unknown as { getOptions(): Record<'key' | 'alias', object> }
  ).getOptions();
  const names = [...Object.keys(key), ...Object.values(alias).flat(), 'help', 'h', 'version', 'v'];
  return new Set(names.map((one) => (one.length === 1 ? `-${one}` : `--${one}`)));
}

/** What behind `--` belongs to a server, and text in quotes, has no options of ours. */
function ownOptions(commandLine: string): string[] {
  const [own = ''] = commandLine.replaceAll(/'[^']*'|"[^"]*"/g, "''").split(/ -- |\s[|>]/);
  return [...own.matchAll(/(?<=\s)--?[a-z][\w-]*/g)].map(([option]) => option);
}

test('every command line that is written anywhere has a command and options that there are', async () => {
  const lines = PAGES.flatMap((page) => writtenCommands(page).map((line) => ({ page, line })));
  const own = lines.flatMap(({ page, line }) => {
    const [, name, rest] = /(?:^|\| |\bxargs .*|= )(?:npx mcp-)?tapedeck ([a-z]+)\b(.*)/.exec(line) ?? [];
    return name === undefined ? [] : [{ page, line, name, rest: rest ?? '' }];
  });
  expect(own.length).toBeGreaterThan(80);
  for (const { page, line, name, rest } of own) {
    if (name === 'completion') continue;
    expect(Object.keys(COMMANDS), `${page}: ${line}`).toContain(name);
    const options = await optionsOf(name);
    for (const option of ownOptions(rest)) expect(options, `${page}: ${line}`).toContain(option);
  }
});

test('what is shown to be copied starts tapedeck by npx, for who has not installed it', () => {
  const commands = PAGES.flatMap((page) => [
    ...shownCommands(page).map(({ command }) => command),
    ...blocksOf(page)
      .filter(({ language }) => language === 'sh')
      .flatMap(({ text }) => text.split('\n')),
  ]);
  const own = commands.filter((line) => /(?:^|\| |xargs .*)(?:npx mcp-)?tapedeck [a-z]/.test(line));
  expect(own.length).toBeGreaterThan(60);
  // Completion is for the installed command.
  const bare = own.filter((line) => !/npx mcp-tapedeck|tapedeck completion|<Tab>/.test(line));
  expect(bare, 'Write `npx mcp-tapedeck …`: `npx tapedeck` is another package').toEqual([]);
  for (const page of PAGES)
    expect(textOf(page).replaceAll('`npx tapedeck` is another', ''), page).not.toContain('npx tapedeck');
});

test('every npm script that is named is there', () => {
  for (const page of PAGES)
    for (const [, name = ''] of textOf(page).matchAll(/npm run ([\w:-]+)/g))
      expect(Object.keys(manifest.scripts), page).toContain(name);
});

test('the example of the README is a part of the one of the test kit, which is typed in types.test.ts', () => {
  const [[short], [long]] = ['README.md', 'docs/test-kit.md'].map((page) =>
    blocksOf(page).filter(({ language }) => language === 'ts'),
  ) as [Block[], Block[]];
  expect(long?.text).toContain(short?.text ?? 'missing');
});

test('the failed assertion of the test kit’s page is what the kit says', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const client = await connect(deck.transport());
  await client.listTools();
  await expect(echo(client, 'Hello, disc.')).rejects.toThrow('1404');
  const [shown] = blocksOf('docs/test-kit.md').filter(({ text }) => text.startsWith('TapedeckError: '));
  const params = { name: 'echo', arguments: { message: 'Hello, tape.' } };
  expect(() => deck.assertCalled('tools/call', params)).toThrow(
    expect.objectContaining({ message: shown?.text.replace('TapedeckError: ', '').trimEnd() }),
  );
});

test('every picture is made by `npm run pictures`, of a screen that there is', () => {
  const screens = [
    ...readFileSync(join(ROOT, 'src/web/page/screens.ts'), 'utf8').matchAll(/path: '([^']+)'/g),
  ];
  const patterns = screens.map(([, path = '']) => new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`));
  const made = PICTURES.flatMap(({ name, path }) => {
    expect(
      patterns.some((pattern) => pattern.test(path.replace(/\?.*/, ''))),
      path,
    ).toBe(true);
    return [`docs/${name}-light.png`, `docs/${name}-dark.png`];
  });
  const shown = PAGES.flatMap((page) =>
    [...textOf(page).matchAll(/(?:src|srcset)="([^"]+)"/g)].map(([, file = '']) =>
      normalize(join(dirname(page), file)),
    ),
  );
  expect(new Set(shown)).toEqual(new Set(made));
  for (const file of made) expect(existsSync(join(ROOT, file)), file).toBe(true);
});

test('the plugin is of this version, and its skill says when it is of use', () => {
  const [plugin, lock] = ['plugin/.claude-plugin/plugin.json', 'package-lock.json'].map((file) =>
    JSON.parse(textOf(file)),
  );
  expect([plugin.version, lock.version]).toEqual([manifest.version, manifest.version]);
  const { plugins } = JSON.parse(textOf('.claude-plugin/marketplace.json'));
  expect(plugins).toMatchObject([{ name: plugin.name, source: './plugin', description: plugin.description }]);
  const [, head = ''] = /^---\n(.*?)\n---\n/s.exec(textOf('plugin/skills/record-mcp-server/SKILL.md')) ?? [];
  expect(parse(head)).toEqual({
    name: 'record-mcp-server',
    description: expect.stringMatching(/tapedeck.*Use it when/),
  });
});

test('the workflow is one that GitHub takes, and begins with the oldest Node that the package is for', () => {
  const text = textOf('.github/workflows/tests.yml');
  expect(validateWorkflow(text)).toMatchObject({ errors: [] });
  const { node } = parse(text).jobs.tests.strategy.matrix;
  expect(`^${Math.min(...node)}`).toBe(/^\^\d+/.exec(manifest.engines.node)?.[0]);
});
