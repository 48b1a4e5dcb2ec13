// The server behind the HTTP contestants: answers a call with some 200 bytes of JSON, or with a stream of events that
// carry the time they were sent at. A GET tells how many calls have arrived. With the files of a key and its certificate: by TLS.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

const TEXT = 'The quick brown fox jumps over the lazy dog. '.repeat(3);
let arrived = 0;

const [key, cert] = process.argv.slice(2).map((file) => readFileSync(file));
const server = (key === undefined ? createServer : createTlsServer)(
  { keepAliveTimeout: 0, key, cert },
  onRequest,
);

function onRequest(request, response) {
  if (request.method === 'GET') {
    response.end(String(arrived));
    return;
  }
  arrived += 1;
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const { id, params } = JSON.parse(Buffer.concat(chunks));
    if (params.name === 'stream') stream(response, id, params.arguments);
    else answer(response, id);
  });
}

function answer(response, id) {
  const body = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: TEXT }] } });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
}

/** So many at once, every so many milliseconds or later; or so many a second, where a late timer makes up for what it missed. */
function stream(response, id, { events, everyMs, atOnce, perSecond }) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const send = (message) => response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  let sent = 0;
  const began = performance.now();
  const until = () => (perSecond ? ((performance.now() - began) / 1000) * perSecond : sent + atOnce);
  const timer = setInterval(() => {
    for (const due = Math.min(events, until()); sent < due; ) {
      sent += 1;
      const sentAt = Number(process.hrtime.bigint()) / 1000;
      const params = { progressToken: id, progress: sent, sentAt };
      send({ jsonrpc: '2.0', method: 'notifications/progress', params });
    }
    if (sent < events) return;
    clearInterval(timer);
    send({ jsonrpc: '2.0', id, result: { content: [] } });
    response.end();
  }, everyMs);
  response.on('close', () => clearInterval(timer));
}

server.listen(0, '127.0.0.1', () => {
  process.stderr.write(`listening on http://127.0.0.1:${server.address().port}/mcp\n`);
});
