/**
 * A filter as SQL about the sessions of an engine, true for every session that has a frame for which the filter holds; it may be
 * true for others. What SQL cannot tell as exactly as the filter language does (upper and lower case beyond ASCII, regular expressions, which
 * terms hold for one and the same frame) is decided afterwards, on the sessions that were fetched, by the filter itself.
 */

import { DISORDER_US, type FieldName, filterField, isOfSession } from '../../inspect/filter/fields.ts';
import type { Filter, Term, Test } from '../../inspect/filter/filter.ts';
import { foldCase } from '../../protocol/text.ts';
import { PART_BYTES } from '../../store/file/columns.ts';

/** A condition on `tapedeck.session AS s`, and the values of its parameters `$1`, `$2` and so on. */
export type Condition = { sql: string; values: (string | number)[] };

/** The condition for a filter; `values` come after `first` others. */
export function candidatesFor(filter: Filter, first = 0): Condition {
  const values: (string | number)[] = [];
  const bind = (value: string | number) => {
    values.push(typeof value === 'string' ? standIn(value) : value);
    return `$${first + values.length}::${typeof value === 'string' ? 'text' : 'numeric'}`;
  };

  /** True for every session with a frame for which it holds. */
  function some(part: Filter): string {
    if (part.type === 'not') return `NOT ${every(part.part)}`;
    if (part.type !== 'term') return joined(part, some);
    return part.isNegated ? `NOT ${every({ ...part, isNegated: false })}` : someSql(part, bind);
  }

  /** True only for sessions where it holds for every frame. */
  function every(part: Filter): string {
    if (part.type === 'not') return `NOT ${some(part.part)}`;
    if (part.type !== 'term') return joined(part, every);
    if (part.isNegated) return `NOT ${some({ ...part, isNegated: false })}`;
    return isOfSession(part.field) ? sessionSql(part, bind, true) : 'false';
  }

  function joined({ type, parts }: Extract<Filter, { parts: unknown }>, sqlOf: (part: Filter) => string) {
    if (parts.length === 0) return type === 'and' ? 'true' : 'false';
    return `(${parts.map(sqlOf).join(type === 'and' ? ' AND ' : ' OR ')})`;
  }

  return { sql: some(filter), values };
}

type Bind = (value: string | number) => string;

/** Asks about an expression; never NULL. */
type Ask = (expression: string) => string;

function someSql(term: Term, bind: Bind): string {
  const { field, test } = term;
  if (isOfSession(field)) return sessionSql(term, bind, false);
  const ask = asking(test, bind, false);
  switch (field) {
    case 'method':
      return message(any(ask, 'm.canonical', 'm.method'));
    case 'tool':
    case 'prompt':
    case 'resource':
      return message(`m.canonical IN (${TARGETS[field]}) AND ${ask('m.target')}`);
    case 'id':
    case 'problem':
      return message(ask(`m.${field}`));
    case 'kind':
      return message(isAmong('m.kind', wordsOf(field, test)));
    case 'status':
      return statusSql(wordsOf(field, test));
    case 'dur':
      return message(ask('m.latency'));
    case 'code':
      return message(ask('m.error_code'));
    case 'http':
      return `EXISTS (SELECT FROM tapedeck.http_exchange AS h WHERE ${of('h')} AND ${ask('h.status')})`;
    case 'trace':
      return behindOr(`EXISTS (SELECT FROM tapedeck.trace AS t WHERE ${of('t')} AND ${ask('t.trace_id')})`);
    case 'size':
      return `EXISTS (SELECT FROM tapedeck.frame AS f WHERE ${of('f')} AND ${ask('f.size')})`;
    case 'text':
      return textSql(test, bind);
    case 'since':
      return ask(
        `(SELECT f.at FROM tapedeck.frame AS f WHERE ${of('f')} ORDER BY f.seq DESC LIMIT 1) + ${DISORDER_US}`,
      );
    case 'until':
      return ask(
        `(SELECT f.at FROM tapedeck.frame AS f WHERE ${of('f')} ORDER BY f.seq LIMIT 1) - ${DISORDER_US}`,
      );
    default:
      // Nearly every session has such a frame.
      return 'true';
  }
}

const TARGETS: Readonly<Record<'tool' | 'prompt' | 'resource', string>> = {
  tool: `'tools/call'`,
  prompt: `'prompts/get'`,
  resource: `'resources/read', 'resources/subscribe', 'resources/unsubscribe', 'notifications/resources/updated'`,
};

/** Rows of the session `s`. */
function of(alias: string): string {
  return `${alias}.session = s.session AND ${alias}.day = s.day`;
}

function any(ask: Ask, ...expressions: string[]): string {
  return `(${expressions.map(ask).join(' OR ')})`;
}

function message(condition: string): string {
  return behindOr(`EXISTS (SELECT FROM tapedeck.message AS m WHERE ${of('m')} AND ${condition})`);
}

/** Of a session whose messages are not all here whoever reads it makes the rest. */
function behindOr(sql: string): string {
  return `(${sql} OR s.sealed_at IS NULL AND (s.indexed < s.frames OR s.dropped > 0))`;
}

/** `isExact`: true only where the test holds; else wherever it may. */
function asking(test: Test, bind: Bind, isExact: boolean): Ask {
  const value = once(() => bind(writtenIn(test)));
  if (test.type !== 'matches') {
    const operator = test.type === 'equals' ? '=' : test.operator;
    return (expression) => `coalesce(${expression} ${operator} ${value()}, false)`;
  }
  const { pattern } = test;
  if (pattern.type === 'regex') return (expression) => (isExact ? 'false' : `${expression} IS NOT NULL`);
  const isPlain = isAscii(foldCase(pattern.text));
  const has = (expression: string) =>
    isPlain ? `position(${value()} IN lower(${expression} COLLATE "C")) > 0` : 'false';
  // Beyond ASCII, upper and lower case are what JavaScript says.
  return (expression) =>
    isExact
      ? `coalesce(octet_length(${expression}) = char_length(${expression}) AND ${has(expression)}, false)`
      : `coalesce(octet_length(${expression}) > char_length(${expression}) OR ${has(expression)}, false)`;
}

