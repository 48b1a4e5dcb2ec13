/** What a deploy does to a recorder: it drains, its successor takes over its socket, and the service manager is told. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { query, recordUrl } from '../support/http-record.ts';
import { askAdmin, bodyOf, post, startRawClient, startSessionServer } from '../support/operations.ts';
import { IS_FULL, inFull, scale } from '../support/scale.ts';
import { BIN, fixture, start, tempFolder, tempStore, until } from '../support/tapedeck.ts';

const STREAMS = scale(200, 20);

/** A stream's events as they come; settles with all of it once it has ended well. */
function collect(stream: IncomingMessage): { text: () => string; ended: Promise<string> } {
  let text = '';
  stream.setEncoding('utf8').on('data', (piece) => {
    text += piece;
  });
  const ended = new Promise<string>((resolve, reject) => {
    stream.once('end', () => resolve(text)).once('error', reject);
  });
  return { text: () => text, ended };
}

test('a recorder that drains breaks no stream and loses no frame of it', async () => {
  const server = await startSessionServer();
  const recording = await recordUrl(server.url, { args: ['--admin', '127.0.0.1:0', '--grace', '50'] });
  const clients = await Promise.all(Array.from({ length: STREAMS }, () => startRawClient(recording.url)));
  const streams = await Promise.all(clients.map((client) => client.stream().then(collect)));
  const send = (n: number) => {
    for (const [i, stream] of server.streams.entries())
      stream.write(
        `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"n":${n},"i":${i}}}\n\n`,
      );
  };
  send(1);
  recording.run.child.kill('SIGTERM');
  await until('it drains', async () => (await askAdmin(recording.run, '/readyz')).status === 503);
  send(2);
  await until('what comes while it drains has passed', () =>
    streams.every(({ text }) => text().includes('"n":2')),
  );
  send(3);
  for (const stream of server.streams) stream.end();
  const texts = await Promise.all(streams.map(({ ended }) => ended));
  expect((await recording.run.ended).code, recording.run.stderr()).toBe(0);
  expect(recording.run.stderr()).toContain(`stopping; ${STREAMS} exchanges are open`);
  for (const text of texts) expect(text.match(/"n":\d/g)).toEqual(['"n":1', '"n":2', '"n":3']);
  const [stored] = recording.rows(`SELECT count(*) AS events FROM frame WHERE channel = 'sse'`);
  expect(stored).toEqual({ events: 3 * STREAMS });
  const ends = recording.rows(
    `SELECT end_reason AS reason, sum(dropped) AS dropped, count(*) AS sessions FROM session GROUP BY 1`,
  );
  expect(ends).toEqual([{ reason: 'stopped', dropped: 0, sessions: STREAMS }]);
  expect(recording.rows(`SELECT 1 FROM http_exchange WHERE closed_by IS NOT 'server'`)).toEqual([]);
});

inFull('an answer of a recorder that drains says that its connection closes', async () => {
  const waiting: ServerResponse[] = [];
  const server = await startSessionServer((response) => void waiting.push(response));
  const recording = await recordUrl(server.url, { args: ['--grace', '50'] });
  const agent = new Agent({ keepAlive: true });
  const asked = new Promise<IncomingMessage>((resolve, reject) => {
    request(recording.url, { method: 'PUT', agent }, resolve).on('error', reject).end();
  });
  await until('it is asked', () => waiting.length > 0);
  recording.run.child.kill('SIGTERM');
  await until('it stops', () => recording.run.stderr().includes('stopping; an exchange is open'));
  waiting[0]?.end('{}');
  const { headers } = await asked;
  expect(headers.connection).toBe('close');
  expect((await recording.run.ended).code).toBe(0);
  agent.destroy();
});

/** What the one test after the other needs: an activator holds the socket and starts one recorder after another. */
function startActivator(upstream: string, db: string) {
  return start(process.execPath, [
    fixture('activator.js'),
    ...[process.execPath, BIN, 'record', upstream, '--db', db, '--grace', '20', '--admin', '127.0.0.1:0'],
  ]);
}

