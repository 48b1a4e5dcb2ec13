/** One call of the official client for each action of `--fault`, and what must become of it on each transport. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

/** What the client gets: `ok`, an error, `never` (it does not answer within the time that such calls wait). */
export type Fate = 'ok' | 'never' | RegExp;

type Case = { action: string; stdio: Fate | null; http: Fate | null };

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
    stdio: /-32050: later, please/,
    http: /-32050: later, please/,
  },
  toolish: {
    action: 'tool-error("no such word")',
    stdio: /^tool error: no such word/,
    http: /^tool error: no such word/,
  },
  unavailable: { action: 'http(503,1s)', stdio: null, http: /fault \d+ on purpose: http 503/ },
  dropped: { action: 'drop', stdio: 'never', http: /Unexpected end of JSON input/ },
  twice: { action: 'duplicate', stdio: 'ok', http: 'ok' },
  behind: { action: 'reorder(1)', stdio: 'ok', http: 'ok' },
  cut: { action: 'truncate(12)', stdio: 'never', http: /JSON/ },
  noise: { action: 'garbage', stdio: 'never', http: /JSON/ },
  closed: { action: 'close', stdio: null, http: /fetch failed|terminated/ },
  broken: { action: 'reset', stdio: null, http: /fetch failed|terminated/ },
};

export type Wire = 'stdio' | 'http';

export function casesOf(wire: Wire): [word: string, action: string, fate: Fate][] {
  return Object.entries(CASES).flatMap(([word, { action, [wire]: fate }]) =>
    fate === null ? [] : [[word, action, fate]],
  );
}

/** A rule for each word. The answers of the tool `echo` have it in them. */
export function faultsFor(wire: Wire): string[] {
  return casesOf(wire)
    .filter(([, action]) => action !== '')
    .map(([word, action]) => `tool=echo text~"${word} word" ${action}`);
}

/** How long a call waits for what never comes. */
const NEVER_MS = 700;

/** All calls at once. What became of each, by its word. */
export async function callAll(transport: Transport, wire: Wire): Promise<Map<string, string>> {
  const client = new Client({ name: 'tester', version: '1.0.0' });
  client.onerror = () => {};
  await client.connect(transport);
  const fates = await Promise.all(
    casesOf(wire).map(async ([word, , fate]) => [word, await fateOf(client, word, fate)] as const),
  );
  await client.close();
  return new Map(fates);
}

async function fateOf(client: Client, word: string, expected: Fate): Promise<string> {
  const options = expected === 'never' ? { timeout: NEVER_MS } : {};
  try {
    const call = { name: 'echo', arguments: { text: `${word} word` } };
    const { content, isError } = await client.callTool(call, undefined, options);
    const [{ text = '' } = {}] = content as { text?: string }[];
    if (isError === true) return `tool error: ${text}`;
    return text === `${word} word` ? 'ok' : text;
  } catch (error) {
    return /timed out/.test(String(error)) ? 'never' : String(error);
  }
}
