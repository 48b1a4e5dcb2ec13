// A program of the official SDK 1.x, plain or recording itself: `library-host.js DOOR URL|- COUNT DB`. As `stdio` it is a server. As
// `http` it is a server that prints its URL. As `fetch` and `transport` it is a client of the server at URL, and prints the times of its
// calls as JSON, in milliseconds, and the processor time that one took of its own thread, in microseconds.
import { createServer } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { recordedFetch, recordedHandler, recordedTransport, recordStdio } from 'mcp-tapedeck/record';
import { z } from 'zod';
import { ownTime } from './processor.js';

const [door, url, count, db] = process.argv.slice(2);
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
    call(
      new StreamableHTTPClientTransport(new URL(url), {
        fetch: isPlain ? fetch : recordedFetch(fetch, { db }),
      }),
    ),
  transport() {
    const transport = new StreamableHTTPClientTransport(new URL(url));
    return call(isPlain ? transport : recordedTransport(transport, { db }));
  },
};

function createEcho() {
  const server = new McpServer({ name: 'echo', version: '1.0.0' });
  const inputSchema = { text: z.string() };
  server.registerTool('echo', { inputSchema }, ({ text }) => ({ content: [{ type: 'text', text }] }));
  return server;
}

async function call(transport) {
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(transport);
  const times = [];
  const warm = Math.floor(Number(count) / 5);
  let before = null;
  for (let i = 0; i < Number(count); i += 1) {
    if (i === warm) before = ownTime(process.pid);
    const began = performance.now();
    await client.callTool({ name: 'echo', arguments: { text: 'hello' } });
    times.push(performance.now() - began);
  }
  const processor = before === null ? null : (ownTime(process.pid) - before) / (times.length - warm);
  await client.close();
  // What comes first is compiled meanwhile.
  process.stdout.write(JSON.stringify({ times: times.slice(warm), processor }));
}

await doors[door]();
