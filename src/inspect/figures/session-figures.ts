/** The figures of a session, from its messages. */
import type { Place } from '../../protocol/message/correlate.ts';
import type { Store } from '../../store/file/open.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { type CallVerdict, prepareFates } from '../verdict/fate.ts';
import { type CallRecord, figuresOf, type SessionFigures } from './call-figures.ts';
import { type Costs, createClock, noCosts, type Wait, weighLists } from './costs.ts';

/**
 * What of a call its figures are made of, as SQL: of its message `m` with its frame `f`, of the answer `a` with its frame `g`. SQLite and
 * PostgreSQL read it alike.
 */
const CALL_COLUMNS: Readonly<Record<keyof CountedCall, (tables: CallTables) => string>> = {
  kind: () => 'm.kind',
  method: () => 'm.canonical',
  target: () => `CASE WHEN m.canonical IN ('tools/call', 'prompts/get') THEN m.target END`,
  isClients: () => `CASE WHEN f.channel IN ('stdin', 'request') THEN 1 ELSE 0 END`,
  n: () => 'm.n',
  size: () => 'f.size',
  at: () => 'f.at',
  from: () => 'm.seq',
  latency: () => 'a.latency',
  outcome: () => `CASE WHEN m.outcome = 'fault' THEN 'fault' ELSE coalesce(a.outcome, m.outcome) END`,
  answer: () => 'a.seq',
  answerN: () => 'a.n',
  answerSize: () => 'g.size',
  cancelled: ({ message, isSame }) => `CASE WHEN a.seq IS NULL AND m.kind = 'request' THEN
    (SELECT min(x.seq) FROM ${message} AS x
      WHERE ${isSame('x', 'm')} AND x.to_seq = m.seq AND x.to_n = m.n AND x.relation = 'cancel') END`,
};

/** In the order of the columns of `callsSql`. */
export const CALL_FIELDS = Object.keys(CALL_COLUMNS) as readonly (keyof CountedCall)[];

/** Where calls are: the names of two tables, and the condition under which rows of them are of one session. */
export type CallTables = {
  message: string;
  frame: string;
  isSame: (alias: string, other: string) => string;
};

/** The calls and notifications for which a condition on `m` and `f` holds, as the rest of a SELECT after its columns. */
export function callsSql(tables: CallTables, condition: string): { columns: string; from: string } {
  const { message, frame, isSame } = tables;
  // The answer's place comes from an index; what the frames hold is not read.
  return {
    columns: CALL_FIELDS.map((field) => `${CALL_COLUMNS[field](tables)} AS "${field}"`).join(', '),
    from: `FROM ${message} AS m
      JOIN ${frame} AS f ON ${isSame('f', 'm')} AND f.seq = m.seq
      LEFT JOIN ${message} AS a ON m.kind = 'request' AND ${isSame('a', 'm')} AND a.to_seq = m.seq AND a.to_n = m.n
        AND a.relation = 'reply'
      LEFT JOIN ${frame} AS g ON ${isSame('g', 'a')} AND g.seq = a.seq
      WHERE m.kind IN ('request', 'notification') AND ${condition}`,
  };
}

/** Returns the figures of all calls, or of those whose request is among the selected frames. */
export function prepareFigures(store: Store, only?: FrameSelection): (session: SessionRow) => SessionFigures {
  const among = only === undefined ? '' : `AND m.seq IN (${only.sql})`;
  const tables = {
    ...{ message: 'message', frame: 'frame' },
    isSame: (alias: string, other: string) => `${alias}.session = ${other}.session`,
  };
  const { columns, from } = callsSql(tables, `m.session = @session ${among}`);
  const select = store.prepare<[object], CountedCall>(`SELECT ${columns} ${from} ORDER BY m.seq, m.n`);
  return (session) => {
    const rows = select.iterate({ ...only?.values, session: session.number });
    const { figures, lists } = figuresOfCalls(rows, prepareLookups(store, session));
    weighLists(figures.costs, store, session.number, lists);
    return figures;
  };
}

/** What the calls themselves do not say. */
export type CallLookups = {
  /** What became of a call that its client has no answer to. */
  verdictOf(call: Pick<CountedCall, 'from' | 'n' | 'outcome'>): CallVerdict;
  /** When a frame passed, in microseconds since the Unix epoch. */
  atOf(seq: number): number | undefined;
  /** The same of the next round of a call, for which somebody gave input. */
  nextRound(call: Place): number | undefined;
};

