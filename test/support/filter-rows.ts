/** The rows that a filter is asked of, put together in memory from what the tables hold. */
import type { FilterRow, MessageFacts } from '../../src/inspect/filter/fields.ts';
import type { Store } from '../../src/store/file/open.ts';
import { eachBareFrame } from '../../src/store/read/frames.ts';
import { eachSession, type SessionRow } from '../../src/store/read/sessions.ts';

type Stored = MessageFacts & {
  seq: number;
  n: number;
  relation: string | null;
  toSeq: number | null;
  toN: number | null;
};

/** Every row of a session, with the number of its frame. */
export function rowsOf(store: Store, session: SessionRow): { seq: number; row: FilterRow }[] {
  const messages = store
    .prepare<[number], Stored>(
      `SELECT seq, n, kind, id, method, canonical, target, relation, to_seq AS toSeq, to_n AS toN, latency, outcome,
         error_code AS errorCode, problem FROM message WHERE session = ? ORDER BY seq, n`,
    )
    .all(session.number);
  const at = (seq: number | null, n: number | null) =>
    messages.find((message) => message.seq === seq && message.n === n) ?? null;
  const aboutTo = (call: Stored | null, relation: string) =>
    messages.find(
      (message) =>
        call !== null &&
        message.relation === relation &&
        message.toSeq === call.seq &&
        message.toN === call.n,
    ) ?? null;

  return [...eachBareFrame(store, session.number)].flatMap((frame) => {
    const facts = {
      session: sessionFacts(store, session),
      frame: { ...frame, httpStatus: statusOf(frame.http) },
    };
    const own = messages.filter(({ seq }) => seq === frame.seq);
    const rows = own.map((message): FilterRow => {
      const isOwnCall = message.kind === 'request' || message.toSeq === null || message.relation === 'round';
      const call = isOwnCall ? message : at(message.toSeq, message.toN);
      const [answer, isCancelled] = [aboutTo(call, 'reply'), aboutTo(call, 'cancel') !== null];
      return { ...facts, message, call, answer, isCancelled };
    });
    const bare: FilterRow = { ...facts, message: null, call: null, answer: null, isCancelled: false };
    return (rows.length > 0 ? rows : [bare]).map((row) => ({ seq: frame.seq, row }));
  });

  function statusOf(http: { exchange: number } | null): number | null {
    return (
      store
        .prepare<[number, number | null], number | null>(
          'SELECT status FROM http_exchange WHERE session = ? AND number = ?',
        )
        .pluck()
        .get(session.number, http?.exchange ?? null) ?? null
    );
  }
}

function sessionFacts(store: Store, session: SessionRow): FilterRow['session'] {
  const [latest] = eachSession(store);
  const labels = store.prepare<[number], { key: string; value: string }>(
    'SELECT key, value FROM label WHERE session = ?',
  );
  return {
    ...session,
    labels: labels.all(session.number).map(({ key, value }) => `${key}=${value}`),
    isLatest: session.number === latest?.number,
  };
}
