/** The figures of a session, from its messages. */
import type { Place } from '../../protocol/message/correlate.ts';
import type { Store } from '../../store/file/open.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { prepareFates } from '../verdict/fate.ts';
import { type CallRecord, figuresOf, type SessionFigures } from './call-figures.ts';
import { type Costs, createClock, noCosts, type Wait, weighLists } from './costs.ts';

/** Returns the figures of all calls, or of those whose request is among the selected frames. */
export function prepareFigures(store: Store, only?: FrameSelection): (session: SessionRow) => SessionFigures {
  const among = only === undefined ? '' : `AND m.seq IN (${only.sql})`;
  // The answer's place comes from an index; what the frames hold is not read.
  const select = store.prepare<[object], CallRow>(`
    SELECT m.kind, m.canonical AS method, CASE WHEN m.canonical IN ('tools/call', 'prompts/get') THEN m.target END AS target,
      f.channel IN ('stdin', 'request') AS isClients, m.n, f.size, f.at, m.seq AS "from", a.latency,
      iif(m.outcome = 'fault', 'fault', coalesce(a.outcome, m.outcome)) AS outcome, a.seq AS answer, a.n AS answerN, g.size AS answerSize,
      iif(a.seq IS NULL AND m.kind = 'request', (SELECT min(x.seq) FROM message AS x
        WHERE x.session = m.session AND x.to_seq = m.seq AND x.to_n = m.n AND x.relation = 'cancel'), NULL) AS cancelled
    FROM message AS m
    JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
    LEFT JOIN message AS a ON m.kind = 'request' AND a.session = m.session AND a.to_seq = m.seq AND a.to_n = m.n
      AND a.relation = 'reply'
    LEFT JOIN frame AS g ON g.session = a.session AND g.seq = a.seq
    WHERE m.session = @session AND m.kind IN ('request', 'notification') ${among}
    ORDER BY m.seq, m.n`);
  return (session) => {
    const costs = createCosts(store, session);
    const rows = select.iterate({ ...only?.values, session: session.number });
    const figures = figuresOf(callsOf(rows, costs.take));
    return { ...figures, costs: costs.end() };
  };
}

type CallRow = {
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

function* callsOf(rows: Iterable<CallRow>, take: (row: CallRow) => void): Generator<CallRecord> {
  for (const row of rows) {
    take(row);
    const { isClients, n, size, at: _, answer, answerN, answerSize, cancelled, ...call } = row;
    // A batch counts once, for its first message.
    const answerBytes = answerN === 0 ? (answerSize ?? 0) : 0;
    yield {
      ...call,
      askedBy: isClients === 1 ? 'client' : 'server',
      outcome: call.outcome ?? (cancelled === null ? null : 'cancelled'),
      until: answer ?? cancelled ?? (call.outcome === null ? null : call.from),
      bytes: (n === 0 ? size : 0) + answerBytes,
      answerBytes,
    };
  }
}

/** What a person is asked for, or may have to approve. */
const ASKS_PERSON = new Set(['elicitation/create', 'sampling/createMessage']);

/** Takes the requests of a session in their order. */
function createCosts(store: Store, session: SessionRow): { take(row: CallRow): void; end(): Costs } {
  const costs = noCosts();
  const clock = createClock();
  const lists: Place[] = [];
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
  const { number } = session;

  function waitsOf({ method, isClients, at, from, n, latency, outcome, cancelled }: CallRow): Wait[] {
    // A stream that stays open keeps nobody waiting; how long somebody waited for what never came is not known.
    const until =
      latency !== null ? at + latency : cancelled === null ? undefined : atOf.get(number, cancelled);
    if (until === undefined || method === 'subscriptions/listen') return [];
    if (isClients === 0) return ASKS_PERSON.has(method) ? [{ who: 'person', from: at, until }] : [];
    const next = outcome === 'input-required' ? nextRound.get(number, from, n) : undefined;
    const round: Wait[] = next === undefined ? [] : [{ who: 'person', from: until, until: next }];
    return [{ who: 'server', from: at, until }, ...round];
  }

  function countLost({ from, n, outcome }: CallRow): void {
    const row = { seq: from, n, outcome, kind: 'request', method: null, relation: null } as const;
    const verdict = fateOf(row)?.verdict ?? 'open';
    if (verdict !== 'open' && verdict !== 'refused')
      costs.lost.set(verdict, (costs.lost.get(verdict) ?? 0) + 1);
  }

  return {
    take(row) {
      if (row.kind !== 'request' || row.outcome === 'fault') return;
      clock.add(waitsOf(row));
      if (row.isClients === 0) return;
      const { method, answer, answerN, outcome } = row;
      if (answer === null || outcome === 'cancelled') countLost(row);
      if (method === 'tools/list' && answer !== null) lists.push({ seq: answer, n: answerN ?? 0 });
    },
    end() {
      weighLists(costs, store, number, lists);
      costs.times = clock.end();
      return costs;
    },
  };
}
