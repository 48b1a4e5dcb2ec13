/**
 * Figures of calls, made while the engine says what their requests and answers were: neither frames nor messages are put into a store
 * for that. The engine selects by the same SQL as a store does, and the same code adds up. What it takes more to know, as what
 * became of a call without an answer, only the frames of a session tell: such a session is left to whoever fetches these.
 */

import type { Client } from 'pg';
import type { SessionFigures } from '../../inspect/figures/call-figures.ts';
import {
  CALL_FIELDS,
  type CallLookups,
  type CountedCall,
  callsSql,
  figuresOfCalls,
} from '../../inspect/figures/session-figures.ts';
import { type Filter, isAboutSessions, type Term } from '../../inspect/filter/filter.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { copyOut, type Reading, type Value } from './copy-out.ts';
import type { Found } from './find.ts';

/** A filter of which nothing but times is about frames. */
export type TimesOfSessions = { ofSessions: Filter; times: readonly Term[] };

/** Splits a filter that all of these must hold of. Null: more than times is about frames. */
export function timesApart(filter: Filter): TimesOfSessions | null {
  const parts = allOf(filter);
  const times: Term[] = [];
  const ofSessions: Filter[] = [];
  for (const part of parts) {
    if (isAboutSessions(part)) ofSessions.push(part);
    else if (part.type === 'term' && isTime(part)) times.push(part);
    else return null;
  }
  return { ofSessions: { type: 'and', parts: ofSessions }, times };
}

function allOf(filter: Filter): Filter[] {
  return filter.type === 'and' ? filter.parts.flatMap(allOf) : [filter];
}

function isTime({ field, test }: Term): boolean {
  return (field === 'since' || field === 'until') && test.type === 'compares';
}

/** The figures of a session, but for what lists of tools weigh. `lists`: the answers that have them. */
export type Count = { figures: SessionFigures; lists: Place[] };

/**
 * The figures of the calls of sealed sessions whose requests passed at these times, by the session's key. Those that are not among them take
 * their frames.
 */
export async function countsOfCalls(
  client: Client,
  sessions: readonly Found[],
  times: readonly Term[],
): Promise<Map<string, Count>> {
  const counts = new Map<string, Count>();
  for (const [day, keys] of byDay(sessions)) {
    const add = (key: string, count: Count | null) => void (count !== null && counts.set(key, count));
    // One at a time: a day is one partition, which PostgreSQL then knows before it begins.
    const rest = new Set(keys);
    for await (const [key, rows] of eachSessionsRows(
      copyOut(client, callsOfDay(day, keys, times), READINGS),
    )) {
      rest.delete(key);
      add(key, countOf(rows));
    }
    for (const key of rest) add(key, countOf([]));
  }
  return counts;
}

const TEXTS: ReadonlySet<keyof CountedCall> = new Set(['kind', 'method', 'target', 'outcome']);

/** The session's key, the fields of a call, and whether its texts are others than columns can hold. */
const READINGS: readonly Reading[] = [
  'text',
  ...CALL_FIELDS.map((field): Reading => (TEXTS.has(field) ? 'text' : 'integer')),
  'integer',
];

function byDay(sessions: readonly Found[]): Map<string, string[]> {
  const days = new Map<string, string[]>();
  for (const { key, day } of sessions) {
    const keys = days.get(day);
    if (keys === undefined) days.set(day, [key]);
    else keys.push(key);
  }
  return days;
}

/** Keys, days and times are of types in which there is nothing to quote. */
function callsOfDay(day: string, keys: readonly string[], times: readonly Term[]): string {
  const isSame = (alias: string, other: string) =>
    `${alias}.session = ${other}.session AND ${alias}.day = ${other}.day`;
  const tables = { message: 'tapedeck.message', frame: 'tapedeck.frame', isSame };
  const { columns, from } = callsSql(
    tables,
    [
      `m.session = ANY ('{${keys.join(',')}}'::uuid[]) AND m.day = '${day}' AND f.day = '${day}'`,
      ...times.map(timeSql),
    ].join(' AND '),
  );
  return `SELECT m.session::text, ${columns}, (m.odd IS NOT NULL)::integer ${from} ORDER BY m.session, m.seq, m.n, a.seq, a.n`;
}

function timeSql({ isNegated, test }: Term): string {
  if (test.type !== 'compares') throw new Error(`no time: ${test.type}`);
  return `${isNegated ? 'NOT ' : ''}f.at ${test.operator} ${Number(test.value)}`;
}

type Row = { call: CountedCall; isOdd: boolean };

async function* eachSessionsRows(
  chunks: AsyncIterable<Value[][]>,
): AsyncGenerator<[key: string, rows: Row[]]> {
  let at: string | null = null;
  let rows: Row[] = [];
  for await (const chunk of chunks)
    for (const values of chunk) {
      const key = String(values[0]);
      if (key !== at) {
        if (at !== null) yield [at, rows];
        at = key;
        rows = [];
      }
      rows.push(rowOf(values));
    }
  if (at !== null) yield [at, rows];
}

function rowOf(values: readonly Value[]): Row {
  const call: Partial<Record<keyof CountedCall, Value>> = {};
  for (let i = 0; i < CALL_FIELDS.length; i += 1)
    call[CALL_FIELDS[i] as keyof CountedCall] = values[i + 1] ?? null;
  return { call: call as CountedCall, isOdd: values[CALL_FIELDS.length + 1] === 1 };
}

/** Null: it takes the frames. */
function countOf(rows: readonly Row[]): Count | null {
  if (rows.some(({ isOdd }) => isOdd)) return null;
  let isKnown = true;
  const unknown = () => {
    isKnown = false;
    return undefined;
  };
  const look: CallLookups = {
    atOf: unknown,
    nextRound: unknown,
    verdictOf() {
      unknown();
      return 'open';
    },
  };
  const count = figuresOfCalls(
    rows.map(({ call }) => call),
    look,
  );
  return isKnown ? count : null;
}
