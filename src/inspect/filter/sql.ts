/**
 * A filter as SQL about the frames of one session, every value a bound parameter. `~` calls functions that are
 * added to the store's connection.
 */

import type { PieceTest, TextTest } from '../../protocol/text-test.ts';
import { partSql, payloadLengthSql, payloadSql, unpacked } from '../../store/file/codec.ts';
import type { Store } from '../../store/file/open.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import { eachSession, type SessionRow } from '../../store/read/sessions.ts';
import { type Field, filterField, type Join } from './fields.ts';
import { type Filter, isAboutSessions, sessionPart, type Term, type Test } from './filter.ts';

type Values = Record<string, string | number>;

/** In the order in which they must stand. */
const JOINS: readonly [join: Join, sql: string][] = [
  ['session', 'JOIN session AS s ON s.number = f.session'],
  ['http', 'LEFT JOIN http_exchange AS h ON h.session = f.session AND h.number = f.http'],
  ['message', 'LEFT JOIN message AS m ON m.session = f.session AND m.seq = f.seq'],
  [
    'call',
    `LEFT JOIN message AS c ON c.session = m.session
       AND c.seq = iif(m.kind = 'request' OR m.to_seq IS NULL OR m.relation = 'round', m.seq, m.to_seq)
       AND c.n = iif(m.kind = 'request' OR m.to_seq IS NULL OR m.relation = 'round', m.n, m.to_n)`,
  ],
  [
    'answer',
    `LEFT JOIN message AS a ON a.session = c.session AND a.to_seq = c.seq AND a.to_n = c.n AND a.relation = 'reply'`,
  ],
];

/** The frames of a session for which a filter holds. The selection works on this connection only. */
export function selectFrames(store: Store, filter: Filter): FrameSelection {
  const { sql, values } = compile(store, filter, (field) => field.sql);
  const joined = joinSql(joinsOf(filter));
  const among = (frames: string) =>
    `SELECT f.seq FROM ${frames} AS f ${joined} WHERE f.session = @session AND ${sql}`;
  return {
    sql: among('frame'),
    values,
    hasUnfinished({ number: session }, { channel, at, size, payload, http }) {
      const row = { session, channel, at, size, payload, http: http?.exchange ?? null };
      return store.prepare<[object]>(among(UNFINISHED)).get({ ...values, ...row }) !== undefined;
    },
  };
}

/** What is joined to `frame AS f`: its `message AS m`, the `call AS c` that it belongs to, the `answer AS a` of that. */
export function joinSql(joins: ReadonlySet<Join>): string {
  return JOINS.filter(([join]) => joins.has(join))
    .map(([, text]) => text)
    .join(' ');
}

/** A frame that has not ended, as a row of `frame`. It has no messages yet, and no number that one could have. */
const UNFINISHED = `(SELECT @session AS session, NULL AS seq, @channel AS channel, @at AS at, @size AS size,
  @payload AS payload, NULL AS codec, NULL AS unpacked, @http AS http)`;

/** A condition on `session AS s`, true for every session that has a frame for which the filter holds. */
function selectSessions(store: Store, filter: Filter): { sql: string; values: Values } {
  return compile(store, sessionPart(filter), ({ bound, sql }) =>
    bound === undefined ? sql : (test) => test(bound),
  );
}

function joinsOf(filter: Filter): Set<Join> {
  if (filter.type === 'term') return new Set(filterField(filter.field).joins);
  const parts = filter.type === 'not' ? [filter.part] : filter.parts;
  return new Set(parts.flatMap((part) => [...joinsOf(part)]));
}

function compile(
  store: Store,
  filter: Filter,
  sourceOf: (field: Field) => Field['sql'],
): { sql: string; values: Values } {
  const values: Values = {};
  const bind = (value: string | number) => {
    const name = `value${Object.keys(values).length}`;
    values[name] = value;
    return `@${name}`;
  };
  const add = (test: TextTest) => addTest(store, test);

  function sqlOf(part: Filter): string {
    if (part.type === 'term') return part.isNegated ? `NOT ${termSql(part)}` : termSql(part);
    if (part.type === 'not') return `NOT ${sqlOf(part.part)}`;
    if (part.parts.length === 0) return part.type === 'and' ? '1' : '0';
    // Payloads are read last, where all else has not decided.
    const cheapFirst = part.parts.toSorted((one, other) => costOf(one) - costOf(other));
    return `(${cheapFirst.map(sqlOf).join(part.type === 'and' ? ' AND ' : ' OR ')})`;
  }

  function termSql({ field: name, test }: Term): string {
    const field = filterField(name);
    const ask = testSql(field, test, bind, add);
    const sql = sourceOf(field)(ask);
    return field.takesBeginning === true && test.type === 'equals'
      ? `(${sql} OR instr(s.id, ${bind(test.value)}) = 1)`
      : `(${sql})`;
  }

  return { sql: sqlOf(filter), values };
}

