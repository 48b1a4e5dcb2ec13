/**
 * The filter language, the same in every command: terms joined by a space (and), `or`, `not` and parentheses. docs/filter.md
 * is its manual. Here its text becomes a tree, which `sql.ts` turns into SQL.
 *
 *   any  = all { "or" all }
 *   all  = one { ["and"] one }
 *   one  = "not" one | "(" any ")" | term | word
 */
import { nearest } from '../../protocol/nearest.ts';
import { createTextTest, type Pattern, type TextTest } from '../../protocol/text-test.ts';
import {
  FIELD_NAMES,
  type FieldName,
  filterField,
  isOfSession,
  OPERATORS_OF,
  type Operator,
} from './fields.ts';
import { filterError, operatorError, type Token, tokensOf } from './tokens.ts';
import { parseDuration, parseNumber, parseSize, parseTime } from './values.ts';

/** Without parts, `and` holds always and `or` never. */
export type Filter = { type: 'and' | 'or'; parts: readonly Filter[] } | { type: 'not'; part: Filter } | Term;

/** Durations and times are in microseconds, sizes in bytes. `isNegated`: holds where the test does not. */
export type Term = { type: 'term'; field: FieldName; isNegated: boolean; test: Test };

export type Test =
  | { type: 'equals'; value: string | number }
  | { type: 'compares'; operator: '>' | '<' | '>=' | '<='; value: number }
  | { type: 'matches'; pattern: Pattern; text: TextTest };

export const EVERYTHING: Filter = { type: 'and', parts: [] };

/** More than SQLite would take in one statement. */
const MAX_TERMS = 200;

const MAX_DEPTH = 50;

/**
 * Reads a filter; an empty one holds for everything. `now`, in microseconds since the Unix epoch, is what `2h` counts
 * from. Throws `TapedeckError` `usage` with the column of what is wrong, and the nearest that would be right.
 */
export function parseFilter(text: string, now: number): Filter {
  const tokens = tokensOf(text);
  const count = tokens.filter(({ type }) => type !== 'mark').length;
  if (count > MAX_TERMS) throw filterError(`at most ${MAX_TERMS} terms`, 1, `${count}`);
  let at = 0;
  let depth = 0;

  const end = text.length + 1;
  const isMark = (mark: string) => {
    const token = tokens[at];
    return token?.type === 'mark' && token.mark === mark;
  };

  function any(): Filter {
    const parts = [all()];
    while (isMark('or')) {
      at += 1;
      parts.push(all());
    }
    return joined('or', parts);
  }

  function all(): Filter {
    const parts = [one()];
    while (at < tokens.length && !isMark('or') && !isMark(')')) {
      if (isMark('and')) at += 1;
      parts.push(one());
    }
    return joined('and', parts);
  }

  function one(): Filter {
    const token = tokens[at];
    if (token === undefined) throw filterError('a term', end, '');
    at += 1;
    if (token.type !== 'mark') return termOf(token, now);
    depth += 1;
    if (depth > MAX_DEPTH) throw filterError(`at most ${MAX_DEPTH} levels`, token.column, token.mark);
    const inner = token.mark === 'not' ? negation() : token.mark === '(' ? group(token.column) : null;
    depth -= 1;
    if (inner === null) {
      throw filterError('a term', token.column, token.mark, `Quote it to look for it as a text.`);
    }
    return inner;
  }

  function negation(): Filter {
    return { type: 'not', part: one() };
  }

  function group(column: number): Filter {
    const inner = any();
    const close = tokens[at];
    if (!isMark(')')) {
      throw filterError('`)`', close?.column ?? end, '', `The \`(\` stands at column ${column}.`);
    }
    at += 1;
    return inner;
  }

  if (tokens.length === 0) return EVERYTHING;
  const filter = any();
  const rest = tokens[at];
  if (rest !== undefined) throw filterError('`(` before it', rest.column, text.slice(rest.column - 1));
  return filter;
}

/** The term for a text, as it is. */
export function textTerm(text: string): Term {
  return { type: 'term', field: 'text', isNegated: false, test: matchOf({ type: 'part', text }, 1) };
}

function joined(type: 'and' | 'or', parts: readonly Filter[]): Filter {
  const [only, another] = parts;
  return only !== undefined && another === undefined ? only : { type, parts };
}

function termOf(token: Exclude<Token, { type: 'mark' }>, now: number): Term {
  if (token.type === 'word') return textTerm(token.text);
  const name = fieldNamed(token.field, token.column);
  const { type } = filterField(name);
  const { operator } = token;
  if (!OPERATORS_OF[type].includes(operator)) {
    const column = token.column + token.field.length;
    throw operatorError(
      operator,
      column,
      OPERATORS_OF[type],
      `For \`${name}\`, write \`${nearestOperator(type, operator)}\`.`,
    );
  }
  const isNegated = operator === '!=' || operator === '!~';
  return { type: 'term', field: name, isNegated, test: testOf(name, token, now) };
}

