/** Rebuilds the index of messages from the frames, which are the truth: after a better parser, or a doubt. */
import { createConversation } from '../protocol/conversation.ts';
import type { Store } from './open.ts';
import { prepareNextFrame, type SessionRow } from './reader.ts';
import { FACT_COLUMNS, factValues, prepareMessageInsert } from './session-writer.ts';

/** Rebuilds one session's index in one transaction. Returns how many messages it holds now. */
export function reindexSession(store: Store, session: SessionRow): number {
  let count = 0;
  const next = prepareNextFrame(store, session.number);
  const insert = prepareMessageInsert(store, session.number);
  const update = store.prepare(`UPDATE session SET ${FACT_COLUMNS} WHERE number = ?`);
  store
    .transaction(() => {
      store.prepare('DELETE FROM message WHERE session = ?').run(session.number);
      const conversation = createConversation();
      for (let frame = next(0); frame !== undefined; frame = next(frame.seq)) {
        for (const indexed of conversation.add(frame, frame.seq)) {
          insert(indexed);
          count += 1;
        }
      }
      update.run(...factValues(conversation.facts()), session.number);
    })
    .immediate();
  return count;
}
