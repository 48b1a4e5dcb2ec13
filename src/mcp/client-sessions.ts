/**
 * Clients of the eras before 2026-07-28 over HTTP: each has a session, begun by its `initialize`, and may open a stream on which it is
 * told of what it has subscribed to (Streamable HTTP, revision 2025-11-25, "Session Management", "Listening for Messages from the Server").
 */

import { randomUUID } from 'node:crypto';
import { isLegacyRequest, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import type { Reader } from './ask.ts';
import { createServer } from './server.ts';
import { createSubscriptions, type ResourceWatch, type Subscriptions } from './watch.ts';

export type ClientSessions = {
  /** `message`: the body, where it is JSON. Null: it belongs to no session, and begins none. */
  fetch(request: Request, message: unknown): Promise<Response | null>;
  /** A resource has changed. */
  tell(uri: string): void;
  close(): Promise<void>;
};

type ClientSession = {
  transport: WebStandardStreamableHTTPServerTransport;
  server: ReturnType<typeof createServer>;
  subscriptions: Subscriptions;
};

/** With more than so many, the one that was silent for longest is ended: its client begins a new one. */
const MOST_SESSIONS = 500;

const SESSION_HEADER = 'mcp-session-id';

export function createClientSessions(reader: Reader, watch: ResourceWatch): ClientSessions {
  /** The one that spoke last is the last. */
  const sessions = new Map<string, ClientSession>();

  async function begin(): Promise<ClientSession> {
    const subscriptions = createSubscriptions(watch);
    const server = createServer(reader, subscriptions);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized(id) {
        sessions.set(id, { transport, server, subscriptions });
        const [oldest] = sessions.values();
        if (sessions.size > MOST_SESSIONS) void oldest?.server.close();
      },
    });
    server.server.onclose = () => {
      subscriptions.end();
      sessions.delete(transport.sessionId ?? '');
    };
    await server.connect(transport);
    return { transport, server, subscriptions };
  }

  return {
    async fetch(request, message) {
      const id = request.headers.get(SESSION_HEADER);
      if (id === null && !isInitialize(message)) return null;
      if (!(await isLegacyRequest(request, message))) return null;
      const known = id === null ? await begin() : sessions.get(id);
      if (known === undefined) return notFound();
      if (id !== null) {
        sessions.delete(id);
        sessions.set(id, known);
      }
      return known.transport.handleRequest(
        request,
        request.method === 'POST' ? { parsedBody: message } : undefined,
      );
    },
    tell(uri) {
      for (const { server, subscriptions } of sessions.values())
        if (subscriptions.has(uri)) void server.server.sendResourceUpdated({ uri }).catch(() => {});
    },
    async close() {
      await Promise.all([...sessions.values()].map(({ server }) => server.close()));
    },
  };
}

function isInitialize(message: unknown): boolean {
  return (
    typeof message === 'object' && message !== null && 'method' in message && message.method === 'initialize'
  );
}

/** The client is to begin a new session, says the revision. */
function notFound(): Response {
  const error = { code: -32001, message: 'Session not found: it is over. Begin again with initialize.' };
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 404 });
}
