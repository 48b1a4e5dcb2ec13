/** Where an engine is and who we are there: what a URL, files and the environment say together. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connectEngine, hasPassword, readAddress } from '../../src/engine/connect.ts';
import { assertReadable, assertWritable } from '../../src/engine/install.ts';
import { dayOf, tableNamed } from '../../src/engine/tables.ts';
import { engineTroubleOf, sqlStateOf } from '../../src/engine/trouble.ts';
import { isEngineUrl } from '../../src/store/file/path.ts';
import { newDatabase, withEngine } from '../support/engine.ts';
import { tapedeck, tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

test.each([
  ['postgres://me@db.example:6543/deck', { host: 'db.example', port: 6543, user: 'me', database: 'deck' }],
  ['postgresql://me:p%40ss@[::1]/deck', { host: '::1', port: 5432, password: 'p@ss' }],
  ['postgres:///deck?host=/run/pg&user=me', { host: '/run/pg', user: 'me', database: 'deck', ssl: false }],
  ['postgres://me@%2Frun%2Fpg/deck', { host: '/run/pg', ssl: false }],
  ['postgres://me@127.0.0.1', { database: 'me', ssl: false }],
])('the URL %s is read as psql reads it', (url, config) => {
  expect(readAddress(url, { HOME: tempFolder() }).config).toMatchObject(config);
});

test('an address that is shown has no password', () => {
  const { text } = readAddress('postgres://me:hush@localhost/deck', {});
  expect(text).toBe('postgres://me@localhost:5432/deck');
  expect(hasPassword('postgres://me:hush@localhost/deck')).toBe(true);
  expect(hasPassword('postgres://me@localhost/deck?password=hush')).toBe(true);
  expect(hasPassword('postgres://me@localhost/deck')).toBe(false);
  expect(() => readAddress('http://me:hush@localhost', {})).toThrow(
    /^(?!.*hush)Expected the URL of an engine/,
  );
});

test('what is no URL of an engine is told from one', () => {
  expect(isEngineUrl('postgres://localhost')).toBe(true);
  expect(isEngineUrl('postgres.db')).toBe(false);
  expect(() => readAddress('postgres://localhost/?sslmodus=off', {})).toThrow(/Unknown parameter `sslmodus`/);
  expect(() => readAddress('postgres://localhost/%', {})).toThrow(/%25/);
});

test('a URL counts before the service file, and that before the environment', () => {
  const file = join(tempFolder(), 'services');
  writeFileSync(
    file,
    '[other]\nhost=/no\n\n[deck]\n# ours\nhost=/svc\nuser=service\ndbname=deck\n[last]\nuser=no\n',
  );
  const env = { PGSERVICEFILE: file, PGSERVICE: 'deck', PGUSER: 'env', PGPORT: '7000', HOME: tempFolder() };
  const { config } = readAddress('postgres:///?user=me', env);
  expect(config).toMatchObject({ host: '/svc', user: 'me', database: 'deck', port: 7000 });
  expect(() => readAddress('postgres://', { ...env, PGSERVICE: 'none' })).toThrow(/no service `none`/);
});

test('a password file is read as psql reads it, and refused where others may read it', () => {
  const file = join(tempFolder(), 'passwords');
  const lines = ['# ours', 'elsewhere:*:*:*:no', String.raw`127.0.0.1:*:de\:ck:me:hu\\sh\:1`, '*:*:*:*:last'];
  writeFileSync(file, lines.join('\n'), { mode: 0o600 });
  const passwordOf = (url: string) => readAddress(url, { PGPASSFILE: file }).config.password;
  expect(passwordOf('postgres://me@127.0.0.1/de%3Ack')).toBe('hu\\sh:1');
  expect(passwordOf('postgres://you@127.0.0.1/de%3Ack')).toBe('last');
  expect(passwordOf('postgres://you:own@127.0.0.1')).toBe('own');
  chmodSync(file, 0o644);
  expect(() => passwordOf('postgres://me@127.0.0.1')).toThrow(/chmod 600/);
});

test('beyond loopback nothing goes unverified, unless somebody says so', () => {
  expect(readAddress('postgres://db.example/deck', {}).config.ssl).toMatchObject({
    checkServerIdentity: expect.any(Function),
  });
  expect(() => readAddress('postgres://db.example/deck?sslmode=require', {})).toThrow(/verify-full/);
  expect(() => readAddress('postgres://db.example/deck', { PGSSLMODE: 'disable' })).toThrow(/verify-full/);
  const insecure = { isInsecure: true };
  expect(readAddress('postgres://db.example/deck', {}, insecure).config.ssl).toEqual({
    rejectUnauthorized: false,
  });
  expect(readAddress('postgres://db.example/deck?sslmode=disable', {}, insecure).config.ssl).toBe(false);
});

test.each([
  ['57P01', 'away'],
  ['53300', 'away'],
  ['25006', 'away'],
  ['40P01', 'away'],
  ['55P03', 'away'],
  ['08006', 'away'],
  ['ECONNREFUSED', 'away'],
  ['28P01', 'denied'],
  ['42501', 'denied'],
  ['3D000', 'denied'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'denied'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'denied'],
  ['53100', 'full'],
  ['22021', 'data'],
  ['54000', 'data'],
  ['23505', 'data'],
  ['42P01', 'schema'],
  ['XX000', 'other'],
])('an error %s is of the class %s', (code, trouble) => {
  const error = Object.assign(new Error('as the engine says'), { code });
  expect(engineTroubleOf(error)).toBe(trouble);
  expect(sqlStateOf(error)).toBe(code);
});

test('a newer engine takes older writers down to its oldest, and no older reader', () => {
  const engine = { id: 'e', version: 3, minWriter: 2, keptFrom: null };
  expect(() => assertWritable(engine, 3)).not.toThrow();
  expect(() => assertWritable(engine, 2)).not.toThrow();
  expect(() => assertWritable(engine, 1)).toThrow(/Update tapedeck on this host/);
  expect(() => assertWritable(engine, 4)).toThrow(/administrator .* engine migrate/);
  expect(() => assertReadable(engine, 3)).not.toThrow();
  expect(() => assertReadable(engine, 2)).toThrow(/Update tapedeck on this host/);
  expect(() => assertReadable(engine, 4)).toThrow(/engine migrate/);
});

test('the day of a session is that of UTC, whatever its clock says', () => {
  expect(dayOf(Date.UTC(2026, 10, 23, 23, 59, 59, 999) * 1000 + 999)).toBe('2026-11-23');
  expect(dayOf(Date.UTC(1916, 0, 1) * 1000)).toBe('1916-01-01');
  expect(dayOf(-1)).toBe('1969-12-31');
  expect(tableNamed('message').key).toEqual(['session', 'day', 'seq', 'n']);
});

withEngine('a connection', () => {
  test('reads counts as numbers and days as they are written', async () => {
    const client = await connectEngine(readAddress((await newDatabase()).url, {}), 'tapedeck test');
    const { rows } = await client.query(
      "SELECT 9007199254740991::bigint AS count, '2026-11-23'::date AS day, current_setting('application_name') AS name",
    );
    expect(rows).toEqual([{ count: Number.MAX_SAFE_INTEGER, day: '2026-11-23', name: 'tapedeck test' }]);
    await client.end();
  });

  test('that nobody takes is told with the address, without the password', async () => {
    const { url } = await newDatabase();
    const wrong = url.replace(/@/, ':hush@').replace(/[^/]+$/, 'nowhere');
    const { code, stderr } = await tapedeck(['engine', 'init', '--to', wrong]).ended;
    expect(code).toBe(2);
    expect(stderr).toMatch(/a password on a command line can be read by every user/);
    expect(stderr).toMatch(/lets us do nothing: database "nowhere" does not exist \(3D000\)/);
    expect(stderr).not.toContain('hush');
    const gone = await tapedeckInProcess(['engine', 'init', '--to', 'postgres://127.0.0.1:1/deck']);
    expect(gone.stderr).toMatch(/cannot be reached: connect ECONNREFUSED/);
  });

  test('is that of TAPEDECK_SHIP or of one’s own configuration, never of a project’s', async () => {
    const { url } = await newDatabase();
    const named = await tapedeckInProcess(['engine', 'migrate'], { env: { TAPEDECK_SHIP: url } });
    const isNoEngine = expect.stringContaining('is not set up yet');
    expect(named.stderr).toEqual(isNoEngine);
    const cwd = tempFolder();
    const file = join(cwd, 'own.json');
    writeFileSync(file, JSON.stringify({ ship: { url } }));
    const own = await tapedeckInProcess(['engine', 'migrate', '--config', file], { cwd });
    expect(own.stderr).toEqual(isNoEngine);
    writeFileSync(join(cwd, 'tapedeck.config.json'), JSON.stringify({ ship: { url } }));
    const project = await tapedeckInProcess(['engine', 'migrate'], { cwd });
    expect(project.stderr).toContain('`ship.url` cannot be set for a project');
    const none = await tapedeckInProcess(['engine', 'migrate'], { env: { TAPEDECK_SHIP: '' } });
    expect(none.stderr).toContain('Expected an engine');
  });
});
