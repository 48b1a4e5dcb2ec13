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

/** What an index of texts says, which weeks that are over may have. */
export type IndexedTexts = {
  /** The days of these weeks: from, and before. */
  ranges: readonly (readonly [from: string, before: string])[];
  /** By `needleKey`: all sessions of these weeks that may have such a text. None: there are too many. */
  sessions: ReadonlyMap<string, readonly string[]>;
};

const NO_INDEX: IndexedTexts = { ranges: [], sessions: new Map() };

/** The condition for a filter. */
export function candidatesFor(filter: Filter, texts = NO_INDEX): Condition {
  const values: (string | number)[] = [];
  const bind = (value: string | number) => {
    values.push(typeof value === 'string' ? standIn(value) : value);
    return `$${values.length}::${typeof value === 'string' ? 'text' : Number.isSafeInteger(value) ? 'bigint' : 'numeric'}`;
  };

  /** True for every session with a frame for which it holds. */
  function some(part: Filter): string {
    if (part.type === 'not') return `NOT ${every(part.part)}`;
    if (part.type !== 'term') return joined(part, some);
    return part.isNegated ? `NOT ${every({ ...part, isNegated: false })}` : someSql(part, bind, texts);
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

/** Asks about an expression. */
type Ask = (expression: string) => string;

function someSql(term: Term, bind: Bind, texts: IndexedTexts): string {
  const { field, test } = term;
  if (isOfSession(field)) return sessionSql(term, bind, false);
  const ask = asking(test, bind, false);
  // Where NULL is as good as false, and `coalesce` would keep an index from being used.
  const inRows = asking(test, bind, false, (condition) => condition);
  switch (field) {
    case 'method':
      return message(any(inRows, 'm.canonical', 'm.method'));
    case 'tool':
    case 'prompt':
    case 'resource':
      return message(`m.canonical IN (${TARGETS[field]}) AND ${inRows('m.target')}`);
    case 'id':
    case 'problem':
      return message(inRows(`m.${field}`));
    case 'kind':
      return message(isAmong('m.kind', wordsOf(field, test)));
    case 'status':
      return statusSql(wordsOf(field, test));
    case 'dur':
      return message(inRows('m.latency'));
    case 'code':
      return message(inRows('m.error_code'));
    case 'http':
      return `EXISTS (SELECT FROM tapedeck.http_exchange AS h WHERE ${of('h')} AND ${inRows('h.status')})`;
    case 'trace':
      return behindOr(
        `EXISTS (SELECT FROM tapedeck.trace AS t WHERE ${of('t')} AND ${inRows('t.trace_id')})`,
      );
    case 'size':
      return `EXISTS (SELECT FROM tapedeck.frame AS f WHERE ${of('f')} AND ${inRows('f.size')})`;
    case 'text':
      return textSql(test, bind, texts);
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

/** For a condition that may be inverted. */
const neverNull = (condition: string) => `coalesce(${condition}, false)`;

/** `isExact`: true only where the test holds; else wherever it may. */
function asking(test: Test, bind: Bind, isExact: boolean, whole = neverNull): Ask {
  const value = once(() => bind(writtenIn(test)));
  if (test.type !== 'matches') {
    const operator = test.type === 'equals' ? '=' : test.operator;
    return (expression) => whole(`${expression} ${operator} ${value()}`);
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
  return `${expression} IN (${words.map((word) => `'${word}'`).join(', ')})`;
}

function statusSql(words: readonly string[]): string {
  const conditions = [
    isAmong('m.outcome', words),
    ...(words.includes('cancelled') ? [`m.relation = 'cancel'`] : []),
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
 * ASCII of which one must be in the bytes where the test holds, in small letters; none where nothing can be said. Two characters beyond
 * ASCII are of those in small letters: U+0130 begins with `i`, U+212A is `k`.
 */
function needlesOf(test: Test): string[] {
  if (test.type !== 'matches' || test.pattern.type === 'regex') return [];
  const runs = foldCase(test.pattern.text).split(BEYOND_ASCII);
  const safe = longest(runs.flatMap((run) => run.split(/[ik]+/)));
  if (safe.length >= LEAST_NEEDLE) return [escaped(safe)];
  const any = longest(runs);
  return any === '' ? [] : [escaped(any), '\\304\\260', '\\342\\204\\252'];
}

/** Bytes are looked for in what `encode(…, 'escape')` makes of them: ASCII as it is, backslashes twice, all else as \ooo. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\');
}

/** What an index of texts is asked for: by its key, the needles of each text that the filter is about. */
export function textsIn(filter: Filter): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const add = (part: Filter): void => {
    if (part.type !== 'term') {
      for (const inner of part.type === 'not' ? [part.part] : part.parts) add(inner);
      return;
    }
    const needles = part.field === 'text' ? needlesOf(part.test) : [];
    // A trigram has three characters.
    if (needles.length > 0 && needles.every((needle) => needle.length >= LEAST_NEEDLE))
      found.set(needleKey(needles), needles);
  };
  add(filter);
  return found;
}

function needleKey(needles: readonly string[]): string {
  return needles.join('\n');
}

/** `bound`: the needles as parameters. */
export function payloadHasSql(bound: readonly string[]): string {
  const text = `lower(encode(f.payload, 'escape') COLLATE "C")`;
  // What has more than one part may have it across two of them.
  return `(f.size > ${PART_BYTES} OR ${bound.map((needle) => `position(${needle} IN ${text}) > 0`).join(' OR ')})`;
}

function textSql(test: Test, bind: Bind, { ranges, sessions }: IndexedTexts): string {
  const needles = needlesOf(test);
  if (needles.length === 0) return 'true';
  const sql = `EXISTS (SELECT FROM tapedeck.frame AS f WHERE ${of('f')} AND ${payloadHasSql(needles.map(bind))})`;
  const keys = sessions.get(needleKey(needles));
  if (keys === undefined || ranges.length === 0) return sql;
  return `(CASE WHEN ${isInRanges('s.day', ranges)} THEN s.session = ANY ('{${keys.join(',')}}'::uuid[]) ELSE ${sql} END)`;
}

/** Days are of the engine's own type: there is nothing in them to quote. */
export function isInRanges(day: string, ranges: IndexedTexts['ranges']): string {
  const each = ranges.map(([from, before]) => `${day} >= '${from}' AND ${day} < '${before}'`);
  return `(${each.join(' OR ')})`;
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
