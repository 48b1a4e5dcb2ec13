/** What a recorder's metrics say of shipping is what its store and the engine have, whoever was killed. */
import { expect, onTestFinished, test } from 'vitest';
import { readShipFigures } from '../../src/ship/figures.ts';
import { openForReading, openStore } from '../../src/store/file/open.ts';
import { type Database, withEngine } from '../support/engine.ts';
import { recordUrl } from '../support/http-record.ts';
import { askAdmin, samplesOf, startRawClient, startSessionServer, total } from '../support/operations.ts';
import { inFull } from '../support/scale.ts';
import { endShipper, engineForHosts, filledStore, shipOnce } from '../support/shipped.ts';
import { storeSession } from '../support/stored.ts';
import { tapedeckInProcess, until } from '../support/tapedeck.ts';

/** What a store says of its being shipped. */
function figuresOf(file: string) {
  const store = openForReading(file);
  try {
    return readShipFigures(store);
  } finally {
    store.close();
  }
}

const inEngine = async (database: Database) =>
  (await database.query('SELECT count(*)::int AS frames, sum(size)::int AS bytes FROM tapedeck.frame'))[0];

withEngine('the figures of shipping', () => {
  test('are those of the engine; what is refused and lost is told apart, and nothing of it falls', async () => {
    const { database, host } = await engineForHosts();
    await database.query("ALTER TABLE tapedeck.frame ADD CONSTRAINT no_poison CHECK (payload <> 'poison')");
    const file = filledStore((store) => {
      for (let i = 0; i < 3; i += 1) storeSession(store, { start: { at: 1.7e15 + i, name: `n${i}` } });
      storeSession(store, { lines: ['poison'], start: { at: 1.7e15 + 3 } });
    });
    expect(figuresOf(file)).toBeNull();
    await shipOnce(host, file);
    const first = figuresOf(file);
    expect(first).toMatchObject({
      ...{ ...(await inEngine(database)), refusedSessions: 1, lostFrames: 0, lag: 0, isConnected: false },
      ...{ backlog: { sessions: 0, frames: 0, bytes: 0 }, transactions: { refused: 2, failed: 0 } },
    });
    expect(first?.transactions.committed).toBeGreaterThan(0);
    expect(Math.abs(Date.now() / 1000 - (first?.committedAt ?? 0))).toBeLessThan(60);

    // Pruned sessions take their rows along, not what was counted of them.
    expect(await tapedeckInProcess(['prune', 'n0', '--db', file])).toMatchObject({ code: 0 });
    expect(figuresOf(file)).toMatchObject({ frames: first?.frames, bytes: first?.bytes });

    // Shipped anew, they count again; what has to go before it is shipped, as lost.
    await tapedeckInProcess(['ship', 'retry', 'n1', '--db', file]);
    const waiting = figuresOf(file)?.backlog;
    expect(waiting).toMatchObject({ sessions: 1 });
    await shipOnce(host, file);
    expect(figuresOf(file)?.frames).toBe((first?.frames ?? 0) + (waiting?.frames ?? 0));
    const store = openStore(file);
    store.exec('INSERT INTO loss (at, sessions, frames, bytes) VALUES (1, 2, 30, 400)');
    store.close();
    expect(figuresOf(file)?.lostFrames).toBe(30);
  });

  test('are right where a shipper is killed after the engine has committed, before that is noted', async () => {
    const { database, host } = await engineForHosts();
    const file = filledStore((store) => storeSession(store, { lines: ['a', 'b', 'c'] }));
    await shipOnce(host, file);
    const store = openStore(file);
    store.exec('DELETE FROM shipped; UPDATE shipper SET frames = 0, bytes = 0, committed = 0');
    store.close();
    await shipOnce(host, file);
    expect(figuresOf(file)).toMatchObject({ ...(await inEngine(database)) });
  });

  inFull(
    'stand on the admin port, as the store and the engine say, also after kill -9 of all of it',
    async () => {
      const { database, host } = await engineForHosts();
      const server = await startSessionServer();
      const args = ['--ship', host, '--drain', '0', '--admin', '127.0.0.1:0', '--max-unshipped', '1gb'];
      let metrics = '';
      const read = () => ({
        frames: total(metrics, 'tapedeck_ship_frames_total'),
        bytes: total(metrics, 'tapedeck_ship_bytes_total'),
      });

      async function talk(recording: Awaited<ReturnType<typeof recordUrl>>): Promise<void> {
        for (let i = 0; i < 3; i += 1) {
          const client = await startRawClient(recording.url);
          await client.call('planted-tool', { value: 'planted-value' });
        }
        const passed = () => recording.rows<{ n: number }>('SELECT count(*) AS n FROM frame')[0]?.n;
        await until('all is shipped, and said to be', async () => {
          metrics = (await askAdmin(recording.run, '/metrics')).text;
          const isEmpty = total(metrics, 'tapedeck_ship_backlog_frames') === 0;
          return isEmpty && read().frames === passed() && passed() === (await inEngine(database))?.['frames'];
        });
        expect(read()).toEqual(await inEngine(database));
        expect(recording.rows('SELECT frames, bytes FROM shipper')).toEqual([read()]);
      }

      const first = await recordUrl(server.url, { args });
      onTestFinished(() => endShipper(first.db));
      await talk(first);
      expect(total(metrics, 'tapedeck_ship_connected')).toBe(1);
      expect(total(metrics, 'tapedeck_ship_lag_seconds')).toBe(0);
      expect(total(metrics, 'tapedeck_ship_backlog_limit_bytes')).toBe(1024 ** 3);
      expect(total(metrics, 'tapedeck_ship_transactions_total', { result: 'committed' })).toBeGreaterThan(0);
      expect(total(metrics, 'tapedeck_ship_last_commit_timestamp_seconds')).toBeGreaterThan(1.7e9);
      expect(metrics).not.toMatch(/planted/);
      const own = samplesOf(metrics).filter(({ name }) => name.startsWith('tapedeck_ship_'));
      expect([...new Set(own.flatMap(({ labels }) => Object.keys(labels)))]).toEqual(['result']);

      endShipper(first.db);
      await until('that shows', async () => {
        metrics = (await askAdmin(first.run, '/metrics')).text;
        return total(metrics, 'tapedeck_ship_connected') === 0;
      });
      first.run.child.kill('SIGKILL');
      await first.run.ended;
      const before = read();
      const second = await recordUrl(server.url, { args, db: first.db });
      await until('it says what was shipped before', async () => {
        metrics = (await askAdmin(second.run, '/metrics')).text;
        return read().frames >= before.frames;
      });
      await talk(second);
      second.run.child.kill('SIGKILL');
      await second.run.ended;
    },
  );
});
