/** What readers say of frames without payload, and that they make nothing of them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from 'sarif';
import { expect, test } from 'vitest';
import { readFrameRule } from '../../../src/inspect/filter/frame-rule.ts';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import type { SessionStart } from '../../../src/store/file/columns.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { eachBareFrame } from '../../../src/store/read/frames.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import { createMetaFor } from '../../../src/store/sample/meta-for.ts';
import { beginImport } from '../../../src/store/write/import.ts';
import { reindexSession } from '../../../src/store/write/index.ts';
import { query } from '../../support/http-record.ts';
import { rpc, STOPPED } from '../../support/http-store.ts';
import { EVERYTHING_STDIO } from '../../support/kit.ts';
import { inFull, sample } from '../../support/scale.ts';
import { storeHolds } from '../../support/secrets.ts';
import { recordAgain, saveIntake, stdioIntake } from '../../support/spools.ts';
import {
  fixture,
  listSessions,
  showFrames,
  tapedeckInProcess,
  tempFolder,
  tempStore,
} from '../../support/tapedeck.ts';

const FILTER = 'tool=hide or text~"for nobody"';

const call = (id: number, name: string) =>
  rpc({ id, method: 'tools/call', params: { name, arguments: { text: `${name}-text` } } });

/** A session of two calls, one of them without payloads; the share of such sessions that are kept. */
function storeSession(share: number | null): string {
  const db = tempStore();
  const store = openStore(db);
  const intake = stdioIntake(PLAIN_PROFILE, 'it', [FILTER]);
  intake.open(store);
  const say = (kind: 0 | 1 | 2, line: string) =>
    intake.framer.feed({ kind, owner: 0, at: 1000, bytes: Buffer.from(`${line}\n`) });
  say(0, call(1, 'hide'));
  say(0, call(2, 'echo'));
  say(2, 'a line for nobody');
  say(1, rpc({ id: 1, result: { content: [{ type: 'text', text: 'hide-text' }] } }));
  say(1, rpc({ id: 2, result: { content: [{ type: 'text', text: 'echo-text' }] } }));
  saveIntake(intake);
  intake.end(STOPPED);
  while (!intake.index(1000));
  store.prepare('UPDATE session SET sample = ?').run(share);
  store.close();
  return db;
}

const SAID = `3 frames without payload, only sizes, times and hashes (--meta-for '${FILTER}')`;

async function said(db: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await tapedeckInProcess([...args, '--db', db]);
  return stdout + stderr;
}

test('each reader says how many frames have no payload, and by which filter', async () => {
  const db = storeSession(0.25);
  expect(storeHolds(db, 'hide-text')).toBe(false);
  const shown = await said(db, 'show');
  expect(shown).toContain(`payloads  ${SAID}`);
  expect(shown.match(/[→←] {2}not kept, \d+ B \[redacted:meta:[0-9a-f]{12}\]/g)).toHaveLength(3);
  expect((await listSessions(db))[0]).toMatchObject({ capture: 'full', metaFor: [FILTER], sample: 0.25 });
  const frames = await showFrames(db);
  expect(frames.map(({ text, size }) => [text?.startsWith('[redacted:meta:') ?? false, size])).toEqual([
    [true, call(1, 'hide').length],
    [false, call(2, 'echo').length],
    [true, 17],
    [true, expect.any(Number)],
    [false, expect.any(Number)],
  ]);
  expect(await said(db, 'stats', '--all')).toContain('not counted: calls without payload in 1 session');
  expect(await said(db, 'stats', '--all', '--json')).toContain('"sessionsLackingPayloads":1');
  expect(await said(db, 'check')).toContain(`${SAID}: what these would tell`);
  expect(await said(db, 'check')).toContain('Of a sample: 25 % of such sessions are kept.');
  expect(await said(db, 'search', 'hide-text')).toContain('in 1 session some frames have no payload');
  expect(await said(db, 'search', '--filter', 'tool=echo')).not.toContain('no payload');
  expect(await said(db, 'diff', 'latest', 'latest')).toContain(`has ${SAID}`);
  expect(await said(db, 'replay', 'latest')).toContain(
    `has ${SAID}: it is as if these had not been recorded`,
  );
  expect(await said(db, 'export', '--format', 'markdown')).toContain('| payloads | 3 frames without payload');
});

