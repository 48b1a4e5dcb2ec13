// The yardstick over HTTP: the proxy library alone, with connections kept. It records nothing.
import { Agent, createServer } from 'node:http';
import { createProxyServer } from 'http-proxy';

const { protocol, hostname, port } = new URL(process.argv[2]);
// A plain object, since a URL is taken apart anew for each request.
const proxy = createProxyServer({
  target: { protocol, hostname, port },
  agent: new Agent({ keepAlive: true }),
});
proxy.on('error', (_error, _request, response) => response.destroy());

const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  proxy.web(request, response).catch(() => response.destroy());
});
server.listen(0, '127.0.0.1', () => {
  process.stderr.write(`listening on http://127.0.0.1:${server.address().port}/mcp\n`);
});
