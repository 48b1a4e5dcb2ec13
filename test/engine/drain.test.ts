/** What a recorder that ships does when it is stopped: it waits for its shipper, and says what is left. */
import { expect, onTestFinished, test } from 'vitest';
import { withEngine } from '../support/engine.ts';
import { recordUrl } from '../support/http-record.ts';
import { startRawClient, startSessionServer } from '../support/operations.ts';
import { inFull } from '../support/scale.ts';
import { differences, endShipper, engineForHosts, filledStore, shipOnce } from '../support/shipped.ts';
import { storeSession } from '../support/stored.ts';
import { tapedeck, until } from '../support/tapedeck.ts';

/** Nothing listens there. */
const NOBODY = 'postgres://somebody@127.0.0.1:1/tapedeck';

async function recordTo(engine: string, drain: string) {
  const server = await startSessionServer();
  const args = ['--log', 'json', '--ship', engine, '--drain', drain];
  const recording = await recordUrl(server.url, { args });
  onTestFinished(() => endShipper(recording.db));
  const last = () => JSON.parse(recording.run.stderr().trimEnd().split('\n').at(-1) ?? '');
  return { recording, last };
}

withEngine('a recorder that is stopped', () => {
  test('waits until the engine has every frame, and says so', async () => {
    const { database, host } = await engineForHosts();
    const { recording, last } = await recordTo(host, '60');
    const client = await startRawClient(recording.url);
    // Stopped before the shipper would have begun.
    for (let i = 0; i < 5; i += 1) await client.call('echo');
    await recording.stop();
    expect(last()).toMatchObject({ level: 'info', event: 'shipped' });
    const [{ frames } = {}] = recording.rows('SELECT count(*) AS frames FROM frame');
    expect(await database.query('SELECT count(*)::int AS frames FROM tapedeck.frame')).toEqual([{ frames }]);
    await until('it is sealed', async () => (await differences(database, [recording.db])).length === 0);
  });

  inFull('ships what its store holds from before, too', async () => {
    const { database, host } = await engineForHosts();
    const file = filledStore((store) => {
      for (let i = 0; i < 50; i += 1) storeSession(store, { lines: ['a'.repeat(10_000)] });
    });
    const server = await startSessionServer();
    const recording = await recordUrl(server.url, { db: file, args: ['--ship', host, '--drain', '60'] });
    onTestFinished(() => endShipper(file));
    await recording.stop();
    expect(recording.run.stderr()).toContain('the engine has all that was recorded');
    expect(await database.query('SELECT count(*)::int AS frames FROM tapedeck.frame')).toEqual([
      { frames: 50 },
    ]);
  });

  inFull('a shipper that is stopped ends its transaction, and says what is left', async () => {
    const { database, host } = await engineForHosts();
    const file = filledStore((store) => {
      for (let i = 0; i < 300; i += 1) storeSession(store, { lines: ['a'.repeat(20_000)] });
    });
    const shipped = async () =>
      (await database.query<{ n: number }>('SELECT count(*)::int AS n FROM tapedeck.frame'))[0]?.n ?? 0;
    const run = tapedeck(['ship', '--to', host, '--db', file, '--watch']);
    await until('some of it is there', async () => (await shipped()) > 0);
    run.child.kill('SIGTERM');
    const { code, stderr } = await run.ended;
    expect(code).toBe(0);
    const left = 300 - (await shipped());
    if (left === 0) expect(stderr).toContain('the engine has every frame');
    else
      expect(stderr).toMatch(new RegExp(`\\b${left} frames? of ${left} sessions?, .* not in the engine yet`));
    expect((await shipOnce(host, file)).code).toBe(0);
    expect(await differences(database, [file])).toEqual([]);
  });
});

test('an engine that is away is waited for as long as --drain says, and what is left is counted', async () => {
  const { recording, last } = await recordTo(NOBODY, '0');
  await (await startRawClient(recording.url)).call('echo');
  await recording.stop();
  const [{ frames, bytes } = {}] = recording.rows('SELECT count(*) AS frames, sum(size) AS bytes FROM frame');
  expect(last()).toMatchObject({ level: 'warn', event: 'not-shipped', sessions: 1, frames, bytes });
});

inFull('a second signal ends the waiting', async () => {
  const { recording } = await recordTo(NOBODY, '3600');
  await (await startRawClient(recording.url)).call('echo');
  recording.run.child.kill('SIGTERM');
  await until('it waits', () => recording.run.stderr().includes('waiting'));
  recording.run.child.kill('SIGTERM');
  expect((await recording.run.ended).code).toBe(0);
  expect(recording.run.stderr()).toContain('not-shipped');
});
