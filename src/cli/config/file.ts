/** Reads configuration files: JSON, with comments and trailing commas. Everything in them is checked. */

import { readFileSync } from 'node:fs';
import { getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { type ErrorCode, readFailure, TapedeckError } from '../../errors.ts';
import { nearest } from '../../protocol/nearest.ts';
import { escapeText, withoutByteOrderMark } from '../../protocol/text.ts';
import { homeFolder } from '../../store/file/path.ts';
import { KEYS, type Key, readValue } from './keys.ts';
import { type ConfigurationFile, ownConfigPath } from './location.ts';

/** `values` as words of a command line; `place` is file, line and column. */
export type Setting = { name: string; key: Key; values: string[]; place: string };

/** Throws `TapedeckError` with file, line and column of what is wrong: `corrupt` where it is no JSON, else `usage`. */
export function readConfiguration(file: ConfigurationFile, env: NodeJS.ProcessEnv): Setting[] {
  const text = readText(file.path);
  const fail = (offset: number, words: string, code: ErrorCode = 'usage'): never => {
    // Keys and values may come with somebody else's project, and are hostile on a terminal.
    throw new TapedeckError(code, escapeText(`${placeOf(file.path, text, offset)}: ${words}`));
  };
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  const [first] = errors;
  if (first !== undefined)
    fail(first.offset, `not valid JSON: ${inWords(printParseErrorCode(first.error))}.`, 'corrupt');
  if (root === undefined) return [];
  if (root.type !== 'object') fail(root.offset, 'Expected an object, { … }.');
  return leavesOf(root, '', fail).map(({ name, node }) => {
    const key = KEYS[name] ?? fail(node.offset, unknownKey(name));
    try {
      const value = getNodeValue(node);
      assertAllowed(file, name, key, value, env);
      const values = readValue(name, key, value, { file: file.path, home: homeFolder(env) });
      return { name, key, values, place: placeOf(file.path, text, node.offset) };
    } catch (error) {
      return fail(node.offset, (error as Error).message, (error as TapedeckError).code);
    }
  });
}

/** `CloseBraceExpected`: close brace expected. */
function inWords(code: string): string {
  return code.replace(/(?<!^)[A-Z]/g, ' $&').toLowerCase();
}

function readText(path: string): string {
  try {
    // A byte order mark is no part of JSON.
    return withoutByteOrderMark(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new TapedeckError(
      readFailure(error),
      `The configuration file cannot be read: ${(error as Error).message}.`,
    );
  }
}

type Leaf = { name: string; node: Node };

/** Groups are objects: `retention.maxSize` is `maxSize` in `retention`. */
function leavesOf(object: Node, prefix: string, fail: (offset: number, words: string) => never): Leaf[] {
  const seen = new Set<string>();
  return (object.children ?? []).flatMap((property) => {
    const [key, node] = property.children ?? [];
    if (key === undefined || node === undefined) return [];
    const name = prefix + key.value;
    if (seen.has(name)) fail(property.offset, `\`${name}\` stands here twice.`);
    seen.add(name);
    const isGroup = Object.keys(KEYS).some((known) => known.startsWith(`${name}.`));
    if (!isGroup)
      return !Object.hasOwn(KEYS, name) ? fail(property.offset, unknownKey(name)) : { name, node };
    if (node.type !== 'object') fail(node.offset, `Expected an object for \`${name}\`, { … }.`);
    return leavesOf(node, `${name}.`, fail);
  });
}

function unknownKey(name: string): string {
  const known = Object.keys(KEYS);
  const near = nearest(name, known);
  const guess = near === null ? '' : ` Did you mean \`${near}\`?`;
  return `Unknown key \`${name}\`.${guess} Known are: ${known.join(', ')}.`;
}

function assertAllowed(
  { isOwn }: ConfigurationFile,
  name: string,
  { inProject }: Key,
  value: unknown,
  env: NodeJS.ProcessEnv,
): void {
  if (isOwn || inProject === true) return;
  if (inProject !== false && inProject.includes(String(value))) return;
  throw new TapedeckError(
    'refused',
    `\`${name}\` cannot be set for a project, because the file may have come with somebody else’s code. It may stand in your own: ${ownConfigPath(env)}`,
  );
}

function placeOf(path: string, text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n');
  return `${path}:${before.length}:${(before.at(-1) ?? '').length + 1}`;
}

/**
 * A configuration file says what could stand on the command line: so it is put there, right behind the command. What
 * stands behind it counts before it, lists add up, and every check and every command stays as it is.
 */

/** Commands without a store of their own. */
const WITHOUT_STORE = new Set(['completion', 'config', 'unwrap', 'wrap']);

/** With one of these nothing is done, or a shell asks what could be. */
const WITHOUT_ACTION = new Set(['--help', '-h', '--version', '-v', '--get-yargs-completions']);

const OFF = '--no-redact';

const REDACTION = ['--redact', '--redact-rule', '--no-redact-rule', '--capture'];

const LIMITS = ['--older-than', '--max-size', '--max-sessions'];

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
    .flatMap(wordsOf);
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

/** The environment counts before the files. */
function isUnset({ name }: Setting, env: NodeJS.ProcessEnv): boolean {
  return name !== 'db' || !env['TAPEDECK_DB'];
}

function wordsOf({ key: { option, kind }, values }: Setting): string[] {
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
