/** What the searches for secrets in texts and in JSON share: the rules that are on, and how deep they are. */

import { skipSpace, skipValue } from './json.ts';
import { type Followed, NO_PATHS } from './json-path.ts';
import { type CustomRule, customEdits } from './redact-custom.ts';
import { type Edit, withoutOverlaps } from './redact-edits.ts';
import { jsonEdits } from './redact-json.ts';
import { isOAuthName } from './redact-names.ts';
import type { SignFinder } from './redact-signs.ts';
import { textEdits } from './redact-text.ts';

export type Search = {
  depth: number;
  signs: SignFinder;
  /** Whether everything is looked at, with signs or without. */
  isThorough: boolean;
  hasCustom: boolean;
  /** Where the values stand that are replaced wholly, whatever they are. */
  paths: Followed;
  isOn(rule: string): boolean;
  isOAuth(name: string): boolean;
  edit(rule: string, start: number, end: number, secret: string): Edit;
  customEdits(bytes: Buffer): Edit[];
  /** The edits of a text that stands inside another one. */
  inside(bytes: Buffer): Edit[];
};

export type SearchOptions = {
  signs: SignFinder;
  custom: readonly CustomRule[];
  paths: Followed;
  off: ReadonlySet<string>;
  placeholder: (rule: string, secret: string) => string;
};

/** JSON in a string in JSON in a string … is followed so far. */
const MAX_DEPTH = 6;

/** `isOAuth`: outside of MCP, where names such as `code` mean secrets. */
export function createSearch(options: SearchOptions, isOAuth: boolean, depth = 0): Search {
  const { signs, custom, off, placeholder } = options;
  const paths = depth === 0 ? options.paths : NO_PATHS;
  const search: Search = {
    depth,
    signs,
    paths,
    hasCustom: custom.length > 0,
    isThorough: custom.length > 0 || isOAuth || paths.length > 0,
    isOn: (rule) => !off.has(rule),
    isOAuth: (name) => isOAuth && isOAuthName(name),
    edit: (rule, start, end, secret) => ({ start, end, rule, text: placeholder(rule, secret) }),
    customEdits: (bytes) => customEdits(custom, bytes, search),
    inside: (bytes) =>
      depth < MAX_DEPTH
        ? editsOf(bytes, createSearch(options, isOAuth, depth + 1), false)
        : textEdits(bytes, search),
  };
  return search;
}

/** The edits of a text or of JSON, in order and without overlaps. `isMessage`: its outermost object may be a message. */
export function editsOf(bytes: Buffer, search: Search, isMessage: boolean): Edit[] {
  const start = skipSpace(bytes, hasMark(bytes) ? 3 : 0);
  const isJson = (bytes[start] === 0x7b || bytes[start] === 0x5b) && isWhole(bytes, start);
  const edits = isJson ? jsonEdits(bytes, start, search, isMessage) : textEdits(bytes, search);
  return edits.length > 1 ? withoutOverlaps(edits) : edits;
}

function isWhole(bytes: Buffer, start: number): boolean {
  const end = skipValue(bytes, start);
  return end > 0 && skipSpace(bytes, end) === bytes.length;
}

function hasMark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}
