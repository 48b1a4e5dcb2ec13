/** A share of the sessions is shipped, each as a whole: which ones is the same on every host, and does not change any more. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { readShipFigures } from '../../src/ship/figures.ts';
import { openForReading, openStore, type Store } from '../../src/store/file/open.ts';
import { sessionKey } from '../../src/store/read/session-key.ts';
import { drawOf } from '../../src/store/sample/sampling.ts';
import { withEngine } from '../support/engine.ts';
import { fleet } from '../support/fleet.ts';
import { inFull } from '../support/scale.ts';
import { engineForHosts, filledStore, shipOnce } from '../support/shipped.ts';
import { storeSession } from '../support/stored.ts';
import { fixture, tapedeck, tapedeckInProcess, tempFolder, tempStore, until } from '../support/tapedeck.ts';

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}';

const FAILED = [CALL, '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}'];

/** Sessions `ok-0`… and `failed-0`…, all over. */
const filled = (count: number, failed = 0) =>
  filledStore((store) => {
    for (let i = 0; i < count; i += 1)
      storeSession(store, { start: { at: 1.7e15 + i * 1e6, name: `ok-${i}` } });
    for (let i = 0; i < failed; i += 1)
      storeSession(store, { start: { at: 1.71e15 + i * 1e6, name: `failed-${i}` }, lines: FAILED });
  });

function inStore<T>(file: string, read: (store: Store) => T): T {
  const store = openForReading(file);
  try {
    return read(store);
  } finally {
    store.close();
  }
}

function change(file: string, work: (store: Store) => void): void {
  const store = openStore(file);
  work(store);
  store.close();
}

/** The names of those that the hash draws at this rate. */
function drawn(file: string, rate: number): string[] {
  return inStore(file, (store) => {
    const identity = String(store.prepare('SELECT id FROM identity').pluck().get());
    return store
      .prepare<
        [],
        { id: string; name: string; startedAt: number; host: string; pid: number; processStarted: null }
      >(
        `SELECT id, name, started_at AS startedAt, host, pid, process_started AS processStarted FROM session
           WHERE name LIKE 'ok-%' ORDER BY started_at`,
      )
      .all()
      .filter((session) => drawOf(sessionKey(identity, session), 'ship') < rate)
      .map(({ name }) => name);
  });
}

type Engine = Awaited<ReturnType<typeof engineForHosts>>['database'];

const there = (database: Engine) =>
  database.query<{ name: string; sample: number | null; frames: number }>(
    `SELECT name, sample, (SELECT count(*)::int FROM tapedeck.frame AS f WHERE f.session = s.session) AS frames
       FROM tapedeck.session AS s ORDER BY started_at`,
  );

const names = async (database: Engine) => (await there(database)).map(({ name }) => name);

const states = (file: string) =>
  inStore(file, (store) =>
    Object.fromEntries(
      store
        .prepare<[], [string, string]>(
          'SELECT s.name, p.state FROM shipped AS p JOIN session AS s ON s.number = p.session',
        )
        .raw()
        .all(),
    ),
  );

const status = async (file: string) =>
  JSON.parse((await tapedeckInProcess(['ship', 'status', '--json', '--db', file])).stdout.toString());