/**
 * The figures of calls that come in the order of their requests, but for what lists of tools weigh: these are in the answers whose places
 * are `lists`.
 */
export function figuresOfCalls(
  rows: Iterable<CountedCall>,
  look: CallLookups,
): { figures: SessionFigures; lists: Place[] } {
  const costs = createCosts(look);
  const figures = figuresOf(callsOf(rows, costs.take));
  return { figures: { ...figures, costs: costs.end() }, lists: costs.lists };
}

/** A call or a notification. Times are in microseconds, sizes in bytes. */
export type CountedCall = {
  kind: CallRecord['kind'];
  method: string;
  target: string | null;
  isClients: 0 | 1;
  n: number;
  size: number;
  at: number;
  from: number;
  latency: number | null;
  outcome: CallRecord['outcome'];
  answer: number | null;
  answerN: number | null;
  answerSize: number | null;
  cancelled: number | null;
};

function* callsOf(rows: Iterable<CountedCall>, take: (row: CountedCall) => void): Generator<CallRecord> {
  for (const row of rows) {
    take(row);
    const { kind, method, target, from, latency, outcome, answer, cancelled } = row;
    // A batch counts once, for its first message.
    const answerBytes = row.answerN === 0 ? (row.answerSize ?? 0) : 0;
    // Field by field: copying the rest of a row takes a fifth of the time of all.
    yield {
      kind,
      method,
      target,
      from,
      latency,
      answerBytes,
      askedBy: row.isClients === 1 ? 'client' : 'server',
      outcome: outcome ?? (cancelled === null ? null : 'cancelled'),
      until: answer ?? cancelled ?? (outcome === null ? null : from),
      bytes: (row.n === 0 ? row.size : 0) + answerBytes,
    };
  }
}

/** What a person is asked for, or may have to approve. */
const ASKS_PERSON = new Set(['elicitation/create', 'sampling/createMessage']);

function prepareLookups(store: Store, session: SessionRow): CallLookups {
  const fateOf = prepareFates(store, session);
  const atOf = store
    .prepare<[number, number], number>('SELECT at FROM frame WHERE session = ? AND seq = ?')
    .pluck();
  const nextRound = store
    .prepare<[number, number, number], number>(
      `SELECT f.at FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
       WHERE m.session = ? AND m.to_seq = ? AND m.to_n = ? AND m.relation = 'round' ORDER BY m.seq LIMIT 1`,
    )
    .pluck();
  return {
    verdictOf({ from, n, outcome }) {
      const row = { seq: from, n, outcome, kind: 'request', method: null, relation: null } as const;
      return fateOf(row)?.verdict ?? 'open';
    },
    atOf: (seq) => atOf.get(session.number, seq),
    nextRound: ({ seq, n }) => nextRound.get(session.number, seq, n),
  };
}

/** Takes the requests of a session in their order. `lists`: the answers that list tools. */
function createCosts({ verdictOf, atOf, nextRound }: CallLookups): {
  take(row: CountedCall): void;
  end(): Costs;
  lists: Place[];
} {
  const costs = noCosts();
  const clock = createClock();
  const lists: Place[] = [];

  function waitsOf({ method, isClients, at, from, n, latency, outcome, cancelled }: CountedCall): Wait[] {
    // A stream that stays open keeps nobody waiting; how long somebody waited for what never came is not known.
    const until = latency !== null ? at + latency : cancelled === null ? undefined : atOf(cancelled);
    if (until === undefined || method === 'subscriptions/listen') return [];
    if (isClients === 0) return ASKS_PERSON.has(method) ? [{ who: 'person', from: at, until }] : [];
    const next = outcome === 'input-required' ? nextRound({ seq: from, n }) : undefined;
    const round: Wait[] = next === undefined ? [] : [{ who: 'person', from: until, until: next }];
    return [{ who: 'server', from: at, until }, ...round];
  }

  return {
    take(row) {
      if (row.kind !== 'request' || row.outcome === 'fault') return;
      clock.add(waitsOf(row));
      if (row.isClients === 0) return;
      const { method, answer, answerN, outcome } = row;
      if (answer === null || outcome === 'cancelled') {
        const verdict = verdictOf(row);
        if (verdict !== 'open' && verdict !== 'refused')
          costs.lost.set(verdict, (costs.lost.get(verdict) ?? 0) + 1);
      }
      if (method === 'tools/list' && answer !== null) lists.push({ seq: answer, n: answerN ?? 0 });
    },
    end() {
      costs.times = clock.end();
      return costs;
    },
    lists,
  };
}
