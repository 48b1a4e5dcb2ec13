import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, expect, test } from 'vitest';
import { openRecording } from '../../src/kit/open-recording.ts';
import { ROOT, tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

const RECORDING = join(ROOT, 'recordings/everything-stdio.ndjson');

/** Every database that anything is done with, from now on. */
const seen = new Set<Database.Database>();
const methods = ['prepare', 'exec', 'pragma', 'transaction'] as const;
const originals = methods.map((name) => Database.prototype[name]);
for (const [i, name] of methods.entries()) {
  Object.assign(Database.prototype, {
    [name](this: Database.Database, ...args: unknown[]) {
      seen.add(this);
      return (originals[i] as (...args: unknown[]) => unknown).apply(this, args);
    },
  });
}
afterAll(() => {
  for (const [i, name] of methods.entries()) Object.assign(Database.prototype, { [name]: originals[i] });
});

const stillOpen = () => [...seen].filter(({ open }) => open).map(({ name }) => name);

test('no command leaves a database open, whether it succeeds or fails', async () => {
  const cwd = tempFolder();
  copyFileSync(RECORDING, join(cwd, 'a.ndjson'));
  const env = { TAPEDECK_DB: join(cwd, 'own.db') };
  const lines = [
    ['list'],
    ['import', 'a.ndjson', '--name', 'one'],
    ['import', 'a.ndjson', '--name', 'two'],
    ['import', 'package.json'],
    ['list', '--json'],
    ['list', '--filter', 'tool=echo'],
    ['show', 'one'],
    ['show', 'nobody'],
    ['show', '--http'],
    ['search', 'echo'],
    ['search', 'echo', '--json'],
    ['stats', '--all'],
    ['check', 'one'],
    ['check', 'a.ndjson'],
    ['diff', 'one', 'two'],
    ['diff', 'one', 'a.ndjson'],
    ['scan'],
    ['scan', 'nobody'],
    ['export', 'one', '-o', 'b.ndjson'],
    ['export', 'one', '--format', 'har', '-o', 'b.har'],
    ['redact', 'one'],
    ['reindex'],
    ['replay', 'one', '--suggest-ignore', 'two'],
    ['replay', 'one'],
    ['replay', 'nobody'],
    ['prune', 'two', '--dry-run'],
    ['prune', 'two'],
    ['completion'],
  ];
  for (const line of lines) {
    await tapedeckInProcess(line, { cwd, env });
    expect([line, stillOpen()]).toEqual([line, []]);
  }
  expect(seen.size).toBeGreaterThan(lines.length);
});

test('the test kit closes what it has opened', async () => {
  const deck = await openRecording(RECORDING);
  await deck.close();
  expect(stillOpen()).toEqual([]);
});
