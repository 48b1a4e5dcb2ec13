/** What an operator sees and does: the admin port, a server with sessions and streams, clients of it. */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { startServer } from './http.ts';
import { postTo } from './http-record.ts';
import { type Run, until } from './tapedeck.ts';

/** Asks the admin port that a recording has named. */
export async function askAdmin(
  run: Pick<Run, 'stderr'>,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const url = new URL(path, await adminUrl(run));
  return new Promise((resolve, reject) => {
    request(url, { headers, agent: false }, async (answer) =>
      resolve({ status: answer.statusCode ?? 0, text: await bodyOf(answer) }),
    )
      .on('error', reject)
      .end();
  });
}

async function adminUrl({ stderr }: Pick<Run, 'stderr'>): Promise<string> {
  const told = () => /health and metrics are at (http:[^\s"]+)/.exec(stderr())?.[1];
  await until('the admin port is named', () => told() !== undefined);
  return told() ?? '';
}

export type Sample = { name: string; labels: Record<string, string>; value: number };

/** The samples of Prometheus' text format. */
export function samplesOf(text: string): Sample[] {
  return [...text.matchAll(/^([a-z_:]\w*)(?:\{(.*)\})? (\S+)$/gim)].map(
    ([, name = '', labels = '', value]) => ({
      name,
      labels: Object.fromEntries(
        [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', text = '']) => [key, text]),
      ),
      value: Number(value),
    }),
  );
}

/** The sum of the samples of this name whose labels have these values. */
export function total(text: string, name: string, labels: Record<string, string> = {}): number {
  return samplesOf(text)
    .filter((one) => one.name === name)
    .filter((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

export async function bodyOf(answer: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of answer.setEncoding('utf8')) text += piece;
  return text;
}

export type SessionServer = {
  url: string;
  /** The streams that are open, the oldest first. */
  streams: ServerResponse[];
};

/**
 * A server of Streamable HTTP, as small as one can be: sessions, calls, and a stream for each GET. `onOther` gets to answer all
 * other requests.
 */
export async function startSessionServer(
  onOther: (response: ServerResponse) => void = (response) => response.writeHead(405).end(),
  port = 0,
): Promise<SessionServer> {
  const streams: ServerResponse[] = [];
  const { url } = await startServer(
    async (asked, response) => {
      if (asked.method === 'GET') {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.flushHeaders();
        streams.push(response);
        return;
      }
      if (asked.method !== 'POST') {
        onOther(response);
        return;
      }
      const { id, method } = JSON.parse(await bodyOf(asked));
      if (method === 'missing') {
        response.writeHead(404).end();
        return;
      }
      const headers: Record<string, string> = { 'Content-Type': 'application/json' };
      if (method === 'initialize') headers['Mcp-Session-Id'] = randomUUID();
      const info = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        serverInfo: { name: 's', version: '1' },
      };
      const result = method === 'initialize' ? info : { content: [] };
      response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    },
    { port },
  );
  return { url: `${url}/mcp`, streams };
}

/**
 * A client of a recorder that is started at this URL a moment later: opens a session and a stream, which its server ends once the
 * recorder drains. The server is started here, on the port.
 */
export async function prepareDrain(port: number, url: URL): Promise<void> {
  const server = await startSessionServer(undefined, port);
  void (async () => {
    let client: RawClient | undefined;
    await until('the recorder listens', async () => {
      client = await startRawClient(url).catch(() => undefined);
      return client !== undefined;
    });
    const stream = await client?.stream();
    const isListening = () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(Number(url.port), url.hostname, () => resolve(true));
        socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
      });
    await until('it drains', async () => !(await isListening()));
    for (const one of server.streams) one.end();
    stream?.resume();
  })();
}

export type RawClient = {
  session: string;
  call(name: string, args?: object): Promise<string>;
  /** Opens the stream of the session. */
  stream(): Promise<IncomingMessage>;
};

/** Begins a session, in bytes of its own. */
export async function startRawClient(url: URL): Promise<RawClient> {
  const clientInfo = { name: 'raw', version: '1' };
  const begun = await post(url, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo,
  });
  await bodyOf(begun);
  const session = String(begun.headers['mcp-session-id']);
  const headers = { 'Mcp-Session-Id': session };
  return {
    session,
    async call(name, args = {}) {
      return bodyOf(await post(url, 'tools/call', { name, arguments: args }, headers));
    },
    stream: () =>
      new Promise((resolve, reject) => {
        request(url, { headers: { ...headers, Accept: 'text/event-stream' }, agent: false }, resolve)
          .on('error', reject)
          .end();
      }),
  };
}

let calls = 0;

export function post(
  url: URL,
  method: string,
  params: object,
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  calls += 1;
  const body = JSON.stringify({ jsonrpc: '2.0', id: calls, method, params });
  return postTo(url, body, { headers: { Accept: 'application/json, text/event-stream', ...headers } });
}
