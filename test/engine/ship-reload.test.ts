/** SIGHUP reads anew which sessions are shipped; all of a file or nothing. What was decided before stays. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { openForReading, openStore } from '../../src/store/file/open.ts';
import { type Database, withEngine } from '../support/engine.ts';
import { recordUrl } from '../support/http-record.ts';
import { startRawClient, startSessionServer } from '../support/operations.ts';
import { inFull } from '../support/scale.ts';
import { endShipper, engineForHosts, filledStore } from '../support/shipped.ts';
import { storeSession } from '../support/stored.ts';
import { tapedeck, tapedeckInProcess, tempFolder, until } from '../support/tapedeck.ts';

/** Null: the store is not there yet, or not shipped. */
const status = async (file: string) => {
  const { stdout } = await tapedeckInProcess(['ship', 'status', '--json', '--db', file]);
  return JSON.parse(stdout.toString() || 'null');
};

const there = async (database: Database) =>
  (await database.query('SELECT id FROM tapedeck.session WHERE sealed_at IS NOT NULL OR cursor > 0')).length;

function addSession(file: string, at: number): void {
  const store = openStore(file);
  storeSession(store, { start: { at } });
  store.close();
}

function shipperOf(file: string): number | null {
  const store = openForReading(file);
  try {
    return store.prepare<[], number | null>('SELECT pid FROM shipper').pluck().get() ?? null;
  } finally {
    store.close();
  }
}

withEngine('SIGHUP', () => {
  inFull('lets ship --watch go on by the new share, or by the old one where the file is broken', async () => {
    const { database, host } = await engineForHosts();
    const file = filledStore((store) => storeSession(store));
    const config = join(tempFolder(), 'ship.json');
    const configure = (text: string) => writeFileSync(config, text);
    configure('{ "ship": { "sample": 0 } }');
    const run = tapedeck(['ship', '--watch', '--config', config, '--to', host, '--db', file]);
    onTestFinished(() => void run.child.kill('SIGKILL'));
    const leftOut = async () => (await status(file))?.sampledOut.sessions;
    await until('it is left out', async () => (await leftOut()) === 1);

    for (const [text, place] of [
      ['{ "ship": {\n  "sample": "110%" } }', /ship\.json:2:\d+: .*share/],
      ['{ "ship": { "sample": 1,\n  "keep": "statsu=x" } }', /ship\.json:2:\d+: .*statsu/],
      ['{ "ship": { "sample": 1 ', /ship\.json:1:\d+: not valid JSON/],
    ] as const) {
      configure(text);
      run.child.kill('SIGHUP');
      await until('it says where that is wrong', () => place.test(run.stderr()));
    }
    expect(run.stderr()).toContain('everything stays as it was');
    addSession(file, 1.1e15);
    await until('the old share counts', async () => (await leftOut()) === 2);

    configure('{ "ship": { "sample": "100%", "url": "postgres://127.0.0.1/elsewhere" } }');
    run.child.kill('SIGHUP');
    await until('it was read', () => run.stderr().includes('read anew'));
    addSession(file, 1.2e15);
    await until('the new share counts', async () => (await there(database)) === 1);
    expect(await leftOut()).toBe(2);
    run.child.kill('SIGTERM');
    expect(await run.ended).toMatchObject({ code: 0 });
    expect(run.stderr()).toContain('2 sessions left out of the sample that is shipped');
  });

  inFull('lets a recorder start its shipper anew with the new share', async () => {
    const { database, host } = await engineForHosts();
    const config = join(tempFolder(), 'production.json');
    const configure = (ship: object) => writeFileSync(config, JSON.stringify({ ship }));
    configure({ url: host, sample: '0%', decideAfter: '0s' });
    const server = await startSessionServer();
    const recording = await recordUrl(server.url, { args: ['--config', config, '--drain', '0'] });
    onTestFinished(() => endShipper(recording.db));
    await (await startRawClient(recording.url)).call('first', {});
    await until('it is left out', async () => (await status(recording.db))?.sampledOut.sessions === 1);
    const before = shipperOf(recording.db);

    configure({ url: host, sample: '100%', decideAfter: '0s' });
    recording.run.child.kill('SIGHUP');
    await until('it was read', () => recording.run.stderr().includes('read anew'));
    expect(recording.run.stderr()).not.toContain('from the next start on');
    await (await startRawClient(recording.url)).call('second', {});
    await until('the new share counts', async () => (await there(database)) === 1);
    expect(await status(recording.db)).toMatchObject({ sampledOut: { sessions: 1 } });
    expect(shipperOf(recording.db)).not.toBe(before);
    await recording.stop();
  });
});
