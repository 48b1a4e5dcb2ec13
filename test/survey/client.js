// One client of the survey at its work: `node client.js <name> <url>`, or `node client.js <name> -- <command of a stdio server>`.
// Each is used as its own documentation begins, with what it comes with: nothing is set that it does not need to run here. It lists
// tools, then calls those of server.js that its interface has a way for.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as second from '@modelcontextprotocol/client';
import { StdioClientTransport as SecondStdio } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const HEAVY = join(import.meta.dirname, '../heavy/node_modules');
const heavyRequire = createRequire(join(HEAVY, '../package.json'));

/** Long enough for a request to be on its way, and for what a client does after a failure. */
const ABORT_MS = 500;
const TIMEOUT_MS = 1000;
const PATIENCE_MS = 5000;
/** Of a program whose limit begins with its own start. */
const START_AND_TIMEOUT_MS = 10_000;
const LIST_MS = 50_000;

const [name, ...place] = process.argv.slice(2);
/** Where the server is: a URL, or a command. */
const server = place[0] === '--' ? { command: place[1], args: place.slice(2) } : { url: new URL(place[0]) };

const CLIENTS = {
  'sdk-1': () => {
    const client = new Client({ name: 'survey-sdk-1', version: '1.0.0' });
    const transport = server.url
      ? new StreamableHTTPClientTransport(server.url)
      : new StdioClientTransport({ ...server, stderr: 'ignore' });
    return talkBySdk(client, transport, (tool, options) =>
      client.callTool({ name: tool }, undefined, options),
    );
  },
  'sdk-2': () => talkBySecond({}),
  'sdk-2-auto': () => talkBySecond({ versionNegotiation: { mode: 'auto' } }),
  'ai-sdk': talkByAiSdk,
  inspector: talkByInspector,
  mcporter: talkByMcporter,
  'mcp-remote': talkThroughMcpRemote,
};

await CLIENTS[name]();
process.exit(0);

function talkBySecond(options) {
  const client = new second.Client({ name: 'survey-sdk-2', version: '1.0.0' }, options);
  const transport = server.url
    ? new second.StreamableHTTPClientTransport(server.url)
    : new SecondStdio({ ...server, stderr: 'ignore' });
  return talkBySdk(client, transport, (tool, more) => client.callTool({ name: tool }, more));
}

async function talkBySdk(client, transport, call) {
  await client.connect(transport);
  await client.listTools();
  await call('echo');
  await call('progress', { onprogress() {} });
  await call('ping');
  await whatever(call('endless', { signal: AbortSignal.timeout(ABORT_MS) }));
  await whatever(call('endless', { timeout: TIMEOUT_MS }));
  if (server.url) await failures((tool) => call(tool, { timeout: PATIENCE_MS }));
  await whatever(transport.terminateSession?.());
  await client.close();
}

async function talkByAiSdk() {
  const { createMCPClient } = await load('@ai-sdk/mcp');
  const stdio = server.url ? null : await load('@ai-sdk/mcp/mcp-stdio');
  const transport = server.url
    ? { type: 'http', url: server.url.href }
    : new stdio.Experimental_StdioMCPTransport({ ...server, stderr: 'ignore' });
  const client = await createMCPClient({ transport });
  const tools = await client.tools();
  const call = (tool, abortSignal) => {
    // What stands on a later page it does not offer; the server has it all the same.
    const { execute } = tools[tool] ?? {};
    return execute === undefined
      ? Promise.resolve()
      : execute({}, { toolCallId: tool, messages: [], abortSignal });
  };
  await call('echo');
  await call('progress');
  await call('ping');
  await whatever(call('endless', AbortSignal.timeout(ABORT_MS)));
  if (server.url) await failures((tool) => call(tool, AbortSignal.timeout(PATIENCE_MS)));
  await client.close();
}

/** A run of the inspector's command line is a session. */
async function talkByInspector() {
  const program = join(HEAVY, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
  const target = server.url ? [server.url.href, '--transport', 'http'] : [server.command, ...server.args];
  const run = (...args) => runProgram([program, '--cli', ...target, ...args]);
  await run('--method', 'tools/list');
  const call = (tool) => run('--method', 'tools/call', '--tool-name', tool);
  for (const tool of ['echo', 'progress', 'ping']) await call(tool);
  if (server.url) await failures(call);
}

async function talkByMcporter() {
  const program = join(HEAVY, 'mcporter/dist/cli.js');
  const target = server.url
    ? ['--http-url', server.url.href, '--allow-http']
    : ['--stdio', server.command, ...server.args.flatMap((arg) => ['--stdio-arg', arg])];
  const named = ['--name', 'survey'];
  await runProgram([program, 'list', ...target, ...named, '--timeout', String(LIST_MS)]);
  const call = (tool, ...more) => runProgram([program, 'call', ...target, ...named, '--tool', tool, ...more]);
  for (const tool of ['echo', 'progress', 'ping']) await call(tool);
  await whatever(call('endless', '--timeout', String(START_AND_TIMEOUT_MS)));
  if (server.url) await failures((tool) => call(tool, '--timeout', String(START_AND_TIMEOUT_MS)));
}

/** A bridge: the official client speaks with it over stdio, and it with the server. */
async function talkThroughMcpRemote() {
  const program = join(HEAVY, 'mcp-remote/dist/proxy.js');
  const args = [program, server.url.href, '--transport', 'http-only'];
  const client = new Client({ name: 'survey-sdk-1', version: '1.0.0' });
  const env = { ...process.env };
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' });
  await talkBySdk(client, transport, (tool, options) => client.callTool({ name: tool }, undefined, options));
}

async function failures(call) {
  for (const tool of ['fail', 'drop', 'cut']) await whatever(call(tool));
}

/** What a client says about a failure is not what is asked here. */
async function whatever(promise) {
  try {
    await promise;
  } catch {}
}

async function load(module) {
  return import(pathToFileURL(heavyRequire.resolve(module)).href);
}

/** Runs a program of Node's to its end, for at most a minute. Throws where it fails. */
async function runProgram(args) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 60_000 });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  const [exitCode] = await once(child, 'close');
  if (exitCode !== 0) throw new Error(`${args.join(' ')} failed with ${exitCode}: ${said}`);
}
