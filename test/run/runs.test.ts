/** Runs of official clients, each with several servers, recorded by real recorders. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { query, recordUrl } from '../support/http-record.ts';
import { inFull } from '../support/scale.ts';
import { startEverything } from '../support/servers.ts';
import { BIN, fixture, start, tapedeckInProcess, until } from '../support/tapedeck.ts';

type RunLine = { run: string; evidence: string[]; sessions: string[]; servers: string[] };

inFull(
  'one client with three stdio servers and one by HTTP is one run, and a second client at once is another',
  async () => {
    const proxy = await recordUrl(await startEverything('streamableHttp'));
    const { db } = proxy;
    const stdio = Array.from({ length: 3 }, () => [
      ...[process.execPath, BIN, 'record', '--db', db, '--'],
      ...[process.execPath, fixture('echo.js')],
    ]);
    const servers = JSON.stringify({ stdio, http: [proxy.url.href] });
    const clients = [1, 2].map(() => start(process.execPath, [join(fixture('run-client.js')), servers]));
    for (const { stdout, stderr } of clients)
      await until(`a client is through: ${stderr()}`, () => stdout().includes('ready'));
    // While the connections stand, their owners can be found.
    await until(
      'who is at the other end',
      () => query(db, "SELECT * FROM run WHERE kind = 'peer'").length === 2,
    );
    for (const { child, ended } of clients) {
      child.stdin.end();
      expect((await ended).code).toBe(0);
    }
    await proxy.stop();

    const { stdout, stderr } = await tapedeckInProcess(['list', '--by', 'run', '--json', '--db', db]);
    const runs = stdout
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as RunLine);
    expect(
      runs.map(({ sessions }) => sessions.length),
      stderr,
    ).toEqual([4, 4]);
    for (const { evidence, servers: names } of runs) {
      expect(evidence).toEqual(['process', 'peer']);
      expect(names.toSorted()).toEqual(['echo', 'echo', 'echo', 'mcp-servers/everything']);
    }
    const [one] = runs;
    const shown = await tapedeckInProcess([
      'show',
      '--run',
      one?.run.slice(0, 8) ?? '',
      '--db',
      db,
      '--json',
    ]);
    const timeline = JSON.parse(shown.stdout.toString());
    expect(timeline.lanes).toHaveLength(4);
    expect(timeline.calls.filter(({ target }: { target: string }) => target === 'echo')).toHaveLength(4);
    const filtered = await tapedeckInProcess(['list', '--db', db, '--json', '--filter', `run=${one?.run}`]);
    expect(filtered.stdout.toString().trim().split('\n')).toHaveLength(4);
  },
);

test('TAPEDECK_RUN names the run of what is recorded, unless a label does', async () => {
  const proxy = await recordUrl('http://127.0.0.1:9/mcp', { env: { TAPEDECK_RUN: 'nightly' } });
  const named = { args: ['--label', 'run=by-hand'], env: { TAPEDECK_RUN: 'nightly' }, db: proxy.db };
  const other = await recordUrl('http://127.0.0.1:9/mcp', named);
  // Each by a client of its own: what one process asks is one run, whatever it is called.
  const post = "await fetch(process.argv[1], { method: 'POST', body: '{}' })";
  for (const { url } of [proxy, other]) {
    const client = start(process.execPath, ['--input-type=module', '--eval', post, String(url)]);
    expect(await client.ended).toMatchObject({ code: 0 });
  }
  await proxy.stop();
  await other.stop();
  const { stdout } = await tapedeckInProcess(['list', '--by', 'run', '--json', '--db', proxy.db]);
  const names = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).name);
  expect(names.toSorted()).toEqual(['by-hand', 'nightly']);
});

test('TAPEDECK_LABELS labels what is recorded, where no label of the command line says otherwise', async () => {
  const env = { TAPEDECK_LABELS: 'pod=web-1, zone=a=b' };
  const proxy = await recordUrl('http://127.0.0.1:9/mcp', { args: ['--label', 'pod=mine'], env });
  await fetch(proxy.url, { method: 'POST', body: '{}' });
  await proxy.stop();
  expect(proxy.rows('SELECT key, value FROM label ORDER BY key')).toEqual([
    { key: 'pod', value: 'mine' },
    { key: 'zone', value: 'a=b' },
  ]);
  const wrong = await tapedeckInProcess(['record', 'http://127.0.0.1:9/mcp', '--listen', '127.0.0.1:0'], {
    env: { TAPEDECK_LABELS: 'web-1' },
  });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/TAPEDECK_LABELS, got `web-1`/) });
});
