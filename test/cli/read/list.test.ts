import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../../src/store/file/open.ts';
import { ROOT, tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';

const RECORDING = join(ROOT, 'recordings/everything-stdio.ndjson');

/** Two sessions whose recorders have left without an index, one of them said to be large. */
async function storeWithLarge(): Promise<string> {
  const db = tempStore();
  for (const name of ['small', 'large']) {
    await tapedeckInProcess(['import', RECORDING, '--name', name, '--db', db]);
  }
  const store = openStore(db);
  store.exec(`DELETE FROM message; UPDATE session SET indexed = 0, exchanges = 0, errors = 0;
    UPDATE session SET frames = 200000 WHERE name = 'large'`);
  store.close();
  return db;
}

test('list does not wait for the index of a large session, but marks its figures and says so', async () => {
  const db = await storeWithLarge();
  const { stdout, stderr, code } = await tapedeckInProcess(['list', '--db', db], { env: { COLUMNS: '200' } });
  const [small, large] = ['small', 'large'].map((name) =>
    stdout
      .toString()
      .split('\n')
      .find((line) => line.includes(name)),
  );
  expect(code).toBe(0);
  expect(large).toMatch(/ ≥0 +≥0 /);
  expect(small).not.toContain('≥');
  expect(stderr).toMatch(/^tapedeck: session [0-9a-f]{12} cannot be indexed at once, .*stats --all\n$/);
  const filtered = await tapedeckInProcess(['list', '--db', db, '--filter', 'tool=echo', '--json']);
  expect(filtered.stdout.toString().trim().split('\n').length).toBe(2);
  expect(filtered.stderr).toMatch(/indexing 200000 frames of session/);
  const again = await tapedeckInProcess(['list', '--db', db]);
  expect(again.stdout.toString()).not.toContain(' ≥0 ');
});
