import { expect, onTestFinished, test } from 'vitest';
import { openTemporaryStore } from '../../../src/store/file/open.ts';
import { eachRow } from '../../../src/store/read/pages.ts';

test.each([0, 1, 5000, 10_000, 12_345])('%i rows come page by page as they would at once', (count) => {
  const store = openTemporaryStore();
  onTestFinished(() => void store.close());
  const sql = `SELECT value AS number, value % 7 AS at FROM generated WHERE value > @least`;
  store.exec(`CREATE TABLE generated AS WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT ${count + 1})
    SELECT value FROM n`);
  const at = (number: number) => ({ number, at: number % 7 });
  const all = Array.from({ length: count }, (_, i) => at(i + 2));
  const rows = [...eachRow<{ number: number; at: number }>(store, sql, ['at', 'number'], { least: 1 })];
  expect(rows).toEqual(all.sort((a, b) => a.at - b.at || a.number - b.number));
});
