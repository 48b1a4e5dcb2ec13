/** What the commands say to people fits the terminal, however narrow it is. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { ROOT, tapedeckInProcess, tempFolder, tempStore } from '../support/tapedeck.ts';

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

/** Tools of one family, whose names differ at the end, in the middle, or hardly at all. */
const FAMILY = [
  'create_issue',
  'create_issue_comment',
  'update_issue',
  'list_issues_by_label',
  'list_issues_by_state',
].map((name) => `mcp__some_long_server_name__${name}`);
const METHODS = ['tools', 'prompts', 'resources'].map((what) => `notifications/${what}/list_changed`);

test('in 80 columns every row of a table and every call of a session can be told from the others', async () => {
  const said = FAMILY.flatMap((name, id) => [
    ['stdin', { id, method: 'tools/call', params: { name } }],
    [
      'stdout',
      {
        id,
        result: {
          content: [
            { type: 'text', text: 'a\nb\nc' },
            { type: 'image', data: '', mimeType: 'a' },
          ],
        },
      },
    ],
  ]);
  const notes = [...METHODS, 'notifications/message', 'notifications/progress'].map((method) => [
    'stdout',
    { method },
  ]);
  const db = tempStore();
  for (const name of ['a-long-name-of-a-session-1', 'a-long-name-of-a-session-2']) {
    const session = {
      name,
      basis: 'stdio-process',
      transport: 'stdio',
      target: 'a',
      startedAt: '2026-11-21T05:02:34.937594Z',
    };
    const frames = [...said, ...notes].map(([channel, message]) => ({
      ms: 1,
      channel,
      message: { jsonrpc: '2.0', ...(message as object) },
    }));
    const file = join(tempFolder(), `${name}.ndjson`);
    writeFileSync(
      file,
      [{ tapedeck: 1, session }, ...frames].map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
    await tapedeckInProcess(['import', file, '--db', db]);
  }
  const env = { COLUMNS: '80' };
  const linesOf = async (...args: string[]) =>
    (await tapedeckInProcess([...args, '--db', db], { env })).stdout.toString().split('\n');

  const names = (lines: string[]) =>
    lines.filter((line) => /^[→←]/.test(line)).map((line) => line.slice(0, 45));
  const rows = names(await linesOf('stats'));
  expect(rows).toHaveLength(FAMILY.length + METHODS.length + 2);
  expect(new Set(rows).size).toBe(rows.length);

  const shown = await linesOf('show');
  for (const kind of ['→  tools/call', '←  result']) {
    const calls = shown.filter((line) => line.includes(kind)).map((line) => line.slice(14));
    expect(calls).toHaveLength(FAMILY.length);
    expect(new Set(calls).size, calls.join('\n')).toBe(FAMILY.length);
  }
  const sessions = (await linesOf('stats', '--all', '--by', 'session')).filter((line) =>
    /^[0-9a-f]{12} /.test(line),
  );
  expect(new Set(sessions.map((line) => line.slice(14, 34))).size).toBe(2);
});
