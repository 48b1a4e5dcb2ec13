/** `record <url>` as a real process. */
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import Database from 'better-sqlite3';
import { type Run, tapedeck, until } from './tapedeck.ts';

export type HttpRun = Run & { port: number; db: string };

/** Settles when it listens. */
export async function recordUrl(
  db: string,
  upstream: string,
  options: readonly string[] = [],
): Promise<HttpRun> {
  const run = tapedeck(['record', `${upstream}/mcp`, '--listen', '127.0.0.1:0', '--db', db, ...options]);
  await until('it listens', () => run.stderr().includes('listening on '));
  const [, port] = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(run.stderr()) ?? [];
  return { ...run, port: Number(port), db };
}

export async function stop(run: HttpRun): Promise<{ code: number | null; stderr: string }> {
  run.child.kill('SIGTERM');
  const { code, stderr } = await run.ended;
  return { code, stderr };
}

/** Sends a request, and gives the answer's head once it is there. */
export function send(
  port: number,
  body: string | Buffer,
  options: RequestOptions = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path: '/mcp', method: 'POST', ...options }, resolve);
    sent.setHeader('Content-Type', 'application/json');
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Reads the store by SQL; nothing where there is none yet. */
export function rowsOf<T>(db: string, sql: string): T[] {
  let store: Database.Database | undefined;
  try {
    store = new Database(db, { readonly: true });
    return store.prepare<[], T>(sql).all();
  } catch {
    return [];
  } finally {
    store?.close();
  }
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
