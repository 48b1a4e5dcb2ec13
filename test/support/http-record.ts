import { existsSync } from 'node:fs';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { connect } from 'node:net';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import { type InProcessRun, startInProcess } from './in-process.ts';
import { type Run, tapedeck, tapedeckInProcess, tempStore, until } from './tapedeck.ts';

export type Recording = {
  db: string;
  /** What a client is to be pointed at. */
  url: URL;
  /** Ends it as its user would, and expects that it ends well. */
  stop(): Promise<void>;
  rows<T = Row>(sql: string, ...values: unknown[]): T[];
};

export type Row = Record<string, unknown>;

type Options = { args?: readonly string[]; env?: Record<string, string>; db?: string };

/** Settles once clients can connect. */
export function recordUrl(upstream: string | URL, options: Options = {}): Promise<Recording & { run: Run }> {
  const { args = [], env = {}, db = tempStore() } = options;
  return opened(tapedeck(recordArgs(upstream, db, args), { env }), db);
}

/** The same in this process: for tests of what is done with the recording, not of the proxy. */
export function recordUrlInProcess(
  upstream: string | URL,
  { args = [], db = tempStore() }: Omit<Options, 'env'> = {},
): Promise<Recording & { run: InProcessRun }> {
  return opened(startInProcess(recordArgs(upstream, db, args)), db);
}

async function opened<R extends Run | InProcessRun>(run: R, db: string): Promise<Recording & { run: R }> {
  await until(`it listens: ${run.stderr()}`, () => LISTENING.test(run.stderr()));
  const [, url = ''] = LISTENING.exec(run.stderr()) ?? [];
  return {
    run,
    db,
    url: new URL(url),
    async stop() {
      run.child.kill('SIGTERM');
      const { code, signal, stderr } = await run.ended;
      expect({ code, signal }, stderr).toEqual({ code: 0, signal: null });
    },
    rows: (sql, ...values) => query(db, sql, ...values),
  };
}

export function recordArgs(upstream: string | URL, db: string, args: readonly string[] = []): string[] {
  return ['record', String(upstream), '--listen', '127.0.0.1:0', '--db', db, ...args];
}

