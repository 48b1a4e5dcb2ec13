import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { afterWrites, writeAtTurnEnd } from '../../../src/capture/http/turn.ts';
import { openSocket, startProxy, startTcpServer } from '../../support/http.ts';

/** So many connections, and what their other ends have received. */
async function openConnections(count: number) {
  const received: string[] = [];
  const url = await startTcpServer((socket) => {
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes;
    });
    socket.on('close', () => received.push(text));
  });
  const sockets = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      return socket;
    }),
  );
  return { sockets, received };
}

/** As Node writes a message of HTTP. */
function writeMessage(socket: Socket, text: string): void {
  writeAtTurnEnd(socket);
  socket.cork();
  socket.write(text);
  socket.uncork();
}

const waiting = (sockets: readonly Socket[]) =>
  sockets.reduce((sum, { writableLength }) => sum + writableLength, 0);

test('what is written to several connections in one turn goes out at its end, and before what is to come after', async () => {
  const { sockets, received } = await openConnections(3);
  for (const [i, socket] of sockets.entries()) writeMessage(socket, `one ${i}`);
  writeMessage(sockets[0] as Socket, ', two');
  expect(waiting(sockets)).toBe(3 * 5 + 5);
  const left = await new Promise((resolve) => afterWrites(() => resolve(waiting(sockets))));
  expect(left).toBe(0);
  for (const socket of sockets) socket.end();
  await Promise.all(sockets.map((socket) => once(socket.resume(), 'close')));
  expect(received.sort()).toEqual(['one 0, two', 'one 1', 'one 2']);
});

test('what comes later of a message goes out at once', async () => {
  const { sockets } = await openConnections(1);
  const [socket] = sockets as [Socket];
  writeMessage(socket, 'head');
  await new Promise<void>((resolve) => afterWrites(resolve));
  socket.cork();
  socket.write('event');
  expect(socket.writableLength).toBe(5);
  socket.uncork();
  expect(socket.writableLength).toBe(0);
});

test('what comes later of a message does not overtake what was written before it to another connection', async () => {
  const { sockets } = await openConnections(2);
  const [stream, other] = sockets as [Socket, Socket];
  writeMessage(stream, 'head');
  await new Promise<void>((resolve) => afterWrites(resolve));
  writeMessage(other, 'answer');
  stream.cork();
  stream.write('event');
  const order: string[] = [];
  stream.write('', () => order.push('event'));
  other.write('', () => order.push('answer'));
  stream.uncork();
  expect(waiting(sockets)).toBe(11);
  await new Promise<void>((resolve) => afterWrites(resolve));
  expect(waiting(sockets)).toBe(0);
  await expect.poll(() => order).toEqual(['answer', 'event']);
});

test('a connection waits for no more than 63 others in its turn', async () => {
  const { sockets } = await openConnections(65);
  for (const socket of sockets.slice(0, 63)) writeMessage(socket, 'one');
  expect(waiting(sockets)).toBe(63 * 3);
  for (const socket of sockets.slice(63)) writeMessage(socket, 'one');
  expect(waiting(sockets)).toBe(3);
  await new Promise<void>((resolve) => afterWrites(resolve));
  expect(waiting(sockets)).toBe(0);
});

test('what has been written to a connection goes out before it is destroyed in the same turn', async () => {
  const { sockets, received } = await openConnections(1);
  const [socket] = sockets as [Socket];
  writeMessage(socket, 'the last words');
  socket.destroy();
  await expect.poll(() => received).toEqual(['the last words']);
});

test('what is written to a connection after its end has no effect on others', async () => {
  const { sockets } = await openConnections(2);
  const [gone, other] = sockets as [Socket, Socket];
  gone.on('error', () => {});
  gone.destroy();
  writeMessage(gone, 'too late');
  writeMessage(other, 'one');
  await new Promise<void>((resolve) => afterWrites(resolve));
  expect(other.writableLength).toBe(0);
});

test('what a server sends together with the end of its connection reaches the client, with that end', async () => {
  const url = await startTcpServer((socket) => {
    socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"a"'));
  });
  const { port, waitFor } = await startProxy(url);
  const client = openSocket(port, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(await client.closed).toMatch(/\r\n\r\n\{"a"$/);
  expect(await waitFor('end')).toMatchObject({ closedBy: 'server', isComplete: false });
});

test('what a client sends together with the end of its connection reaches the server, on a connection that is used again', async () => {
  let got = '';
  let isOver = () => {};
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  const url = await startTcpServer((socket) => {
    socket.on('data', (bytes) => {
      if (got === '') socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      got += bytes;
    });
    socket.on('close', isOver);
  });
  const { port, waitFor } = await startProxy(url);
  const client = openSocket(port, 'GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await waitFor('end');
  await client.until('\r\n\r\n');
  client.socket.write('POST /second HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"a"');
  client.socket.destroy();
  await over;
  expect(got).toMatch(/POST \/second [\s\S]*\r\n\r\n\{"a"$/);
});

test('nothing is shown to the recorder before it has gone out', async () => {
  const url = await startTcpServer((socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'));
  });
  const ends = new Set<Socket>();
  const notice = (channel: string, socketOf: (message: unknown) => Socket) => {
    const look = (message: unknown) => void ends.add(socketOf(message));
    subscribe(channel, look);
    onTestFinished(() => void unsubscribe(channel, look));
  };
  notice('http.server.request.start', (message) => (message as { socket: Socket }).socket);
  notice(
    'http.client.response.finish',
    (message) => (message as { response: IncomingMessage }).response.socket,
  );
  const left: number[] = [];
  const onEvent = () => {
    left.push(waiting([...ends]));
    return undefined;
  };
  const { port } = await startProxy(url, { onEvent });
  const clients = Array.from({ length: 5 }, () => openSocket(port));
  for (let round = 0; round < 3; round += 1) {
    const seen = clients.map(({ socket }) => once(socket, 'data'));
    for (const { socket } of clients)
      socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
    await Promise.all(seen);
  }
  // Of each exchange: its request, the body and the end of that, its answer and the body of that, and its end.
  await expect.poll(() => left.length).toBe(3 * 5 * 6);
  expect(ends.size).toBe(10);
  expect(Math.max(...left)).toBe(0);
});
