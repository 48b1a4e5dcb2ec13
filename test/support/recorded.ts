/** What recorders of the library have stored, without what no two recordings have alike. */
import { query } from './http-record.ts';

export type FrameRow = { channel: string; text: string; flags: string | null; size: number };

type Exchange = {
  method: string;
  path: string;
  status: number | null;
  closedBy: string;
  error: string | null;
  informations: number[];
  requestHeaders: [string, string][];
  responseHeaders: [string, string][];
  requestBytes: number;
  responseBytes: number;
  frames: FrameRow[];
};

/** In order, of all sessions or of the one with this name. Their bytes as Latin-1. */
export function framesOf(db: string, name: string | null = null): FrameRow[] {
  return frames(db, 'WHERE @name IS NULL OR name = @name', { name });
}

function frames(db: string, where: string, values: object): FrameRow[] {
  return query<Omit<FrameRow, 'text'> & { payload: Buffer }>(
    db,
    `SELECT channel, payload, flags, frame.size FROM frame JOIN session ON session.number = frame.session
     ${where} ORDER BY session, seq`,
    values,
  ).map(({ payload, ...row }) => ({ ...row, text: withoutKeys(payload.toString('latin1')) }));
}

type SessionRow = Record<string, unknown> & { number: number; name: string; ended_at: number | null };

export function sessionsOf(db: string): SessionRow[] {
  return query<SessionRow>(db, 'SELECT * FROM session ORDER BY number');
}

/** Sorted, as those that pass at one time have no order of their own. */
export function exchangesOf(db: string): Exchange[] {
  type Row = Record<string, string> & { session: number; number: number };
  const rows = query<Row>(db, 'SELECT * FROM http_exchange');
  const all = rows.map((row) => ({
    ...{ method: row['method'], path: row['path'], status: row['status'] },
    ...{ closedBy: row['closed_by'], error: row['error'] },
    informations: JSON.parse(row['informations'] ?? '[]').map((one: { status: number }) => one.status),
    ...{ requestHeaders: heads(row['request_headers']), responseHeaders: heads(row['response_headers']) },
    ...{ requestBytes: row['request_bytes'], responseBytes: row['response_bytes'] },
    frames: frames(db, 'WHERE frame.session = @session AND frame.http = @number', row),
  })) as unknown as Exchange[];
  return all.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function heads(json: string | undefined): [string, string][] {
  const list = JSON.parse(withoutKeys(json ?? '[]'));
  return Array.isArray(list[0])
    ? list
    : list.flatMap((name: string, i: number) => (i % 2 ? [] : [[name, list[i + 1]]]));
}

/** Each store makes placeholders with a key of its own. */
function withoutKeys(text: string): string {
  return text.replaceAll(/(\[redacted:[a-z0-9-]+:|\bmasked-)[0-9a-f]{12}/g, '$1…');
}
