/**
 * Sessions that are being redacted after the fact. That takes many short transactions, and the table `masking` says how far
 * it has come: a process that is killed on the way leaves a sound store, and the next one goes on.
 */
import { PLAIN_PROFILE, type RedactionProfile } from '../../protocol/redact/profile.ts';
import type { Store } from '../file/open.ts';
import type { KeyLines } from '../write/redaction.ts';
import { raiseRevision } from '../write/revision.ts';

export type OpenRedaction = {
  session: number;
  /** The public id of the session. */
  id: string;
  profile: RedactionProfile;
  /** The `seq` up to which frames are redacted. */
  upTo: number;
  /** The state of the redaction of lines at that place. */
  keyLines: KeyLines;
};

type Row = { session: number; id: string; profile: string; upTo: number; keyLines: string };

export function beginRedaction(store: Store, session: number, profile: RedactionProfile): void {
  const { without, rules, paths } = profile;
  const begin = store.transaction(() => {
    store.prepare('UPDATE upkeep SET scraps = 1').run();
    store
      .prepare("INSERT INTO masking (session, profile, seq, key_lines) VALUES (?, ?, 0, '[]')")
      .run(session, JSON.stringify({ without, rules, paths }));
    raiseRevision(store, session);
  });
  begin.immediate();
}

/** To be called in the transaction that changes the frames. */
export function prepareRedactionStep(
  store: Store,
  session: number,
): (upTo: number, keyLines: KeyLines) => void {
  const set = store.prepare('UPDATE masking SET seq = ?, key_lines = ? WHERE session = ?');
  return (upTo, keyLines) => void set.run(upTo, JSON.stringify([...keyLines]), session);
}

export function endRedaction(store: Store, session: number): void {
  const end = store.transaction(() => {
    store.prepare('DELETE FROM masking WHERE session = ?').run(session);
    // What was replaced is packed anew when its time comes.
    store.prepare('DELETE FROM packing WHERE session = ?').run(session);
  });
  end.immediate();
}

/** Those that are at work, and those that were killed. */
export function openRedactions(store: Store): OpenRedaction[] {
  return store
    .prepare<[], Row>(
      `SELECT m.session, s.id, m.profile, m.seq AS upTo, m.key_lines AS keyLines
       FROM masking AS m JOIN session AS s ON s.number = m.session`,
    )
    .all()
    .map(({ profile, keyLines, ...row }) => ({
      ...row,
      profile: { ...PLAIN_PROFILE, ...JSON.parse(profile) },
      keyLines: new Map(JSON.parse(keyLines)),
    }));
}
