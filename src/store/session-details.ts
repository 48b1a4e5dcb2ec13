/** What the row of a session tells besides, for who takes the whole session out of the store. */
import type { Store } from './open.ts';
import type { SessionRedaction } from './redaction.ts';

export type SessionDetails = {
  labels: [key: string, value: string][];
  /** Null for HTTP. */
  command: string[] | null;
  clientClosedAt: number | null;
  serverClosedAt: number | null;
  /** The version that recorded it. */
  tapedeck: string;
  /** Null: nothing was redacted. */
  redaction: SessionRedaction | null;
};

type Columns = Omit<SessionDetails, 'labels' | 'command' | 'redaction'> & {
  command: string | null;
  redaction: string | null;
};

export function sessionDetails(store: Store, session: number): SessionDetails {
  const row = store
    .prepare<[number], Columns>(
      `SELECT command, client_closed_at AS clientClosedAt, server_closed_at AS serverClosedAt, tapedeck,
         redaction
       FROM session WHERE number = ?`,
    )
    .get(session);
  if (row === undefined) throw new RangeError(`the store has no session ${session}`);
  const labels = store
    .prepare<[number], { key: string; value: string }>(
      'SELECT key, value FROM label WHERE session = ? ORDER BY key',
    )
    .all(session);
  return {
    ...row,
    command: row.command === null ? null : (JSON.parse(row.command) as string[]),
    redaction: row.redaction === null ? null : (JSON.parse(row.redaction) as SessionRedaction),
    labels: labels.map(({ key, value }) => [key, value]),
  };
}