function writtenIn(test: Test): string | number {
  if (test.type !== 'matches') return test.value;
  return test.pattern.type === 'part' ? foldCase(test.pattern.text) : '';
}

/** A parameter that nobody refers to is refused. */
function once(make: () => string): () => string {
  let made: string | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** What a test of a field with few words holds for. */
function wordsOf(field: FieldName, test: Test): string[] {
  const words = [...new Set(Object.values(filterField(field).choices ?? {}))];
  return words.filter((word) =>
    test.type === 'equals' ? word === test.value : test.type === 'matches' && test.text.has(word),
  );
}

/** The words are ours. */
function isAmong(expression: string, words: readonly string[]): string {
  if (words.length === 0) return 'false';
  return `coalesce(${expression} IN (${words.map((word) => `'${word}'`).join(', ')}), false)`;
}

function statusSql(words: readonly string[]): string {
  const conditions = [
    isAmong('m.outcome', words),
    ...(words.includes('cancelled') ? [`coalesce(m.relation = 'cancel', false)`] : []),
    ...(words.includes('unanswered') ? [UNANSWERED] : []),
  ];
  return message(`(${conditions.join(' OR ')})`);
}

const UNANSWERED = `m.kind = 'request' AND m.outcome IS NULL AND NOT EXISTS (SELECT FROM tapedeck.message AS a
  WHERE a.session = m.session AND a.day = m.day AND a.to_seq = m.seq AND a.to_n = m.n AND a.relation = 'reply'
    AND a.outcome IS NOT NULL)`;

/** A shorter one is in nearly every text. */
const LEAST_NEEDLE = 3;

/**
 * Bytes are looked for in what `encode(…, 'escape')` makes of them: ASCII as it is, backslashes twice, all else as \ooo.
 * Two characters beyond ASCII are of those in small letters: U+0130 begins with `i`, U+212A is `k`.
 */
function textSql(test: Test, bind: Bind): string {
  if (test.type !== 'matches' || test.pattern.type === 'regex') return 'true';
  const runs = foldCase(test.pattern.text).split(BEYOND_ASCII);
  const safe = longest(runs.flatMap((run) => run.split(/[ik]+/)));
  const needles =
    safe.length >= LEAST_NEEDLE
      ? [safe]
      : longest(runs) === ''
        ? []
        : [longest(runs), '\\304\\260', '\\342\\204\\252'];
  if (needles.length === 0) return 'true';
  const text = `lower(encode(f.payload, 'escape') COLLATE "C")`;
  const conditions = needles.map((needle, i) => {
    const escaped = i === 0 ? needle.replaceAll('\\', '\\\\') : needle;
    return `position(${bind(escaped)} IN ${text}) > 0`;
  });
  // What has more than one part may have it across two of them.
  return `EXISTS (SELECT FROM tapedeck.frame AS f WHERE ${of('f')} AND (f.size > ${PART_BYTES} OR ${conditions.join(' OR ')}))`;
}

function longest(texts: readonly string[]): string {
  return texts.reduce((one, other) => (other.length > one.length ? other : one), '');
}

/** What all frames of a session have in common. `isExact`: as for `asking`. */
function sessionSql({ field, test }: Term, bind: Bind, isExact: boolean): string {
  const ask = asking(test, bind, isExact);
  const sql = sessionFieldSql(field, test, ask, bind);
  return isExact ? `(${sql} AND s.odd IS NULL)` : sql;
}

const EXPRESSIONS: Readonly<Partial<Record<FieldName, readonly string[]>>> = {
  session: ['s.id', 's.name'],
  name: ['s.name'],
  client: ['s.client_name', `(s.client_name || ' ' || s.client_version)`, 's.client_program'],
  server: ['s.server_name', `(s.server_name || ' ' || s.server_version)`],
  transport: ['s.transport'],
};

const NEWEST = `s.session = (SELECT session FROM tapedeck.session ORDER BY started_at DESC, session DESC LIMIT 1)`;

function sessionFieldSql(field: FieldName, test: Test, ask: Ask, bind: Bind): string {
  if (field === 'label')
    return `EXISTS (SELECT FROM jsonb_each_text(s.labels) AS l WHERE ${ask(`(l.key || '=' || l.value)`)})`;
  if (field === 'run')
    return `EXISTS (SELECT FROM jsonb_array_elements(s.runs) AS r WHERE ${ask(`(r ->> 'id')`)})`;
  const sql = any(ask, ...(EXPRESSIONS[field] ?? []));
  if (field !== 'session') return sql;
  const isLatest =
    test.type === 'equals' ? test.value === 'latest' : test.type === 'matches' && test.text.has('latest');
  const begins = test.type === 'equals' ? [`starts_with(s.id, ${bind(test.value)})`] : [];
  return `(${[sql, ...begins, ...(isLatest ? [NEWEST] : [])].join(' OR ')})`;
}

/** As a column has it (odd.ts). */
function standIn(text: string): string {
  return Buffer.from(text.replaceAll('\0', '\u2400')).toString();
}

/** U+0000 is beyond it here: no column has one. */
const BEYOND_ASCII = /[\P{ASCII}\0]+/u;

function isAscii(text: string): boolean {
  return !BEYOND_ASCII.test(text);
}
