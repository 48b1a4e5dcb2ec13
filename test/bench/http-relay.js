// The yardstick over HTTP: the proxy library alone, with connections kept. It records nothing. With the files of a key and its certificate
// behind the URL: with TLS on both sides.
import { readFileSync } from 'node:fs';
import { Agent, createServer } from 'node:http';
import { createServer as createTlsServer, Agent as TlsAgent } from 'node:https';
import { createProxyServer } from 'http-proxy';

const [key, cert] = process.argv.slice(3).map((file) => readFileSync(file));
const isTls = key !== undefined;
const { protocol, hostname, port } = new URL(process.argv[2]);
// A plain object, since a URL is taken apart anew for each request.
const proxy = createProxyServer({
  target: { protocol, hostname, port },
  agent: new (isTls ? TlsAgent : Agent)({ keepAlive: true }),
});
proxy.on('error', (_error, _request, response) => response.destroy());

const server = (isTls ? createTlsServer : createServer)(
  { keepAliveTimeout: 0, key, cert },
  (request, response) => {
    proxy.web(request, response).catch(() => response.destroy());
  },
);
server.listen(0, '127.0.0.1', () => {
  process.stderr.write(`listening on http://127.0.0.1:${server.address().port}/mcp\n`);
});
