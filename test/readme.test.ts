import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HTTP_OPTIONS } from '../src/cli/http-options.ts';
import { RECORD_OPTIONS } from '../src/cli/record-options.ts';
import { CLIENTS } from '../src/clients/clients.ts';
import { FIELD_NAMES } from '../src/inspect/filter-fields.ts';
import { openStore } from '../src/store/open.ts';
import { ROOT, tempStore } from './support/tapedeck.ts';

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