function costOf(filter: Filter): number {
  if (filter.type === 'term') return filterField(filter.field).type === 'payload' ? 1 : 0;
  return Math.max(0, ...(filter.type === 'not' ? [filter.part] : filter.parts).map(costOf));
}

/** SQL that is never NULL, so that NOT inverts it. */
function testSql(
  field: Field,
  test: Test,
  bind: (value: string | number) => string,
  add: (test: TextTest) => number,
): (expression: string) => string {
  if (test.type === 'equals') {
    const value = bind(test.value);
    return (expression) => `(${expression}) IS ${value}`;
  }
  if (test.type === 'compares') {
    const value = bind(test.value);
    return (expression) => `ifnull((${expression}) ${test.operator} ${value}, 0)`;
  }
  const number = add(test.text);
  if (field.type !== 'payload') return (expression) => `tapedeck_has_${number}(${expression})`;
  return () => `CASE WHEN ${payloadLengthSql('f.')} = f.size THEN tapedeck_payload_has_${number}(f.codec, f.payload, f.unpacked) ELSE
    (SELECT tapedeck_pieces_have_${number}(piece.bytes) FROM (SELECT 0 AS part, ${payloadSql('f.')} AS bytes UNION ALL
      SELECT p.part, ${partSql('p.')} FROM frame_part AS p WHERE p.session = f.session AND p.seq = f.seq ORDER BY 1) AS piece) END`;
}

/** How many tests each connection has functions for. */
const countByStore = new WeakMap<Store, number>();

/** Adds the functions `tapedeck_has_N`, `tapedeck_payload_has_N` and `tapedeck_pieces_have_N` to the connection; returns N. */
function addTest(store: Store, test: TextTest): number {
  const number = countByStore.get(store) ?? 0;
  countByStore.set(store, number + 1);
  store.function(`tapedeck_has_${number}`, { deterministic: true }, (value: unknown) => {
    if (value === null) return 0;
    return test.has(Buffer.isBuffer(value) ? value : String(value)) ? 1 : 0;
  });
  // Unpacked here and not in SQL, which would copy the bytes twice more.
  const payloadHas = (codec: unknown, payload: unknown, size: unknown) =>
    test.has(codec === null ? (payload as Buffer) : unpacked(codec, payload, size)) ? 1 : 0;
  store.function(`tapedeck_payload_has_${number}`, { deterministic: true }, payloadHas);
  store.aggregate(`tapedeck_pieces_have_${number}`, {
    start: () => test.begin(),
    step: (state: PieceTest, piece: unknown) => state.feed(piece as Buffer),
    result: (state: PieceTest) => (state.hasIt() ? 1 : 0),
  });
  return number;
}

/** Sessions for which a filter holds. */

/** Those with a frame for which the filter holds, the newest first; a filter about sessions alone needs no frame. */
export function* eachSessionWith(store: Store, filter: Filter): Generator<SessionRow> {
  const hasFrame = isAboutSessions(filter) ? () => true : prepareFrameSearch(store, filter);
  for (const session of eachCandidate(store, filter)) if (hasFrame(session)) yield session;
}

/** Those whose frames must be looked at, the newest first. */
export function* eachCandidate(store: Store, filter: Filter): Generator<SessionRow> {
  const candidates = new Set(candidateNumbers(store, filter));
  for (const session of eachSession(store)) if (candidates.has(session.number)) yield session;
}

/**
 * The same for whoever does other work in between: the numbers of those whose frames must be looked at, and whether the filter
 * holds for one of them.
 */
export function prepareSessionTest(
  store: Store,
  filter: Filter,
): { candidates: number[]; holds: (session: { number: number }) => boolean } {
  const holds = isAboutSessions(filter) ? () => true : prepareFrameSearch(store, filter);
  return { candidates: candidateNumbers(store, filter), holds };
}

function candidateNumbers(store: Store, filter: Filter): number[] {
  const { sql, values } = selectSessions(store, filter);
  return store
    .prepare<[object], number>(`SELECT s.number FROM session AS s WHERE ${sql}`)
    .pluck()
    .all(values);
}

function prepareFrameSearch(store: Store, filter: Filter): (session: { number: number }) => boolean {
  const { sql, values } = selectFrames(store, filter);
  const any = store.prepare<[object], number>(`${sql} LIMIT 1`);
  return ({ number }) => any.get({ ...values, session: number }) !== undefined;
}
