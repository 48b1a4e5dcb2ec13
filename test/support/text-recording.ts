/** Text recordings in and out of stores, without a process. */

import { readNdjson } from '../../src/export/text/read.ts';
import { writeNdjson } from '../../src/export/text/write.ts';
import { openStore, type Store } from '../../src/store/file/open.ts';
import { findSession } from '../../src/store/read/sessions.ts';
import { tempStore } from './tapedeck.ts';

export function exportText(store: Store, session = 'latest'): string {
  return [...writeNdjson(store, findSession(store, session), { onFrame() {} })].join('');
}

export const IMPORTER = { host: 'there', pid: 1, processStarted: null, tapedeck: '9.9.9' };

/** Gives the id of the new session. */
export function importText(
  store: Store,
  text: string | Buffer | AsyncIterable<Buffer>,
  name: string | null = null,
): Promise<string> {
  const { signal } = new AbortController();
  const source = typeof text === 'string' || Buffer.isBuffer(text) ? chunksOf(Buffer.from(text)) : text;
  return readNdjson(store, source, {
    file: 'a.ndjson',
    name,
    importer: IMPORTER,
    redaction: null,
    onFrame() {},
    signal,
  });
}

/** Odd sizes, so that lines are cut at any place. */
async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  const step = 997 + Math.floor(bytes.length / 50);
  for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
}

/** Everything that is stored of a session, but for what names one store, machine or process. */
export function contentOf(store: Store, session = 'latest'): unknown {
  const { number } = findSession(store, session);
  const rows = (sql: string) => store.prepare(sql).all(number);
  return {
    session: rows(
      `SELECT name, basis, transport, target, command, started_at, ended_at, end_reason, exit_code, signal,
         client_closed_at, server_closed_at, tapedeck, era, protocol_version, client_name, client_version, server_name,
         server_version, frames, indexed, bytes, exchanges, errors, unanswered, dropped, dropped_bytes, truncated
       FROM session WHERE number = ?`,
    ),
    labels: rows('SELECT key, value FROM label WHERE session = ? ORDER BY key'),
    frames: rows(
      'SELECT seq, at, channel, size, flags, payload, http, sha256 FROM frame WHERE session = ? ORDER BY seq',
    ),
    parts: rows('SELECT seq, part, bytes FROM frame_part WHERE session = ? ORDER BY seq, part'),
    events: rows('SELECT seq, event, id, retry FROM sse_event WHERE session = ? ORDER BY seq'),
    edits: rows('SELECT seq, original FROM frame_edit WHERE session = ? ORDER BY seq'),
    unfinished: rows(
      `SELECT channel, http, max(at) AS at, group_concat(hex(bytes), '') AS bytes FROM
         (SELECT * FROM unfinished WHERE session = ? ORDER BY channel, http, part)
       GROUP BY channel, http ORDER BY channel, http`,
    ),
    exchanges: rows(
      `SELECT number, method, path, version, client, request_headers, request_trailers, request_bytes, informations,
         status, status_text, response_headers, response_trailers, response_bytes, at, request_ended_at, response_at,
         ended_at, ended_after, closed_by, error, edits
       FROM http_exchange WHERE session = ? ORDER BY number`,
    ),
    messages: rows(
      `SELECT seq, n, kind, id_type, id, method, canonical, target, task, relation, to_seq, to_n, latency, outcome,
         error_code, problem FROM message WHERE session = ? ORDER BY seq, n`,
    ),
  };
}

/** Imports what a session's export says into another store, which must then hold the same and export the same. */
export async function roundTrip(store: Store, session = 'latest'): Promise<{ text: string; copy: Store }> {
  const text = exportText(store, session);
  const copy = openStore(tempStore());
  const id = await importText(copy, text);
  return { text, copy: id === findSession(copy, 'latest').id ? copy : raise(id) };
}

function raise(id: string): never {
  throw new Error(`session ${id} is not the newest`);
}
