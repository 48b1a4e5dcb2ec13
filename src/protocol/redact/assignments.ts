/**
 * Finds values that a name tells to be secrets in a text that is no JSON: `PASSWORD=…`, `api_key: "…"`, `<password>…</password>`,
 * `<key>password</key><string>…</string>`, `--token …`. Each byte is looked at a fixed number of times, however many names
 * there are.
 */

import type { Redaction, TextSearch } from './edits.ts';
import { isSecretValue, type SecretName, schemeLength, secretName } from './names.ts';

/** `head`: how much of the value is looked at to judge it. `isText`: a word that more words follow, or a piece of a program. */
type Value = { start: number; end: number; head: number; isText: boolean };

/** What tells that the value of a name follows. The quotes may be escaped, as in a log of JSON. */
const BEFORE_VALUE = String.raw`(?:\\{0,16}["'])?[ \t]{0,3}(?:=>|:=|[:=](?!=))[ \t]{0,3}|(?<=<(?:[\w-]{1,32}:)?\1)(?:\s[^<>]{0,256})?>|(?<=(?<![\w-])--\1)[ \t]{1,3}(?=[^\s-])`;

const NAME = new RegExp(String.raw`(?<![A-Za-z0-9_])([A-Za-z_][\w.-]{1,63})(?:${BEFORE_VALUE})`, 'dg');

/** The same in a form, where the signs of a name may be encoded, and in a property list. It takes half as long again. */
const NAME_IN_MARKUP = new RegExp(
  String.raw`(?<![A-Za-z0-9_](?<!%[0-9A-Fa-f]{2}))([A-Za-z_][\w.-]{1,63}(?:%(?:5[BDFbdf]|2[DEde])[\w.-]{0,63}){0,4})(?:${BEFORE_VALUE}|(?<=<key>\1)<\/key>\s{0,64}<string>)`,
  'dg',
);

const DOUBLE_QUOTED = /(\\{0,16})"((?:(?!\\{0,16}").){1,4096})\1"/dy;

const SINGLE_QUOTED = /()'([^'\r\n]{1,4096})'/dy;

const IN_ELEMENT = /()([^<>]{1,4096})(?=<\/)/dy;

/** What may stand before a value without quotes: one that stays open, and the scheme of an authorization. */
const BEFORE_BARE = /((?:\\{0,16}["'])?)(?:(?:bearer|basic|token) +)?/diy;

const BARE_RUN = /[^\s"'`,;&<>\\(){}[\]]*/y;

const MAX_BARE = 4096;

/** A secret shows what it is so early, if it has no quotes around it. */
const JUDGED_BARE = 256;

const WORD = /^[a-z]+$/i;

/** Joined by dots. The last one, if there are several. */
const IDENTIFIERS = /^[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)*?(?:\??\.([A-Za-z_$][\w$]*))?;?$/;

const ANOTHER_WORD = /[.,]? [a-z]/iy;

export function assignmentEdits(bytes: Buffer, from: number, to: number, search: TextSearch): Redaction[] {
  if (!search.isOn('secret-value')) return [];
  const edits: Redaction[] = [];
  const text = bytes.toString('latin1', from, to);
  const valueAt = createValueReader(text);
  const pattern = text.includes('%') || text.includes('</key>') ? NAME_IN_MARKUP : NAME;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const { 0: whole, 1: name = '', index } = match;
    const end = index + whole.length;
    const kind = search.isOAuth(name) ? 'password' : secretName(name);
    const between = whole.slice(name.length);
    const value = kind && valueAt(end, between);
    const edit =
      kind && value && editOf(bytes, from, isInList(between) ? inListOf(kind) : kind, value, search);
    if (edit) edits.push(edit);
    // What follows may be an assignment itself, as in `settings: PASSWORD=…`.
    pattern.lastIndex = edit ? edit.end - from : index + name.length;
  }
  return edits;
}

/** Of a property list, which may hold translations. */
function isInList(between: string): boolean {
  return between.startsWith('</');
}

function inListOf(kind: SecretName): SecretName {
  return kind === 'password' || kind === 'secret' ? 'coded' : kind;
}

function editOf(
  bytes: Buffer,
  from: number,
  kind: SecretName,
  { start, end, head, isText }: Value,
  search: TextSearch,
): Redaction | null {
  const judged = bytes.toString('utf8', from + start, from + Math.min(end, start + head));
  const scheme = schemeLength(judged);
  if (isText || !isSecretValue(scheme > 0 ? 'password' : kind, judged.slice(scheme))) return null;
  const secret = bytes.toString('utf8', from + start + scheme, from + end);
  return search.edit('secret-value', from + start + scheme, from + end, secret);
}

/** Reads the value that begins at a position, `between` it and its name. */
function createValueReader(text: string): (at: number, between: string) => Value | null {
  let runStart = 0;
  let runEnd = 0;

  /** One run has many names in it, as in `a=b=c=…`: its end is looked for once. */
  function endOfRun(start: number): number {
    if (start < runStart || start >= runEnd) {
      BARE_RUN.lastIndex = start;
      BARE_RUN.test(text);
      [runStart, runEnd] = [start, BARE_RUN.lastIndex];
    }
    return runEnd;
  }

  function bareAt(at: number, between: string): Value | null {
    BEFORE_BARE.lastIndex = at;
    const start = at + (BEFORE_BARE.exec(text)?.[1]?.length ?? 0);
    const token = BEFORE_BARE.lastIndex;
    const end = Math.min(endOfRun(token), token + MAX_BARE);
    if (end - token < 2) return null;
    const isBare = start === at && token === at && end - token < 80;
    const isText = isBare && (isProse(token, end, between) || isProgram(token, end));
    return { start, end, head: JUDGED_BARE, isText };
  }

  function isProse(start: number, end: number, between: string): boolean {
    ANOTHER_WORD.lastIndex = end;
    return /[:\s] *$/.test(between) && WORD.test(text.slice(start, end)) && ANOTHER_WORD.test(text);
  }

  /** `password = readPassword()`, `token: config.token` */
  function isProgram(start: number, end: number): boolean {
    const value = text.slice(start, end);
    if (text[end] === '(') return IDENTIFIERS.test(value);
    const [, last = ''] = IDENTIFIERS.exec(value) ?? [];
    return last !== '' && secretName(last) !== null;
  }

  return (at, between) => {
    if (between.endsWith('>') && !between.endsWith('=>')) return quotedAt(text, at, IN_ELEMENT);
    return quotedAt(text, at, DOUBLE_QUOTED) ?? quotedAt(text, at, SINGLE_QUOTED) ?? bareAt(at, between);
  };
}

function quotedAt(text: string, at: number, pattern: RegExp): Value | null {
  pattern.lastIndex = at;
  const [start, end] = pattern.exec(text)?.indices?.[2] ?? [0, 0];
  return start === end ? null : { start, end, head: end - start, isText: false };
}
