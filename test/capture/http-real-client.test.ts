import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import { bodyOf, startProxy, startServer } from '../support/http.ts';

/** A server that asks back within a call. */
function createMcpServer(): McpServer {
  const mcp = new McpServer({ name: 'asker', version: '1.0.0' });
  mcp.registerTool('ask', {}, async () => {
    const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'hällo?' } }];
    const { content } = await mcp.server.createMessage({ messages, maxTokens: 5 });
    return { content: [content].flat() as [{ type: 'text'; text: string }] };
  });
  return mcp;
}

function startMcpServer() {
  const streamable = new Map<string, StreamableHTTPServerTransport>();
  const legacy = new Map<string, SSEServerTransport>();
  return startServer(async (req: IncomingMessage, res: ServerResponse) => {
    const url = new URL(req.url ?? '', 'http://localhost');
    if (url.pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', res);
      legacy.set(transport.sessionId, transport);
      await createMcpServer().connect(transport);
    } else if (url.pathname === '/messages') {
      await legacy.get(url.searchParams.get('sessionId') ?? '')?.handlePostMessage(req, res);
    } else {
      let transport = streamable.get(String(req.headers['mcp-session-id']));
      if (transport === undefined) {
        const opened = new StreamableHTTPServerTransport({
          sessionIdGenerator: randomUUID,
          onsessioninitialized: (id) => void streamable.set(id, opened),
        });
        transport = opened;
        await createMcpServer().connect(transport as Transport);
      }
      await transport.handleRequest(req, res);
    }
  });
}

async function converse(transport: Transport): Promise<unknown> {
  const client = new Client({ name: 'tester', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: `you said ${JSON.stringify(params.messages)}` },
  }));
  await client.connect(transport);
  const seen = {
    server: client.getServerVersion(),
    tools: await client.listTools(),
    asked: await client.callTool({ name: 'ask' }),
    failed: await client.callTool({ name: 'nothing' }).catch(String),
  };
  if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
  await client.close();
  return seen;
}

for (const [name, path, create] of [
  ['Streamable HTTP', '/mcp', (url: URL) => new StreamableHTTPClientTransport(url)],
  ['legacy HTTP+SSE', '/sse', (url: URL) => new SSEClientTransport(url)],
] as const) {
  test(`the official client sees the same through the proxy as without it: ${name}`, async () => {
    const upstream = await startMcpServer();
    const { capture, events, waitFor } = await startProxy(upstream.url + path);
    const seen = await converse(create(capture.url) as Transport);
    expect(seen).toEqual(await converse(create(new URL(path, upstream.url)) as Transport));
    expect(JSON.stringify(seen)).toContain('hällo?');
    await waitFor('end');
    expect(bodyOf(events, 'request-body')).toContain('"method":"tools/call"');
    expect(bodyOf(events, 'response-body')).toContain('sampling/createMessage');
    const failed = events.filter((event) => event.type === 'end' && event.closedBy === 'proxy');
    expect(failed).toEqual([]);
  });
}
