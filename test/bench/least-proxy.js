// The least that a recorder over HTTP costs: the proxy library alone, and a copy of each exchange for a thread that writes
// it down; of a stream of events, each piece as it comes, since nobody knows how long the stream goes on. With a third
// argument, `reads`, that thread looks at the bodies, too (least-writer.js).
import { Agent, createServer } from 'node:http';
import { createProxyServer } from 'http-proxy';
import { startLeastThread } from './least-thread.js';

const EXCHANGE = Symbol('exchange');
const [url, file, reads] = process.argv.slice(2);
const { protocol, hostname, port } = new URL(url);
const thread = startLeastThread(file, reads === 'reads');
const proxy = createProxyServer({
  target: { protocol, hostname, port },
  agent: new Agent({ keepAlive: true }),
});
const now = () => Date.now() * 1000;
let count = 0;

proxy.on('error', (_error, _request, response) => response.destroy());
proxy.on('proxyRes', (answer, request) => {
  const exchange = request[EXCHANGE];
  exchange.answeredAt = now();
  exchange.status = answer.statusCode;
  exchange.answerHeaders = JSON.stringify(answer.rawHeaders);
  const isStream = answer.headers['content-type'] === 'text/event-stream';
  answer.on('data', (bytes) => {
    if (isStream) thread.addPiece({ number: exchange.number, at: now(), bytes });
    else exchange.got.push(bytes);
  });
});

const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  const { method, url: path, rawHeaders } = request;
  count += 1;
  const exchange = { number: count, method, path, headers: JSON.stringify(rawHeaders), at: now() };
  request[EXCHANGE] = Object.assign(exchange, { asked: [], got: [] });
  proxy.web(request, response).catch(() => response.destroy());
  request.on('data', (bytes) => void exchange.asked.push(bytes));
  response.once('close', () => thread.addExchange({ ...exchange, endedAt: now() }));
});
server.listen(0, '127.0.0.1', () => {
  process.stderr.write(`listening on http://127.0.0.1:${server.address().port}/mcp\n`);
});
