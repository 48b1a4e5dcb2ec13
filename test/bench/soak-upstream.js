// The server of the soak: gives out sessions, answers calls with a text of the size that they ask for, lets sessions end.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    if (request.method !== 'POST') {
      response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
      return;
    }
    const { id, method, params } = JSON.parse(Buffer.concat(chunks));
    const headers = { 'Content-Type': 'application/json' };
    let result = { content: [{ type: 'text', text: 'soaked '.repeat((params?.arguments?.size ?? 0) / 7) }] };
    if (method === 'initialize') {
      headers['Mcp-Session-Id'] = randomUUID();
      const serverInfo = { name: 'soak', version: '1' };
      result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
    }
    response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
});

server.listen(0, '127.0.0.1', () => console.log(server.address().port));
