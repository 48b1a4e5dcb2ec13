// `npm run demo`: the official client talks to an official server through tapedeck, over stdio and then over HTTP; tapedeck
// shows what was said, and then answers in the server's place.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const ROOT = join(import.meta.dirname, '../..');
const BIN = join(ROOT, 'bin/tapedeck.js');
const SERVER = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js';
const DB = join(ROOT, 'demo.db');

for (const suffix of ['', '-wal', '-shm']) rmSync(DB + suffix, { force: true });
await talkByStdio();
await talkByHttp();
tell(['list', '--db', DB]);
tell(['show', 'demo', '--db', DB]);
tell(['show', 'demo-http', '--db', DB]);
await talkToReplay();
sayWhatNext();

/** What any client does; only the command has `tapedeck record --` in front of it. */
async function talkByStdio() {
  const record = [BIN, 'record', '--name', 'demo', '--db', DB, '--', 'node', SERVER, 'stdio'];
  say(`A client starts: node ${shown(record)}\n`);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: record,
    cwd: ROOT,
    stderr: 'ignore',
  });
  const client = createClient();
  await step('connects', () => client.connect(transport));
  await step('lists the tools', () => client.listTools());
  await step('calls echo', () => call(client, 'echo', { message: 'Hello, tape.' }));
  await step('calls a long operation, with progress', () =>
    call(client, 'trigger-long-running-operation', { duration: 1, steps: 4 }, { onprogress: () => {} }),
  );
  await step('calls a tool that makes the server ask the client (sampling)', () =>
    call(client, 'trigger-sampling-request', { prompt: 'The answer?', maxTokens: 20 }),
  );
  await step('calls a tool with wrong arguments', () => call(client, 'get-sum', { a: 'one' }));
  await step('asks for a prompt that is not there', () => client.getPrompt({ name: 'no-such-prompt' }));
  await step('leaves', () => client.close());
}

/** The same over HTTP: the client is pointed at tapedeck in place of the server. */
async function talkByHttp() {
  const port = await findFreePort();
  const loopback = join(ROOT, 'test/conformance/loopback-only.js');
  const server = start(['--import', loopback, SERVER, 'streamableHttp'], { PORT: String(port) });
  await server.says(/listening on port/);
  const upstream = `http://127.0.0.1:${port}/mcp`;
  const record = [BIN, 'record', upstream, '--listen', '127.0.0.1:0', '--name', 'demo-http', '--db', DB];
  say(`\nIn front of an HTTP server: node ${shown(record)}\n`);
  const recorder = start(record);
  const [line, url] = await recorder.says(/^tapedeck: listening on (\S+)/);
  say(`  ${line}`);

  const client = createClient();
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await step('connects', () => client.connect(transport));
  await step('lists the tools', () => client.listTools());
  await step('calls a long operation, with progress', () =>
    call(client, 'trigger-long-running-operation', { duration: 1, steps: 2 }, { onprogress: () => {} }),
  );
  await step('ends the session', () => transport.terminateSession());
  await client.close();
  await recorder.stop();
  await server.stop();
}

/** No server any more: the recording answers, and says why where it cannot. */
async function talkToReplay() {
  const replay = [BIN, 'replay', 'demo', '--db', DB];
  say(`\nThe recording in the server's place: node ${shown(replay)}\n`);
  const options = { command: process.execPath, args: replay, cwd: ROOT, stderr: 'pipe' };
  const transport = new StdioClientTransport(options);
  transport.stderr.on('data', (bytes) => say(String(bytes).replace(/^/gm, '    ').trimEnd()));
  const client = createClient();
  await step('connects', () => client.connect(transport));
  await step('calls echo', () => call(client, 'echo', { message: 'Hello, tape.' }));
  await step('calls echo with what was never recorded', () =>
    call(client, 'echo', { message: 'Hello, disc.' }),
  );
  await client.close();
}

function createClient() {
  const client = new Client({ name: 'demo-client', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'demo-model',
    content: { type: 'text', text: 'Forty-two.' },
  }));
  return client;
}

/** A program of Node's that runs until it is stopped. */
function start(args, env = {}) {
  const child = spawn(process.execPath, args, { cwd: ROOT, env: { ...process.env, ...env } });
  process.once('exit', () => child.kill());
  const lines = createInterface({ input: child.stderr });
  return {
    async says(pattern) {
      for await (const line of lines) {
        const match = pattern.exec(line);
        if (match !== null) return [line, ...match.slice(1)];
      }
      throw new Error(`${args.join(' ')} ended and did not say ${pattern}`);
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

function call(client, name, args, options) {
  return client.callTool({ name, arguments: args }, undefined, options);
}

async function step(what, action) {
  const outcome = await action().then(
    (result) => (result?.isError ? 'the tool says no' : 'ok'),
    (error) => `error ${error.code}`,
  );
  say(`  the client ${what}: ${outcome}`);
}

function tell(args) {
  say(`\n$ tapedeck ${shown(args)}\n`);
  const { status } = spawnSync(process.execPath, [BIN, ...args], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

function sayWhatNext() {
  if (!existsSync(DB)) process.exit(1);
  say(`
Try next:
  node bin/tapedeck.js ui demo --db demo.db                    the same in a browser: it opens http://127.0.0.1:8809/s/demo,
                                                               and prints the link to it, with a token
  node bin/tapedeck.js show demo --full --db demo.db           all that was said, whole
  node bin/tapedeck.js show demo --json --db demo.db           the same for a program, verbatim
  node bin/tapedeck.js record --db demo.db -- <your server>    your own server, in place of its command
`);
}

function shown(args) {
  return args
    .map((arg) => (arg.startsWith(ROOT) ? relative(ROOT, arg) : arg === process.execPath ? 'node' : arg))
    .join(' ');
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
