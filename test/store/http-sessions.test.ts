import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { MIGRATIONS } from '../../src/store/file/schema.ts';
import { reindexSession } from '../../src/store/write/index.ts';
import {
  answered,
  asked,
  EVENT_STREAM,
  ended,
  eventOf,
  JSON_TYPE,
  leftByClient,
  rpc,
  startRecording,
} from '../support/http-store.ts';
import { modernMeta } from '../support/messages.ts';
import { inFull } from '../support/scale.ts';
import { latestSession, record, showFrames, tempStore } from '../support/tapedeck.ts';

const MINUTE = 60_000_000;
const call = (id: number, meta = {}) => rpc({ id, method: 'tools/call', params: { name: 'x', _meta: meta } });
const result = (id: number) => rpc({ id, result: {} });
const withSession = (id: string) => [...JSON_TYPE, 'Mcp-Session-Id', id];
const INITIALIZE = rpc({
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
});

test('conversations by session id are sessions of their own, with masked ids, and end by DELETE and 404', async () => {
  const recording = startRecording({ target: 'http://127.0.0.1/mcp?apiKey=s3cr3t&x=1' });
  for (const [i, id] of ['s3cr3t-a', 's3cr3t-b'].entries()) {
    const first = i * 10 + 1;
    recording.feed(
      ...asked(first, { body: INITIALIZE }),
      ...answered(first, { headers: withSession(id), body: result(0) }),
      ended(first),
    );
    recording.feed(
      ...asked(first + 1, { headers: withSession(id), body: call(1) }),
      ...answered(first + 1, { body: result(1) }),
      ended(first + 1),
    );
    recording.save();
  }
  recording.feed(
    ...asked(30, { method: 'DELETE', headers: withSession('s3cr3t-a') }),
    ...answered(30, {}),
    ended(30),
  );
  recording.feed(
    ...asked(31, { headers: withSession('s3cr3t-b'), body: call(2) }),
    ...answered(31, { status: 404 }),
    ended(31),
  );
  await recording.close();
  expect(
    recording.all(
      'SELECT name, basis, end_reason AS reason, frames, exchanges, errors, unanswered, client_name AS client, indexed FROM session ORDER BY number',
    ),
  ).toEqual([
    {
      name: 'n',
      basis: 'session-header',
      reason: 'deleted',
      frames: 4,
      exchanges: 2,
      errors: 0,
      unanswered: 0,
      client: 'c',
      indexed: 4,
    },
    {
      name: 'n',
      basis: 'session-header',
      reason: 'gone',
      frames: 5,
      exchanges: 3,
      errors: 1,
      unanswered: 0,
      client: 'c',
      indexed: 5,
    },
  ]);
  expect(recording.all('SELECT key, value FROM label')).toHaveLength(2);
  expect(
    recording.all("SELECT DISTINCT target FROM session WHERE target LIKE '%?apiKey=masked-%&x=1'"),
  ).toHaveLength(1);
  for (const table of ['session', 'http_exchange', 'frame', 'sse_event'])
    expect(JSON.stringify(recording.all(`SELECT * FROM ${table}`))).not.toContain('s3cr3t');
});

test('an idle session ends when time passes, and wants to be stored', async () => {
  const recording = startRecording();
  recording.feed(...asked(1, { body: call(1) }), ...answered(1, { body: result(1) }), ended(1));
  recording.save();
  const wantsToBeStoredAt = (at: number) => {
    const before = recording.news();
    recording.intake.framer.tick(at);
    return recording.news() > before;
  };
  expect(wantsToBeStoredAt(MINUTE)).toBe(false);
  expect(wantsToBeStoredAt(20 * MINUTE)).toBe(true);
  recording.save();
  expect(recording.all('SELECT end_reason AS reason FROM session')).toEqual([{ reason: 'idle' }]);
  recording.feed(...asked(2, { body: call(2), at: 21 * MINUTE }), ended(2));
  await recording.close();
  expect(recording.all('SELECT end_reason AS reason FROM session ORDER BY number')).toEqual([
    { reason: 'idle' },
    { reason: 'stopped' },
  ]);
});

