// How near tapedeck itself could come: its own forwarding, with nothing behind it but the storing of the plainest recorder that
// reads (least-writer.js). What is between the two is what its own storing takes: to redact, to tell sessions apart, to cut
// streams into events, to bound what waits and to count what is lost.
import { captureHttp } from '../../build/capture/http/proxy.js';
import { startLeastThread } from './least-thread.js';

const [url, file] = process.argv.slice(2);
const thread = startLeastThread(file, true);
const open = new Map();

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
    if (isStream) thread.addPiece({ number: exchange, at, bytes });
    else got.push(bytes);
  },
  end({ exchange, at }) {
    thread.addExchange({ ...open.get(exchange), endedAt: at });
    open.delete(exchange);
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
