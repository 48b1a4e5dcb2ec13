/** The official clients of both lines and eras, and the Inspector, behind each action. docs/faults.md has the table. */
import { join } from 'node:path';
import { Client as SecondClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as FirstStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import { callAll, callAllBySecond, casesOf, faultsFor, type Wire } from '../support/faults.ts';
import { HEAVY_MODULES, runsHeavy } from '../support/heavy.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { firstHttp } from '../support/official-clients.ts';
import { BIN, fixture, start, tapedeckInProcess, tempFolder, tempStore, until } from '../support/tapedeck.ts';

const SERVER = [process.execPath, fixture('echo-both-eras.js')];

const CLIENTS = ['the first line', 'the second line', 'the second line, 2026-07-28'] as const;

type ClientName = (typeof CLIENTS)[number];

async function talk(
  name: ClientName,
  wire: Wire,
  first: () => Transport,
  second: () => Parameters<SecondClient['connect']>[0],
): Promise<Map<string, string>> {
  if (name === 'the first line') return callAll(first(), wire);
  const mode = name === 'the second line' ? 'legacy' : 'auto';
  const client = new SecondClient({ name: 'second', version: '2' }, { versionNegotiation: { mode } });
  await client.connect(second());
  expect(client.getNegotiatedProtocolVersion()).toBe(mode === 'auto' ? '2026-07-28' : '2025-11-25');
  return callAllBySecond(client, wire);
}

function expectFates(fates: ReadonlyMap<string, string>, wire: Wire): void {
  for (const [word, , fate] of casesOf(wire)) {
    if (typeof fate === 'string') expect(fates.get(word), word).toBe(fate);
    else expect(fates.get(word), word).toMatch(fate);
  }
}

async function expectNobodyBlamed(db: string): Promise<void> {
  const { stdout } = await tapedeckInProcess(['check', '--db', db]);
  expect(stdout.toString()).toContain('Nothing found.');
}

const rulesFor = (wire: Wire) => faultsFor(wire).flatMap((fault) => ['--fault', fault]);

test.each(CLIENTS)('over stdio %s survives each action, or fails as it says', async (name) => {
  const db = tempStore();
  const args = [BIN, 'record', '--db', db, ...rulesFor('stdio'), '--', ...SERVER];
  const as = { command: process.execPath, args, stderr: 'ignore' } as const;
  const first = () => new FirstStdioTransport(as);
  expectFates(await talk(name, 'stdio', first, () => new StdioClientTransport(as)), 'stdio');
  await expectNobodyBlamed(db);
});

/** Of two calls, one after the other, where a fault hits the first: what ends all is the last that a client hears. */
const ENDINGS: readonly [action: string, first: RegExp, second: RegExp][] = [
  // Its process is there until it writes again.
  ['close', /timed out/, /Connection closed|timed out/],
  ['exit(3)', /Connection closed/, /Not connected/],
  ['exit(SIGKILL)', /Connection closed/, /Not connected/],
  ['stall-stderr', /^ok$/, /^ok$/],
];

async function callTwice(name: ClientName, action: string): Promise<string[]> {
  const fault = ['--fault', `tool=echo ${action}`, '--max-faults', '1'];
  const args = [BIN, 'record', '--db', tempStore(), ...fault, '--', ...SERVER];
  const as = { command: process.execPath, args, stderr: 'ignore' } as const;
  const mode = name === 'the second line' ? 'legacy' : 'auto';
  const peer = { name: 'tester', version: '1.0.0' };
  const params = { name: 'echo', arguments: { text: 'word' } };
  const first = new FirstClient(peer);
  const second = new SecondClient(peer, { versionNegotiation: { mode } });
  const isFirst = name === 'the first line';
  // Only where nothing comes is it waited for.
  const timeout = action === 'close' ? 1000 : 30_000;
  const call = isFirst
    ? () => first.callTool(params, undefined, { timeout })
    : () => second.callTool(params, { timeout });
  const fateOf = (fate: Promise<unknown>) => fate.then(() => 'ok', String);
  try {
    const connected = isFirst
      ? first.connect(new FirstStdioTransport(as))
      : second.connect(new StdioClientTransport(as));
    const fate = await fateOf(connected);
    return fate === 'ok' ? [await fateOf(call()), await fateOf(call())] : [fate];
  } finally {
    await (isFirst ? first : second).close();
  }
}

test.each(CLIENTS)('over stdio %s hears of a server that closes, ends or never begins', async (name) => {
  for (const [action, first, second] of ENDINGS) {
    const [one, two] = await callTwice(name, action);
    expect(one, action).toMatch(first);
    expect(two, action).toMatch(second);
  }
  // Refused, and tapedeck ends at once, though its client keeps its stdin open.
  expect((await callTwice(name, 'reset')).join()).toMatch(/closed/i);
});

async function startServer(): Promise<URL> {
  const run = start(process.execPath, [fixture('echo-both-eras.js'), 'http']);
  await until('the server listens', () => run.stdout().includes('/mcp\n'));
  return new URL(run.stdout().toString().trim());
}

test.each(CLIENTS)('over HTTP %s survives each action, or fails as it says', async (name) => {
  const wire = name === 'the second line, 2026-07-28' ? 'http' : 'events';
  const recording = await recordUrlInProcess(await startServer(), { args: rulesFor(wire) });
  const { url } = recording;
  const first = () => firstHttp(url) as Transport;
  expectFates(await talk(name, wire, first, () => new StreamableHTTPClientTransport(url)), wire);
  await recording.stop();
  await expectNobodyBlamed(recording.db);
});

const INSPECTOR = join(HEAVY_MODULES, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');

/** Exit code and what is said. What never comes it waits for a minute, which nobody does here. */
const INSPECTED: readonly [word: string, code: number, says: RegExp][] = [
  ['late', 0, /late word/],
  ['slow', 0, /slow word/],
  ['split', 0, /split word/],
  ['behind', 0, /behind word/],
  ['twice', 0, /twice word/],
  ['failed', 1, /later, please/],
  ['toolish', 5, /no such word.*isError:true/s],
  ['unavailable', 1, /http 503.*"status":503/s],
  ['closed', 4, /unreachable/],
  ['broken', 4, /unreachable/],
];

test.runIf(runsHeavy)('the inspector’s command line takes each action for what it is', async () => {
  const recording = await recordUrlInProcess(await startServer(), { args: rulesFor('events') });
  const call = ['--transport', 'http', '--method', 'tools/call', '--tool-name', 'echo', '--tool-arg'];
  for (const [word, code, says] of INSPECTED) {
    const args = [INSPECTOR, '--cli', recording.url.href, ...call, `text=${word} word`];
    const run = start(process.execPath, args, { env: { HOME: tempFolder() } });
    run.child.stdin.end();
    const ended = await run.ended;
    expect(`${ended.stdout}${ended.stderr}`, word).toMatch(says);
    expect(ended.code, word).toBe(code);
  }
  await recording.stop();
});
