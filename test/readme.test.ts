import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RECORD_OPTIONS } from '../src/cli/record-options.ts';
import { openStore } from '../src/store/open.ts';
import { ROOT, tempStore } from './support/tapedeck.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
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
    const row = README.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
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
  for (const option of Object.keys(RECORD_OPTIONS)) expect(README).toContain(`\`--${option}`);
  for (const dependency of Object.keys(manifest.dependencies))
    expect(README).toContain(`| \`${dependency}\` |`);
});
