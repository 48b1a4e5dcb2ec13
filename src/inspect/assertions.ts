/**
 * Assertions on a session, in the filter language: what must pass in it, what must not, and which bounds must hold. What breaks
 * one is told once a call: its answer, progress and cancellation are not told again behind its request.
 */

import { TapedeckError } from '../errors.ts';
import { type Channel, directionOf } from '../protocol/wire/frame.ts';
import type { Store } from '../store/file/open.ts';
import type { SessionRow } from '../store/read/sessions.ts';
import type { Side } from './check/rules.ts';
import { filterField, OPERATORS_OF } from './filter/fields.ts';
import { type Filter, parseFilter, type Term } from './filter/filter.ts';
import { joinSql, prepareSessionTest, selectFrames } from './filter/sql.ts';
import { formatDuration, formatSize } from './view/text.ts';

/** Also the names of the options, of the members in a configuration file and in the test kit. */
export const ASSERTION_KINDS = ['expect', 'forbid', 'max'] as const;

export type AssertionKind = (typeof ASSERTION_KINDS)[number];

/** `filter` as it was written. `frames`: for `expect` what some frame must be, for the others what none may be. */
export type Assertion = { kind: AssertionKind; filter: string; frames: Filter };

export const ASSERTION_TEXTS: Readonly<Record<AssertionKind, string>> = {
  expect: 'Some frame is as it is expected.',
  forbid: 'No frame is as it is forbidden.',
  max: 'No frame goes beyond a bound.',
};

/** One frame that breaks an assertion, or for `expect` the whole session, without a place. `seen` is not escaped. */
export type Breach = {
  assertion: Assertion;
  seq: number | null;
  http: number | null;
  side: Side | null;
  expected: string;
  seen: string;
};

/** All that breaks one assertion in one session: how often, and the first of it. */
export type BrokenAssertion = { assertion: Assertion; count: number; first: Breach[] };

/** `now`: as for `parseFilter`. Throws `TapedeckError` `usage` with the option, and what is wrong with its filter. */
export function readAssertions(
  texts: Readonly<Record<AssertionKind, readonly string[]>>,
  now: number,
): Assertion[] {
  return ASSERTION_KINDS.flatMap((kind) =>
    texts[kind].map((filter) => ({ kind, filter, frames: readFrames(kind, filter, now) })),
  );
}

const EXAMPLES: Readonly<Record<AssertionKind, string>> = {
  expect: 'tool=search',
  forbid: 'tool=delete',
  max: 'tool=search dur<2s',
};

function readFrames(kind: AssertionKind, text: string, now: number): Filter {
  const fail = (what: string) => {
    throw new TapedeckError('usage', `\`${kind}\`: ${what}`);
  };
  if (text.trim() === '') return fail(`expected a filter, got none. Example: '${EXAMPLES[kind]}'`);
  const filter = parsed(text, now, fail);
  if (kind !== 'max') return filter;
  return (
    beyond(filter) ??
    fail(`expected a bound with < or <=, such as '${EXAMPLES.max}', got one without in '${text}'.`)
  );
}

function parsed(text: string, now: number, fail: (what: string) => never): Filter {
  try {
    return parseFilter(text, now);
  } catch (error) {
    return fail(`${(error as Error).message}`);
  }
}

/** What is in the scope of a bound and beyond it; null where there is no bound. A frame without the value is not beyond. */
function beyond(filter: Filter): Filter | null {
  const parts = conjuncts(filter);
  const bounds = parts.flatMap((part) => flipped(part) ?? []);
  if (bounds.length === 0) return null;
  const scope = parts.filter((part) => flipped(part) === null);
  return { type: 'and', parts: [...scope, { type: 'or', parts: bounds }] };
}

function conjuncts(filter: Filter): readonly Filter[] {
  return filter.type === 'and' ? filter.parts.flatMap(conjuncts) : [filter];
}

/** What a bound leaves out; null for what is none. `until` is a time, which also compares by `<`. */
function flipped(part: Filter): Term | null {
  if (part.type !== 'term' || part.test.type !== 'compares') return null;
  const { operator } = part.test;
  if ((operator !== '<' && operator !== '<=') || !OPERATORS_OF[filterField(part.field).type].includes('<'))
    return null;
  return { ...part, test: { ...part.test, operator: operator === '<' ? '>=' : '>' } };
}

/** Whether the session is one that an assertion is about: a filter may name its server, its client, its label. */
export function isAbout(store: Store, session: SessionRow, { frames }: Assertion): boolean {
  return prepareSessionTest(store, frames).candidates.includes(session.number);
}