/** What other tools call it. */
const SYNONYMS: ReadonlyMap<string, FieldName> = new Map([
  ['latency', 'dur'],
  ['uri', 'resource'],
  ['after', 'since'],
  ['before', 'until'],
  ['from', 'since'],
  ['to', 'until'],
  ['error', 'code'],
  ['outcome', 'status'],
  ['type', 'kind'],
]);

function fieldNamed(written: string, column: number): FieldName {
  const lower = written.toLowerCase();
  const name = FIELD_NAMES.find((known) => known === lower);
  if (name !== undefined) return name;
  const near =
    SYNONYMS.get(lower) ??
    nearest(lower, FIELD_NAMES) ??
    FIELD_NAMES.find((known) => lower.startsWith(known));
  const advice = near === undefined ? `Fields: ${FIELD_NAMES.join(', ')}.` : `Nearest: \`${near}\`.`;
  throw filterError(
    'a field',
    column,
    written,
    `${advice} To look for a text with an operator in it, quote it.`,
  );
}

/** The most likely one of the operators that the type has. */
function nearestOperator(type: keyof typeof OPERATORS_OF, written: Operator): Operator {
  const allowed = OPERATORS_OF[type];
  const isNegative = written.startsWith('!');
  return allowed.find((one) => one.startsWith('!') === isNegative) ?? allowed[0] ?? '=';
}

type TermToken = Extract<Token, { type: 'term' }>;

function testOf(name: FieldName, token: TermToken, now: number): Test {
  const { operator, value: pattern, valueColumn } = token;
  if (operator === '~' || operator === '!~') return matchOf(pattern, valueColumn);
  const written = pattern.type === 'part' ? pattern.text : pattern.source;
  const field = filterField(name);
  const value = readValue(name, written, valueColumn, now);
  if (field.compares !== undefined && typeof value === 'number') {
    return { type: 'compares', operator: field.compares, value };
  }
  if (operator === '=' || operator === '!=') return { type: 'equals', value };
  return { type: 'compares', operator, value: Number(value) };
}

function readValue(name: FieldName, written: string, column: number, now: number): string | number {
  const field = filterField(name);
  if (field.type === 'choice') return choiceOf(field.choices ?? {}, written, column);
  const reader = READERS[field.type];
  if (reader === undefined) return written;
  const value = reader.read(written, now);
  if (value === null) throw filterError(reader.expected, column, written);
  return value;
}

const READERS: Partial<
  Record<string, { expected: string; read: (text: string, now: number) => number | null }>
> = {
  number: { expected: 'a whole number', read: parseNumber },
  size: { expected: 'a size such as 300, 10kb or 2mb', read: parseSize },
  duration: { expected: 'a duration with its unit, such as 500ms, 2s or 1m30s', read: parseDuration },
  time: { expected: 'a time such as 2h, today, 10:30, 2026-11-20 or "2026-11-20 10:30"', read: parseTime },
};

function choiceOf(choices: Readonly<Record<string, string>>, written: string, column: number): string {
  const lower = written.toLowerCase();
  const choice = Object.hasOwn(choices, lower) ? choices[lower] : undefined;
  if (choice !== undefined) return choice;
  const words = Object.keys(choices);
  const near = nearest(lower, words);
  throw filterError(
    `one of ${words.join(', ')}`,
    column,
    written,
    near === null ? '' : `Nearest: \`${near}\`.`,
  );
}

function matchOf(pattern: Pattern, column: number): Test {
  try {
    return { type: 'matches', pattern, text: createTextTest(pattern) };
  } catch (error) {
    const written = pattern.type === 'regex' ? `/${pattern.source}/` : pattern.text;
    const why = error instanceof Error ? error.message.replaceAll('\n', ' ') : '';
    throw filterError('an expression that RE2 reads', column, written, `${why.replace(/\.$/, '')}.`);
  }
}

/** What a filter says of sessions alone: it holds for every session that has a frame for which the filter holds. */
export function sessionPart(filter: Filter): Filter {
  return weakened(filter, false);
}

/** Whether a filter asks for nothing but what all frames of a session have in common. */
export function isAboutSessions(filter: Filter): boolean {
  if (filter.type === 'term') return isOfSession(filter.field);
  return filter.type === 'not' ? isAboutSessions(filter.part) : filter.parts.every(isAboutSessions);
}

/** What is not known of a session is taken to hold; under a `not`, not to hold. */
function weakened(filter: Filter, isUnderNot: boolean): Filter {
  if (filter.type === 'not') return { type: 'not', part: weakened(filter.part, !isUnderNot) };
  if (filter.type !== 'term') {
    return { type: filter.type, parts: filter.parts.map((part) => weakened(part, isUnderNot)) };
  }
  if (isOfSession(filter.field)) return filter;
  if (filterField(filter.field).bound !== undefined && !isUnderNot) return filter;
  return isUnderNot ? { type: 'or', parts: [] } : EVERYTHING;
}
