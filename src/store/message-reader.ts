/** Reading the messages of a session. */
import { amongSql, type FrameSelection } from './frame-selection.ts';
import type { Store } from './open.ts';
import type { MessageRow } from './reader.ts';

/** With the method and target of what an answer answers. */
const SELECT_MESSAGES = `SELECT m.seq, m.n, m.kind, m.id_type AS idType, m.id, m.method, m.relation, m.to_seq AS toSeq,
    m.to_n AS toN, m.latency, m.outcome, m.problem, asked.canonical AS askedMethod, asked.target AS askedTarget
  FROM message AS m
  LEFT JOIN message AS asked ON asked.session = m.session AND asked.seq = m.to_seq AND asked.n = m.to_n
  WHERE m.session = @session`;

/** The messages of the frames after one up to another, that one too. */
export function prepareMessagesBetween(
  store: Store,
  session: number,
): (after: number, upTo: number) => MessageRow[] {
  const select = store.prepare<[object], MessageRow>(
    `${SELECT_MESSAGES} AND m.seq > @after AND m.seq <= @upTo ORDER BY m.seq, m.n`,
  );
  return (after, upTo) => select.all({ session, after, upTo });
}

/** Walks the messages in step with the frames, or with those of a selection. */
export function createMessageCursor(
  store: Store,
  session: number,
  only?: FrameSelection,
): { take(seq: number): MessageRow[]; close(): void } {
  const sql = `${SELECT_MESSAGES} ${amongSql('m.seq', only)} ORDER BY m.seq, m.n`;
  const rows = store.prepare<[object], MessageRow>(sql).iterate({ ...only?.values, session });
  let next = rows.next();
  return {
    take(seq) {
      const taken: MessageRow[] = [];
      while (!next.done && next.value.seq <= seq) {
        if (next.value.seq === seq) taken.push(next.value);
        next = rows.next();
      }
      return taken;
    },
    close: () => void rows.return?.(),
  };
}
