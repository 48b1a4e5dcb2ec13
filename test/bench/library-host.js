// A program of the official SDK 1.x, plain or recording itself: `library-host.js DOOR URL|- [DB]`. As `stdio` it is a server. As
// `http` it is a server that prints its URL. As `fetch` and `transport` it is a client of the server at URL: for each line that it
// reads, a number, it makes so many calls, and prints the times that they took as JSON, in milliseconds.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { recordedFetch, recordedHandler, recordedTransport, recordStdio } from 'mcp-tapedeck/record';
import { z } from 'zod';

const [door, url, db] = process.argv.slice(2);
const isPlain = db === undefined;

const doors = {
  async stdio() {
    const { stdin, stdout } = isPlain ? process : recordStdio({ db });
    await createEcho().connect(new StdioServerTransport(stdin, stdout));
  },
  async http() {
    const listener = async (request, response) => {
      const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
      await createEcho().connect(transport);
      await transport.handleRequest(request, response);
    };
    const server = createServer(isPlain ? listener : recordedHandler(listener, { db }));
    server.listen(0, '127.0.0.1', () =>
      process.stdout.write(`http://127.0.0.1:${server.address().port}/mcp\n`),
    );
    process.stdin.resume().on('end', () => process.exit());
  },
  fetch: () =>
    callWhenAsked(
      new StreamableHTTPClientTransport(new URL(url), {
        fetch: isPlain ? fetch : recordedFetch(fetch, { db }),
      }),
    ),
  transport() {
    const transport = new StreamableHTTPClientTransport(new URL(url));
    return callWhenAsked(isPlain ? transport : recordedTransport(transport, { db }));
  },
};

function createEcho() {
  const server = new McpServer({ name: 'echo', version: '1.0.0' });
  const inputSchema = { text: z.string() };
  server.registerTool('echo', { inputSchema }, ({ text }) => ({ content: [{ type: 'text', text }] }));
  return server;
}

async function callWhenAsked(transport) {
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(transport);
  for await (const count of createInterface({ input: process.stdin })) {
    const times = [];
    for (let i = 0; i < Number(count); i += 1) {
      const began = performance.now();
      await client.callTool({ name: 'echo', arguments: { text: 'hello' } });
      times.push(performance.now() - began);
    }
    process.stdout.write(`${JSON.stringify(times)}\n`);
  }
  await client.close();
}

await doors[door]();
