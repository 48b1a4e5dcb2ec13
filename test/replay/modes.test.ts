import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { expect, test } from 'vitest';
import { recordUrlInProcess } from '../support/http-record.ts';
import { AskedClient, LIVE_COMMAND, listen, overHttp, overStdio } from '../support/modes.ts';
import { inFull, sample } from '../support/scale.ts';
import { startEverything } from '../support/servers.ts';
import { tempFolder, tempStore } from '../support/tapedeck.ts';

const NOWHERE = ['--', 'tapedeck-test-no-such-command'];

/** What is recorded at first. */
const first = async (client: AskedClient) => [
  await client.listTools(),
  await client.textOf('echo', { message: 'a' }),
];

/** The same, and more: a plain call, one with progress, one that asks back, an error. */
async function more(client: AskedClient) {
  return [
    ...(await first(client)),
    await client.textOf('get-sum', { a: 1, b: 2 }),
    await client.textOf('trigger-long-running-operation', { duration: 0.2, steps: 3 }),
    await client.textOf('trigger-sampling-request', { prompt: 'p', maxTokens: 5 }),
    await client.getPrompt({ name: 'no-such-prompt' }).catch(String),
  ];
}

inFull('once records everything at the first run, and plays it at all others', async () => {
  const file = join(tempFolder(), 'all.ndjson');
  const recorded = await overStdio([file, '--mode', 'once', ...LIVE_COMMAND], more);
  expect(recorded.stderr).toContain('tapedeck: added: tools/call "get-sum": ok');
  expect([recorded.code, recorded.client.asked, recorded.client.progress.length]).toEqual([0, 1, 3]);

  const before = readFileSync(file, 'utf8');
  const played = await overStdio([file, '--mode', 'once', '--fail-on-miss', ...NOWHERE], more);
  expect(played.seen).toEqual(recorded.seen);
  expect([played.code, played.client.asked, played.client.progress]).toEqual([
    0,
    1,
    recorded.client.progress,
  ]);
  const missed = await overStdio([file, '--mode', 'once', '--fail-on-miss', ...NOWHERE], (client) =>
    client.textOf('echo', { message: 'new' }).catch(String),
  );
  expect(missed.seen).toContain('the arguments differ');
  expect(missed.stderr).toContain('--mode new_episodes');
  expect(missed.code).toBe(1);
  expect(readFileSync(file, 'utf8')).toBe(before);
});

const TRANSPORTS = { stdio: overStdio, http: overHttp } as const;

/** Makes a recording of each kind by each transport. Gives its name, and the options to find it by. */
async function recordFirst(kind: 'text' | 'stored', live: readonly string[]) {
  const db = tempStore();
  const file = join(tempFolder(), 'it.ndjson');
  const recording = kind === 'text' ? [file] : ['it', '--db', db];
  await overStdio([...recording, '--mode', 'once', ...live], first);
  return { recording, file, db };
}

test.each(
  sample([
    ['text', 'http', 'url'],
    ['text', 'stdio', 'command'],
    ['stored', 'stdio', 'url'],
    ['stored', 'http', 'command'],
  ] as const),
)(
  'new_episodes adds to a %s recording over %s what a live %s answers, and none then plays it',
  async (kind, transport, live) => {
    const servers = live === 'url' ? [await startEverything('streamableHttp')] : LIVE_COMMAND;
    // Recorded by the other transport than it is added to by.
    const other = live === 'url' ? LIVE_COMMAND : [await startEverything('streamableHttp')];
    const { recording, file } = await recordFirst(kind, other);
    const before = kind === 'text' ? readFileSync(file, 'utf8') : '';
    const added = await TRANSPORTS[transport]([...recording, '--mode', 'new_episodes', ...servers], more);
    expect(added.stderr).not.toContain('tapedeck: added: tools/call "echo"');
    expect(added.stderr).toContain('4 calls added to');
    expect([added.code, added.client.asked, added.client.progress.length]).toEqual([0, 1, 3]);
    if (kind === 'text') expect(readFileSync(file, 'utf8').startsWith(before)).toBe(true);

    for (const again of ['stdio', 'http'] as const) {
      const played = await TRANSPORTS[again]([...recording, '--fail-on-miss'], more);
      expect(played.seen).toEqual(added.seen);
      const { code, client, stderr } = played;
      expect([code, client.asked, client.progress], stderr).toEqual([0, 1, added.client.progress]);
    }
  },
);

inFull('new_episodes adds to a recording by HTTP+SSE, and none plays it over HTTP+SSE', async () => {
  const db = tempStore();
  const recorder = await recordUrlInProcess(await startEverything('sse'), { db });
  const recorded = new AskedClient();
  await recorded.connect(new SSEClientTransport(recorder.url));
  await first(recorded);
  await recorded.close();
  await recorder.stop();

  const see = async (...args: string[]) => {
    const { run, url } = await listen(['latest', '--db', db, ...args]);
    expect(url.pathname).toBe('/sse');
    const client = new AskedClient();
    await client.connect(new SSEClientTransport(url));
    const seen = await more(client);
    await client.close();
    run.child.kill('SIGTERM');
    const { code, stderr } = await run.ended;
    return { seen, code, stderr, asked: client.asked };
  };
  const added = await see('--mode', 'new_episodes', ...LIVE_COMMAND);
  expect(added.stderr).toContain('4 calls added to');
  const played = await see('--fail-on-miss');
  expect(played.seen).toEqual(added.seen);
  expect([played.code, played.asked], played.stderr).toEqual([0, 1]);
});
