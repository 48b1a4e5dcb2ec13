/** `tapedeck demo`: what it is good for, with a client and a server of our own. Takes the process itself: others write to its terminal. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TapedeckError } from '../../errors.ts';
import { commandLine, escapeText } from '../../protocol/text.ts';
import { BIN, typedName } from '../../version.ts';
import { type Command, type Io, isForPeople, onStopSignals } from '../io.ts';
import { writeOutput } from '../output.ts';
import { type DemoClient, startClient } from './demo-client.ts';

type Options = { 'no-open': boolean };

/** Beside the program, as it was built. */
const SERVER = fileURLToPath(new URL('./demo-server.js', import.meta.url));

const NAME = 'demo';

/** So long the client waits for an answer, however busy the machine is. */
const PATIENCE_MS = 60_000;

/** So long it waits for the one that gets lost: who looks on waits too. */
const SHORT_PATIENCE_MS = 2000;

/** So long the viewer has to end by itself. */
const GRACE_MS = 500;

/** `check` has found something. */
const FOUND = 1;

export const demoCommand: Command<Options> = {
  command: 'demo',
  describe: 'See it at work: a call goes missing, and the recording says whose fault it is',
  builder: (args) =>
    args
      .usage(
        '$0 demo\n\nStarts a small client and a small server of its own, with tapedeck between them, and shows what it runs. One fault is planted in the server. needs no network and no key. Records into a new folder for temporary files, and nowhere else.',
      )
      .options({
        'no-open': { type: 'boolean', default: false, describe: 'Open no browser at the end' },
      })
      .example('$0 demo', 'Ends with the viewer, on a terminal')
      .example('$0 demo --no-open', 'Leaves the browser alone'),
  async run({ 'no-open': noOpen }, io) {
    const db = join(mkdtempSync(join(tmpdir(), 'tapedeck-demo-')), 'demo.db');
    const stage: Stage = { io, db };
    await say(stage, [
      'A client, a server, and a call that goes missing. All of it runs on this machine,',
      `and what passes is recorded into ${escapeText(db)}, nowhere else.`,
    ]);
    await talk(stage);
    await say(stage, [
      'The client’s log says that no answer came. The server’s log says that it answered.',
      'Who lost it? tapedeck stood between them, and has every byte:',
    ]);
    await run(stage, ['show', NAME], 0);
    await say(stage, ['The rules of the protocol, applied to what passed:']);
    await run(stage, ['check', NAME], FOUND);
    await say(stage, [
      'That is the finding: the client had asked as 4, the server answered to "4". Neither log shows it.',
      'The same in a browser, each frame down to its bytes:',
    ]);
    await showViewer(stage, noOpen);
  },
};

type Stage = { io: Io; db: string };

/** What the client does, line by line. Only the command has tapedeck in front of it. */
async function talk(stage: Stage): Promise<void> {
  const { io, db } = stage;
  const own = ['record', '--name', NAME, '--db', db, '--', process.execPath, SERVER];
  await say(stage, [
    'The client starts its server by a command, as every client does, with tapedeck before it:',
    '',
    `$ ${typedName(io.env)} ${escapeText(commandLine(own))}`,
  ]);
  const client = startClient([process.execPath, BIN, ...own], io.env, (bytes) => {
    for (const line of bytes.toString().trimEnd().split('\n')) {
      const whose = line.startsWith('tapedeck: ') ? 'on stderr   ' : 'server’s log';
      io.stdout.write(`  ${whose}  ${escapeText(line)}\n`);
    }
  });
  try {
    await handshake(client);
    await step(stage, client, 'tools/list', {});
    await step(stage, client, 'tools/call', { name: 'ports' });
    const lost = { name: 'tide', arguments: { port: 'Cork' } };
    await step(stage, client, 'tools/call', lost, SHORT_PATIENCE_MS);
  } finally {
    await client.close();
  }
}

async function handshake(client: DemoClient): Promise<void> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'demo-client', version: '1.0.0' },
  };
  if ((await client.ask('initialize', params, PATIENCE_MS)) === null)
    throw new TapedeckError('io', 'The demo cannot go on: its server does not answer.');
  await client.notify('notifications/initialized');
}

async function step(
  { io }: Stage,
  client: DemoClient,
  method: string,
  params: object,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const outcome = await client.ask(method, params, patienceMs);
  const said =
    outcome === null
      ? `no answer within ${patienceMs / 1000} s: gave up`
      : `${shortly(outcome.result)} (${outcome.ms.toFixed(0)} ms)`;
  const words = Object.values(params).map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
  await writeOutput(io, [`  client’s log  ${[method, ...words].join(' ')}: ${said}\n`]);
}

/** The text of a call's result, or the names of a list of tools. */
function shortly(result: unknown): string {
  const { content = [], tools = [] } = result as { content?: { text: string }[]; tools?: { name: string }[] };
  return [...content.map(({ text }) => text), ...tools.map(({ name }) => name)].join(', ');
}

/** Runs one of our own commands as it is shown. Throws `TapedeckError` `io` where it does not end as it should. */
async function run(stage: Stage, words: readonly string[], expected: number): Promise<void> {
  const code = await ended(await start(stage, words));
  if (code !== expected)
    throw new TapedeckError('io', `The demo cannot go on: \`${words[0]}\` ended with ${code}.`);
}

async function start({ io, db }: Stage, words: readonly string[]): Promise<ChildProcess> {
  const all = [...words, '--db', db];
  await writeOutput(io, [`\n$ ${typedName(io.env)} ${escapeText(commandLine(all))}\n`]);
  return spawn(process.execPath, [BIN, ...all], { stdio: ['ignore', 'inherit', 'inherit'], env: io.env });
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
}

/** Where nobody would see the page, or end the viewer, it is not started. */
async function showViewer(stage: Stage, noOpen: boolean): Promise<void> {
  const { io, db } = stage;
  if (!isForPeople(io)) {
    const words = commandLine(['ui', NAME, '--db', db]);
    await writeOutput(io, [
      `\n$ ${typedName(io.env)} ${escapeText(words)}\n`,
      'Without a terminal this ends here. That command opens http://127.0.0.1:8809/s/demo, and prints the link to it.\n',
    ]);
    return;
  }
  const viewer = await start(stage, ['ui', NAME, ...(noOpen ? ['--no-open'] : [])]);
  // A terminal sends Ctrl+C to both of us: then the viewer is about to end, and a second signal would cut that short.
  const ignoreSignals = onStopSignals(
    io,
    () => void setTimeout(() => viewer.kill('SIGTERM'), GRACE_MS).unref(),
  );
  await ended(viewer);
  ignoreSignals();
}

async function say({ io }: Stage, lines: readonly string[]): Promise<void> {
  await writeOutput(io, ['\n', ...lines.map((line) => `${line}\n`)]);
}
