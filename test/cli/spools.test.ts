import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { spoolsOf } from '../../src/store/file/spool.ts';
import { query } from '../support/http-record.ts';
import { FAKE_SECRETS, storeHolds } from '../support/secrets.ts';
import { spoolSession } from '../support/spools.ts';
import { tapedeckInProcess, tempStore } from '../support/tapedeck.ts';

const TOKEN = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';

const LINES = [
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"haystack"}}',
  `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${TOKEN}"}}`,
];

/** What each command prints of the session that was spooled. */
const COMMANDS: readonly (readonly [args: readonly string[], code: number, prints: RegExp])[] = [
  [['list'], 0, /spooled/],
  [['show', 'spooled'], 0, /haystack/],
  [['search', 'haystack'], 0, /haystack/],
  [['stats', '--all'], 0, /haystack/],
  [['export', 'spooled'], 0, /"name":"spooled".*\n.*haystack/],
  [['check', 'spooled'], 1, /initialize/],
  [['diff', 'spooled', 'spooled'], 0, /equal/],
  [['scan'], 1, /github-token/],
  [['redact', 'spooled'], 0, /github-token +redacted in 1 frame/],
  [['reindex', 'spooled'], 0, /^$/],
  [['prune', 'spooled'], 0, /1 session/],
  [['prune', '--older-than', '1d', '--dry-run'], 0, /1 session/],
  [['import', 'NDJSON'], 0, /^[0-9a-f]{12}\n$/],
];

const isRemover = (args: readonly string[]) => args[0] === 'prune' && !args.includes('--dry-run');

/** Runs a command in the store's folder, where a text recording is. */
async function run(db: string, args: readonly string[]) {
  const file = join(dirname(db), 'x.ndjson');
  const start = '"startedAt":"2026-01-01T00:00:00.000Z","basis":"stdio-process","transport":"stdio"';
  writeFileSync(file, `{"tapedeck":1,"session":{"target":"y",${start}}}\n`);
  return tapedeckInProcess([...args.map((arg) => (arg === 'NDJSON' ? file : arg)), '--db', db]);
}

test.each(COMMANDS)('`%j` takes in first what a recorder has left', async (args, code, prints) => {
  const db = tempStore();
  spoolSession(db, 'spooled', LINES).close();
  const ended = await run(db, args);
  expect([ended.code, ended.stdout.toString()], ended.stderr).toEqual([code, expect.stringMatching(prints)]);
  expect(spoolsOf(db)).toEqual([]);
  const names = query<{ name: string }>(db, 'SELECT name FROM session WHERE name IS NOT NULL');
  expect(names).toEqual(isRemover(args) ? [] : [{ name: 'spooled' }]);
  if (args[0] === 'redact') expect(storeHolds(db, TOKEN)).toBe(false);
});

/** An import shows nothing of the store. */
const READERS = COMMANDS.filter(([[name]]) => name !== 'import');

test.each(READERS)('`%j` says that a recorder at work has more', async (args) => {
  const db = tempStore();
  openStore(db).close();
  const spool = spoolSession(db, 'spooled', LINES);
  const { stderr } = await run(db, args);
  expect(stderr).toMatch(/^tapedeck: what a recorder could not store yet is not shown; it comes in once/);
  expect(stderr.match(/could not store yet/g)).toHaveLength(1);
  spool.close();
  expect(spoolsOf(db)).toHaveLength(1);
  expect(query(db, "SELECT 1 FROM session WHERE name = 'spooled'")).toEqual([]);
});
