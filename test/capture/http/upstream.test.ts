import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { createUpstream, type UpstreamListener } from '../../../src/capture/http/upstream.ts';
import { listenOn, startProxy, startServer } from '../../support/http.ts';

/** Answers with the number of the connection that a request came by, once it is told to where it is to wait. */
async function startNumbering(headers: OutgoingHttpHeaders = {}, isWaiting = false) {
  const connections: Socket[] = [];
  const open: (() => void)[] = [];
  const { url, server } = await startServer((req, res) => {
    res.writeHead(200, headers).flushHeaders();
    const answer = () => res.end(`${connections.indexOf(req.socket)}`);
    if (isWaiting) open.push(answer);
    else answer();
  });
  server.on('connection', (socket) => connections.push(socket));
  return { url, connections, open };
}

/** A server, and a proxy before it. */
async function startBoth(headers?: OutgoingHttpHeaders) {
  const { url, connections } = await startNumbering(headers);
  const { capture } = await startProxy(url);
  return { connections, ask: async () => (await fetch(capture.url)).text() };
}

test('requests that come one after the other share a connection', async () => {
  const { ask, connections } = await startBoth();
  for (let i = 0; i < 5; i += 1) expect(await ask()).toBe('0');
  expect(connections).toHaveLength(1);
});

test('requests at the same time have a connection each, and the next takes the one that was idle for the shortest time', async () => {
  const { url, open } = await startNumbering({}, true);
  const { capture } = await startProxy(url);
  const begin = async () => {
    const [answer] = (await once(request(capture.url).end(), 'response')) as [IncomingMessage];
    const end = open.at(-1) as () => void;
    return () => {
      end();
      return text(answer);
    };
  };
  const [first, second, third] = [await begin(), await begin(), await begin()];
  expect([await second(), await third(), await first()]).toEqual(['1', '2', '0']);
  const [fourth, fifth] = [await begin(), await begin()];
  expect([await fourth(), await fifth()]).toEqual(['0', '2']);
});

test('a connection that the server has closed is not taken again', async () => {
  const { ask, connections } = await startBoth();
  expect(await ask()).toBe('0');
  const [socket] = connections as [Socket];
  socket.end();
  await once(socket, 'close');
  expect(await ask()).toBe('1');
});

test('an idle connection is closed, and sooner where the server says that it closes it soon', async () => {
  const closed: string[] = [];
  const servers = await Promise.all(
    [{}, { 'Keep-Alive': 'timeout=3' }, { 'Keep-Alive': 'timeout=1' }].map((headers) => startBoth(headers)),
  );
  await Promise.all(
    servers.map(async ({ ask, connections }, i) => {
      // Used twice where it is kept.
      expect(await ask()).toBe('0');
      expect(await ask()).toBe(i === 2 ? '1' : '0');
      await once(connections.at(-1) as Socket, 'close');
      closed.push(['nothing is said', 'three seconds', 'one second'][i] as string);
    }),
  );
  expect(closed).toEqual(['one second', 'three seconds', 'nothing is said']);
});

/** Forwards what comes, without the rest of the proxy. */
async function startForwarding(
  url: string,
  onAnswer: (answer: IncomingMessage, response: ServerResponse) => void,
  beforeEach = () => {},
) {
  const upstream = createUpstream(new URL(url), false, null);
  const front = createServer((req, res) => {
    const listener: UpstreamListener = {
      onSent() {},
      onAnswer: (answer) => onAnswer(answer, res),
      onFailure: (error) => res.destroy(error),
    };
    beforeEach();
    upstream.forward(req, res, { path: '/', rawHeaders: ['Host', 'there'], isAlone: false }, listener);
  });
  const port = await listenOn(front);
  onTestFinished(() => {
    upstream.close();
    front.closeAllConnections();
    front.close();
  });
  return async () => (await fetch(`http://127.0.0.1:${port}`)).text();
}

test('a connection that breaks in the turn in which a request comes is not taken', async () => {
  const { url } = await startNumbering();
  let used: Socket | undefined;
  const ask = await startForwarding(
    url,
    (answer, response) => {
      used = answer.socket;
      answer.pipe(response);
    },
    () => used?.destroy(),
  );
  expect(await ask()).toBe('0');
  expect(await ask()).toBe('1');
});

test('a connection is not idle while its answer waits to be read, and is from then on', async () => {
  const { url, connections } = await startNumbering();
  let readsLate = false;
  const ask = await startForwarding(url, async (answer, response) => {
    if (readsLate) await once(answer.socket, 'timeout');
    answer.pipe(response);
  });
  expect(await ask()).toBe('0');
  readsLate = true;
  expect(await ask()).toBe('0');
  await once(connections[0] as Socket, 'close');
  expect(connections).toHaveLength(1);
});
