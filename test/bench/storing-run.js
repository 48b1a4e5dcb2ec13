// Stores HTTP exchanges in this process, and prints what one takes: `node storing-run.js <tapedeck|least|reader> <file> <commits>`.
// Making them, as the forwarding thread does, is not counted; reading what it hands over is.
import { deserialize, serialize } from 'node:v8';
import { openStore } from '../../build/store/file/open.js';
import { createBatcher, eachItem } from '../../build/store/record/batch.js';
import { appendHttpItem } from '../../build/store/record/http-items.js';
import { createIntake } from '../../build/store/record/intake.js';
import { openLeastStore } from './least-store.js';

/** What passes in 30 ms at some 7,000 requests a second, over so many connections. */
const EXCHANGES = 200;
const CONNECTIONS = 32;

/** Of the commits so many are not counted: V8 compiles meanwhile. */
const WARM_UP = 0.3;

const BEGAN = 1_764_000_000_000_000;
const URL_OF_SERVER = 'http://127.0.0.1:39919/mcp';
const [what, file, count] = process.argv.slice(2);
const commits = Number(count);
let made = 0;

const save = what === 'tapedeck' ? saverOfTapedeck() : saverOfLeast(what === 'reader');
let microseconds = 0;
for (let i = 0; i < commits; i += 1) {
  const given = save.prepare(exchanges());
  const before = process.cpuUsage();
  save.store(given);
  const { user, system } = process.cpuUsage(before);
  if (i >= commits * WARM_UP) microseconds += user + system;
}
console.log(microseconds / (Math.floor(commits * (1 - WARM_UP)) * EXCHANGES));

/** As many as go into one commit; those of all connections are under way at once. */
function exchanges() {
  return Array.from({ length: EXCHANGES }, () => {
    made += 1;
    const id = made;
    const request = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello 0"}}}`;
    const answer = `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"hello 0"}]}}`;
    return { id, at: BEGAN + id * 100, request: Buffer.from(request), answer: Buffer.from(answer) };
  });
}

function requestHeaders({ request }) {
  const accept = 'application/json, text/event-stream';
  const length = String(request.length);
  return [
    'Host',
    '127.0.0.1:39919',
    'content-type',
    'application/json',
    'accept',
    accept,
    'content-length',
    length,
  ];
}

function answerHeaders({ answer, at }) {
  const date = new Date(at / 1000).toUTCString();
  const length = String(answer.length);
  return [
    'content-type',
    'application/json',
    'content-length',
    length,
    'Date',
    date,
    'Connection',
    'keep-alive',
  ];
}

function saverOfLeast(reads) {
  const commit = openLeastStore(file, reads);
  return {
    // As `postMessage` hands it over.
    prepare: (all) =>
      serialize({
        exchanges: all.map((one) => ({
          ...{ number: one.id, method: 'POST', path: '/mcp', status: 200 },
          headers: JSON.stringify(requestHeaders(one)),
          answerHeaders: JSON.stringify(answerHeaders(one)),
          ...{ at: one.at, answeredAt: one.at + 50, endedAt: one.at + 60 },
          ...{ asked: [one.request], got: [one.answer] },
        })),
      }),
    store: (bytes) => commit([deserialize(bytes)]),
  };
}

function saverOfTapedeck() {
  const { open, framer, save, confirm } = createIntake(
    {
      ...{
        name: null,
        labels: [],
        basis: 'stateless',
        transport: 'http',
        target: URL_OF_SERVER,
        command: null,
      },
      ...{ cwd: null, at: BEGAN, tapedeck: '0', pid: process.pid, parentPid: null },
    },
    16 * 1024 * 1024,
    { without: [], rules: [], paths: [] },
    () => {},
    () => {},
  );
  open(openStore(file));
  return {
    prepare(all) {
      const batches = [];
      const { append, flush } = createBatcher((batch) => batches.push(batch));
      for (let i = 0; i < all.length; i += CONNECTIONS) {
        const some = all.slice(i, i + CONNECTIONS);
        for (const one of some) for (const event of requestOf(one)) appendHttpItem(append, event);
        for (const one of some) for (const event of answerOf(one)) appendHttpItem(append, event);
      }
      flush();
      return batches;
    },
    store(batches) {
      for (const batch of batches) eachItem(batch, framer.feed);
      save(false);
      confirm();
      framer.hasUnfinished();
    },
  };
}

function requestOf(one) {
  const { id: exchange, at, request: bytes } = one;
  const head = { method: 'POST', path: '/mcp', httpVersion: '1.1', rawHeaders: requestHeaders(one) };
  const edits = [{ header: 'Host', original: '127.0.0.1:18099' }];
  const clientAddress = `127.0.0.1:${50_000 + (exchange % CONNECTIONS)}`;
  return [
    { type: 'request', exchange, at, ...head, edits, clientAddress },
    { type: 'request-body', exchange, at, bytes },
    { type: 'request-end', exchange, at, rawTrailers: [], isComplete: true },
  ];
}

function answerOf(one) {
  const { id: exchange, answer: bytes } = one;
  const at = one.at + 50;
  const how = { closedBy: 'server', error: null, isComplete: true, rawTrailers: [] };
  return [
    {
      type: 'response',
      exchange,
      at,
      status: 200,
      statusMessage: 'OK',
      rawHeaders: answerHeaders(one),
      edits: [],
    },
    { type: 'response-body', exchange, at, bytes },
    { type: 'end', exchange, at: at + 10, ...how },
  ];
}