test('reports for programs say that frames without payload were not judged, each in its form', async () => {
  const db = storeSession(null);
  const folder = tempFolder();
  const [sarif, junit, file] = ['a.sarif', 'a.xml', 'a.ndjson'].map((name) => join(folder, name));
  const json = await said(db, 'check', '--json');
  const remarks = json.split('\n').filter((line) => line.includes('"kind":"remark"'));
  const remark = `${SAID}: what these would tell, of themselves or of others, is not judged.`;
  expect(remarks.map((line) => JSON.parse(line))).toEqual([
    { kind: 'remark', recording: 'it', session: expect.stringMatching(/^[0-9a-f]{12}$/), remark },
  ]);
  await said(db, 'check', '--sarif', String(sarif), '--junit', String(junit));
  const notes = (text: string) =>
    (JSON.parse(text) as Log).runs[0]?.invocations?.flatMap(({ toolExecutionNotifications = [] }) =>
      toolExecutionNotifications.map(({ level, message }) => [level, message.text]),
    );
  expect(notes(readFileSync(String(sarif), 'utf8'))).toEqual([['note', `it: ${remark}`]]);
  expect(readFileSync(String(junit), 'utf8')).toContain('<system-out>3 frames without payload');
  await said(db, 'export', '--output', String(file));
  const inFolder = async (...args: string[]) =>
    (await tapedeckInProcess(['ci', String(file), ...args])).stdout.toString();
  expect(await inFolder('--sarif', String(sarif))).toContain(remark);
  expect(notes(readFileSync(String(sarif), 'utf8'))).toEqual([['note', expect.stringContaining(remark)]]);
  expect(JSON.parse((await inFolder('--json')).split('\n')[0] ?? '')).toMatchObject({ unjudged: [remark] });
});

inFull('verify says so too, and asks for nothing of what has no payload', async () => {
  const db = storeSession(null);
  const { stderr, stdout } = await tapedeckInProcess([
    ...['verify', 'latest', '--db', db, '--json', '--', process.execPath, fixture('echo.js')],
  ]);
  expect(stderr).toContain(`has ${SAID}`);
  expect(stdout.toString()).not.toContain('hide');
});

test('the share and the filters go along in a text recording, and back', async () => {
  const [db, copy] = [storeSession(0.25), tempStore()];
  const file = `${db}.ndjson`;
  await said(db, 'export', '--output', file);
  const text = readFileSync(file, 'utf8');
  expect(JSON.parse(text.split('\n')[0] ?? '').session).toMatchObject({
    sample: 0.25,
    redaction: { metaFor: [FILTER] },
  });
  await said(copy, 'import', file);
  await said(copy, 'export', '--output', `${copy}.ndjson`);
  expect(readFileSync(`${copy}.ndjson`, 'utf8')).toBe(text);
  expect(await said(copy, 'show')).toContain(SAID);
  expect(await said(copy, 'stats', '--all')).toContain('1 recorded session for about 4');
});

test.each([
  ['no part of the sample', 0, null],
  ['decided for what it has', 1, 1],
  ['of no sample', null, null],
])('a session that is %s is taken along with the share %j as %j', async (_, share, imported) => {
  const [db, copy] = [storeSession(share), tempStore()];
  await said(db, 'export', '--output', `${db}.ndjson`);
  await said(copy, 'import', `${db}.ndjson`);
  expect(query(copy, 'SELECT sample FROM session')).toEqual([{ sample: imported }]);
});

test('a text recording with a share that is none is refused, and said where', async () => {
  const db = storeSession(0.5);
  await said(db, 'export', '--output', `${db}.ndjson`);
  writeFileSync(`${db}.ndjson`, readFileSync(`${db}.ndjson`, 'utf8').replace('"sample":0.5', '"sample":1.5'));
  expect(await said(tempStore(), 'import', `${db}.ndjson`)).toContain('expected a share above 0 and up to 1');
});

