/** The admin port of `record`: who may ask, what it says of health, and that its metrics are what the store says. */

import { request } from 'node:http';
import { createServer } from 'node:net';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { listenOn } from '../support/http.ts';
import { recordUrl } from '../support/http-record.ts';
import {
  askAdmin,
  bodyOf,
  post,
  samplesOf,
  startRawClient,
  startSessionServer,
  total,
} from '../support/operations.ts';
import { inFull } from '../support/scale.ts';
import { latestSession, record, tapedeck, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';

const ADMIN = ['--admin', '127.0.0.1:0'];

/** What the store has, in the words of the metrics. */
const FIGURES = `SELECT
  (SELECT count(*) FROM frame WHERE channel = 'request') AS fromClient,
  (SELECT count(*) FROM frame WHERE channel IN ('response', 'sse')) AS fromServer,
  (SELECT sum(size) FROM frame) AS bytes,
  (SELECT sum(dropped) FROM session) AS lost,
  (SELECT count(*) FROM session WHERE basis = 'session-header') AS sessions,
  (SELECT count(*) FROM session WHERE ended_at IS NULL) AS open,
  (SELECT count(*) FROM http_exchange WHERE status BETWEEN 200 AND 299) AS good,
  (SELECT count(*) FROM http_exchange WHERE status BETWEEN 400 AND 499) AS bad`;

function figuresOf(text: string) {
  return {
    fromClient: total(text, 'tapedeck_frames_recorded_total', { direction: 'client' }),
    fromServer: total(text, 'tapedeck_frames_recorded_total', { direction: 'server' }),
    bytes: total(text, 'tapedeck_bytes_recorded_total'),
    lost: total(text, 'tapedeck_frames_lost_total'),
    sessions: total(text, 'tapedeck_sessions_started_total', { basis: 'session-header' }),
    open: total(text, 'tapedeck_sessions_open'),
    good: total(text, 'tapedeck_http_requests_total', { class: '2xx' }),
    bad: total(text, 'tapedeck_http_requests_total', { class: '4xx' }),
  };
}

async function talk(url: URL): Promise<void> {
  for (let i = 0; i < 3; i += 1) {
    const client = await startRawClient(url);
    for (let call = 0; call < 5; call += 1) await client.call('echo', { text: `${i} ${call}` });
  }
  await bodyOf(await post(url, 'missing', {}));
}

test('metrics are what the store says, also after a predecessor was killed', async () => {
  const server = await startSessionServer();
  const db = tempStore();
  const first = await recordUrl(server.url, { db, args: ADMIN });
  await talk(first.url);
  let metrics = '';
  await until('all is stored', async () => {
    metrics = (await askAdmin(first.run, '/metrics')).text;
    return figuresOf(metrics).fromServer === 18 && figuresOf(metrics).fromClient === 19;
  });
  expect([figuresOf(metrics)]).toEqual(first.rows(FIGURES));
  expect(figuresOf(metrics)).toMatchObject({ sessions: 3, good: 18, bad: 1 });
  expect(total(metrics, 'tapedeck_store_commit_seconds_count')).toBeGreaterThan(0);
  expect(total(metrics, 'tapedeck_forward_overhead_seconds_count')).toBe(19);
  expect(total(metrics, 'tapedeck_store_trouble')).toBe(0);
  expect(total(metrics, 'tapedeck_queue_bytes')).toBe(0);
  first.run.child.kill('SIGKILL');
  await first.run.ended;

  const second = await recordUrl(server.url, { db, args: ADMIN });
  const sessions = Number(second.rows('SELECT max(number) AS n FROM session')[0]?.['n']);
  await talk(second.url);
  await until('all is stored', async () => {
    metrics = (await askAdmin(second.run, '/metrics')).text;
    return figuresOf(metrics).fromServer === 18 && figuresOf(metrics).fromClient === 19;
  });
  const own = FIGURES.replaceAll(/FROM session(?: WHERE)?/g, `FROM session WHERE number > ${sessions} AND`)
    .replaceAll(/(FROM (?:frame|http_exchange) WHERE)/g, `$1 session > ${sessions} AND`)
    .replaceAll(/ AND\)/g, ')')
    .replace('(SELECT sum(size) FROM frame)', `(SELECT sum(size) FROM frame WHERE session > ${sessions})`);
  expect([figuresOf(metrics)]).toEqual(second.rows(own));
  await second.stop();
});

inFull('no label takes what traffic says', async () => {
  const server = await startSessionServer();
  const recording = await recordUrl(server.url, { args: ADMIN });
  const client = await startRawClient(recording.url);
  await client.call('planted-tool', { value: 'planted-value' });
  await bodyOf(await post(recording.url, 'planted/method', {}, { 'X-Planted': 'planted-header' }));
  await until('it is stored', () => recording.rows('SELECT * FROM frame').length >= 6);
  const { text } = await askAdmin(recording.run, '/metrics');
  expect(text).not.toMatch(/planted/);
  expect(text).not.toContain(client.session);
  const own = samplesOf(text).filter(({ name }) => name.startsWith('tapedeck_'));
  const labels = new Set(own.flatMap((sample) => Object.keys(sample.labels)));
  expect([...labels].toSorted()).toEqual(['basis', 'class', 'direction', 'le', 'transport']);
});

