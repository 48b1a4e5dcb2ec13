import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMMANDS } from '../src/cli/commands.ts';
import { HTTP_OPTIONS } from '../src/cli/record/http-options.ts';
import { RECORD_OPTIONS } from '../src/cli/record/options.ts';
import { CLIENTS } from '../src/clients/clients.ts';
import { FIELD_NAMES } from '../src/inspect/filter/fields.ts';
import { openStore } from '../src/store/file/open.ts';
import { BIN, ROOT, start, tapedeck, tempStore } from './support/tapedeck.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const STORE = README.slice(README.indexOf('## The store, for your own SQL'));
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

test('the README documents every column of every table and view', () => {
  const store = openStore(tempStore());
  const names = store
    .prepare<[], string>(
      "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'",
    )
    .pluck()
    .all();
  for (const name of names) {
    const row = STORE.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
    for (const { name: column } of store.pragma(`table_info(${name})`) as { name: string }[]) {
      expect(row, `${name}.${column}`).toContain(`\`${column}\``);
    }
  }
  store.close();
});

test('the SQL of the README runs', () => {
  const store = openStore(tempStore());
  const [, sql = ''] = /```sql\n(.*?)```/s.exec(README) ?? [];
  const statements = sql.split(';').filter((statement) => statement.trim() !== '');
  expect(statements).toHaveLength(2);
  for (const statement of statements) expect(store.prepare(statement).all()).toEqual([]);
  store.close();
});

test('the README names every option of record and every dependency', () => {
  for (const option of Object.keys({ ...RECORD_OPTIONS, ...HTTP_OPTIONS }))
    expect(README).toContain(`\`--${option}`);
  expect(README).toContain('| `--wrapped` |');
  for (const dependency of Object.keys(manifest.dependencies))
    expect(README).toContain(`| \`${dependency}\` |`);
});

test('the README explains every field of the filter language', () => {
  const [, section = ''] = /### Filter\n(.*?)\n###/s.exec(README) ?? [];
  const named = section.split('\n').flatMap((line) => /^\| (`[^|]*)\|/.exec(line)?.[1]?.match(/\w+/g) ?? []);
  expect(named.toSorted()).toEqual([...FIELD_NAMES].toSorted());
});

test('the README has a row for every client', () => {
  for (const { id, sections } of CLIENTS) {
    const row = README.split('\n').find((line) => line.startsWith(`| \`${id}\` |`));
    expect(row, id).toContain(`\`${sections[0]?.join('.')}\``);
  }
});

test('the README has a row for every command', () => {
  for (const name of [...Object.keys(COMMANDS), 'completion'])
    expect(README).toMatch(new RegExp(`^\\| \`tapedeck ${name}\\b[^|]*\` \\| \\w`, 'm'));
});

test('every link within the README leads to a heading', () => {
  const anchors = [...README.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  );
  const links = [...README.matchAll(/\]\(#([^)]*)\)/g)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(20);
  for (const link of links) expect(anchors).toContain(link);
});

const RECORDINGS = ['everything-stdio', 'everything-http', 'modern-http'];

/** The commands about the recordings of this folder, each with what the README shows of its output. */
function shownCommands(): [command: string, shown: string][] {
  const commands = [...README.matchAll(/^```\n(\$ .*?)```$/gms)].flatMap(([, block = '']) =>
    block.split(/^\$ /m).slice(1),
  );
  const split = commands.map((text): [string, string] => {
    const [command = '', ...shown] = text.split('\n');
    return [command, shown.join('\n').trimEnd()];
  });
  return split.filter(
    ([command]) => !command.includes('<Tab>') && /(?:everything|modern)-|forty-two|--rules/.test(command),
  );
}

/** A line `…` stands for any lines; ids of sessions are new in each store. */
function patternOf(shown: string): RegExp {
  const lines = shown.split('\n').map((line) => (line === '…' ? line : escaped(line)));
  const text = lines.join('\n').replaceAll(/(?<=^|\n)…(?:\n|$)/g, '(?:.*\n)*?');
  return new RegExp(`^${text.replaceAll(/\b[0-9a-f]{12}\b/g, '[0-9a-f]{12}')}\\s*$`);
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

test('what the README shows of the recordings is what the commands print', async () => {
  const db = tempStore();
  for (const name of RECORDINGS)
    await tapedeck(['import', join(ROOT, 'recordings', `${name}.ndjson`), '--db', db]).ended;
  const commands = shownCommands();
  expect(commands.length).toBeGreaterThan(8);
  for (const [command, shown] of commands) {
    const program = `tapedeck() { '${process.execPath}' '${BIN}' "$@"; }; ${command}`;
    const env = { TAPEDECK_DB: db, TZ: 'UTC', COLUMNS: '120' };
    const { stdout, stderr } = await start('sh', ['-c', program], { cwd: ROOT, env }).ended;
    expect(stdout.toString() + stderr, command).toMatch(patternOf(shown));
  }
});
