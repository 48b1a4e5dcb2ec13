/**
 * The first step of the filter language: text to tokens, each with the column where it stands.
 *
 *   word   one without an operator, or in quotes       timeout  "not found"  'a=b'
 *   term   field, operator and value                   tool=echo  dur > 1s  text~/time(d )?out/i
 *   mark   ( ) and the words and, or, not
 */

import { TapedeckError } from '../../errors.ts';
import { escapeText } from '../../protocol/text.ts';
import type { Pattern } from '../../protocol/text-test.ts';
import { FIELD_NAMES, OPERATORS, type Operator } from './fields.ts';

/** `column` counts from 1, `valueColumn` is that of a term's value. */
export type Token =
  | { type: 'mark'; mark: Mark; column: number }
  | { type: 'word'; text: string; column: number }
  | { type: 'term'; field: string; operator: Operator; value: Pattern; column: number; valueColumn: number };

type Mark = '(' | ')' | 'and' | 'or' | 'not';

const MAX_LENGTH = 10_000;

const NAME = /[A-Za-z_][\w.-]*/y;

const SPACE = /\s*/y;

/** Operators of other languages, and what to write here. */
const FOREIGN: Readonly<Record<string, string>> = {
  '==': '`=`',
  '===': '`=`',
  '=~': '`~`',
  '~=': '`~`',
  '<>': '`!=`',
  '=>': '`>=`',
  '=<': '`<=`',
  '=!': '`!=`',
  '!<': '`>=`',
  '!>': '`<=`',
  '!': '`!=`',
};

const FOREIGN_WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '&&': 'a space, or `and`',
    '&': 'a space, or `and`',
    '||': '`or`',
    '|': '`or`',
    '!': '`not`',
  }),
);

const OPERATOR_LIKE = /[=!~<>]+/y;

/** Throws `TapedeckError` `usage` with the column of what cannot be read. */
export function tokensOf(filter: string): Token[] {
  if (filter.length > MAX_LENGTH) {
    throw new TapedeckError('usage', `Expected a filter of at most ${MAX_LENGTH} characters.`);
  }
  const tokens: Token[] = [];
  for (let at = endOf(SPACE, filter, 0); at < filter.length; ) {
    const { token, end } = tokenAt(filter, at);
    tokens.push(token);
    at = endOf(SPACE, filter, end);
  }
  return tokens;
}

/** Its column counts from 1. */
class FilterError extends TapedeckError {
  readonly column: number;

  constructor(message: string, column: number) {
    super('usage', message);
    this.column = column;
  }
}

/** The error of a filter: what was expected at this column, and what was there. */
export function filterError(expected: string, column: number, got: string, advice = ''): TapedeckError {
  const shown = escapeText(got.length > 60 ? `${got.slice(0, 60)}…` : got);
  return new FilterError(
    `Expected ${expected} at column ${column} of the filter, got ${got === '' ? 'its end' : `\`${shown}\``}.${advice === '' ? '' : ` ${advice}`}`,
    column,
  );
}

type Read<T> = { token: T; end: number };

function tokenAt(filter: string, at: number): Read<Token> {
  const column = at + 1;
  const first = filter[at] ?? '';
  if (first === '(' || first === ')') return { token: { type: 'mark', mark: first, column }, end: at + 1 };
  if (first === '"' || first === "'") {
    const { token: text, end } = quotedAt(filter, at);
    return { token: { type: 'word', text, column }, end };
  }
  return termAt(filter, at) ?? wordAt(filter, at);
}

/** A name with an operator behind it, spaces between them or not. */
function termAt(filter: string, at: number): Read<Token> | null {
  const nameEnd = endOf(NAME, filter, at);
  if (nameEnd === at) return null;
  const operatorAt = endOf(SPACE, filter, nameEnd);
  const operatorEnd = endOf(OPERATOR_LIKE, filter, operatorAt);
  if (operatorEnd === operatorAt) return null;
  const written = filter.slice(operatorAt, operatorEnd);
  const operator = OPERATORS.find((known) => known === written);
  if (operator === undefined) {
    throw operatorError(written, operatorAt + 1, OPERATORS, `Write ${insteadOf(written)}.`);
  }
  const valueAt = endOf(SPACE, filter, operatorEnd);
  const { token: value, end } = writtenValueAt(filter, valueAt, operator.endsWith('~'));
  const field = filter.slice(at, nameEnd);
  return {
    token: { type: 'term', field, operator, value, column: at + 1, valueColumn: valueAt + 1 },
    end,
  };
}

/** What is meant, or else the longest operator that it begins with; each character of it begins one. */
function insteadOf(written: string): string {
  const longestFirst = OPERATORS.toSorted((a, b) => b.length - a.length);
  const near = longestFirst.find((known) => written.startsWith(known));
  return FOREIGN[written] ?? `\`${near ?? '!='}\``;
}