withEngine('a sample of what is shipped', () => {
  inFull(
    'is what the hash of the keys draws and what has errors, whole; the rest is told apart',
    async () => {
      const { database, host } = await engineForHosts();
      const file = filled(300, 4);
      const run = await shipOnce(host, file, '--ship-sample', '10%');
      expect(run).toMatchObject({ code: 0 });
      const [expected, failed] = [drawn(file, 0.1), ['failed-0', 'failed-1', 'failed-2', 'failed-3']];
      expect(expected.length).toBeGreaterThan(10);
      expect(expected.length).toBeLessThan(60);
      const rows = await there(database);
      expect(rows.map(({ name }) => name)).toEqual([...expected, ...failed]);
      expect(rows.every(({ frames }) => frames === 2)).toBe(true);
      expect(rows.map(({ sample }) => sample)).toEqual([...expected.map(() => 0.1), ...failed.map(() => 1)]);

      const left = 300 - expected.length;
      expect(run.stderr).toContain(`${left} sessions left out of the sample that is shipped`);
      expect(await status(file)).toMatchObject({
        ...{ backlog: { sessions: 0, frames: 0 }, lagMs: 0, sealed: rows.length, undecided: { sessions: 0 } },
        ...{ sampledOut: { sessions: left, frames: 2 * left }, refused: [], lost: { sessions: 0 } },
      });
      const said = await tapedeckInProcess(['ship', 'status', '--db', file]);
      expect(said.stdout.toString()).toMatch(new RegExp(`left out of the sample +${left} sessions`));
      expect(inStore(file, readShipFigures)).toMatchObject({
        undecidedSessions: 0,
        sampledOutSessions: left,
      });
      expect(
        inStore(file, (store) =>
          store.prepare("SELECT DISTINCT reason FROM shipped WHERE state = 'skipped'").pluck().all(),
        ),
      ).toEqual(['it has nothing of `status~error`, and is not of the share that is shipped']);
      const verified = await tapedeckInProcess(['ship', 'verify', '--to', database.url, '--db', file]);
      expect(verified).toMatchObject({ code: 0 });
      expect(verified.stderr).toMatch(new RegExp(`304 sessions: .*${left} sampled-out`));
      expect(verified.stderr).not.toMatch(/missing|behind|lost/);
    },
  );

  inFull(
    'stands, whatever is asked for later, and what was shipped in part before becomes whole',
    async () => {
      const { database, host } = await engineForHosts();
      const file = filled(20);
      change(file, (store) => {
        storeSession(store, {
          isOpen: true,
          start: { at: Date.now() * 1000, host: hostname(), pid: process.pid, name: 'begun' },
        });
      });
      await shipOnce(host, file, '--ship-sample', '0', '--ship-keep', 'name=ok-3', '--decide-after', '0s');
      expect(await names(database)).toEqual(['ok-3']);
      const skipped = Object.values(states(file)).filter((state) => state === 'skipped');
      expect(skipped).toHaveLength(20);

      // All are asked for now: only what was not decided goes.
      change(file, (store) => void storeSession(store, { start: { at: 1.72e15, name: 'ok-later' } }));
      await shipOnce(host, file);
      expect(await names(database)).toEqual(['ok-3', 'ok-later']);

      // A session that is open is not left out once some of it is there.
      const open = filledStore((store) => {
        storeSession(store, {
          isOpen: true,
          start: { at: 1.73e15, host: hostname(), pid: process.pid, name: 'part' },
        });
      });
      await shipOnce(host, open);
      change(open, (store) => {
        store.exec("UPDATE session SET end_reason = 'stopped'");
        // What the store knew of it is gone: then the engine knows.
        store.exec('DELETE FROM shipped');
      });
      await shipOnce(host, open, '--ship-sample', '0');
      const [, , part] = await there(database);
      expect(part).toMatchObject({ name: 'part', sample: null, frames: 2 });
      expect(states(open)).toEqual({ part: 'sealed' });

      // Somebody wants one of them all the same.
      await tapedeckInProcess(['ship', 'retry', 'ok-5', '--db', file]);
      await shipOnce(host, file, '--ship-sample', '0');
      expect(await names(database)).toEqual(['ok-3', 'ok-5', 'ok-later', 'part']);
    },
  );

  inFull(
    'is the same from a copy on another host, and where the store has forgotten what it shipped',
    async () => {
      const { database, host } = await engineForHosts();
      const other = await engineForHosts();
      const file = filled(60);
      const copy = tempStore();
      change(file, (store) => void store.prepare('VACUUM INTO ?').run(copy));
      await shipOnce(host, file, '--ship-sample', '0.3');
      await shipOnce(other.host, copy, '--ship-sample', '30%');
      const first = await names(database);
      expect(first).toEqual(drawn(file, 0.3));
      expect(await names(other.database)).toEqual(first);
      change(file, (store) => store.exec('DELETE FROM shipped'));
      await shipOnce(host, file, '--ship-sample', '0.3');
      expect(await names(database)).toEqual(first);
      expect(Object.values(states(file)).filter((state) => state === 'sealed')).toHaveLength(first.length);
      // A smaller share now would leave some out that are there: these stay, and nothing of them is lost.
      change(file, (store) => store.exec('DELETE FROM shipped'));
      await shipOnce(host, file, '--ship-sample', '1%');
      expect(await names(database)).toEqual(first);
      expect(await tapedeckInProcess(['ship', 'verify', '--to', database.url, '--db', file])).toMatchObject({
        code: 0,
      });
    },
  );

  test('is decided at the end of a session, or of an open one after --decide-after, by what it has then', async () => {
    const { database, host } = await engineForHosts();
    const open = (name: string, at: number, lines?: string[]) => ({
      isOpen: true,
      ...(lines && { lines }),
      start: { at, host: hostname(), pid: process.pid, name },
    });
    const now = Date.now() * 1000;
    const file = filledStore((store) => {
      storeSession(store, open('old-failed', now - 3600e6, FAILED));
      storeSession(store, open('old', now - 3600e6 + 1));
      storeSession(store, open('young', now - 60e6));
      storeSession(store, open('young-failed', now - 60e6 + 1, FAILED));
    });
    await shipOnce(host, file, '--ship-sample', '0', '--decide-after', '30m');
    expect(await names(database)).toEqual(['old-failed']);
    expect(await status(file)).toMatchObject({
      ...{
        backlog: { sessions: 0 },
        lagMs: 0,
        undecided: { sessions: 2, frames: 4 },
        sampledOut: { sessions: 1 },
      },
    });
    const verified = await tapedeckInProcess(['ship', 'verify', '--to', database.url, '--db', file]);
    expect(verified.stderr).toMatch(/2 undecided/);
    expect(verified).toMatchObject({ code: 0 });
    change(file, (store) => store.exec("UPDATE session SET end_reason = 'stopped'"));
    await shipOnce(host, file, '--ship-sample', '0', '--decide-after', '30m');
    expect(await names(database)).toEqual(['old-failed', 'young-failed']);
  });

  inFull('is the first that retention takes for room, keeps nothing waiting, and is no loss', async () => {
    const { host } = await engineForHosts();
    const file = filled(10, 2);
    await shipOnce(host, file, '--ship-sample', '0', '--ship-keep', 'name~/ok-[0-4]$/');
    change(file, (store) => {
      // What is redacted later is not shipped for that reason.
      store.exec("UPDATE session SET revision = revision + 1 WHERE name = 'ok-9'");
    });
    await shipOnce(host, file);
    const left = (await tapedeckInProcess(['prune', '--max-sessions', '7', '--db', file])).stdout.toString();
    expect(left.match(/not in the sample/g)).toHaveLength(5);
    for (const name of ['ok-5', 'ok-6', 'ok-7', 'ok-8', 'ok-9']) expect(left).toContain(name);
    // Those that failed are younger, and were left out as well: --keep-errors spares them as long as it can.
    const spared = await tapedeckInProcess(['prune', '--max-sessions', '3', '--keep-errors', '--db', file]);
    expect(spared.stdout.toString()).not.toMatch(/failed-/);
    await tapedeckInProcess(['prune', '--older-than', '1d', '--db', file]);
    expect(inStore(file, (store) => store.prepare('SELECT count(*) FROM session').pluck().get())).toBe(0);
    expect(await status(file)).toMatchObject({
      lost: { sessions: 0, frames: 0 },
      sampledOut: { sessions: 0 },
    });
  });

  inFull(
    'is scaled by the statistics of the engine, with what the recorder had left out before',
    async () => {
      const central = await fleet();
      const file = filled(80);
      change(file, (store) => store.exec('UPDATE session SET sample = 0.5'));
      await shipOnce(central.host, file, '--ship-sample', '25%');
      const rows = await there(central.database);
      expect(new Set(rows.map(({ sample }) => sample))).toEqual(new Set([0.125]));
      const stats = await tapedeckInProcess(['stats', '--all', '--json', '--db', central.reader], {
        env: central.env,
      });
      const lines = stats.stdout
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      const calls = lines.find(({ tool }) => tool === 'a') ?? lines[0];
      expect(calls).toMatchObject({ scaled: true });
      expect(JSON.stringify(lines)).toContain(String(rows.length * 8));
    },
  );

  test('a share that is none, a filter that is none and a filter without a share are refused', async () => {
    const file = filled(1);
    const to = ['--to', 'postgres://127.0.0.1:1/x', '--db', file];
    const run = (...options: string[]) => tapedeckInProcess(['ship', '--once', ...to, ...options]);
    expect((await run('--ship-sample', '110%')).stderr).toContain('Expected a share after `--ship-sample`');
    expect((await run('--ship-keep', 'status~error')).stderr).toContain('`--ship-sample` with `--ship-keep`');
    expect((await run('--ship-sample', '5%', '--ship-keep', 'statsu=x')).stderr).toMatch(/statsu/);
    expect((await run('--ship-sample', '5%', '--decide-after', '10')).stderr).toContain('`--decide-after`');
  });

  inFull('is what alone loads the filter language', async () => {
    const { host } = await engineForHosts();
    const filtersLoadedBy = async (...options: string[]) => {
      const told = join(tempFolder(), 'modules');
      const preloaded = `--import ${pathToFileURL(fixture('tell-modules.js')).href}`;
      const env = { NODE_OPTIONS: preloaded, MODULES_TOLD: told };
      const words = ['ship', '--once', '--to', host, '--db', filled(2), ...options];
      expect(await tapedeck(words, { env }).ended).toMatchObject({ code: 0 });
      const urls = readFileSync(told, 'utf8').split('\n');
      const own = urls
        .filter((url) => /[\\/]dist[\\/][\w-]+\.js$/.test(url))
        .map((url) => fileURLToPath(url));
      return own.filter((file) => readFileSync(file, 'utf8').includes('To look for this text itself'));
    };
    expect(await filtersLoadedBy()).toEqual([]);
    expect(await filtersLoadedBy('--ship-sample', '10%')).not.toEqual([]);
  });

  inFull('is what the hash says, however often a shipper is killed -9', { timeout: 300_000 }, async () => {
    const { database, host } = await engineForHosts();
    const file = filled(150, 5);
    const expected = [...drawn(file, 0.4), ...Array.from({ length: 5 }, (_, i) => `failed-${i}`)];
    const rules = (copy: string) =>
      inStore(copy, (store) => store.prepare('SELECT sampling FROM shipper').pluck().get() !== undefined);
    // While nothing is decided, once something is, and as it goes on.
    const moments = [
      rules,
      (copy: string) => Object.keys(states(copy)).length > 0,
      (copy: string) => Object.values(states(copy)).includes('sealed'),
    ];
    for (let round = 0; round < 2; round += 1) {
      const copy = tempStore();
      change(file, (store) => void store.prepare('VACUUM INTO ?').run(copy));
      let before: Record<string, string> = {};
      for (const isReached of moments) {
        const run = tapedeck(['ship', '--once', '--ship-sample', '40%', '--to', host, '--db', copy]);
        await until('it has come so far', () => run.child.exitCode !== null || isReached(copy));
        run.child.kill('SIGKILL');
        await run.ended;
        const after = states(copy);
        for (const [name, state] of Object.entries(before))
          expect(after[name] === 'skipped').toBe(state === 'skipped');
        before = after;
      }
      await shipOnce(host, copy, '--ship-sample', '40%');
      expect(await names(database)).toEqual(expected);
    }
    expect((await there(database)).every(({ frames }) => frames === 2)).toBe(true);
    await shipOnce(host, file, '--ship-sample', '40%');
    const verified = await tapedeckInProcess(['ship', 'verify', '--to', database.url, '--db', file]);
    expect(verified).toMatchObject({ code: 0 });
  });
});