test.runIf(IS_FULL && process.platform !== 'win32')(
  'with a socket that is handed over, a restart refuses no connection',
  async () => {
    const server = await startSessionServer();
    const db = tempStore();
    const activator = startActivator(server.url, db);
    const said = (what: RegExp) => [...activator.stderr().matchAll(what)];
    await until('it listens', () => said(/listening on (\S+) for/g).length === 1);
    const url = new URL(said(/listening on (\S+) for/g)[0]?.[1] ?? '');
    let calls = 0;
    let isOver = false;
    const failures: string[] = [];
    const clients = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const answer = await post(url, 'ping', {}, { Connection: 'close' }).catch((error: Error) => error);
        if (answer instanceof Error) failures.push(answer.message);
        else await bodyOf(answer);
        calls += 1;
      }
    });
    for (let restart = 1; restart <= 3; restart += 1) {
      const before = calls;
      await until('calls pass', () => calls > before + 5);
      const pids = said(/recorder (\d+)/g);
      process.kill(Number(pids.at(-1)?.[1]), 'SIGTERM');
      await until('the next one listens', () => said(/listening on (\S+) for/g).length === restart + 1);
    }
    const before = calls;
    await until('calls pass', () => calls > before + 5);
    isOver = true;
    await Promise.all(clients);
    expect(failures).toEqual([]);
    expect(new Set(said(/listening on (\S+) for/g).map(([, where]) => where)).size).toBe(1);
    activator.child.kill('SIGTERM');
    process.kill(Number(said(/recorder (\d+)/g).at(-1)?.[1]), 'SIGTERM');
    await activator.ended;
    expect(query(db, 'SELECT sum(dropped) AS n FROM session')).toEqual([{ n: 0 }]);
  },
);

inFull('a socket for another process is not taken, and of several sockets none', async () => {
  const server = await startSessionServer();
  const recording = await recordUrl(server.url, { env: { LISTEN_FDS: '1', LISTEN_PID: '1' } });
  await recording.stop();
  const run = start('sh', [
    '-c',
    'LISTEN_PID=$$ LISTEN_FDS=2 exec "$@"',
    'sh',
    process.execPath,
    BIN,
    'record',
    server.url,
  ]);
  const { code, stderr } = await run.ended;
  expect([code, stderr]).toEqual([
    2,
    'tapedeck: Expected one socket of the service manager (LISTEN_FDS), got 2.\n',
  ]);
});

/** A `systemd-notify` that writes down what it is told. */
function fakeNotify(): { env: Record<string, string>; told: () => string[] } {
  const folder = tempFolder();
  const log = join(folder, 'told');
  const program = join(folder, 'systemd-notify');
  writeFileSync(program, `#!/bin/sh\necho "$*" >> '${log}'\n`);
  chmodSync(program, 0o755);
  return {
    env: {
      NOTIFY_SOCKET: join(folder, 'socket'),
      PATH: `${folder}${delimiter}${process.env['PATH']}`,
      WATCHDOG_USEC: '100000',
    },
    told: () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []),
  };
}

test.skipIf(process.platform === 'win32')(
  'the service manager is told when it is ready and stops, and its watchdog is fed',
  async () => {
    const server = await startSessionServer();
    const { env, told } = fakeNotify();
    const recording = await recordUrl(server.url, { env });
    await until('the watchdog is fed twice', () => told().filter((line) => line === 'WATCHDOG=1').length > 1);
    expect(told()[0]).toBe('READY=1 STATUS=recording');
    await recording.stop();
    await until('it is told of the end', () => told().includes('STOPPING=1'));
  },
);

inFull('where the service manager cannot be told, it is said once, and the traffic goes on', async () => {
  const server = await startSessionServer();
  const env = { NOTIFY_SOCKET: '/nowhere', PATH: '', WATCHDOG_USEC: '20000' };
  const recording = await recordUrl(server.url, { env });
  await until('it is said', () => recording.run.stderr().includes('the service manager cannot be told'));
  await (await startRawClient(recording.url)).call('echo');
  await recording.stop();
  expect(recording.run.stderr().match(/cannot be told/g)).toHaveLength(1);
});

/** Prints what comes in by datagrams: Node itself opens no such socket. */
const RECEIVER = `import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1])
print('bound', flush=True)
while True: print(s.recv(4096).decode().replace(chr(10), ' '), flush=True)`;

const hasSystemd =
  spawnSync('systemd-notify', ['--version']).status === 0 && spawnSync('python3', ['--version']).status === 0;

test.runIf(IS_FULL && hasSystemd)('the real systemd-notify brings the words to the socket', async () => {
  const socket = join(tempFolder(), 'notify');
  const receiver = start('python3', ['-c', RECEIVER, socket]);
  const told = () => receiver.stdout().toString().split('\n');
  await until('it is bound', () => told().includes('bound'));
  const server = await startSessionServer();
  const recording = await recordUrl(server.url, { env: { NOTIFY_SOCKET: socket } });
  await until('it is ready', () => told().some((line) => /^READY=1 STATUS=recording/.test(line)));
  await recording.stop();
  await until('it stops', () => told().some((line) => line.startsWith('STOPPING=1')));
});
