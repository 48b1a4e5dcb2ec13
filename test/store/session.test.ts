import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createConversation } from '../../src/protocol/message/conversation.ts';
import { openStore, type Store } from '../../src/store/file/open.ts';
import { NO_NOTICES, openIndexed } from '../../src/store/keep/catch-up.ts';
import { eachFrame } from '../../src/store/read/frames.ts';
import { findSession } from '../../src/store/read/sessions.ts';
import { reindexSession } from '../../src/store/write/index.ts';
import { inFull } from '../support/scale.ts';
import {
  latestSession,
  record,
  showFrames,
  tapedeck,
  tapedeckInProcess,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const INITIALIZE =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"9"}}}';

/** Records a conversation with the fixture `asks-back.js`, whose ids clash with the client's. */
async function recordAskingServer(db: string): Promise<void> {
  const { child, stdout, ended } = record(
    db,
    ['asks-back.js'],
    ['--name', 'asking', '--label', 'team=search', '--label', 'env='],
  );
  child.stdin.write('{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"count"}}\n');
  await until('the server asks', () => stdout().includes('roots/list'));
  child.stdin.write('{"jsonrpc":"2.0","id":0,"result":{"roots":[1,2]}}\n');
  await until('the server answers', () => stdout().includes('2 roots'));
  child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}\n');
  await ended;
}

function tableOf(store: Store, sql: string): unknown[] {
  return store.prepare(sql).all();
}

test('ids of both sides are told apart, and an exchange knows who asked', async () => {
  const db = tempStore();
  await recordAskingServer(db);
  const store = openStore(db);
  expect(
    tableOf(store, 'SELECT asked_by, id, method, target, outcome FROM exchange ORDER BY request_seq'),
  ).toEqual([
    { asked_by: 'client', id: '0', method: 'tools/call', target: 'count', outcome: 'ok' },
    { asked_by: 'server', id: '0', method: 'roots/list', target: null, outcome: 'ok' },
    { asked_by: 'client', id: '1', method: 'tools/call', target: 'count', outcome: 'unanswered' },
    { asked_by: 'server', id: '1', method: 'roots/list', target: null, outcome: 'unanswered' },
  ]);
  expect(tableOf(store, 'SELECT key, value FROM label ORDER BY key')).toEqual([
    { key: 'env', value: '' },
    { key: 'team', value: 'search' },
  ]);
  store.close();
});

/** 5 MB a second in some fifty messages: never is there a pause in which they could be indexed. */
const LARGE_AND_STEADY = `const text = 'x'.repeat(100_000);
  setInterval(() => console.log(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { text } })), 20)`;

test('large messages that never pause are indexed while they pass', async () => {
  const db = tempStore();
  const { child, ended } = tapedeck(['record', '--db', db, '--', process.execPath, '-e', LARGE_AND_STEADY]);
  const indexed = () => {
    const store = openStore(db);
    const [{ most }] = tableOf(store, 'SELECT ifnull(max(seq), 0) AS most FROM message') as [
      { most: number },
    ];
    store.close();
    return most;
  };
  await until('some are stored', () => existsSync(db) && indexed() > 0);
  const seen = indexed();
  await until('more are indexed', () => indexed() > seen + 20);
  child.kill();
  await ended;
});

test('the session row says where it ran', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['echo.js'], ['--name', 'where']);
  child.stdin.end(`${INITIALIZE}\n`);
  await ended;
  const store = openStore(db);
  const row = store.prepare<[], Record<string, unknown>>('SELECT * FROM session').get() ?? {};
  expect(row).toMatchObject({
    name: 'where',
    basis: 'stdio-process',
    transport: 'stdio',
    pid: child.pid,
    client_pid: process.pid,
    era: 'legacy',
    protocol_version: '2025-11-25',
    client_name: 'tester',
    client_version: '9',
    server_name: 'echo',
    server_version: '1.0.0',
    exchanges: 1,
    errors: 0,
    unanswered: 0,
    cwd: process.cwd(),
  });
  expect(JSON.parse(String(row['command']))).toEqual([process.execPath, expect.stringMatching(/echo\.js$/)]);
  expect(row['host']).toBe((await import('node:os')).hostname());
  expect(row['client_program']).toEqual(expect.any(String));
  expect(row['server_pid']).toEqual(expect.any(Number));
  expect(Number(row['ended_at'])).toBeGreaterThan(Number(row['started_at']));
  expect(Number(row['client_closed_at'])).toBeLessThanOrEqual(Number(row['server_closed_at']));
  store.close();
});

