/** Clients against `tapedeck replay` with a live server behind it: over stdio in processes of their own, else in this one. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect } from 'vitest';
import { type InProcessRun, startInProcess } from './in-process.ts';
import { EVERYTHING } from './servers.ts';
import { BIN, tempFolder, until } from './tapedeck.ts';

const NODE = process.execPath;

export const LIVE_COMMAND = ['--', NODE, EVERYTHING, 'stdio'];

/** A client that can be asked, with a count of how often it was. */
export class AskedClient extends Client {
  asked = 0;
  progress: number[] = [];

  constructor() {
    super({ name: 'tester', version: '1.0.0' }, { capabilities: { sampling: {} } });
    this.setRequestHandler(CreateMessageRequestSchema, () => {
      this.asked += 1;
      return { role: 'assistant', model: 'none', content: { type: 'text', text: 'Forty-two.' } };
    });
  }

  /** The official client forgets progress that arrives together with the answer, so it is counted as it arrives. */
  override async connect(transport: Transport): Promise<void> {
    await super.connect(transport);
    const { onmessage } = transport;
    transport.onmessage = (message, ...more) => {
      if ('method' in message && message.method === 'notifications/progress')
        this.progress.push(Number(message.params?.['progress']));
      onmessage?.(message, ...more);
    };
  }

  async textOf(name: string, args: Record<string, unknown>): Promise<string> {
    const options = { onprogress: () => {} };
    const { content } = await this.callTool({ name, arguments: args }, undefined, options);
    return JSON.stringify(content);
  }
}

/** Over stdio. Gives what `act` gave, and what the replay said and ended with. */
export async function overStdio<T>(args: readonly string[], act: (client: AskedClient) => Promise<T>) {
  // The official transport does not tell the exit code.
  const script = 'node "$@"; echo "exit $?" >&2';
  const client = new AskedClient();
  const transport = new StdioClientTransport({
    command: 'sh',
    args: ['-c', script, 'sh', BIN, 'replay', ...args],
    stderr: 'pipe',
    env: process.env as Record<string, string>,
  });
  let stderr = '';
  transport.stderr?.on('data', (bytes) => {
    stderr += bytes;
  });
  await client.connect(transport);
  const seen = await act(client);
  await client.close();
  await until(`the replay has ended: ${stderr}`, () => /exit \d+\n$/.test(stderr));
  return { seen, stderr, code: Number(/exit (\d+)\n$/.exec(stderr)?.[1]), client };
}

/** Over Streamable HTTP. */
export async function overHttp<T>(args: readonly string[], act: (client: AskedClient) => Promise<T>) {
  const { run, url } = await listen(args);
  const client = new AskedClient();
  const transport = new StreamableHTTPClientTransport(url);
  await client.connect(transport as Transport);
  const seen = await act(client);
  await transport.terminateSession();
  await client.close();
  run.child.kill('SIGTERM');
  const { stderr, code } = await run.ended;
  return { seen, stderr, code, client };
}

/** Settles once clients can connect. */
export async function listen(args: readonly string[]): Promise<{ run: InProcessRun; url: URL }> {
  const dashes = args.indexOf('--');
  const at = dashes === -1 ? args.length : dashes;
  const run = startInProcess(['replay', ...args.slice(0, at), '--listen', '127.0.0.1:0', ...args.slice(at)]);
  const listening = /listening on (\S+);/;
  await until('it listens', () => listening.test(run.stderr()));
  return { run, url: new URL(listening.exec(run.stderr())?.[1] ?? '') };
}

/** Says lines to a replay, waiting for the answer of each request before the next line. */
export async function say(args: readonly string[], messages: readonly object[], env = {}) {
  const run = startInProcess(['replay', ...args], { env });
  for (const message of messages) {
    run.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    if (!('id' in message) || !('method' in message)) continue;
    const own = `"id":${JSON.stringify(message.id)}`;
    await until(`an answer to ${own}: ${run.stderr()}`, () => run.stdout().toString().includes(own));
  }
  run.child.stdin.end();
  const { stdout, ...ended } = await run.ended;
  const answers = stdout.toString().split('\n').slice(0, -1);
  return { ...ended, answers: answers.map((line) => JSON.parse(line)) };
}

/** What `--mode once` records of these messages and this server: recorded at the first call, copied at all others. */
export function recordOnce(messages: readonly object[], server: readonly string[]): () => Promise<string> {
  let recorded: string | undefined;
  return async () => {
    const file = join(tempFolder(), 'it.ndjson');
    if (recorded !== undefined) writeFileSync(file, recorded);
    else expect(await say([file, '--mode', 'once', ...server], messages)).toMatchObject({ code: 0 });
    recorded ??= readFileSync(file, 'utf8');
    return file;
  };
}

export const HANDSHAKE = [
  {
    id: 0,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: { roots: {} },
      clientInfo: { name: 'c', version: '1' },
    },
  },
  { method: 'notifications/initialized' },
];

export const toolCall = (id: number, name: string, args: object = {}) => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

export function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8').split('\n').slice(0, -1);
}

/** A client that does no more than post, once it has shaken hands. */
export async function connectByPost(url: URL): Promise<(message: object) => Promise<Response>> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const post = (message: object) =>
    fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  for (const message of HANDSHAKE) {
    const response = await post(message);
    await response.text();
    headers['mcp-session-id'] ??= response.headers.get('mcp-session-id') ?? '';
  }
  return post;
}
