/** What the commands say to people fits the terminal, however narrow it is. */
import { join } from 'node:path';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { ROOT, tapedeckInProcess, tempStore } from '../support/tapedeck.ts';

const COMMANDS = [
  ['list'],
  ['show', 'everything-stdio'],
  ['show', 'modern-http', '--http'],
  ['search', 'forty-two'],
  ['stats', '--all'],
  ['stats', '--all', '--by', 'session'],
  ['check', 'everything-stdio', '--severity', 'note'],
  ['diff', 'everything-stdio', 'everything-http'],
  ['diff', 'everything-stdio', 'modern-http'],
  ['prune', '--max-sessions', '1', '--dry-run'],
];

/** Addresses and commands, which are copied from there, and sentences. */
const MAY_BE_LONG = /https?:|\.$|^(?:command|transport|started|recorded) /;

test('no line is wider than the terminal, but for addresses and sentences', async () => {
  const db = tempStore();
  for (const name of ['everything-stdio', 'everything-http', 'modern-http'])
    await tapedeckInProcess(['import', join(ROOT, 'recordings', `${name}.ndjson`), '--db', db]);
  for (const columns of [60, 80, 120]) {
    const env = { COLUMNS: String(columns) };
    const runs = COMMANDS.map((args) => tapedeckInProcess([...args, '--db', db], { env }));
    for (const [i, { stdout, stderr }] of (await Promise.all(runs)).entries()) {
      const lines = `${stdout}${stderr}`.split('\n');
      const wide = lines.filter((line) => stringWidth(line) > columns && !MAY_BE_LONG.test(line));
      expect(wide, `${COMMANDS[i]?.join(' ')} in ${columns} columns`).toEqual([]);
    }
  }
});

test('in a narrow terminal names and latencies stay longer than what matters less', async () => {
  const file = join(ROOT, 'recordings/everything-stdio.ndjson');
  const db = tempStore();
  await tapedeckInProcess(['import', file, '--db', db]);
  const stats = await tapedeckInProcess(['stats', '--db', db], { env: { COLUMNS: '60' } });
  expect(stats.stdout.toString()).toMatch(/^ +METHOD +TOOL +COUNT +ERRORS +P50 +P95$/m);
  const list = await tapedeckInProcess(['list', '--db', db], { env: { COLUMNS: '60' } });
  expect(list.stdout.toString()).toContain(' everything-stdio ');
  const diff = await tapedeckInProcess(['diff', file, file], { env: { COLUMNS: '60' } });
  expect(diff.stdout.toString()).toMatch(/^CALL +P50 A +P50 B( +P95 A +P95 B)?$/m);
});
