// How near tapedeck itself could come: its own forwarding, with nothing behind it but the storing of the plainest recorder that
// reads (least-writer.js). What is between the two is what its own storing takes: to redact, to tell sessions apart, to cut
// streams into events, to bound what waits and to count what is lost.
import { Worker } from 'node:worker_threads';
import { captureHttp } from '../../build/capture/http/proxy.js';

const EVERY_MS = 5;
const [url, file] = process.argv.slice(2);
const writer = new Worker(new URL('least-writer.js', import.meta.url), { workerData: { file, reads: true } });
const open = new Map();
let batch = { exchanges: [], pieces: [] };
let isPlanned = false;

function plan() {
  if (!isPlanned) setTimeout(handOver, EVERY_MS);
  isPlanned = true;
}

function handOver() {
  isPlanned = false;
  writer.postMessage(batch);
  batch = { exchanges: [], pieces: [] };
}

const take = {
  request({ exchange, method, path, rawHeaders, at }) {
    const headers = JSON.stringify(rawHeaders);
    open.set(exchange, { number: exchange, method, path, headers, at, asked: [], got: [], isStream: false });
  },
  'request-body': ({ exchange, bytes }) => void open.get(exchange).asked.push(bytes),
  response({ exchange, at, status, rawHeaders }) {
    const answerHeaders = JSON.stringify(rawHeaders);
    const isStream = answerHeaders.includes('text/event-stream');
    Object.assign(open.get(exchange), { answeredAt: at, status, answerHeaders, isStream });
  },
  'response-body'({ exchange, at, bytes }) {
    const { got, isStream } = open.get(exchange);
    if (!isStream) {
      got.push(bytes);
      return;
    }
    batch.pieces.push({ number: exchange, at, bytes });
    plan();
  },
  end({ exchange, at }) {
    batch.exchanges.push({ ...open.get(exchange), endedAt: at });
    open.delete(exchange);
    plan();
  },
};

const capture = await captureHttp({
  upstream: new URL(url),
  listen: { host: '127.0.0.1', port: 0 },
  tls: null,
  isInsecure: false,
  hasEdits: true,
  allowHosts: [],
  allowOrigins: [],
  graceMs: 0,
  onEvent: (event) => take[event.type]?.(event),
  onNotice() {},
});
process.stderr.write(`listening on ${capture.url}\n`);
