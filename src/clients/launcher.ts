/** The words with which an entry starts tapedeck, and how to recognise them. */
import { existsSync, realpathSync } from 'node:fs';
import { isFetched } from '../version.ts';

type Running = {
  platform: NodeJS.Platform;
  /** The node that runs us. */
  node: string;
  /** Our own `bin/tapedeck.js`. */
  bin: string;
  version: string;
};

/** A link to the newest node stays here, while the folder it points at is named after a version and goes with it. */
const LASTING_NODES = [
  '/opt/homebrew/bin/node',
  '/usr/local/bin/node',
  '/home/linuxbrew/.linuxbrew/bin/node',
  '/usr/bin/node',
];

/** The words that start tapedeck from anywhere, without a PATH where it is installed. */
export function launcherFor({ platform, node, bin, version }: Running): string[] {
  // On Windows `npx` is a script, and not every client can start one.
  const shell = platform === 'win32' ? ['cmd', '/c'] : [];
  if (isFetched(bin)) return [...shell, 'npx', '-y', `mcp-tapedeck@${version}`];
  return [LASTING_NODES.find((link) => isSameFile(link, node)) ?? node, bin];
}

function isSameFile(link: string, file: string): boolean {
  try {
    return realpathSync(link) === realpathSync(file);
  } catch {
    return false;
  }
}

/** The words of a wrapped server. */
export function wrappedWords(
  launcher: readonly string[],
  name: string,
  db: string | null,
  words: readonly string[],
): string[] {
  return [...launcher, 'record', ...nameOption(name), ...(db === null ? [] : ['--db', db]), '--', ...words];
}

function nameOption(name: string): string[] {
  if (name === '') return [];
  return name.startsWith('-') ? [`--name=${name}`] : ['--name', name];
}

/** `tapedeck`, `/usr/lib/node_modules/mcp-tapedeck/bin/tapedeck.js`, `mcp-tapedeck@1.2.3`, … */
const OWN_WORD = /^(?:.*[\\/])?(?:mcp-)?tapedeck(?:@[^\\/]*)?(?:\.js|\.cmd|\.exe|\.ps1)?$/i;

/**
 * How many of these words are tapedeck's, before the server's own command: 0 where the server is not wrapped. However
 * tapedeck is started, its name stands before `record`, and `--` before the command.
 */
export function countOwnWords(words: readonly string[]): number {
  const dashes = words.indexOf('--');
  const record = words.indexOf('record');
  const isOwn = record > 0 && record < dashes && OWN_WORD.test(words[record - 1] ?? '');
  return isOwn && words.length > dashes + 1 ? dashes + 1 : 0;
}

/** The index of `record`: the words before it start tapedeck. Only for words of a wrapped server. */
export function recordIndex(words: readonly string[]): number {
  return words.indexOf('record');
}

/** The path of a node or tapedeck that has been removed since, so that the client cannot start the server; else null. */
export function goneFile(words: readonly string[]): string | null {
  const launcher = countOwnWords(words) > 0 ? words.slice(0, recordIndex(words)) : [];
  return launcher.find((word) => /^(?:\/|[a-z]:[\\/])/i.test(word) && !existsSync(word)) ?? null;
}
