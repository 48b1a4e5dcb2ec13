import { readConfiguration, type Setting } from '../../config/file.ts';
import { KEYS } from '../../config/keys.ts';
import type { ConfigurationFile } from '../../config/location.ts';

/**
 * A configuration file says what could stand on the command line: so it is put there, right behind the command. What
 * stands behind it counts before it, lists add up, and every check and every command stays as it is.
 */

/** Commands without a store of their own. */
const WITHOUT_STORE = new Set(['ci', 'completion', 'config', 'demo', 'engine', 'help', 'unwrap', 'wrap']);

/** With one of these nothing is done, or a shell asks what could be. */
const WITHOUT_ACTION = new Set(['--help', '-h', '--version', '-v', '--get-yargs-completions']);

/** What says the same as a key. */
const VARIABLES: Readonly<Record<string, string>> = { db: 'TAPEDECK_DB', 'ship.url': 'TAPEDECK_SHIP' };

const OFF = '--no-redact';

const REDACTION = ['--redact', '--redact-rule', '--no-redact-rule', '--capture', '--meta-for'];

const LIMITS = ['--older-than', '--max-size', '--max-sessions', '--local-keep', '--max-unshipped'];

/** The command line with what the files say about its command. Throws `TapedeckError` as `readConfiguration` does. */
export function withConfig(
  argv: readonly string[],
  files: readonly ConfigurationFile[],
  env: NodeJS.ProcessEnv,
): string[] {
  const dashes = argv.indexOf('--');
  const own = dashes === -1 ? argv : argv.slice(0, dashes);
  if (own.length === 0 || own.some((word) => WITHOUT_ACTION.has(word))) return [...argv];
  const command = commandOf(own);
  const settings = files.flatMap((file) => readConfiguration(file, env));
  const words = settings
    .filter(({ key }) => isFor(key.commands, command))
    .filter((setting) => isUnset(setting, env))
    .filter(({ name }) => name !== 'faults' || isNamed(own))
    .flatMap((setting) => wordsOf(setting, command));
  const at = own[0] === command ? 1 : 0;
  return [...argv.slice(0, at), ...withoutContrary(withoutIdle(words, own), own), ...argv.slice(at)];
}

/** Options may stand before the command: then it is any word that is the name of one. */
function commandOf(words: readonly string[]): string {
  const [first = ''] = words;
  if (!first.startsWith('-')) return first;
  const named = new Set(Object.values(KEYS).flatMap(({ commands }) => commands ?? []));
  return words.find((word) => named.has(word) || WITHOUT_STORE.has(word)) ?? '';
}

function isFor(commands: readonly string[] | null, command: string): boolean {
  return commands === null ? !WITHOUT_STORE.has(command) : commands.includes(command);
}

/**
 * Whether the command line names its configuration file. Faults are taken from no other: a server that `wrap` has wrapped reads
 * its user's own file, and nobody asked for faults there.
 */
function isNamed(words: readonly string[]): boolean {
  return words.some((word) => word === '--config' || word.startsWith('--config='));
}

/** The environment counts before the files. */
function isUnset({ name }: Setting, env: NodeJS.ProcessEnv): boolean {
  const variable = VARIABLES[name];
  return variable === undefined || !env[variable];
}

function wordsOf({ key: { option: usual, optionOf, kind }, values }: Setting, command: string): string[] {
  const option = optionOf?.[command] ?? usual;
  return values.map((value) => (kind === 'flag' ? `--${option}` : `--${option}=${value}`));
}

/** On the command line `--keep-errors` without a limit is a slip; in a file it waits for one. */
function withoutIdle(words: readonly string[], given: readonly string[]): readonly string[] {
  const isLimited = [...words, ...given].some((word) => LIMITS.some((limit) => word.startsWith(limit)));
  return isLimited ? words : words.filter((word) => word !== '--keep-errors');
}

/**
 * `--no-redact` beside what to redact is a slip on one command line. Where only one of both stands there it counts; among
 * files the safer one does: what a project wants redacted is redacted.
 */
function withoutContrary(words: readonly string[], given: readonly string[]): readonly string[] {
  if (given.includes(OFF)) return words.filter((word) => !isRedaction(word));
  return [...words, ...given].some(isRedaction) ? words.filter((word) => word !== OFF) : words;
}

function isRedaction(word: string): boolean {
  const [option = ''] = word.split('=', 1);
  return REDACTION.includes(option) && word !== '--capture=full';
}
