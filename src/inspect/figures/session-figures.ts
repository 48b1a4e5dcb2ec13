/** The figures of a session, from its messages. */
import type { Store } from '../../store/file/open.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { type CallRecord, figuresOf, type SessionFigures } from './call-figures.ts';

/** Returns the figures of all calls, or of those whose request is among the selected frames. */
export function prepareFigures(store: Store, only?: FrameSelection): (session: SessionRow) => SessionFigures {
  const among = only === undefined ? '' : `AND m.seq IN (${only.sql})`;
  // The answer's place comes from an index; what the frames hold is not read.
  const select = store.prepare<[object], CallRow>(`
    SELECT m.kind, m.canonical AS method, CASE WHEN m.canonical IN ('tools/call', 'prompts/get') THEN m.target END AS target,
      f.channel IN ('stdin', 'request') AS isClients, m.n, f.size, m.seq AS "from", a.latency,
      coalesce(a.outcome, m.outcome) AS outcome, a.seq AS answer, a.n AS answerN, g.size AS answerSize,
      iif(a.seq IS NULL AND m.kind = 'request', (SELECT min(x.seq) FROM message AS x
        WHERE x.session = m.session AND x.to_seq = m.seq AND x.to_n = m.n AND x.relation = 'cancel'), NULL) AS cancelled
    FROM message AS m
    JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
    LEFT JOIN message AS a ON m.kind = 'request' AND a.session = m.session AND a.to_seq = m.seq AND a.to_n = m.n
      AND a.relation = 'reply'
    LEFT JOIN frame AS g ON g.session = a.session AND g.seq = a.seq
    WHERE m.session = @session AND m.kind IN ('request', 'notification') ${among}
    ORDER BY m.seq, m.n`);
  return ({ number }) => figuresOf(callsOf(select.iterate({ ...only?.values, session: number })));
}

type CallRow = {
  kind: CallRecord['kind'];
  method: string;
  target: string | null;
  isClients: 0 | 1;
  n: number;
  size: number;
  from: number;
  latency: number | null;
  outcome: CallRecord['outcome'];
  answer: number | null;
  answerN: number | null;
  answerSize: number | null;
  cancelled: number | null;
};

function* callsOf(rows: Iterable<CallRow>): Generator<CallRecord> {
  for (const { isClients, n, size, answer, answerN, answerSize, cancelled, ...row } of rows) {
    // A batch counts once, for its first message.
    const bytes = (n === 0 ? size : 0) + (answerN === 0 ? (answerSize ?? 0) : 0);
    yield {
      ...row,
      askedBy: isClients === 1 ? 'client' : 'server',
      outcome: row.outcome ?? (cancelled === null ? null : 'cancelled'),
      until: answer ?? cancelled ?? (row.outcome === null ? null : row.from),
      bytes,
    };
  }
}
