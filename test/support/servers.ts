/** Real MCP servers in processes of their own, and recordings of the official clients with them. */
import { spawn } from 'node:child_process';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { listenOn } from './http.ts';
import { fixture, ROOT, start, until } from './tapedeck.ts';

export const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

export type DualEra = {
  url: URL;
  /** What reached it so far: of each request the method, then names and values of its headers. */
  requests(): string[][];
};

/** The server of both eras. With `RECORD_DB` it records itself there. */
export async function startDualEra(env: Record<string, string> = {}): Promise<DualEra> {
  const run = start(process.execPath, [fixture('dual-era-server.js')], {
    env: { TELL_REQUESTS: '1', ...env },
  });
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
export function startDualEraServer(): Promise<string> {
  return shared('dual-era', async () => {
    const stdout = spawnShared([fixture('dual-era-server.js')]);
    await until('the server listens', () => stdout().includes('/mcp\n'));
    return stdout().trim();
  });
}

/** The official reference server, over `streamableHttp` or `sse`. Gives its URL. */
export function startEverything(transport: 'streamableHttp' | 'sse'): Promise<string> {
  return shared(transport, async () => {
    const port = await findFreePort();
    const loopback = join(ROOT, 'test/conformance/loopback-only.js');
    const output = spawnShared(['--import', loopback, EVERYTHING, transport], { PORT: String(port) });
    await until('the server listens', () => /on port/i.test(output()));
    return `http://127.0.0.1:${port}/${transport === 'sse' ? 'sse' : 'mcp'}`;
  });
}

const running = new Map<string, Promise<string>>();

/** They keep their clients apart, so one of each serves all tests of this process. */
function shared(name: string, startIt: () => Promise<string>): Promise<string> {
  const known = running.get(name) ?? startIt();
  running.set(name, known);
  return known;
}

/** A server that ends with this process, however that ends. Returns what it has said. */
function spawnShared(args: readonly string[], env: Record<string, string> = {}): () => string {
  const child = spawn(process.execPath, ['--import', fixture('ends-with-parent.js'), ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let output = '';
  const pipes = [child.stdout, child.stderr] as Socket[];
  for (const pipe of pipes) {
    pipe.on('data', (bytes) => {
      output += bytes;
    });
    pipe.unref();
  }
  child.channel?.unref();
  child.unref();
  return () => output;
}

/** A port that nobody listens on just now. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  const port = await listenOn(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