/** As text, or in a line of JSON. */
const LISTENING = /(?:^tapedeck: |"message":")listening on (\S+) for /m;

/** Nothing where there is no store yet. */
export function query<T = Row>(db: string, sql: string, ...values: unknown[]): T[] {
  if (!existsSync(db)) return [];
  const store = new Database(db, { readonly: true });
  try {
    if (store.pragma('user_version', { simple: true }) === 0) return [];
    return store.prepare<unknown[], T>(sql).all(...values);
  } finally {
    store.close();
  }
}

/** What must hold of every recording without trouble: all of it is there, whole, read, and nothing is wrong with it. */
export function expectWhole({ rows }: Recording): void {
  const lost = 'dropped > 0 OR dropped_bytes > 0 OR truncated > 0 OR indexed < frames OR ended_at IS NULL';
  expect(rows(`SELECT * FROM session WHERE ${lost} OR end_reason IS NULL`)).toEqual([]);
  expect(rows('SELECT * FROM unfinished')).toEqual([]);
  expect(rows('SELECT * FROM message WHERE problem IS NOT NULL')).toEqual([]);
  expect(rows('SELECT * FROM frame WHERE http IS NULL')).toEqual([]);
  const holes = ['request_ended_at', 'ended_at', 'closed_by'].map((column) => `${column} IS NULL`);
  const unanswered =
    "closed_by = 'server' AND (status IS NULL OR response_headers IS NULL OR error IS NOT NULL)";
  const disorder = 'at > request_ended_at OR at > response_at OR response_at > ended_at';
  expect(rows(`SELECT * FROM http_exchange WHERE ${[...holes, unanswered, disorder].join(' OR ')}`)).toEqual(
    [],
  );
  // No content coding is in use between these clients and servers, so each byte of a body is one of a frame.
  const bytesOf = (channels: string) =>
    `(SELECT coalesce(sum(size), 0) FROM frame
      WHERE frame.session = one.session AND frame.http = one.number AND channel IN (${channels}))`;
  expect(
    rows(`SELECT method, path, status, request_bytes, response_bytes FROM http_exchange AS one
      WHERE request_bytes <> ${bytesOf("'request'")} OR response_bytes <> ${bytesOf("'response', 'sse'")}`),
  ).toEqual([]);
}

/** What was indexed while it passed is what an index made later, of the store alone, says. */
export async function expectSameReindexed({ db, rows }: Recording): Promise<void> {
  const index = () => [
    rows('SELECT * FROM message'),
    rows('SELECT * FROM exchange'),
    rows('SELECT * FROM session'),
  ];
  const before = index();
  for (const { id } of rows<{ id: string }>('SELECT id FROM session')) {
    expect(await tapedeckInProcess(['reindex', id, '--db', db])).toMatchObject({ code: 0 });
  }
  expect(index()).toEqual(before);
}

/** The sessions, without what is different in every run. */
export function sessionsOf({ rows }: Recording): Row[] {
  return rows(`SELECT basis, transport, era, protocol_version AS version, client_name AS client,
    server_name AS server, end_reason AS ended, errors, unanswered FROM session ORDER BY number`);
}

/** `tools/call echo ok`, … in the order asked; of what the server asked with `←` before it. */
export function exchangesOf({ rows }: Recording, session = 1): string[] {
  return rows<string[]>(
    `SELECT exchange.* FROM exchange JOIN session ON session.id = exchange.session
     WHERE session.number = ? ORDER BY request_seq`,
    session,
  ).map((row) => {
    const { asked_by, method, target, outcome, latency_ms } = row as unknown as Row;
    if (outcome === 'ok') expect(latency_ms, String(method)).toBeGreaterThan(0);
    return [
      ...(asked_by === 'server' ? ['←'] : []),
      method,
      ...(target === null ? [] : [target]),
      outcome,
    ].join(' ');
  });
}

/** `POST /mcp 200`, … in the order in which they began. */
export function requestsOf({ rows }: Recording, session = 1): string[] {
  return rows(
    'SELECT method, path, status FROM http_exchange WHERE session = ? ORDER BY number',
    session,
  ).map(({ method, path, status }) => `${method} ${path} ${status}`);
}

/** Settles once nobody can connect any more: the first signal was heard. */
export async function refusesConnections({ url }: Recording): Promise<void> {
  await until('no new connection', () => {
    const socket = connect(Number(url.port), url.hostname);
    return new Promise((resolve) => {
      socket.once('connect', () => resolve(false)).once('error', () => resolve(true));
    }).then((isRefused) => {
      socket.destroy();
      return isRefused === true;
    });
  });
}

/** The payload of a frame, or of a body that was not whole, joined. */
export function payloadIn(db: string, where: string): Buffer {
  const store = new Database(db, { readonly: true });
  try {
    const first = store
      .prepare<[], { session: number; seq: number; payload: Buffer }>(`SELECT * FROM frame WHERE ${where}`)
      .get();
    if (first === undefined) throw new Error(`no frame where ${where}`);
    const rest = store
      .prepare<[number, number], Buffer>(
        'SELECT bytes FROM frame_part WHERE session = ? AND seq = ? ORDER BY part',
      )
      .pluck()
      .all(first.session, first.seq);
    return Buffer.concat([first.payload, ...rest]);
  } finally {
    store.close();
  }
}

/** Posts JSON, and settles with the head of the answer. */
export function postTo(
  url: URL,
  body: string | Buffer,
  options: RequestOptions = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', ...options }, resolve);
    sent.setHeader('Content-Type', 'application/json');
    sent.on('error', reject);
    sent.end(body);
  });
}
