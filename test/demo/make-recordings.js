// `npm run recordings`: makes the text recordings of recordings/ anew, with tapedeck itself: real clients, real servers.
// `node test/demo/make-recordings.js <folder>` writes them elsewhere; with TAPEDECK_DB set the store is kept.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernHttp,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const ROOT = join(import.meta.dirname, '../..');
// Relative, so that no path of this machine gets into a recording.
const BIN = 'bin/tapedeck.js';
const SERVER = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js';
const LOOPBACK = './test/conformance/loopback-only.js';
const FOLDER = resolve(process.argv[2] ?? join(ROOT, 'recordings'));
const scratch = mkdtempSync(join(tmpdir(), 'tapedeck-recordings-'));
const DB = process.env.TAPEDECK_DB ?? join(scratch, 'recordings.db');

process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
mkdirSync(FOLDER, { recursive: true });

await talkByStdio('everything-stdio');
await throughProxy('everything-http', ['--import', LOOPBACK, SERVER, 'streamableHttp'], talkByHttp);
await throughProxy('modern-http', ['test/fixtures/dual-era-server.js'], talkModern);

async function talkByStdio(name) {
  const args = [BIN, 'record', '--name', name, '--db', DB, '--', 'node', SERVER, 'stdio'];
  const client = createClient();
  await client.connect(new StdioClientTransport({ command: 'node', args, cwd: ROOT, stderr: 'ignore' }));
  await converse(client);
  await call(client, 'trigger-sampling-request', { prompt: 'The answer?', maxTokens: 20 });
  await client.close();
  save(name);
}

async function throughProxy(name, serverArgs, talk) {
  const port = await findFreePort();
  const server = start(serverArgs, { PORT: String(port) });
  await server.says(/listening on port|^http:/);
  const upstream = `http://127.0.0.1:${port}/mcp`;
  const recorder = start([BIN, 'record', upstream, '--listen', '127.0.0.1:0', '--name', name, '--db', DB]);
  const [, url] = await recorder.says(/^tapedeck: listening on (\S+)/);
  await talk(new URL(url));
  await recorder.stop();
  await server.stop();
  save(name);
}

async function talkByHttp(url) {
  const client = createClient();
  const transport = new StreamableHTTPClientTransport(url);
  await client.connect(transport);
  await converse(client);
  await transport.terminateSession();
  await client.close();
}

/** The official client's version 2 in the era of 2026-07-28, where a server asks by `input_required`. */
async function talkModern(url) {
  const client = new ModernClient(
    { name: 'recordings', version: '2.0.0' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: 'auto' } },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const content = params.message.includes('name') ? { name: 'Ada', ok: true } : { color: 'blue', ok: true };
    return { action: 'accept', content };
  });
  await client.connect(new ModernHttp(url));
  await client.callTool({ name: 'test_simple_text' });
  await client.callTool({ name: 'test_tool_with_progress' }, { onprogress() {} });
  await client.callTool({ name: 'test_input_required_result_multi_round' });
  await client.callTool({ name: 'test_error_handling' });
  await client.callTool({ name: 'nothing' }).catch(() => {});
  await client.close();
}

async function converse(client) {
  await client.listTools();
  await call(client, 'echo', { message: 'Hello, tape.' });
  await call(client, 'get-sum', { a: 1, b: 2 });
  await call(client, 'get-sum', { a: 'one' });
  await call(client, 'trigger-long-running-operation', { duration: 0.2, steps: 2 }, { onprogress() {} });
  await client.getPrompt({ name: 'no-such-prompt' }).catch(() => {});
}

function createClient() {
  const client = new Client({ name: 'recordings', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Forty-two.' },
  }));
  return client;
}

function call(client, name, args, options) {
  return client.callTool({ name, arguments: args }, undefined, options);
}

function save(name) {
  const file = join(FOLDER, `${name}.ndjson`);
  const args = [BIN, 'export', name, '--db', DB, '--output', file];
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) throw new Error(`the session ${name} was not exported`);
  process.stdout.write(`${file}\n`);
}

/** A program of Node's that runs until it is stopped. */
function start(args, env = {}) {
  const child = spawn(process.execPath, args, { cwd: ROOT, env: { ...process.env, ...env } });
  process.once('exit', () => child.kill());
  return {
    says(pattern) {
      return new Promise((told, failed) => {
        for (const output of [child.stdout, child.stderr]) {
          createInterface({ input: output }).on('line', (line) => {
            const match = pattern.exec(line);
            if (match !== null) told([...match]);
          });
        }
        child.once('exit', () => failed(new Error(`${args.join(' ')} ended and did not say ${pattern}`)));
      });
    },
    async stop() {
      child.kill();
      await once(child, 'close');
    },
  };
}

async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