/** What breaks the assertion in this session, in its order. `within`: only these frames count. */
export function* eachBreach(
  store: Store,
  session: SessionRow,
  assertion: Assertion,
  within: Filter | undefined,
): Generator<Breach> {
  const { kind, filter, frames } = assertion;
  const parts = within === undefined ? [frames] : [within, frames];
  const { sql, values } = selectFrames(store, { type: 'and', parts });
  const bound = { ...values, session: session.number };
  if (kind === 'expect') {
    if (store.prepare<[object]>(`${sql} LIMIT 1`).get(bound) !== undefined) return;
    const seen = session.frames === 1 ? 'none in 1 frame' : `none in ${session.frames} frames`;
    yield { assertion, seq: null, http: null, side: null, expected: `a frame with ${filter}`, seen };
    return;
  }
  const expected = kind === 'max' ? filter : `no frame with ${filter}`;
  for (const row of store.prepare<[object], BreachRow>(breachSql(sql)).iterate(bound)) {
    const { seq, http, channel } = row;
    const side = directionOf(channel) === 'client-to-server' ? 'client' : 'server';
    yield { assertion, seq, http, side, expected, seen: seenOf(row) };
  }
}

type BreachRow = {
  seq: number;
  channel: Channel;
  size: number;
  http: number | null;
  kind: string | null;
  method: string | null;
  target: string | null;
  latency: number | null;
  status: string | null;
};

/** The chosen frames, each with its first message, without those that only belong to the call of another chosen one. */
function breachSql(chosen: string): string {
  const status = filterField('status').sql((expression) => expression);
  return `WITH chosen AS MATERIALIZED (SELECT DISTINCT seq FROM (${chosen}))
    SELECT f.seq, f.channel, f.size, f.http, m.kind, coalesce(m.canonical, m.method, c.canonical, c.method) AS method,
      coalesce(m.target, c.target) AS target, a.latency, ${status} AS status
    FROM chosen JOIN frame AS f ON f.session = @session AND f.seq = chosen.seq
      ${joinSql(new Set(['message', 'call', 'answer']))}
    WHERE (m.seq IS NULL OR m.n = 0) AND (m.seq IS NULL OR EXISTS (
      SELECT 1 FROM message AS x WHERE x.session = f.session AND x.seq = f.seq
        AND (x.to_seq IS NULL OR x.relation = 'round' OR x.to_seq NOT IN (SELECT seq FROM chosen))))
    ORDER BY f.seq`;
}

/** `result of tools/call search, ok after 12 ms, 300 B` */
function seenOf({ channel, size, kind, method, target, latency, status }: BreachRow): string {
  const called = [method ?? '', target ?? ''].join(' ').trim();
  const isAnswer = kind === 'result' || kind === 'error';
  const named = called === '' ? `${kind ?? 'no'} message on ${channel}` : called;
  const what = isAnswer && called !== '' ? `${kind} of ${called}` : named;
  const time = latency === null ? '' : ` after ${formatDuration(latency / 1000)}`;
  return [what, ...(status === null ? [] : [`${status}${time}`]), formatSize(size)].join(', ');
}

/** Counts what breaks each assertion as it comes, and keeps so much of it; those that hold are left out. */
export function createBreachCounts(most: number): { add(breach: Breach): void; all(): BrokenAssertion[] } {
  const broken = new Map<Assertion, BrokenAssertion>();
  return {
    add(breach) {
      const known = broken.get(breach.assertion) ?? { assertion: breach.assertion, count: 0, first: [] };
      known.count += 1;
      if (known.first.length < most) known.first.push(breach);
      broken.set(breach.assertion, known);
    },
    all: () => [...broken.values()],
  };
}

export function countBreaches(breaches: Iterable<Breach>, most: number): BrokenAssertion[] {
  const counts = createBreachCounts(most);
  for (const breach of breaches) counts.add(breach);
  return counts.all();
}

/** `#12`, as `show` numbers frames. */
export function breachPlace({ seq }: Breach): string {
  return seq === null ? 'session' : `#${seq}`;
}

/** One line of `check --json`: the shape of a finding, with the filter besides. */
export function breachJson(recording: string, sessionId: string, breach: Breach) {
  const { assertion, side, seq, http, expected, seen } = breach;
  return {
    ...{ recording, session: sessionId, rule: assertion.kind, filter: assertion.filter },
    ...{ severity: 'error', side, seq, n: seq === null ? null : 0, http, expected, seen, url: null },
  };
}
