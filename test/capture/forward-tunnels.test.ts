import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { connectThrough, startForward } from '../support/forward.ts';
import { openSocket, startTcpServer } from '../support/http.ts';
import { inFull } from '../support/scale.ts';
import { until } from '../support/tapedeck.ts';

const NAMED = ['http://127.0.0.1:9'];

/** A server that keeps what connects to it, and says nothing. */
async function startSilent({ allowHalfOpen } = { allowHalfOpen: false }) {
  const sockets: Socket[] = [];
  const url = await startTcpServer((socket) => {
    socket.on('error', () => {});
    socket.allowHalfOpen = allowHalfOpen;
    sockets.push(socket);
  });
  return { host: new URL(url).host, sockets };
}

test('a tunnel in which nothing moves is closed at both ends, and counted', async () => {
  const { host, sockets } = await startSilent();
  const tunnelLimits = { most: 9, silentMs: 50, halfClosedMs: 60_000 };
  const { port, capture } = await startForward(NAMED, { tunnelLimits });
  const { socket } = await connectThrough(port, host);
  socket.resume();
  sockets[0]?.resume();
  await until('both ends see it', () => socket.closed && sockets[0]?.closed === true);
  expect(capture.passed()).toMatchObject({ others: 1, silent: 1, refused: 0 });
});

inFull('one in which anything moves stays, whichever end it comes from', async () => {
  const { host, sockets } = await startSilent();
  const tunnelLimits = { most: 9, silentMs: 2000, halfClosedMs: 60_000 };
  const { port, capture } = await startForward(NAMED, { tunnelLimits });
  const { socket } = await connectThrough(port, host);
  socket.resume();
  await until('it is connected', () => sockets.length === 1);
  sockets[0]?.resume();
  for (const end of [socket, sockets[0]]) {
    const began = performance.now();
    const timer = setInterval(() => end?.write('.'), 20);
    await until('it has lived for longer', () => performance.now() - began > 3000);
    clearInterval(timer);
    expect(socket.closed).toBe(false);
  }
  await until('it is closed then', () => capture.passed().silent === 1);
});

test.each(['client', 'server'] as const)(
  'once the %s has said its last, silence is waited for less long',
  async (end) => {
    const { host, sockets } = await startSilent({ allowHalfOpen: true });
    const tunnelLimits = { most: 9, silentMs: 60_000, halfClosedMs: 50 };
    const { port, capture } = await startForward(NAMED, { tunnelLimits });
    const { socket } = await connectThrough(port, host);
    socket.allowHalfOpen = true;
    await until('it is connected', () => sockets.length === 1);
    const first = end === 'client' ? socket : sockets[0];
    first?.end();
    for (const one of [socket, sockets[0]]) one?.on('error', () => {}).resume();
    await until('it sees that nothing will come', () => first?.closed === true);
    expect(capture.passed()).toMatchObject({ others: 1, silent: 1 });
  },
);

test('a peer that reads nothing holds a tunnel no longer than silence does', async () => {
  const { host, sockets } = await startSilent();
  const tunnelLimits = { most: 9, silentMs: 100, halfClosedMs: 100 };
  const { port, capture } = await startForward(NAMED, { tunnelLimits });
  const { socket } = await connectThrough(port, host);
  await until('it is connected', () => sockets.length === 1);
  sockets[0]?.pause();
  socket.end(Buffer.alloc(20_000_000));
  await until('it is given up', () => capture.passed().silent === 1);
});

test('more than so many are refused with a clear answer, told of once, until one closes', async () => {
  const { host } = await startSilent();
  const tunnelLimits = { most: 2, silentMs: 60_000, halfClosedMs: 60_000 };
  const { port, capture, notices } = await startForward(NAMED, { tunnelLimits });
  const first = await connectThrough(port, host);
  await connectThrough(port, host);
  for (let i = 0; i < 2; i += 1) {
    const { closed } = openSocket(port, `CONNECT ${host} HTTP/1.1\r\n\r\n`);
    expect(await closed).toMatch(/^HTTP\/1.1 503 .*\r\n\r\ntapedeck: 2 tunnels are open, and no more/s);
  }
  expect(notices).toEqual([expect.stringMatching(/^2 tunnels to other hosts are open; more are refused/)]);
  expect(capture.passed()).toMatchObject({ others: 2, refused: 2 });
  first.socket.destroy();
  await until('there is room again', async () => (await connectThrough(port, host)).status === 200);
});

test('when it stops, half-closed tunnels and those that nobody reads end too', async () => {
  const { host, sockets } = await startSilent();
  const { port, capture } = await startForward(NAMED);
  const half = await connectThrough(port, host);
  const stuck = await connectThrough(port, host);
  await until('both are connected', () => sockets.length === 2);
  half.socket.end();
  stuck.socket.write(Buffer.alloc(20_000_000));
  for (const socket of sockets) socket.pause();
  await capture.stop();
  for (const socket of [half.socket, stuck.socket, ...sockets]) socket.resume();
  await until('all ends have closed', () => sockets.every(({ closed }) => closed));
  await until('clients too', () => half.socket.closed && stuck.socket.closed);
});
