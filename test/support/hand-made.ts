/** Sessions made by hand, as text recordings: what passed, when, and how it ended. */

type Json = Record<string, unknown>;

const START = Date.parse('2026-11-20T10:00:00Z');

const timeAt = (ms: number) => new Date(START + ms).toISOString();

type Header = {
  name?: string;
  target?: string;
  /** Milliseconds since the session began. */
  endedAt?: number | null;
  endReason?: string;
  clientClosedAt?: number;
  serverClosedAt?: number;
} & Json;

/** `at`: milliseconds since the session began. */
export type Line = Json & { at: number };

/** A line of the client, over stdio. */
export const says = (at: number, message: Json): Line => ({ at, channel: 'stdin', message: rpc(message) });

export const replies = (at: number, message: Json): Line => ({
  at,
  channel: 'stdout',
  message: rpc(message),
});

const rpc = (message: Json): Json => ({ jsonrpc: '2.0', ...message });

export const callOf = (id: unknown, name: string, args: Json = {}, more: Json = {}): Json => ({
  ...{ id, method: 'tools/call', params: { name, arguments: args, ...more } },
});

export const resultOf = (id: unknown, result: Json = { content: [] }): Json => ({ id, result });

/** A session over stdio that began at 10 o'clock on the 20th of November 2026, or `startedAt` milliseconds later. */
export function stdioSession(lines: readonly Line[], header: Header = {}, startedAt = 0): string {
  const { endedAt = 60_000, serverClosedAt, clientClosedAt, ...more } = header;
  const time = (ms: number) => timeAt(startedAt + ms);
  const session = {
    ...{ basis: 'stdio-process', transport: 'stdio', target: 'node server.js', startedAt: timeAt(startedAt) },
    ...(endedAt === null ? {} : { endedAt: time(endedAt), endReason: 'server-exited', exitCode: 1 }),
    ...(clientClosedAt === undefined ? {} : { clientClosedAt: time(clientClosedAt) }),
    ...(serverClosedAt === undefined ? {} : { serverClosedAt: time(serverClosedAt) }),
    ...more,
  };
  return textOf(session, lines);
}

/** The same over HTTP. */
export function httpSession(lines: readonly Line[], header: Json = {}): string {
  const session = {
    ...{ basis: 'session-header', transport: 'http', target: 'http://127.0.0.1:1/mcp', startedAt: timeAt(0) },
    ...{ endedAt: timeAt(60_000), endReason: 'idle', ...header },
  };
  return textOf(session, lines);
}

/** A POST with a message, and what came of it, each at its time. */
export function posted(http: number, at: number, message: Json, ...then: readonly Line[]): Line[] {
  const request = { method: 'POST', path: '/mcp', headers: [], body: { ms: 0, bytes: 1 } };
  const body = { at, http, channel: 'request', message: rpc(message) };
  return [{ at, http, request }, body, ...then.map((line) => ({ http, ...line }))];
}

export const head = (at: number, status = 200, type = 'application/json'): Line => ({
  at,
  response: { status, statusText: '', headers: [['content-type', type]] },
});

export const body = (at: number, message: Json): Line => ({ at, channel: 'response', message: rpc(message) });

export const event = (at: number, message: Json): Line => ({
  ...{ at, channel: 'sse', sse: {}, message: rpc(message) },
});

export const closed = (at: number, closedBy = 'server', error?: string): Line => ({
  at,
  end: { closedBy, ...(error === undefined ? {} : { error }) },
});

function textOf(session: Json, lines: readonly Line[]): string {
  let before = 0;
  const written = lines.map(({ at, ...line }) => {
    const ms = at - before;
    before = at;
    return JSON.stringify({ ms, ...line });
  });
  return `${[JSON.stringify({ tapedeck: 1, session }), ...written].join('\n')}\n`;
}
