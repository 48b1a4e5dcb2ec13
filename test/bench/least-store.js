// What the plainest recorder writes: rows go into SQLite as they come. It looks at nothing, masks nothing, and keeps no
// index but the ones by which a row is found. With `reads` it looks at each payload as quickly as can be: it parses it, and
// searches it for a few signs of secrets.
import Database from 'better-sqlite3';

const SIGNS = /bearer|token|secret|passw|api.?key|eyJ|sk-|ghp_|-----BEGIN|AKIA/i;

/**
 * What it gives stores some batches in one transaction.
 * @returns {(batches: object[]) => void}
 */
export function openLeastStore(file, reads) {
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.pragma('journal_size_limit = 8388608');
  db.exec(`
    CREATE TABLE frame (rowid INTEGER PRIMARY KEY, session INTEGER, seq INTEGER, at INTEGER, channel TEXT, size INTEGER,
      http INTEGER, payload BLOB);
    CREATE UNIQUE INDEX frame_place ON frame (session, seq);
    CREATE TABLE http_exchange (rowid INTEGER PRIMARY KEY, session INTEGER, number INTEGER, method TEXT, path TEXT,
      request_headers TEXT, status INTEGER, response_headers TEXT, at INTEGER, response_at INTEGER, ended_at INTEGER);
    CREATE UNIQUE INDEX http_exchange_place ON http_exchange (session, number)`);
  const insertFrame = db.prepare(
    'INSERT INTO frame (session, seq, at, channel, size, http, payload) VALUES (1, ?, ?, ?, ?, ?, ?)',
  );
  const insertExchange = db.prepare(
    `INSERT INTO http_exchange (session, number, method, path, request_headers, status, response_headers, at, response_at,
       ended_at) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const rests = new Map();
  let seq = 0;

  const commit = db.transaction((batches) => {
    for (const { chunks, pieces, exchanges } of batches) {
      for (const { channel, at, bytes } of chunks ?? []) addLines(channel, at, Buffer.from(bytes));
      for (const { number, at, bytes } of pieces ?? []) addFrame('sse', at, number, Buffer.from(bytes));
      for (const one of exchanges ?? []) addExchange(one);
    }
  });

  function addLines(channel, at, bytes) {
    const rest = rests.get(channel);
    const all = rest === undefined ? bytes : Buffer.concat([rest, bytes]);
    let from = 0;
    for (let end = all.indexOf(10); end >= 0; end = all.indexOf(10, from)) {
      addFrame(channel, at, null, all.subarray(from, end));
      from = end + 1;
    }
    rests.set(channel, all.subarray(from));
  }

  function addExchange({
    number,
    method,
    path,
    headers,
    status,
    answerHeaders,
    at,
    answeredAt,
    endedAt,
    asked,
    got,
  }) {
    insertExchange.run(number, method, path, headers, status, answerHeaders, at, answeredAt, endedAt);
    addFrame('request', at, number, Buffer.concat(asked));
    addFrame('response', answeredAt, number, Buffer.concat(got));
  }

  /** Nothing is done with what it sees. */
  function look(payload) {
    const text = payload.toString();
    JSON.parse(text);
    SIGNS.test(text);
  }

  function addFrame(channel, at, http, payload) {
    // Of a stream there are pieces, which may begin and end anywhere, and no body.
    if (reads && channel !== 'sse' && payload.length > 0) look(payload);
    seq += 1;
    insertFrame.run(seq, at, channel, payload.length, http, payload);
  }

  return commit;
}