/** `allowed` are the operators that can stand there. */
export function operatorError(
  written: string,
  column: number,
  allowed: readonly Operator[],
  advice: string,
): TapedeckError {
  const list = allowed.map((one) => `\`${one}\``).join(' ');
  return filterError(`one of ${list}`, column, written, advice);
}

function writtenValueAt(filter: string, at: number, isPattern: boolean): Read<Pattern> {
  const first = filter[at];
  if (first === '"' || first === "'") {
    const { token: text, end } = quotedAt(filter, at);
    return { token: { type: 'part', text }, end };
  }
  if (first === '/' && isPattern) return regexAt(filter, at);
  const end = bareEnd(filter, at);
  if (end === at) throw filterError('a value', at + 1, filter.slice(at, at + 1), 'An empty one is "".');
  return { token: { type: 'part', text: filter.slice(at, end) }, end };
}

/** Up to a space, or a parenthesis that was opened before. */
function bareEnd(filter: string, at: number): number {
  let depth = 0;
  for (let end = at; end < filter.length; end += 1) {
    const character = filter[end] ?? '';
    if (/\s/.test(character)) return end;
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (depth < 0) return end;
  }
  return filter.length;
}

function quotedAt(filter: string, at: number): Read<string> {
  const quote = filter[at];
  let text = '';
  for (let end = at + 1; end < filter.length; end += 1) {
    const character = filter[end];
    if (character === quote) return { token: text, end: end + 1 };
    const next = filter[end + 1];
    if (character === '\\' && (next === quote || next === '\\')) end += 1;
    text += filter[end];
  }
  throw filterError(`a closing ${quote}`, filter.length + 1, '', `The text began at column ${at + 1}.`);
}

const REGEX = /\/((?:\\.|[^\\/])+)\/([ims]*)/y;

function regexAt(filter: string, at: number): Read<Pattern> {
  REGEX.lastIndex = at;
  const [whole = '', source = '', flags = ''] = REGEX.exec(filter) ?? [];
  const end = at + whole.length;
  if (whole === '' || /[^\s()]/.test(filter[end] ?? ' ')) {
    const got = filter.slice(at, bareEnd(filter, at));
    throw filterError(
      '/an expression/, with i, m or s behind it,',
      at + 1,
      got,
      `To look for this text itself, quote it: "${escapeText(got)}".`,
    );
  }
  return { token: { type: 'regex', source: source.replaceAll('\\/', '/'), flags }, end };
}

/** Before a space, a parenthesis or the end. */
const MARK_WORD = /(?:and|or|not)(?![^\s()])/iy;

function wordAt(filter: string, at: number): Read<Token> {
  const column = at + 1;
  const markEnd = endOf(MARK_WORD, filter, at);
  if (markEnd > at) {
    const mark = filter.slice(at, markEnd).toLowerCase() as Mark;
    return { token: { type: 'mark', mark, column }, end: markEnd };
  }
  const end = bareEnd(filter, at);
  const text = filter.slice(at, end);
  refuseForeign(text, column);
  return { token: { type: 'word', text, column }, end };
}

function refuseForeign(word: string, column: number): void {
  const instead = FOREIGN_WORDS.get(word);
  if (instead !== undefined) throw filterError('a term', column, word, `Write ${instead}.`);
  if (/^[=!~<>]/.test(word)) throw filterError('a field', column, word, 'Quote it to look for it as a text.');
  const [, field = '', value = ''] = /^([a-z]+):(.*)$/.exec(word) ?? [];
  if (FIELD_NAMES.some((name) => name === field)) {
    throw filterError(
      'an operator',
      column,
      word,
      `Write ${field}=${value}, or quote it to look for it as a text.`,
    );
  }
}

/** Where the match of a sticky expression ends, or where it was tried if there is none. */
function endOf(expression: RegExp, text: string, at: number): number {
  expression.lastIndex = at;
  return expression.test(text) ? expression.lastIndex : at;
}
