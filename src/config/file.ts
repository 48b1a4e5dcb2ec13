/** Reads configuration files: JSON, with comments and trailing commas. Everything in them is checked. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Node, ParseError } from 'jsonc-parser';
import { type ErrorCode, readFailure, TapedeckError } from '../errors.ts';
import { nearest } from '../protocol/nearest.ts';
import { escapeText, withoutByteOrderMark } from '../protocol/text.ts';
import { homeFolder } from '../store/file/path.ts';
import { KEYS, type Key, readValue } from './keys.ts';
import { type ConfigurationFile, ownConfigPath } from './location.ts';

/** `values` as words of a command line; `place` is file, line and column. */
export type Setting = { name: string; key: Key; values: string[]; place: string };

/** Loaded where there is a file to read: it takes longer than the whole library that records. */
function loadJson(): typeof import('jsonc-parser') {
  return createRequire(import.meta.url)('jsonc-parser');
}

/** Throws `TapedeckError` with file, line and column of what is wrong: `corrupt` where it is no JSON, else `usage`. */
export function readConfiguration(file: ConfigurationFile, env: NodeJS.ProcessEnv): Setting[] {
  const { getNodeValue, parseTree, printParseErrorCode } = loadJson();
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
