/** What is in a store comes into the engine once, whole and as it is. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TABLES } from '../../src/engine/tables.ts';
import { openStore } from '../../src/store/file/open.ts';
import { processStarted } from '../../src/store/file/process.ts';
import { createPeers } from '../../src/store/write/peers.ts';
import { createPendingSession, type SessionKey } from '../../src/store/write/pending.ts';
import { mixLines } from '../bench/mix.js';
import { type Database, newDatabase, withEngine } from '../support/engine.ts';
import { FAKE_SECRETS } from '../support/secrets.ts';
import { differences, engineForHosts, filledStore, shipOnce } from '../support/shipped.ts';
import { START, storeSession } from '../support/stored.ts';
import { ROOT, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';

withEngine('shipping', () => {
  test('every session is in the engine afterwards, row by row, and a second time nothing goes', async () => {
    const { database, host } = await engineForHosts();
    const file = filledStore((store) => {
      for (let i = 0; i < 3; i += 1)
        storeSession(store, { start: { at: 1.7e15 + i * 1e12, labels: [['team', 'a']] } });
    });
    const first = await shipOnce(host, file);
    expect(first.stderr).toMatch(/shipped 6 frames/);
    expect(first.code).toBe(0);
    expect(await differences(database, [file])).toEqual([]);
    expect((await shipOnce(host, file)).stderr).toMatch(/shipped 0 frames/);
    expect(await differences(database, [file])).toEqual([]);
  });

  test('what is learned of sessions after they were shipped whole is there too: their client, and its run', async () => {
    const { database, host } = await engineForHosts();
    const file = filledStore((store) => {
      for (const name of ['one', 'two']) storeSession(store, { start: { name, transport: 'http' } });
    });
    const shipped = async () => {
      expect(await shipOnce(host, file)).toMatchObject({ code: 0 });
      expect(await differences(database, [file])).toEqual([]);
      return await database.query('SELECT client_pid, runs FROM tapedeck.session ORDER BY name');
    };
    const run = { kind: 'peer', key: expect.any(String), id: expect.any(String) };
    const known = { client_pid: '5', runs: [run] };
    const unknown = { client_pid: null, runs: [] };
    expect(await shipped()).toEqual([unknown, unknown]);
    await learnClients(file, { one: [5], two: [5] });
    expect(await shipped()).toEqual([known, known]);
    // Another process has spoken in it, too.
    await learnClients(file, { one: [5, 6] });
    expect(await shipped()).toEqual([unknown, known]);
  });

  test('a packed session is there with its bytes as they passed', async () => {
    const { database, host } = await engineForHosts();
    const large = 'many words and more '.repeat(80_000);
    const lines = [...mixLines(200), large, large];
    const file = filledStore((store) => {
      storeSession(store, { lines });
      storeSession(store, { lines: [...mixLines(50)] });
    });
    await tapedeckInProcess(['pack', '--db', file]);
    expect((await shipOnce(host, file)).stderr).toMatch(/shipped 252 frames/);
    expect(await differences(database, [file])).toEqual([]);
    const [row] = await database.query<{ bytes: string }>(
      `SELECT sum(length(payload)) + (SELECT sum(length(bytes)) FROM tapedeck.frame_part) AS bytes FROM tapedeck.frame`,
    );
    const passed = [...lines, ...mixLines(50)].reduce((sum, line) => sum + Buffer.byteLength(line), 0);
    expect(Number(row?.bytes)).toBe(passed);
  });

  test('recordings by HTTP and by stdio, with events, edits, faults and traces, are there as they are here', async () => {
    const { database, host } = await engineForHosts();
    const file = tempStore();
    for (const name of ['everything-http', 'everything-stdio', 'modern-http'])
      await tapedeckInProcess(['import', join(ROOT, `recordings/${name}.ndjson`), '--db', file]);
    expect((await shipOnce(host, file)).stderr).toMatch(/shipped 0 frames/);
    const store = openStore(file);
    store.exec(`UPDATE session SET imported_at = NULL, redaction = '{}';
      INSERT INTO frame_fault VALUES (1, 2, 1, 'the rule', 'delay');
      INSERT OR REPLACE INTO frame_edit (session, seq, original) VALUES (1, 3, x''), (1, 4, zeroblob(3000000));
      INSERT OR IGNORE INTO trace VALUES (1, 2, '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331');
      INSERT INTO unfinished VALUES (2, 'stdout', 0, 5, x'00ff', NULL)`);
    store.close();
    expect(await shipOnce(host, file)).toMatchObject({
      stderr: expect.stringMatching(/^tapedeck: shipped/),
      code: 0,
    });
    expect(await differences(database, [file])).toEqual([]);
    const tables = [
      'sse_event',
      'http_exchange',
      'frame_edit',
      'frame_fault',
      'trace',
      'unfinished',
      'message',
    ];
    for (const table of tables)
      expect(await database.query(`SELECT 1 FROM tapedeck.${table} LIMIT 1`), table).toHaveLength(1);
  });

  test('rows that no text column takes, and longer ones than any index, are there as they are here', async () => {
    const { database, host } = await engineForHosts();
    const hostile = [
      '\0',
      'a\0b',
      'x'.repeat(100_000),
      '\u2400',
      '\ufffd',
      '{"\\u0000":1}',
      "'; DROP TABLE x; --",
      '\\.',
    ];
    const file = filledStore((store) => {
      for (const [i, text] of hostile.entries()) {
        const lines = [
          `{"jsonrpc":"2.0","id":${JSON.stringify(text)},"method":${JSON.stringify(text)},"params":{"name":"\\ud800"}}`,
          Buffer.from([0xff, 0x00, 0xc3, 0x28, 0xed, 0xa0, 0x80]),
          '',
        ];
        const number = storeSession(store, {
          lines,
          start: {
            at: 1.7e15 + i,
            name: text,
            target: text,
            labels: [
              ['k', text],
              ['a\0', 'v'],
            ],
          },
        });
        store
          .prepare('UPDATE session SET server_name = ?, command = ? WHERE number = ?')
          .run(text, JSON.stringify([text]), number);
        store.prepare('INSERT INTO sse_event VALUES (?, 1, ?, ?, ?)').run(number, text, text, text);
        store.prepare('INSERT INTO frame_fault VALUES (?, 1, 1, ?, ?)').run(number, text, text);
        store
          .prepare(`INSERT INTO http_exchange (session, number, method, path, version, client, request_headers, request_bytes, response_bytes, at, error)
          VALUES (?, 1, ?, ?, '1.1', ?, ?, 1, 1, 1, ?)`)
          .run(number, text, text, text, JSON.stringify([[text, text]]), text);
      }
    });
    expect(await shipOnce(host, file)).toMatchObject({
      stderr: expect.stringMatching(/^tapedeck: shipped/),
      code: 0,
    });
    expect(await differences(database, [file])).toEqual([]);
  });

  test('a frame of any size comes in parts, and whole sessions of any start have a place', async () => {
    const { database, host } = await engineForHosts();
    const MIB = 1024 * 1024;
    const sizes = [0, MIB - 1, MIB, MIB + 1, 4 * MIB, 4 * MIB + 1, 11 * MIB + 7];
    const file = filledStore((store) => {
      storeSession(store, { lines: sizes.map((size, i) => Buffer.alloc(size, `${i}abc`)) });
      for (const year of [1999, 2016, 2036, 2099])
        storeSession(store, { start: { at: Date.UTC(year, 11, 31, 23, 59) * 1000 } });
    });
    expect(await shipOnce(host, file)).toMatchObject({
      stderr: expect.stringMatching(/^tapedeck: shipped/),
      code: 0,
    });
    expect(await differences(database, [file])).toEqual([]);
  });

  test('an open session is there as far as it has come, and is sealed once it is over', async () => {
    const { database, host } = await engineForHosts();
    let number = 0;
    const own = { host: hostname(), pid: process.pid, processStarted: processStarted(process.pid) };
    const file = filledStore((store) => {
      number = storeSession(store, { isOpen: true, start: own });
      store.exec(`INSERT INTO unfinished VALUES (${number}, 'stdin', 0, 5, x'aa', NULL)`);
    });
    await shipOnce(host, file);
    expect(await differences(database, [file], { isSealed: false })).toEqual([]);
    const store = openStore(file);
    store.exec(`DELETE FROM unfinished; INSERT INTO frame (session, seq, at, channel, size, payload) VALUES (${number}, 3, 7, 'stdin', 1, x'aa');
      UPDATE session SET frames = 3, bytes = bytes + 1, ended_at = 9, end_reason = 'client-closed' WHERE number = ${number}`);
    store.close();
    expect((await shipOnce(host, file)).stderr).toMatch(/shipped 1 frame,/);
    expect(await differences(database, [file])).toEqual([]);
  });

  test('what is redacted after it was shipped is in no table of the engine any more', async () => {
    const { database, host } = await engineForHosts();
    const secret = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';
    const file = filledStore((store) => {
      storeSession(store, {
        lines: [`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"${secret}"}}`],
        start: { name: secret, labels: [['k', secret]] },
      });
    });
    await shipOnce(host, file);
    expect(await holds(database, secret)).not.toEqual([]);
    await tapedeckInProcess(['redact', 'latest', '--db', file]);
    expect(await shipOnce(host, file)).toMatchObject({
      stderr: expect.stringMatching(/^tapedeck: shipped/),
      code: 0,
    });
    expect(await holds(database, secret)).toEqual([]);
    expect(await differences(database, [file])).toEqual([]);
  });

  test('sessions that are unredacted or imported stay here, unless somebody wants them there', async () => {
    const { database, host } = await engineForHosts();
    const file = filledStore((store) => {
      storeSession(store);
      storeSession(store, { start: { at: 2e15, redaction: null } });
      const imported = storeSession(store, { start: { at: 3e15 } });
      store.exec(`UPDATE session SET imported_at = 1 WHERE number = ${imported}`);
    });
    const first = await shipOnce(host, file);
    expect(first).toMatchObject({ code: 1 });
    expect(first.stderr).toMatch(/is not shipped: it was recorded with --no-redact/);
    const count = async () => (await database.query('SELECT 1 FROM tapedeck.session')).length;
    expect(await count()).toBe(1);
    expect(await shipOnce(host, file, '--ship-unredacted')).toMatchObject({ code: 0 });
    expect(await count()).toBe(2);
    await shipOnce(host, file, '--imported', '--ship-unredacted');
    expect(await count()).toBe(3);
  });

  test('a session that the engine does not take is told apart from the others, which go on', async () => {
    const { database, host } = await engineForHosts();
    await database.query("ALTER TABLE tapedeck.frame ADD CONSTRAINT no_poison CHECK (payload <> 'poison')");
    const file = filledStore((store) => {
      for (let i = 0; i < 9; i += 1)
        storeSession(store, {
          lines: i === 4 ? ['a', 'b', 'poison', 'c'] : ['a', 'b'],
          start: { at: 1.7e15 + i, name: `n${i}` },
        });
    });
    const { code, stderr } = await shipOnce(host, file);
    expect(code).toBe(1);
    expect(stderr).toMatch(/is not shipped: frame 3: 23514 /);
    const there = await database.query(
      'SELECT name FROM tapedeck.session WHERE sealed_at IS NOT NULL ORDER BY name',
    );
    expect(there.map(({ name }) => name)).toEqual(['n0', 'n1', 'n2', 'n3', 'n5', 'n6', 'n7', 'n8']);
  });

  test('an engine that was restored from a backup gets again what it has lost', async () => {
    const { database, host } = await engineForHosts();
    const file = filledStore((store) => {
      for (let i = 0; i < 4; i += 1) storeSession(store, { start: { at: 1.7e15 + i } });
    });
    await shipOnce(host, file);
    const [one, two] = await database.query<{ session: string }>(
      'SELECT session FROM tapedeck.session ORDER BY session',
    );
    for (const table of TABLES)
      await database.query(`DELETE FROM tapedeck.${table.name} WHERE session = $1`, [one?.session]);
    await database.query(
      'UPDATE tapedeck.session SET sealed_at = NULL, cursor = 1, digest = NULL WHERE session = $1',
      [two?.session],
    );
    await database.query('DELETE FROM tapedeck.frame WHERE session = $1 AND seq > 1', [two?.session]);
    await shipOnce(host, file);
    const found = await differences(database, [file]);
    // Its digest at the first frame is not known any more.
    expect(found.filter((text) => !text.endsWith('has another digest'))).toEqual([]);
  });

  test('a database that is no engine, and one that is away, are said', async () => {
    const file = filledStore((store) => storeSession(store));
    const { url } = await newDatabase();
    expect(await shipOnce(url, file)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is not set up yet/),
    });
  });
});

/** The sessions of these names were on connections from these processes, as a recorder finds out beside the recording. */
async function learnClients(file: string, pids: Readonly<Record<string, readonly number[]>>): Promise<void> {
  const store = openStore(file);
  const find = async (addresses: readonly string[]) =>
    addresses.map((address) => {
      const pid = Number(address.split(':')[1]);
      return { pid, program: 'client', started: String(pid) };
    });
  const peers = createPeers(() => store, START.host, find);
  for (const [name, some] of Object.entries(pids)) {
    const pending = createPendingSession({ basis: 'session-header', transport: 'http', id: name });
    pending.key = store
      .prepare<[string], SessionKey>('SELECT number, id FROM session WHERE name = ?')
      .get(name) as SessionKey;
    for (const pid of some) peers.saw(pending, `127.0.0.1:${pid}`);
  }
  await until('all clients are looked up', async () => (await peers.look()) === null);
  store.close();
}

/** The tables of the engine that hold these bytes. */
async function holds(database: Database, text: string): Promise<string[]> {
  const found: string[] = [];
  for (const { name } of TABLES) {
    const rows = await database.query(
      `SELECT 1 FROM tapedeck.${name} AS t WHERE strpos(t::text, $1) > 0 OR strpos(t::text, $2) > 0 LIMIT 1`,
      [text, Buffer.from(text).toString('hex')],
    );
    if (rows.length > 0) found.push(name);
  }
  return found;
}