test('calls whose answers alone have no payload end as they did, for `list`, `stats` and SQL', async () => {
  const db = tempStore();
  await said(db, 'import', EVERYTHING_STDIO);
  recordAgain(db, ['kind=result', 'kind=error']);
  const [filtered, whole] = await listSessions(db);
  const facts = ({ exchanges, errors, unanswered }: Record<string, unknown>) => ({
    exchanges,
    errors,
    unanswered,
  });
  expect(facts(filtered ?? {})).toEqual(facts(whole ?? {}));
  const sql = `SELECT e.request_seq, e.method, e.outcome FROM exchange AS e
    WHERE session = (SELECT id FROM session ORDER BY number DESC LIMIT 1 OFFSET ?) ORDER BY request_seq`;
  expect(query(db, sql.replace('?', '0'))).toEqual(query(db, sql.replace('?', '1')));
  const statuses = async (id: string) =>
    (await said(db, 'stats', id, '--json'))
      .split('\n')
      .filter((line) => line.includes('"method":"tools/call"'))
      .map((line) => JSON.parse(line))
      .map(({ target, count, errors, toolErrors, cancelled, unanswered }) => ({
        ...{ target, count, errors, toolErrors, cancelled, unanswered },
      }))
      .toSorted((one, other) => String(one.target).localeCompare(String(other.target)));
  expect(await statuses('filtered')).toEqual(await statuses(whole?.session ?? ''));
  expect((await statuses('filtered')).length).toBeGreaterThan(2);
  const listed = (await said(db, 'show', 'filtered')).match(/not kept, [^\n]*, answers \d+/g);
  expect(listed?.length).toBeGreaterThan(3);
});

/** What `check` finds in the recording of the official server where these frames have no payload. */
async function findingsWithout(filters: readonly string[]): Promise<string[]> {
  const db = tempStore();
  await said(db, 'import', EVERYTHING_STDIO);
  const store = openStore(db);
  const whole = findSession(store, 'latest');
  const isMetaOnly = filters.length > 0 ? createMetaFor(readFrameRule(filters))() : () => false;
  const start: SessionStart = {
    ...{
      name: 'filtered',
      labels: [],
      basis: 'stdio-process',
      transport: 'stdio',
      target: 'x',
      command: ['x'],
    },
    ...{ cwd: null, at: whole.startedAt, host: 'h', pid: 1, processStarted: null, clientPid: null },
    ...{ clientProgram: null, tapedeck: '0' },
    redaction: JSON.stringify({ key: '', without: [], rules: [], paths: [], metaFor: filters }),
  };
  const copy = beginImport(store, start, { frames: 0, bytes: 0 }, null);
  for (const { seq: _, ...frame } of eachBareFrame(store, whole.number)) {
    const payload = Buffer.from('[redacted:meta:000000000000]');
    copy.add(isMetaOnly(frame) ? { ...frame, payload, redacted: ['meta'] } : frame);
  }
  const { number } = copy.finish(STOPPED);
  store.prepare('UPDATE session SET imported_at = NULL').run();
  reindexSession(store, number);
  store.close();
  const { stdout } = await tapedeckInProcess([
    'check',
    'filtered',
    '--json',
    '--severity',
    'note',
    '--db',
    db,
  ]);
  const lines = stdout.toString().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line)).map(({ rule, seq }) => `${rule} ${seq}`);
}

const FILTERS = [
  ...['size>200', 'dir=client', 'dir=server', 'kind=request', 'kind=result', 'kind=notification'],
  ...['kind=error', 'method=initialize', 'method~list', 'not tool~e'],
];
test.each(sample(FILTERS))(
  'where frames of %s have no payload, check finds nothing that it does not find with them',
  async (filter) => {
    const whole = await findingsWithout([]);
    for (const one of await findingsWithout([filter])) expect(whole).toContain(one);
  },
);