test('the stored frame is the bytes that passed', async () => {
  const db = tempStore();
  const odd = [
    '{"jsonrpc": "2.0", "id": 12345678901234567890, "method": "ping"}',
    '{"id":1,"method":"a","jsonrpc":"2.0","params":{"b":1.0,"a":1E3,"b":2}}',
    '  {"jsonrpc":"2.0",\t"method":"é\\u00e9"}  ',
  ];
  const { child, ended } = record(db, ['cat.js']);
  child.stdin.end(`${odd.join('\n')}\n`);
  await ended;
  const frames = await showFrames(db);
  expect(frames.filter(({ channel }) => channel === 'stdout').map(({ text }) => text)).toEqual(odd);
  expect(frames[0]?.messages[0]).toMatchObject({ id: '12345678901234567890', idType: 'number' });
});

test('the index can be rebuilt from the frames, and is the same then', async () => {
  const db = tempStore();
  await recordAskingServer(db);
  const store = openStore(db);
  const before = [tableOf(store, 'SELECT * FROM message'), tableOf(store, 'SELECT * FROM session')];
  store.exec('DELETE FROM message; UPDATE session SET indexed = 0, exchanges = 0, errors = 0');
  store.close();
  expect(await tapedeckInProcess(['reindex', '--db', db])).toMatchObject({
    code: 0,
    stderr: 'tapedeck: indexed 1 session\n',
  });
  const again = openStore(db);
  expect([tableOf(again, 'SELECT * FROM message'), tableOf(again, 'SELECT * FROM session')]).toEqual(before);
  again.close();
});

test('an index that a recorder left behind is completed when the store is read', async () => {
  const db = tempStore();
  await recordAskingServer(db);
  const store = openStore(db);
  const before = tableOf(store, 'SELECT * FROM message');
  store.exec('DELETE FROM message WHERE seq > 2; UPDATE session SET indexed = 2');
  store.close();
  const told: string[] = [];
  const again = await openIndexed(db, {
    ...NO_NOTICES,
    onIndexing: ({ name }) => void told.push(name ?? ''),
    onUnredacted: ({ id }) => void told.push(id),
  });
  expect(told).toEqual(['asking']);
  expect(tableOf(again, 'SELECT * FROM message')).toEqual(before);
  again.close();
});

inFull('reindex leaves the session alone that is being recorded', async () => {
  const db = tempStore();
  await recordAskingServer(db);
  const { child, stdout, ended } = record(db, ['cat.js']);
  child.stdin.write('{}\n');
  await until('the session flows', () => stdout().length > 0);
  await until('it is stored', async () => (await latestSession(db)).frames === 2);
  const { stderr } = await tapedeckInProcess(['reindex', '--db', db]);
  expect(stderr).toBe('tapedeck: indexed 1 session\n');
  child.stdin.end();
  await ended;
});

test('frames read back one by one give the same conversation', async () => {
  const db = tempStore();
  await recordAskingServer(db);
  const store = openStore(db);
  const conversation = createConversation();
  for (const frame of eachFrame(store, findSession(store, 'latest'))) conversation.add(frame, frame.seq);
  const { exchanges, errors, unanswered } = await latestSession(db);
  expect(conversation.facts()).toMatchObject({ exchanges, errors, unanswered });
  expect(unanswered).toBe(2);
  reindexSession(store, 1);
  store.close();
});

inFull('a session is found by id, by the beginning of its id, by name and as the latest', async () => {
  const db = tempStore();
  for (const name of ['first', 'second', 'second']) {
    const { child, ended } = record(db, ['cat.js'], ['--name', name]);
    child.stdin.end();
    await ended;
  }
  const store = openStore(db);
  const numberOf = (reference: string) => findSession(store, reference).number;
  const { id } = findSession(store, 'first');
  expect([
    numberOf(id),
    numberOf(id.slice(0, 8)),
    numberOf('first'),
    numberOf('second'),
    numberOf('latest'),
  ]).toEqual([1, 1, 1, 3, 3]);
  expect(() => numberOf('nobody')).toThrow(/No session has the id or name `nobody`/);
  expect(() => numberOf('')).toThrow(/Several sessions begin with/);
  store.close();
});