test('trailers, informations and refusals by the proxy stand on their exchange', async () => {
  const recording = startRecording();
  const [head, body, end] = asked(1, { body: call(1) });
  recording.feed(head as never, body as never, { ...end, rawTrailers: ['X-Api-Key', 'abc'] } as never);
  recording.feed({ type: 'information', exchange: 1, at: 1005, status: 103, rawHeaders: ['Link', '</a>'] });
  recording.feed(...answered(1, { body: result(1) }), ended(1, { rawTrailers: ['X-T', '1'] }));
  for (const [exchange, status] of [
    [2, 403],
    [3, 502],
  ] as const) {
    recording.feed(
      ...asked(exchange, { body: call(exchange) }),
      ...answered(exchange, { status, headers: ['Content-Type', 'text/plain'], body: 'tapedeck: no\n' }),
    );
    recording.feed(ended(exchange, { closedBy: 'proxy', error: 'no' }));
  }
  await recording.close();
  const rows = recording.all(
    'SELECT status, request_trailers AS asked, informations, response_trailers AS trailers, closed_by AS by, error FROM http_exchange ORDER BY number',
  );
  expect(rows).toEqual([
    {
      status: 200,
      asked: expect.stringMatching(/^\[\["X-Api-Key","masked-\w+"\]\]$/),
      informations: '[{"at":1005,"status":103,"headers":[["Link","</a>"]]}]',
      trailers: '[["X-T","1"]]',
      by: 'server',
      error: null,
    },
    { status: 403, asked: null, informations: null, trailers: null, by: 'proxy', error: 'no' },
    { status: 502, asked: null, informations: null, trailers: null, by: 'proxy', error: 'no' },
  ]);
  expect(recording.all('SELECT id, outcome FROM exchange ORDER BY request_seq')).toEqual([
    { id: '1', outcome: 'ok' },
    { id: '2', outcome: 'error' },
    { id: '3', outcome: 'error' },
  ]);
});

test('reindex gives the index that was made live, cancellations and refusals included', async () => {
  const recording = startRecording();
  const modern = modernMeta();
  const step = async (...news: Parameters<typeof recording.feed>) => {
    recording.feed(...news);
    recording.save(true);
  };
  await step(
    ...asked(1, { body: call(1, modern) }),
    ...answered(1, {
      headers: EVENT_STREAM,
      body: eventOf({ method: 'notifications/progress', params: { progressToken: 1 } }),
    }),
  );
  await step(...asked(2, { body: call(1, modern) }), ...answered(2, { body: result(1) }), ended(2));
  await step(leftByClient(1));
  await step(...asked(3, { body: call(1, modern) }), ...answered(3, { status: 500, body: 'oops' }), ended(3));
  await step(
    ...asked(4, { body: call(1, modern) }),
    ...answered(4, { headers: EVENT_STREAM, body: eventOf({ id: 1, result: {} }) }),
    leftByClient(4),
  );
  await step(...asked(5, { body: call(1, modern) }), leftByClient(5), ...asked(6, { body: call(1, modern) }));
  await recording.close();
  const index = () => ({
    messages: recording.all('SELECT * FROM message ORDER BY session, seq, n'),
    sessions: recording.all('SELECT exchanges, errors, unanswered, indexed FROM session ORDER BY number'),
  });
  const live = index();
  const outcomes = recording.all<{ outcome: string }>('SELECT outcome FROM exchange ORDER BY request_seq');
  expect(outcomes.map(({ outcome }) => outcome)).toEqual([
    'cancelled',
    'ok',
    'error',
    'ok',
    'cancelled',
    'unanswered',
  ]);
  for (const { number } of recording.all<{ number: number }>('SELECT number FROM session'))
    reindexSession(recording.store, number);
  expect(index()).toEqual(live);
});

inFull('more sessions than have room for what their index needs are indexed all the same', async () => {
  const recording = startRecording();
  const count = 1100;
  for (const round of [0, 1]) {
    for (let n = 0; n < count; n += 1) {
      const exchange = round * count + n + 1;
      const headers = withSession(`id-${n}`);
      recording.feed(
        ...asked(exchange, { headers, body: call(round) }),
        ...answered(exchange, { body: result(round) }),
        ended(exchange),
      );
      if (n % 300 === 0) recording.save();
    }
    recording.save();
  }
  await recording.close();
  expect(
    recording.all(
      'SELECT count(*) AS n, frames, indexed, exchanges, unanswered FROM session GROUP BY 2, 3, 4, 5',
    ),
  ).toEqual([{ n: count, frames: 4, indexed: 4, exchanges: 2, unanswered: 0 }]);
});

test('a store from before HTTP keeps what it has, and takes HTTP', async () => {
  const db = tempStore();
  const old = openStore(db, { migrations: MIGRATIONS.slice(0, 1) });
  old.exec(`INSERT INTO session (id, basis, transport, target, started_at, host, pid, tapedeck, frames)
      VALUES ('old', 'stdio-process', 'stdio', 'x', 1, 'elsewhere', 1, '0', 1);
    INSERT INTO frame (session, seq, at, channel, size, payload) VALUES (1, 1, 5, 'stdin', 2, x'7b7d');
    INSERT INTO unfinished (session, channel, part, at, bytes) VALUES (1, 'stdout', 0, 6, x'7b')`);
  old.close();
  const run = record(db, ['cat.js'], ['--name', 'new']);
  run.child.stdin.end(`${call(1)}\n`);
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  expect(await showFrames(db, 'old')).toMatchObject([
    { seq: 1, channel: 'stdin', text: '{}', http: null },
    { seq: 2, channel: 'stdout', text: '{' },
  ]);
  expect(await latestSession(db)).toMatchObject({ name: 'new', frames: 2 });
  const store = new Database(db, { readonly: true });
  expect(store.prepare('SELECT asked_by, http FROM exchange').all()).toContainEqual({
    asked_by: 'client',
    http: null,
  });
  store.close();
});
