import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { SessionStart } from '../../../src/store/file/columns.ts';
import { openForReading, openSpool, openStore, type Store } from '../../../src/store/file/open.ts';
import { processKey } from '../../../src/store/file/process.ts';
import { MIGRATIONS } from '../../../src/store/file/schema.ts';
import { perhapsOf, runsOf } from '../../../src/store/read/runs.ts';
import { reindexSession } from '../../../src/store/write/index.ts';
import { removeSession } from '../../../src/store/write/removal.ts';
import { insertSession } from '../../../src/store/write/rows.ts';
import { prepareRunJoin, renameRunLabel, withdrawEvidence } from '../../../src/store/write/run.ts';
import { createTakeIn } from '../../../src/store/write/take-in.ts';
import { answered, asked, ended, JSON_TYPE, startRecording } from '../../support/http-store.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { exportText, importText } from '../../support/text-recording.ts';

const START: SessionStart = {
  ...{ name: null, labels: [], basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'] },
  ...{ cwd: null, at: 1, host: 'here', pid: 7, processStarted: '7', tapedeck: '0' },
  ...{ clientPid: null, clientProgram: null, clientStarted: null },
};

const CLIENT = { clientPid: 6, clientProgram: 'client', clientStarted: '66' };

const HTTP = { basis: 'stateless', transport: 'http', command: null } as const;

/** The names of the sessions of each run. */
function runsIn(store: Store): (string | null)[][] {
  return runsOf(store)
    .map(({ sessions }) => sessions.map(({ name }) => name).toSorted())
    .toSorted((a, b) => String(a).localeCompare(String(b)));
}

function add(store: Store, name: string, start: Partial<SessionStart> = {}): number {
  return insertSession(store, { ...START, name, ...start }).number;
}

test('sessions of one client process are one run, and a pid that is used again is another', () => {
  const store = openStore(tempStore());
  add(store, 'a', CLIENT);
  add(store, 'b', CLIENT);
  add(store, 'later', { ...CLIENT, clientStarted: '99' });
  add(store, 'elsewhere', { ...CLIENT, host: 'there' });
  add(store, 'unknown', { ...CLIENT, clientStarted: null });
  expect(runsIn(store)).toEqual([['a', 'b'], ['elsewhere'], ['later']]);
  store.close();
});

test('a label and the other end of a connection join what the client’s process has begun', () => {
  const store = openStore(tempStore());
  const run = [['run', 'nightly']] as const;
  add(store, 'a', { ...CLIENT, labels: run });
  add(store, 'by label', { ...HTTP, labels: run });
  const peer = add(store, 'by peer', HTTP);
  add(store, 'alone', HTTP);
  const join = prepareRunJoin(store);
  const key = `process ${processKey('here', { pid: 6, started: '66' })}`;
  join(peer, { kind: 'peer', key });
  expect(runsIn(store)).toEqual([['a', 'by label', 'by peer']]);
  expect(runsOf(store)[0]).toMatchObject({ evidence: ['process', 'label', 'peer'], name: 'nightly' });
  store.close();
});

test('evidence that comes late ties two runs together, and the older one keeps its id', () => {
  const store = openStore(tempStore());
  add(store, 'a', CLIENT);
  const b = add(store, 'b', { ...CLIENT, clientPid: 8 });
  add(store, 'c', { ...CLIENT, clientPid: 8 });
  const [, older] = runsOf(store);
  const join = prepareRunJoin(store);
  join(b, { kind: 'trace', key: 'trace 1' });
  join(1, { kind: 'trace', key: 'trace 1' });
  expect(runsIn(store)).toEqual([['a', 'b', 'c']]);
  expect(runsOf(store)[0]?.id).toBe(older?.id);
  removeSession(store, 1);
  expect(runsIn(store)).toEqual([['b', 'c']]);
  store.close();
});

test('what a label alone has tied together parts with it, and with the session that had it', () => {
  const store = openStore(tempStore());
  const other = { ...CLIENT, clientPid: 8 };
  const labels = [['run', 'nightly']] as const;
  const a = add(store, 'a', { ...CLIENT, labels });
  const like = add(store, 'a too', { ...CLIENT, labels });
  add(store, 'b', CLIENT);
  const c = add(store, 'c', { ...other, labels });
  add(store, 'd', other);
  const [whole] = runsOf(store);
  expect(runsIn(store)).toEqual([['a', 'a too', 'b', 'c', 'd']]);
  // Another session of the process says the same.
  removeSession(store, like);
  expect(runsIn(store)).toEqual([['a', 'b', 'c', 'd']]);
  withdrawEvidence(store, c, 'label');
  expect(runsIn(store)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  expect(runsOf(store).map(({ id, evidence }) => [id === whole?.id, evidence])).toEqual([
    [false, ['process']],
    [true, ['process', 'label']],
  ]);
  prepareRunJoin(store)(c, { kind: 'label', key: 'label nightly' });
  expect(runsIn(store)).toEqual([['a', 'b', 'c', 'd']]);
  removeSession(store, a);
  expect(runsIn(store)).toEqual([['b'], ['c', 'd']]);
  store.close();
});

test('a run whose id a process had given away gets one of its own', () => {
  const store = openStore(tempStore());
  const labels = [['run', 'nightly']] as const;
  const a = add(store, 'a', { ...CLIENT, labels });
  add(store, 'c', { ...CLIENT, clientPid: 8, labels });
  removeSession(store, a);
  add(store, 'a again', CLIENT);
  expect(runsIn(store)).toEqual([['a again'], ['c']]);
  store.close();
});

test('a redacted label still ties its sessions, by an id that was not made of the secret', () => {
  const store = openStore(tempStore());
  const labels = [['run', 'secret']] as const;
  const [a, b] = [add(store, 'a', { ...HTTP, labels }), add(store, 'b', { ...CLIENT, labels })];
  add(store, 'c', CLIENT);
  const before = runsOf(store)[0]?.id;
  for (const session of [a, b]) renameRunLabel(store, session, 'secret', 'masked');
  expect(runsIn(store)).toEqual([['a', 'b', 'c']]);
  expect(runsOf(store)[0]).toMatchObject({ name: 'masked' });
  expect(runsOf(store)[0]?.id).not.toBe(before);
  store.close();
});

test('a client of the same name at the same time is a guess, and joins nothing', () => {
  const store = openStore(tempStore());
  const known = add(store, 'a', CLIENT);
  const like = add(store, 'like', HTTP);
  const other = add(store, 'other version', HTTP);
  const elsewhen = add(store, 'later', { ...HTTP, at: 1000 });
  const another = add(store, 'another process', { ...CLIENT, clientPid: 9 });
  const name = store.prepare(
    'UPDATE session SET client_name = ?, client_version = ?, ended_at = ? WHERE number = ?',
  );
  for (const number of [known, like, another]) name.run('c', '1', 10, number);
  name.run('c', '2', 10, other);
  name.run('c', '1', 2000, elsewhen);
  expect(runsIn(store)).toEqual([['a'], ['another process']]);
  const run = runsOf(store).find(({ sessions }) => sessions[0]?.name === 'a');
  expect(run && perhapsOf(store, run).map((one) => one.name)).toEqual(['like']);
  store.close();
});

test('an older store is migrated: its sessions read as before, and a label that names a run joins them', () => {
  const db = tempStore();
  const old = openStore(db, { migrations: MIGRATIONS.slice(0, 4) });
  const insert = old.prepare(
    `INSERT INTO session (number, id, name, basis, transport, target, started_at, host, pid, client_pid, tapedeck)
     VALUES (?, ?, ?, 'stdio-process', 'stdio', 'x', 1, 'here', 1, 6, '0')`,
  );
  for (const [i, name] of ['a', 'b', 'c'].entries()) insert.run(i + 1, name, name);
  const label = old.prepare("INSERT INTO label (session, key, value) VALUES (?, 'run', ?)");
  for (const [session, value] of [
    [1, 'x'],
    [2, 'x'],
    [3, 'y'],
  ])
    label.run(session, value);
  old.close();
  const store = openForReading(db);
  expect(runsIn(store)).toEqual([['a', 'b'], ['c']]);
  store.close();
  const copy = new Database(`${db}.v4`, { readonly: true });
  expect(copy.prepare('SELECT count(*) FROM session').pluck().get()).toBe(3);
  copy.close();
  const again = openStore(db);
  add(again, 'd', { labels: [['run', 'y']] });
  expect(runsIn(again)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  again.close();
});

test('what a spool knows of a run comes into the store with it', () => {
  const store = openStore(tempStore());
  const spool = openSpool(`${tempStore()}.spool`, false);
  add(store, 'a', CLIENT);
  add(spool, 'b', CLIENT);
  const peer = add(spool, 'c', HTTP);
  createTakeIn(store, spool).advance(1000);
  expect(runsIn(store)).toEqual([['a', 'b']]);
  // Found out once the session was in the store.
  const key = `process ${processKey('here', { pid: 6, started: '66' })}`;
  spool.prepare("UPDATE session SET client_pid = 6, client_program = 'client' WHERE number = ?").run(peer);
  prepareRunJoin(spool)(peer, { kind: 'peer', key });
  createTakeIn(store, spool).advance(1000);
  expect(runsIn(store)).toEqual([['a', 'b', 'c']]);
  expect(store.prepare("SELECT client_pid FROM session WHERE name = 'c'").pluck().get()).toBe(6);
  store.close();
  spool.close();
});

test('five recordings that are imported elsewhere keep their runs, in whatever order', async () => {
  const store = openStore(tempStore());
  const other = { ...CLIENT, clientPid: 9 };
  for (const [name, start] of [
    ['a', CLIENT],
    ['b', CLIENT],
    ['c', CLIENT],
    ['d', other],
    ['e', other],
  ] as const)
    add(store, name, start);
  const texts = ['e', 'a', 'd', 'c', 'b'].map((name) => exportText(store, name));
  const elsewhere = openStore(tempStore());
  for (const text of texts) await importText(elsewhere, text);
  expect(runsIn(elsewhere)).toEqual([
    ['a', 'b', 'c'],
    ['d', 'e'],
  ]);
  expect(new Set(runsOf(elsewhere).map(({ id }) => id))).toEqual(new Set(runsOf(store).map(({ id }) => id)));
  expect(exportText(elsewhere, 'a')).toBe(exportText(store, 'a'));
  for (const text of texts) expect(text).not.toContain('here');
  for (const one of [store, elsewhere]) one.close();
});

/** A request with this message, and its answer. */
function postOf(exchange: number, message: { id: number }, headers: readonly string[]) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: message.id, result: {} });
  return [
    ...asked(exchange, { headers: [...JSON_TYPE, ...headers], body: JSON.stringify(message) }),
    ...answered(exchange, { body }),
    ended(exchange),
  ];
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

const traceparent = (span: string) => `00-${TRACE}-${span.padStart(16, '0')}-01`;

test('traces are found in messages and in HTTP requests, join sessions, and are found again by a new index', async () => {
  const { feed, save, store, close } = startRecording();
  const meta = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'a', _meta: { traceparent: traceparent('1') } },
  };
  const plain = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'b' } };
  feed(...postOf(1, meta, ['mcp-session-id', 'one']));
  save();
  feed(...postOf(2, plain, ['mcp-session-id', 'two', 'TraceParent', traceparent('2')]));
  feed(...postOf(3, plain, ['mcp-session-id', 'three', 'traceparent', 'not-one']));
  await close();
  const traces = () =>
    store.prepare('SELECT session, seq, trace_id, parent_id FROM trace ORDER BY session, seq').all();
  const found = traces();
  expect(found).toEqual([
    { session: 1, seq: 1, trace_id: TRACE, parent_id: '0000000000000001' },
    { session: 2, seq: 1, trace_id: TRACE, parent_id: '0000000000000002' },
  ]);
  expect(runsOf(store).map(({ sessions, evidence }) => [sessions.length, evidence])).toEqual([
    [2, ['trace']],
  ]);
  for (const session of [1, 2, 3]) reindexSession(store, session);
  expect(traces()).toEqual(found);
});
