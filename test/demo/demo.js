// `npm run demo`: the official client talks to an official server through tapedeck, which then shows what was said.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const ROOT = join(import.meta.dirname, '../..');
const BIN = join(ROOT, 'bin/tapedeck.js');
const SERVER = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js';
const DB = join(ROOT, 'demo.db');

for (const suffix of ['', '-wal', '-shm']) rmSync(DB + suffix, { force: true });
await talk();
tell(['list', '--db', DB]);
tell(['show', 'demo', '--db', DB]);
sayWhatNext();

/** What any client does; only the command has `tapedeck record --` in front of it. */
async function talk() {
  const record = [BIN, 'record', '--name', 'demo', '--db', DB, '--', 'node', SERVER, 'stdio'];
  say(`A client starts: node ${shown(record)}\n`);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: record,
    cwd: ROOT,
    stderr: 'ignore',
  });
  const client = new Client({ name: 'demo-client', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'demo-model',
    content: { type: 'text', text: 'Forty-two.' },
  }));

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
