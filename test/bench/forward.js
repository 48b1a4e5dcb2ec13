// The forward proxy against our own reverse proxy: the same calls to the same server, by CONNECT and directly.
import { Agent, request } from 'node:http';
import { request as requestByTls } from 'node:https';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { ratioRow } from './figures.js';
import { startProgram, UPSTREAM } from './http-contestants.js';
import { removeStore } from './stdio.js';

export const TAPEDECK = [process.execPath, join(import.meta.dirname, '../../bin/tapedeck.js'), 'record'];
const MANY = 32;
const WARM_UP_SECONDS = 2;
const BODY =
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}';

/** By name: what goes between `record` and its options, and how its clients reach the server. */
const PROXIES = {
  reverse: {
    words: (url) => [url],
    agent: () => new Agent({ keepAlive: true }),
    target: (_, proxy) => proxy,
  },
  forward: { words: (url) => ['--forward', url], agent: agentThrough, target: (url) => url },
};

export async function benchForward(folder, { httpRounds, httpSeconds, progress }) {
  const store = join(folder, 'forward.db');
  const results = { reverse: {}, forward: {} };
  let [asked, recorded] = [0, 0];
  const upstream = await startProgram(UPSTREAM);
  try {
    for (let round = 0; round < httpRounds; round += 1) {
      progress(`forward round ${round + 1} of ${httpRounds}`);
      const names = Object.keys(PROXIES);
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const { words, agent, target } = PROXIES[name];
        const options = ['--listen', '127.0.0.1:0', '--db', store];
        const proxy = await startProgram([...TAPEDECK, ...words(upstream.url), ...options]);
        const url = target(upstream.url, proxy.url);
        const figures = await measure(url, () => agent(proxy.url), proxy.processor, httpSeconds);
        await proxy.stop();
        for (const [figure, value] of Object.entries(figures)) {
          results[name][figure] ??= [];
          results[name][figure].push(value);
        }
        asked += figures.requests;
        recorded += countRecorded(store);
        removeStore(store);
      }
    }
  } finally {
    await upstream.stop();
  }
  const loss = `Lost in these runs: ${asked - recorded} of ${asked.toLocaleString('en-US')} requests`;
  return { loss, rows: rowsOf(results, asked === recorded) };
}

function rowsOf({ forward, reverse }, isWhole) {
  const row = (what, figure, bound, unit) => {
    const named = { ...bound, yardstick: 'our reverse proxy' };
    const one = ratioRow(`forward proxy, ${what}`, forward[figure], reverse[figure], named, unit);
    return isWhole ? one : { ...one, met: 'LOST' };
  };
  return ['one', 'many'].flatMap((name) => {
    const what = name === 'one' ? '1 connection' : `${MANY} connections`;
    return [
      row(`${what}: requests/s`, `${name}Rate`, { atLeast: 0.9 }, 'req/s'),
      // What is done by nine requests in place of ten.
      row(`${what}: processor time a request`, `${name}Processor`, { atMost: 1.11 }, 'µs'),
    ];
  });
}

export async function measure(url, openAgent, processor, seconds) {
  const warm = await load(url, openAgent(), MANY, WARM_UP_SECONDS);
  const run = async (connections) => {
    const before = processor();
    const figures = await load(url, openAgent(), connections, seconds);
    return { ...figures, processor: (processor() - before) / figures.requests };
  };
  const [one, many] = [await run(1), await run(MANY)];
  return {
    oneRate: one.rate,
    oneProcessor: one.processor,
    manyRate: many.rate,
    manyProcessor: many.processor,
    requests: warm.requests + one.requests + many.requests,
  };
}

/** As many requests as there are connections, each followed by the next one, until the time is over; none is broken off. */
async function load(url, agent, connections, seconds) {
  const began = performance.now();
  let requests = 0;
  const work = async () => {
    while (performance.now() - began < seconds * 1000) {
      await post(url, agent);
      requests += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  const rate = (requests * 1000) / (performance.now() - began);
  agent.destroy();
  return { requests, rate };
}

function post(url, agent) {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': BODY.length };
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestByTls : request;
    const call = send(url, { agent, method: 'POST', headers }, (answer) => {
      answer.resume();
      answer.once('end', () =>
        answer.statusCode === 200 ? resolve() : reject(new Error(`${answer.statusCode}`)),
      );
    });
    call.once('error', reject);
    call.end(BODY);
  });
}

/** One that opens each connection by CONNECT. */
function agentThrough(proxy) {
  const agent = new Agent({ keepAlive: true });
  agent.createConnection = ({ host, port }, done) => {
    openTunnel(proxy, `${host}:${port}`).then((socket) => done(null, socket), done);
  };
  return agent;
}

/** `to`: host and port. Rejects where the proxy cannot be reached or refuses. */
export function openTunnel(proxy, to) {
  const { hostname, port } = new URL(proxy);
  return new Promise((resolve, reject) => {
    const tunnel = request({ hostname, port, method: 'CONNECT', path: to, headers: { Host: to } });
    tunnel.once('connect', ({ statusCode }, socket, head) => {
      if (statusCode !== 200) reject(new Error(`CONNECT ${to}: ${statusCode}`));
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    tunnel.once('error', reject).end();
  });
}

export function countRecorded(store) {
  const db = new Database(store, { readonly: true });
  const count = db.prepare('SELECT count(ended_at) FROM http_exchange').pluck().get();
  db.close();
  return count;
}
