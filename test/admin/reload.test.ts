/** SIGHUP reads the configuration file anew: redaction, retention, log level; all or nothing. */
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { query, type Recording, recordUrl } from '../support/http-record.ts';
import { askAdmin, startRawClient, startSessionServer } from '../support/operations.ts';
import { inFull, sample } from '../support/scale.ts';
import { fixture, type Run, tapedeck, tempFolder, tempStore, until } from '../support/tapedeck.ts';

type Reloading = Recording & {
  run: Run;
  /** Writes the file, and waits until the recorder has said what came of it. */
  configure(text: string): Promise<string>;
};

async function startReloading(
  config: object,
  args: readonly string[] = [],
  db = tempStore(),
): Promise<Reloading> {
  const file = join(tempFolder(), 'production.json');
  writeFileSync(file, JSON.stringify(config));
  const server = await startSessionServer();
  const recording = await recordUrl(server.url, { db, args: ['--config', file, ...args] });
  let told = 0;
  const answers = () => [...recording.run.stderr().matchAll(/(?:read anew|stays as it was).*\n/g)];
  return {
    ...recording,
    async configure(text) {
      writeFileSync(file, text);
      recording.run.child.kill('SIGHUP');
      told += 1;
      await until('it was read', () => answers().length === told);
      return answers().at(-1)?.[0] ?? '';
    },
  };
}

const BADGE = { redact: { rules: ['badge=/BADGE-\\d+/'] } };

const payloads = ({ rows }: Recording) =>
  rows<{ payload: Buffer }>(`SELECT payload FROM frame WHERE channel = 'request'`).map(({ payload }) =>
    payload.toString(),
  );

test('a session under way is redacted by the new rules from then on, and its row names both', async () => {
  const recording = await startReloading({ redact: { paths: ['$..card'] } });
  const client = await startRawClient(recording.url);
  await client.call('before', { card: 'planted-card', note: 'BADGE-1' });
  await until('it is stored', () => payloads(recording).length === 2);
  expect(payloads(recording)[1]).toContain('BADGE-1');

  expect(await recording.configure(JSON.stringify(BADGE))).toContain(
    'redaction, retention, sampling, what is shipped and log level',
  );
  await client.call('after', { card: 'open-card', note: 'BADGE-2' });
  const later = await startRawClient(recording.url);
  await later.call('new', { note: 'BADGE-3' });
  await recording.stop();

  const [, before, after, , fresh] = payloads(recording);
  expect(before).not.toContain('planted-card');
  expect(after).not.toContain('BADGE-2');
  expect(after).toContain('open-card');
  expect(fresh).not.toContain('BADGE-3');
  const rules = recording
    .rows<{ redaction: string }>('SELECT redaction FROM session ORDER BY number')
    .map(({ redaction }) => JSON.parse(redaction));
  expect(rules.map(({ rules: names, paths }) => ({ names, paths }))).toEqual([
    { names: BADGE.redact.rules, paths: ['$..card'] },
    { names: BADGE.redact.rules, paths: [] },
  ]);
});

