/** One call of an official client for each action of `--fault`, and what must become of it on each transport. */
import type { Client as SecondClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

/** What the client gets: `ok`, an error, `never` (it does not answer within the time that such calls wait). */
export type Fate = 'ok' | 'never' | RegExp;

/** `events`: where it is not that of `http`. */
type Case = { action: string; stdio: Fate | null; http: Fate | null; events?: Fate };

/** By the word that the call says; null where the transport has no such fault. Cases of one action and a word each. */
const CASES: Readonly<Record<string, Case>> = {
  plain: { action: '', stdio: 'ok', http: 'ok' },
  late: { action: 'delay=60ms', stdio: 'ok', http: 'ok' },
  dribbled: { action: 'dribble(3,40ms)', stdio: 'ok', http: 'ok' },
  slow: { action: 'rate(4kb)', stdio: 'ok', http: 'ok' },
  split: { action: 'split(7)', stdio: 'ok', http: 'ok' },
  held: { action: 'hold', stdio: 'never', http: 'never' },
  failed: {
    action: 'error(-32050,"later, please")',
    stdio: /-32050: .*later, please/,
    http: /-32050: .*later, please/,
  },
  toolish: {
    action: 'tool-error("no such word")',
    stdio: /^tool error: no such word/,
    http: /^tool error: no such word/,
  },
  unavailable: { action: 'http(503,1s)', stdio: null, http: /fault \d+ on purpose: http 503/ },
  dropped: { action: 'drop', stdio: 'never', http: /Unexpected end of JSON input/, events: 'never' },
  twice: { action: 'duplicate', stdio: 'ok', http: 'ok' },
  behind: { action: 'reorder(1)', stdio: 'ok', http: 'ok' },
  cut: { action: 'truncate(12)', stdio: 'never', http: /JSON/, events: 'never' },
  noise: { action: 'garbage', stdio: 'never', http: /JSON/, events: 'never' },
  closed: { action: 'close', stdio: null, http: /fetch failed|terminated/ },
  broken: { action: 'reset', stdio: null, http: /fetch failed|terminated/ },
};

/** `events`: HTTP, where answers come as events; `http`: as JSON. */
export type Wire = 'stdio' | 'http' | 'events';

export function casesOf(wire: Wire): [word: string, action: string, fate: Fate][] {
  return Object.entries(CASES).flatMap(([word, { action, stdio, http, events = http }]) => {
    const fate = { stdio, http, events }[wire];
    return fate === null ? [] : [[word, action, fate]];
  });
}

/** A rule for each word. The answers of the tool `echo` have it in them. */
export function faultsFor(wire: Wire): string[] {
  return casesOf(wire)
    .filter(([, action]) => action !== '')
    .map(([word, action]) => `tool=echo text~"${word} word" ${action}`);
}

type Options = { timeout?: number };

type Answer = { content: { text?: string }[]; isError?: boolean };

/** Calls the tool `echo` by a client of either line. */
type CallEcho = (text: string, options: Options) => Promise<object>;

/** All calls at once, by the first line of the official client. What became of each, by its word. */
export async function callAll(transport: Transport, wire: Wire): Promise<Map<string, string>> {
  const client = new Client({ name: 'tester', version: '1.0.0' });
  client.onerror = () => {};
  await client.connect(transport);
  const fates = await fatesOf(
    (text, options) => client.callTool({ name: 'echo', arguments: { text } }, undefined, options),
    wire,
  );
  await client.close();
  return fates;
}

/** The same by the second line. */
export async function callAllBySecond(client: SecondClient, wire: Wire): Promise<Map<string, string>> {
  client.onerror = () => {};
  const fates = await fatesOf(
    (text, options) => client.callTool({ name: 'echo', arguments: { text } }, options),
    wire,
  );
  await client.close();
  return fates;
}

/** And once more without a fault, which says that the client has survived. */
async function fatesOf(callEcho: CallEcho, wire: Wire): Promise<Map<string, string>> {
  const cases = casesOf(wire);
  const fates = await Promise.all(
    cases.map(async ([word, , fate]) => [word, await fateOf(callEcho, word, fate)] as const),
  );
  const after = await fateOf(callEcho, 'plain', 'ok');
  if (after !== 'ok') throw new Error(`The client did not survive the faults: ${after}`);
  return new Map(fates);
}

/** How long a call waits for what never comes. */
const NEVER_MS = 700;

async function fateOf(callEcho: CallEcho, word: string, expected: Fate): Promise<string> {
  try {
    const options = expected === 'never' ? { timeout: NEVER_MS } : {};
    const { content, isError } = (await callEcho(`${word} word`, options)) as Answer;
    const [{ text = '' } = {}] = content;
    if (isError === true) return `tool error: ${text}`;
    return text === `${word} word` ? 'ok' : text;
  } catch (error) {
    if (/timed out/.test(String(error))) return 'never';
    // The second line has the code beside the text.
    const code = error instanceof Error && 'code' in error ? `${String(error.code)}: ` : '';
    return `${code}${String(error)}`;
  }
}
