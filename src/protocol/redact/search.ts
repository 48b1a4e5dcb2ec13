/** The search for secrets in a payload, be it JSON or a text, and in what stands inside of its strings. */

import { NO_PATHS, type PathProgress } from '../json/path.ts';
import { skipSpace, skipValue } from '../json/read.ts';
import { byteOrderMarkLength } from '../text.ts';
import { type CustomRule, customEdits } from './custom-rules.ts';
import { type MakeRedaction, type Redaction, withoutOverlaps } from './edits.ts';
import { type JsonSearch, jsonEdits } from './json-search.ts';
import { isOAuthName } from './names.ts';
import type { SignFinder } from './signs.ts';
import { textEdits } from './text-search.ts';

/** `off`: ids of the rules that are not used. */
export type RedactionSearchOptions = {
  signs: SignFinder;
  custom: readonly CustomRule[];
  paths: PathProgress;
  off: ReadonlySet<string>;
  placeholder: (rule: string, secret: string) => string;
};

/** How many levels of JSON in a string in JSON in a string … are searched. */
const MAX_DEPTH = 6;

/** `isOAuth`: outside of MCP, where names such as `code` mean secrets. */
export function createSearch(options: RedactionSearchOptions, isOAuth: boolean, depth = 0): JsonSearch {
  const { signs, custom, off, placeholder } = options;
  const paths = depth === 0 ? options.paths : NO_PATHS;
  const edit: MakeRedaction = (rule, start, end, secret) => ({
    start,
    end,
    rule,
    text: placeholder(rule, secret),
  });
  const search: JsonSearch = {
    isDeepest: depth >= MAX_DEPTH,
    signs,
    paths,
    hasCustom: custom.length > 0,
    isThorough: custom.length > 0 || isOAuth || paths.length > 0,
    isOn: (rule) => !off.has(rule),
    isOAuth: (name) => isOAuth && isOAuthName(name),
    edit,
    customEdits: (bytes) => customEdits(custom, bytes, edit),
    inside: (bytes) =>
      depth < MAX_DEPTH
        ? editsOf(bytes, createSearch(options, isOAuth, depth + 1), false)
        : textEdits(bytes, search),
  };
  return search;
}

/** The edits of a text or of JSON, in order and without overlaps. `isMessage`: its outermost object may be a message. */
export function editsOf(bytes: Buffer, search: JsonSearch, isMessage: boolean): Redaction[] {
  const start = skipSpace(bytes, byteOrderMarkLength(bytes));
  const isJson = (bytes[start] === 0x7b || bytes[start] === 0x5b) && isWhole(bytes, start);
  const edits = isJson ? jsonEdits(bytes, start, search, isMessage) : textEdits(bytes, search);
  return edits.length > 1 ? withoutOverlaps(edits) : edits;
}

function isWhole(bytes: Buffer, start: number): boolean {
  const end = skipValue(bytes, start);
  return end > 0 && skipSpace(bytes, end) === bytes.length;
}
