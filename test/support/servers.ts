/** Real MCP servers in processes of their own, and recordings of the official clients with them. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import { listenOn } from './http.ts';
import { fixture, ROOT, start, until } from './tapedeck.ts';

export const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

export type DualEra = {
  url: URL;
  /** What reached it so far: of each request the method, then names and values of its headers. */
  requests(): string[][];
};

/** The server of both eras. */
export async function startDualEra(): Promise<DualEra> {
  const run = start(process.execPath, [fixture('dual-era-server.js')], { env: { TELL_REQUESTS: '1' } });
  await until('the server listens', () => run.stdout().includes('/mcp\n'));
  return {
    url: new URL(run.stdout().toString().trim()),
    requests: () =>
      run
        .stderr()
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as string[]),
  };
}

/** The same, where its URL is all that is wanted. */
export async function startDualEraServer(): Promise<string> {
  return (await startDualEra()).url.href;
}

/** The official reference server, over `streamableHttp` or `sse`. Gives its URL. */
export async function startEverything(transport: 'streamableHttp' | 'sse'): Promise<string> {
  const port = await findFreePort();
  const loopback = join(ROOT, 'test/conformance/loopback-only.js');
  const args = ['--import', loopback, EVERYTHING, transport];
  const { stdout, stderr } = start(process.execPath, args, { env: { PORT: String(port) } });
  await until('the server listens', () => /on port/i.test(stdout() + stderr()));
  return `http://127.0.0.1:${port}/${transport === 'sse' ? 'sse' : 'mcp'}`;
}

/** A port that nobody listens on just now. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  const port = await listenOn(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