const BROKEN: [what: string, text: string, place: RegExp][] = [
  ['no JSON', '{ "redact": ', /production\.json:1:13: not valid JSON/],
  [
    'an unknown key',
    '{\n  "redcat": {}\n}',
    /production\.json:2:3: Unknown key `redcat`.*Did you mean `redact/,
  ],
  ['a rule that is none', '{ "redact": {\n  "rules": ["badge=/(/"] } }', /production\.json:2:12: .*badge/],
  [
    'a filter that no frame can answer',
    '{ "sample": {\n  "metaFor": ["tool=echo", "dur>1s"] } }',
    /production\.json:2:14: .*got `dur`/,
  ],
  ['a level that is none', '{ "log": { "level": "loud" } }', /Expected debug, info, warn or error/],
  ['no redaction any more', '{ "redact": { "off": true } }', /cannot be switched on or off/],
];
test.each(sample(BROKEN))(
  'a file with %s changes nothing, and it is said where it is wrong',
  async (_, text, place) => {
    const recording = await startReloading(BADGE, ['--admin', '127.0.0.1:0']);
    const client = await startRawClient(recording.url);
    expect(await recording.configure(text)).toMatch(place);
    await client.call('echo', { note: 'BADGE-4' });
    expect((await askAdmin(recording.run, '/healthz')).status).toBe(200);
    await recording.stop();
    expect(payloads(recording).join()).not.toContain('BADGE-4');
  },
);

inFull('which frames have no payload follows the file, in sessions under way too', async () => {
  const recording = await startReloading({ sample: { metaFor: ['tool=before'] } });
  const client = await startRawClient(recording.url);
  let frames = 2;
  const ask = async () => {
    frames += 6;
    for (const name of ['before', 'after', 'other']) await client.call(name);
    await until('they are stored', () => recording.rows('SELECT 1 FROM frame').length === frames);
  };
  await ask();
  await recording.configure(JSON.stringify({ sample: { metaFor: ['tool=after'] } }));
  await ask();
  await recording.configure('{}');
  await ask();
  await recording.stop();
  const texts = payloads(recording).slice(1);
  expect(texts.map((text) => /"name":"(\w+)"/.exec(text)?.[1] ?? null)).toEqual([
    ...[null, 'after', 'other'],
    ...['before', null, 'other'],
    ...['before', 'after', 'other'],
  ]);
  const [{ filters } = {}] = recording.rows<{ filters: string }>(
    "SELECT redaction ->> '$.metaFor' AS filters FROM session",
  );
  expect(JSON.parse(filters ?? '')).toEqual(['tool=before', 'tool=after']);
});

inFull('retention and the log level follow the file, and what needs a restart is named', async () => {
  const db = tempStore();
  const first = await startReloading({}, [], db);
  for (let i = 0; i < 3; i += 1) await (await startRawClient(first.url)).call('echo');
  await first.stop();

  const recording = await startReloading({}, ['--log', 'json'], db);
  const file = { retention: { maxSessions: 1 }, log: { level: 'debug' }, maxQueue: '1mb' };
  await recording.configure(JSON.stringify(file));
  await until('old sessions are pruned', () => recording.rows('SELECT 1 FROM session').length <= 1);
  const { session } = await startRawClient(recording.url);
  const lines = () =>
    recording.run
      .stderr()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  await until('its session is said', () => lines().some(({ event }) => event === 'session-started'));
  await recording.stop();
  expect(lines()).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      message: expect.stringContaining('next start on: maxQueueBytes'),
    }),
  );
  const [{ id } = {}] = recording.rows<{ id: string }>('SELECT id FROM session ORDER BY number DESC');
  expect(lines()).toContainEqual({
    ...{ time: expect.stringMatching(/^\d{4}-.*Z$/), level: 'debug', event: 'session-started' },
    ...{ session: id, basis: 'session-header', message: expect.any(String) },
  });
  expect(lines().map(({ event }) => event)).toContain('session-ended');
  expect(recording.run.stderr()).not.toContain(session);
});

/** A recorder that reads this file at SIGHUP, and what it says of it. */
function startByWords(words: (file: string, db: string) => readonly string[]) {
  const [file, db] = [join(tempFolder(), 'production.json'), tempStore()];
  writeFileSync(file, JSON.stringify({ redact: { paths: ['$..card'] } }));
  const run = tapedeck(words(file, db));
  let told = 0;
  const answers = () => [...run.stderr().matchAll(/(?:read anew|stays as it was).*\n/g)];
  return {
    ...{ run, db },
    async configure(text: string): Promise<string> {
      writeFileSync(file, text);
      run.child.kill('SIGHUP');
      told += 1;
      await until('it was read', () => answers().length === told);
      return answers().at(-1)?.[0] ?? '';
    },
    payloads: () =>
      query<{ payload: Buffer }>(db, `SELECT payload FROM frame WHERE channel IN ('stdin', 'request')`).map(
        ({ payload }) => payload.toString(),
      ),
  };
}

test('a recorder by stdio reads its rules anew too, and its server hears nothing of it', async () => {
  const { run, configure, payloads } = startByWords((file, db) => [
    ...['record', '--db', db, '--config', file, '--', process.execPath, fixture('echo.js')],
  ]);
  const say = (note: string) =>
    run.child.stdin.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"note":"${note}"}}\n`);
  say('BADGE-1');
  await until('it is stored', () => payloads().length === 1);
  expect(await configure('{ "redact": {\n  "rules": ["badge=/(/"] } }')).toMatch(/production\.json:2:12/);
  expect(await configure(JSON.stringify(BADGE))).toContain('redaction, retention');
  say('BADGE-2');
  await until('it is stored', () => payloads().length === 2);
  run.child.stdin.end();
  expect(await run.ended).toMatchObject({ code: 0, signal: null });
  expect(payloads()[0]).toContain('BADGE-1');
  expect(payloads()[1]).not.toContain('BADGE-2');
});

inFull('so does one that clients go through, for servers that are asked later too', async () => {
  const { url } = await startSessionServer();
  const { run, configure, payloads } = startByWords((file, db) => [
    ...['record', '--forward', url, '--listen', '127.0.0.1:0', '--db', db, '--config', file],
  ]);
  await until('it listens', () => run.stderr().includes('listening on '));
  const [, port] = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(run.stderr()) ?? [];
  const ask = (note: string) =>
    new Promise((resolve, reject) => {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"note":"${note}"}}`;
      const headers = { Host: new URL(url).host, 'Content-Type': 'application/json' };
      request({ port, path: url, method: 'POST', headers }, (answer) => resolve(answer.resume()))
        .on('error', reject)
        .end(body);
    });
  expect(await configure('{')).toContain('not valid JSON');
  expect(await configure(JSON.stringify(BADGE))).toContain('redaction, retention');
  await ask('BADGE-5');
  await until('it is stored', () => payloads().length === 1);
  expect(await configure(JSON.stringify({ redact: { rules: ['note=/NOTE-\\d+/'] } }))).toContain('read anew');
  await ask('NOTE-6');
  run.child.kill('SIGTERM');
  expect((await run.ended).code).toBe(0);
  expect(payloads()).toHaveLength(2);
  expect(payloads().join()).not.toMatch(/BADGE-5|NOTE-6/);
});

inFull('so does one that runs a client', async () => {
  const { url } = await startSessionServer();
  const { run, configure } = startByWords((file, db) => [
    ...['run', '--forward', url, '--db', db, '--config', file, '--'],
    ...[process.execPath, fixture('cat.js')],
  ]);
  run.child.stdin.write('here\n');
  await until('its client runs', () => run.stdout().includes('here'));
  expect(await configure('{')).toContain('not valid JSON');
  expect(await configure(JSON.stringify(BADGE))).toContain('redaction, retention');
  run.child.stdin.end();
  expect(await run.ended).toMatchObject({ code: 0, signal: null });
});

inFull('without a configuration file of its own, SIGHUP ends a recorder', async () => {
  const server = await startSessionServer();
  const recording = await recordUrl(server.url);
  recording.run.child.kill('SIGHUP');
  expect((await recording.run.ended).code).toBe(0);
});