test('a recorder by stdio has its metrics too, and says that it is well', async () => {
  const db = tempStore();
  const run = record(db, ['echo.js'], ADMIN);
  run.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  let text = '';
  await until('both lines are stored', async () => {
    text = (await askAdmin(run, '/metrics')).text;
    return total(text, 'tapedeck_frames_recorded_total', { transport: 'stdio' }) >= 2;
  });
  expect(total(text, 'tapedeck_sessions_started_total', { basis: 'stdio-process' })).toBe(1);
  expect(total(text, 'tapedeck_sessions_open')).toBe(1);
  expect(await askAdmin(run, '/healthz')).toEqual({ status: 200, text: 'ok\n' });
  expect(await askAdmin(run, '/readyz')).toEqual({ status: 200, text: 'ok\n' });
  run.child.stdin.end();
  const { code } = await run.ended;
  const { frames } = await latestSession(db);
  expect([code, frames]).toEqual([0, total(text, 'tapedeck_frames_recorded_total')]);
});

test('by another name than its own, or from a page elsewhere, nobody is told anything', async () => {
  const server = await startSessionServer();
  const { run, stop } = await recordUrl(server.url, { args: ADMIN });
  for (const headers of [{ Host: 'rebound.example' }, { Origin: 'https://page.example' }]) {
    for (const path of ['/metrics', '/healthz', '/readyz']) {
      const { status, text } = await askAdmin(run, path, headers as Record<string, string>);
      expect(status, path).toBe(403);
      expect(text).toMatch(/^refused the (?:Host|Origin)/);
    }
  }
  expect((await askAdmin(run, '/other')).status).toBe(404);
  await stop();
});

inFull(
  'while it drains it is well, but not ready; while its store is locked it is ready, and says the trouble',
  async () => {
    const server = await startSessionServer();
    const recording = await recordUrl(server.url, { args: [...ADMIN, '--grace', '20'] });
    const client = await startRawClient(recording.url);
    const stream = await client.stream();
    expect((await askAdmin(recording.run, '/readyz')).status).toBe(200);

    const lock = new Database(recording.db);
    lock.exec('BEGIN IMMEDIATE');
    await client.call('echo');
    await until('the trouble shows', async () => {
      const { text } = await askAdmin(recording.run, '/metrics');
      return total(text, 'tapedeck_store_trouble') === 1;
    });
    expect((await askAdmin(recording.run, '/readyz')).status).toBe(200);
    lock.exec('ROLLBACK');
    lock.close();
    await until('the trouble passes', async () => {
      const { text } = await askAdmin(recording.run, '/metrics');
      return total(text, 'tapedeck_store_trouble') === 0;
    });

    recording.run.child.kill('SIGTERM');
    await until('it drains', async () => (await askAdmin(recording.run, '/readyz')).status === 503);
    expect(await askAdmin(recording.run, '/readyz')).toEqual({ status: 503, text: 'draining\n' });
    expect((await askAdmin(recording.run, '/healthz')).status).toBe(200);
    server.streams[0]?.end('data: {}\n\n');
    await bodyOf(stream);
    expect((await recording.run.ended).code).toBe(0);
  },
);

inFull(
  'a port that is taken ends a recorder by HTTP, which says so; one by stdio goes on without',
  async () => {
    const other = createServer();
    const port = await listenOn(other);
    const admin = ['--admin', `127.0.0.1:${port}`];
    const refused = await tapedeckInProcess([
      'record',
      'http://127.0.0.1:9/mcp',
      '--listen',
      '127.0.0.1:0',
      '--db',
      tempStore(),
      ...admin,
    ]);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      `tapedeck: Cannot listen on 127.0.0.1:${port}: something else listens there. Choose another port, or 0 for a free one: --admin 127.0.0.1:0\n`,
    ]);
    const db = tempStore();
    const run = record(db, ['echo.js'], admin);
    run.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    const { code, stdout, stderr } = await run.ended;
    expect([code, stdout.toString()]).toEqual([0, expect.stringContaining('"id":1')]);
    expect(stderr).toContain('something else listens there');
    expect((await latestSession(db)).frames).toBeGreaterThan(1);
    other.close();
  },
);

inFull('where it is wrongly asked for, nothing is started', async () => {
  const { code, stdout, stderr } = await tapedeck([
    'record',
    '--db',
    tempStore(),
    '--admin',
    'everywhere',
    '--',
    process.execPath,
    '-e',
    'console.log(1)',
  ]).ended;
  expect([code, stdout.toString()]).toEqual([2, '']);
  expect(stderr).toContain('Expected host:port after `--admin`, got `everywhere`');
});

inFull('a request that is cut off does not keep the admin port busy', async () => {
  const server = await startSessionServer();
  const { run, stop } = await recordUrl(server.url, { args: ADMIN });
  await askAdmin(run, '/healthz');
  const url = /health and metrics are at (\S+)/.exec(run.stderr())?.[1] ?? '';
  const half = request(new URL('/metrics', url), { method: 'POST' });
  half.on('error', () => {});
  half.write('x');
  await until('it is answered', () => new Promise((resolve) => half.once('response', () => resolve(true))));
  half.destroy();
  expect((await askAdmin(run, '/healthz')).status).toBe(200);
  await stop();
});
