/** HTTP sessions into the store: their rows, frames, HTTP exchanges. All methods run inside the caller's transaction. */
import type { Frame } from '../protocol/frame.ts';
import type { Redactor } from '../protocol/redact.ts';
import { readSse } from '../protocol/sse.ts';
import { flagsOf } from './frame-flags.ts';
import { PART_BYTES, prepareRedactionInsert } from './frame-writer.ts';
import type { HttpExchange } from './http-exchange.ts';
import type { HttpHeld } from './http-held.ts';
import type { LiveSession } from './live-session.ts';
import type { Store } from './open.ts';

export type HttpWriter = {
  /** `session` is the number of its row. */
  write(session: number, live: LiveSession): void;
  hold(session: number, held: HttpHeld): void;
};

/** Measured for stdio: half the time a row. */
const ROWS_AT_ONCE = 32;
/** What goes into `sse_event`; larger events say nothing more there. */
const SSE_FIELDS_WITHIN_BYTES = 1024 * 1024;

/** `redactor`: for the heads; null: they are stored as they are. */
export function createHttpWriter(store: Store, redactor: Redactor | null): HttpWriter {
  const row = '(?, ?, ?, ?, ?, ?, ?, ?, ?)';
  const sql = 'INSERT INTO frame (session, seq, at, channel, size, flags, payload, http, sha256) VALUES ';
  const insertFrame = store.prepare(sql + row);
  const insertFrames = store.prepare(sql + Array(ROWS_AT_ONCE).fill(row).join(', '));
  const insertPart = store.prepare('INSERT INTO frame_part (session, seq, part, bytes) VALUES (?, ?, ?, ?)');
  const insertEvent = store.prepare(
    'INSERT INTO sse_event (session, seq, event, id, retry) VALUES (?, ?, ?, ?, ?)',
  );
  const insertRedaction = prepareRedactionInsert(store);
  const insertEdit = store.prepare('INSERT INTO frame_edit (session, seq, original) VALUES (?, ?, ?)');
  const insertHeld = store.prepare(
    'INSERT INTO unfinished (session, channel, part, at, bytes, http) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const forgetHeld = store.prepare('DELETE FROM unfinished WHERE session = ? AND channel = ? AND http = ?');
  const putExchange = store.prepare(
    `INSERT OR REPLACE INTO http_exchange (session, number, method, path, version, client, request_headers,
       request_trailers, request_bytes, informations, status, status_text, response_headers, response_trailers,
       response_bytes, at, request_ended_at, response_at, ended_at, ended_after, closed_by, error, edits)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const putSession = store.prepare(
    `UPDATE session SET frames = frames + ?, bytes = bytes + ?, truncated = truncated + ?, dropped = ?,
       dropped_bytes = ?, basis = ?, transport = ?, ended_at = ?, end_reason = ? WHERE number = ?`,
  );

  function write(session: number, live: LiveSession): void {
    const frames = live.frames();
    writeFrames(session, frames, live.firstSeq());
    for (const { channel, http } of live.finished()) forgetHeld.run(session, channel, http?.exchange);
    for (const exchange of live.changed()) writeExchange(session, exchange);
    const bytes = frames.reduce((sum, { size }) => sum + size, 0);
    const truncated = frames.filter((frame) => frame.truncated).length;
    const { basis, transport, end } = live.row;
    const { loss } = live;
    const ended = [end?.at ?? null, end?.reason ?? null];
    putSession.run(
      frames.length,
      bytes,
      truncated,
      loss.frames,
      loss.bytes,
      basis,
      transport,
      ...ended,
      session,
    );
  }

  function writeFrames(session: number, frames: readonly Frame[], firstSeq: number): void {
    const many = frames.length - (frames.length % ROWS_AT_ONCE);
    let values: unknown[] = [];
    for (const [i, frame] of frames.entries()) {
      const { payload, at, channel, size, http } = frame;
      const first = payload.length > PART_BYTES ? payload.subarray(0, PART_BYTES) : payload;
      values.push(session, firstSeq + i, at, channel, size, flagsOf(frame), first);
      values.push(http?.exchange ?? null, http?.sha256 ?? null);
      writeBeside(session, firstSeq + i, frame);
      if (i < many && (i + 1) % ROWS_AT_ONCE !== 0) continue;
      (i < many ? insertFrames : insertFrame).run(...values);
      values = [];
    }
  }

  /** What of a frame has a table of its own. */
  function writeBeside(session: number, seq: number, { payload, channel, http, redacted }: Frame): void {
    for (let part = 1; part * PART_BYTES < payload.length; part += 1) {
      insertPart.run(session, seq, part, payload.subarray(part * PART_BYTES, (part + 1) * PART_BYTES));
    }
    if (redacted !== undefined) insertRedaction(session, seq, redacted);
    if (http !== null && http.original !== null) insertEdit.run(session, seq, http.original);
    if (channel === 'sse' && payload.length <= SSE_FIELDS_WITHIN_BYTES) {
      const { event, id, retry } = readSse(payload);
      if (event !== null || id !== null || retry !== null) insertEvent.run(session, seq, event, id, retry);
    }
  }

  function writeExchange(session: number, one: HttpExchange): void {
    putExchange.run(
      session,
      one.number,
      one.method,
      redactor?.url(one.path) ?? one.path,
      one.version,
      one.client,
      headersJson(one.requestHeaders),
      trailersJson(one.requestTrailers),
      one.requestBytes,
      informationsJson(one),
      one.status,
      one.statusText && redacted(one.statusText),
      one.responseHeaders && headersJson(one.responseHeaders),
      trailersJson(one.responseTrailers),
      one.responseBytes,
      one.at,
      one.requestEndedAt,
      one.responseAt,
      one.endedAt,
      one.endedAfter,
      one.closedBy,
      one.error && redacted(one.error),
      editsJson(one),
    );
  }

  /** Equal lists of headers are mostly one and the same. */
  const known = new WeakMap<readonly string[], string>();

  function headersJson(rawHeaders: readonly string[]): string {
    const before = known.get(rawHeaders);
    if (before !== undefined) return before;
    const json = maskedJson(rawHeaders);
    known.set(rawHeaders, json);
    return json;
  }

  function redacted(text: string): string {
    return redactor?.text(text) ?? text;
  }

  function maskedHeader(name: string, value: string): string {
    return redactor?.header(name, value) ?? value;
  }

  /** [[name, value], …], in order. */
  function maskedJson(rawHeaders: readonly string[]): string {
    const fields: [string, string][] = [];
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] as string;
      fields.push([name, maskedHeader(name, rawHeaders[i + 1] as string)]);
    }
    return JSON.stringify(fields);
  }

  function trailersJson(rawTrailers: readonly string[]): string | null {
    return rawTrailers.length === 0 ? null : headersJson(rawTrailers);
  }

  function informationsJson({ informations }: HttpExchange): string | null {
    if (informations.length === 0) return null;
    const masked = informations.map(({ at, status, headers }) => ({
      at,
      status,
      headers: JSON.parse(headersJson(headers)),
    }));
    return JSON.stringify(masked);
  }

  function editsJson({ edits }: HttpExchange): string | null {
    if (edits.length === 0) return null;
    const masked = edits.map(({ side, header, original }) => {
      return { side, header, original: maskedHeader(header, original) };
    });
    return JSON.stringify(masked);
  }

  return {
    write,
    hold: (session, { channel, part, at, bytes, exchange }) =>
      void insertHeld.run(session, channel, part, at, bytes, exchange),
  };
}
