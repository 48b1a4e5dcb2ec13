/** An MCP server that lets nobody in without a token, the one that gives tokens, and a client that finds its way from one to the other. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { startServer } from './http.ts';

export const METADATA = '/.well-known/oauth-protected-resource/mcp';

/** Obviously none. */
export const CLIENT_SECRET = 'my-client-secret';

/** Gives a token of its own to everyone who asks. */
async function startAuthorization() {
  const tokens: string[] = [];
  const { url } = await startServer((request, response) => {
    response.setHeader('Content-Type', 'application/json');
    const issuer = `http://${request.headers.host}`;
    if (request.url === '/token') {
      const token = `very-secret-${randomUUID()}`;
      tokens.push(token);
      response.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 3600 }));
    } else if (request.url === '/.well-known/oauth-authorization-server') {
      response.end(
        JSON.stringify({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          response_types_supported: ['code'],
          grant_types_supported: ['client_credentials'],
          token_endpoint_auth_methods_supported: ['client_secret_basic'],
        }),
      );
    } else response.writeHead(404).end();
  });
  return { url, tokens };
}

/** An MCP server that lets nobody in without a token, and says where one is to be had. */
export async function startProtected() {
  const authorization = await startAuthorization();
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  let origin = '';
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === METADATA) {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ resource: `${origin}/mcp`, authorization_servers: [authorization.url] }));
    } else if (!authorization.tokens.includes(request.headers.authorization?.split(' ')[1] ?? '')) {
      response.setHeader('WWW-Authenticate', `Bearer resource_metadata="${origin}${METADATA}", scope="all"`);
      response.writeHead(401).end();
    } else {
      let transport = sessions.get(String(request.headers['mcp-session-id']));
      if (transport === undefined) {
        const opened = new StreamableHTTPServerTransport({
          sessionIdGenerator: randomUUID,
          onsessioninitialized: (id) => void sessions.set(id, opened),
        });
        transport = opened;
        const mcp = new McpServer({ name: 'protected', version: '1.0.0' });
        mcp.registerTool('whisper', {}, () => ({ content: [{ type: 'text', text: 'psst' }] }));
        await mcp.connect(transport as Transport);
      }
      await transport.handleRequest(request, response);
    }
  };
  const { url } = await startServer((request, response) => void answer(request, response));
  origin = url;
  return { url: new URL('/mcp', url), authorization };
}

/** Opens a session, uses it, and ends it. */
export async function converse(url: URL, expectedIssuer: string, by: typeof fetch = fetch) {
  const authProvider = new ClientCredentialsProvider({
    clientId: 'me',
    clientSecret: CLIENT_SECRET,
    expectedIssuer,
  });
  const client = new Client({ name: 'tester', version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(url, { authProvider, fetch: by });
  await client.connect(transport as Transport);
  const seen = { tools: await client.listTools(), whisper: await client.callTool({ name: 'whisper' }) };
  await transport.terminateSession();
  await client.close();
  return seen;
}
