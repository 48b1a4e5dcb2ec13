// `npm run clients`: records each client with tapedeck, and writes what it did into docs/clients.md. Clients that
// `npm ci --prefix test/heavy` has not installed fail. `npm run clients -- sdk-1` records these alone, and prints their tables.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { readClient, tablesOf } from './behaviour.js';
import { withTables } from './page.js';

const ROOT = join(import.meta.dirname, '../..');
const PAGE = join(ROOT, 'docs/clients.md');
/** Also kept as text, for the test that the page is what recordings say. */
const KEPT = { client: 'sdk-1', transport: 'http', file: join(import.meta.dirname, 'sdk-1.ndjson') };
// Relative, so that no path of this machine gets into a recording.
const BIN = 'bin/tapedeck.js';
const SERVER = 'test/survey/server.js';

/** The package of each, what is said besides its version, and over what it is recorded. */
const CLIENTS = {
  'sdk-1': { package: '@modelcontextprotocol/sdk' },
  'sdk-2': { package: '@modelcontextprotocol/client' },
  'sdk-2-auto': { package: '@modelcontextprotocol/client', how: 'mode auto' },
  'ai-sdk': { package: '@ai-sdk/mcp' },
  inspector: { package: '@modelcontextprotocol/inspector', how: '--cli' },
  mcporter: { package: 'mcporter' },
  'mcp-remote': { package: 'mcp-remote', transports: ['http'] },
};

const scratch = mkdtempSync(join(tmpdir(), 'tapedeck-survey-'));
const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill();
  rmSync(scratch, { recursive: true, force: true });
});

const chosen = process.argv.slice(2);
const clients = [];
for (const [client, { transports = ['http', 'stdio'], ...about }] of Object.entries(CLIENTS)) {
  if (chosen.length > 0 && !chosen.includes(client)) continue;
  for (const transport of transports) {
    process.stderr.write(`${client} over ${transport} …\n`);
    const db = join(scratch, `${client}-${transport}.db`);
    const name = nameOf(about);
    if (transport === 'http') await recordHttp(client, name, db);
    else await recordStdio(client, name, db);
    clients.push(whole(readClient(sessionsOf(db))));
    if (chosen.length === 0 && client === KEPT.client && transport === KEPT.transport) keep(db);
  }
}
if (chosen.length > 0) process.stdout.write(`${tablesOf(clients)}\n`);
else writeFileSync(PAGE, withTables(readFileSync(PAGE, 'utf8'), tablesOf(clients)));

/** What every client is made to do must be there: a slow machine is no behaviour of a client. */
function whole(client) {
  const isThere = (method, tool) =>
    client.messages.some(({ value }) => value.method === method && value.params?.name === tool);
  for (const [method, tool] of [['tools/list'], ['tools/call', 'echo'], ['tools/call', 'ping']])
    if (!isThere(method, tool)) throw new Error(`${client.name} sent no ${method} ${tool ?? ''}: try again`);
  return client;
}

/** `mcporter 0.9.0`. */
function nameOf({ package: named, how }) {
  const own = ['../../package.json', '../heavy/package.json'].map((file) => join(import.meta.dirname, file));
  for (const from of own) {
    for (const folder of createRequire(from).resolve.paths(named) ?? []) {
      try {
        const { version } = JSON.parse(readFileSync(join(folder, named, 'package.json'), 'utf8'));
        return [named, version, how].filter(Boolean).join(' ');
      } catch {}
    }
  }
  throw new Error(`${named} is not installed: npm ci --prefix test/heavy`);
}

async function recordHttp(client, name, db) {
  const server = await start([SERVER], 'stdout', /^(http:\S+)$/);
  const options = ['--listen', '127.0.0.1:0', '--name', name, '--db', db, '--no-config'];
  const recorder = await start([BIN, 'record', server.said, ...options], 'stderr', /listening on (\S+)/);
  await talk(client, [recorder.said]);
  await recorder.stop();
  await server.stop();
}

async function recordStdio(client, name, db) {
  const recorder = [BIN, 'record', '--name', name, '--db', db, '--no-config'];
  await talk(client, ['--', process.execPath, ...recorder, '--', 'node', SERVER, 'stdio']);
}

/** Has the client talk, in a home of its own. */
async function talk(client, place) {
  const env = { ...process.env, HOME: scratch, XDG_CONFIG_HOME: scratch, NO_COLOR: '1' };
  const args = ['test/survey/client.js', client, ...place];
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'inherit'] });
  const [exitCode] = await once(child, 'exit');
  if (exitCode !== 0) throw new Error(`${client} failed`);
}

/** A program of Node's that runs until it is stopped; `said`: what it says where it can be reached. */
async function start(args, stream, where) {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const said = await new Promise((resolve, reject) => {
    createInterface({ input: child[stream] }).on('line', (line) => {
      const [, found] = where.exec(line) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended early`)));
  });
  const stop = async () => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  };
  return { said, stop };
}

/** The oldest first. */
function sessionsOf(db) {
  const facts = tapedeck('list', '--json', '--limit', '0', '--db', db).toReversed();
  return facts.map((one) => ({
    facts: one,
    frames: tapedeck('show', one.session, '--json', '--db', db),
    exchanges: one.transport === 'stdio' ? [] : tapedeck('show', one.session, '--http', '--json', '--db', db),
  }));
}

function tapedeck(...args) {
  const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 };
  const text = execFileSync(process.execPath, [BIN, ...args], options);
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

function keep(db) {
  execFileSync(process.execPath, [BIN, 'export', 'latest', '--db', db, '--output', KEPT.file], { cwd: ROOT });
}
