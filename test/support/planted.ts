/** Sessions with words planted into every table, and the search for them in the bytes of all files of a store. */
import { readdirSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { expect } from 'vitest';
import type { Store } from '../../src/store/file/open.ts';

/** Ended at these times (in microseconds); open ones have null. The word of session n is `PLANT<n>END`. */
export function plantSessions(store: Store, ends: readonly (number | null)[], rounds: number): number[] {
  store.pragma('foreign_keys = OFF');
  const insert = store.prepare(
    `INSERT INTO session (id, name, basis, transport, target, command, started_at, ended_at, end_reason, host, pid,
       tapedeck, frames, indexed, bytes)
     VALUES (?, ?, 'stdio-process', 'stdio', ?, ?, ?, ?, ?, ?, ?, '0', ?, ?, ?)`,
  );
  const numbers = ends.map((end, i) => {
    const word = wordOf(i);
    const ended = [end, end === null ? null : 'client-closed', hostname(), end === null ? process.pid : 1];
    const counts = [rounds, rounds, rounds * 700];
    const row = insert.run(word, word, word, word, (end ?? 2e15) - 1e6, ...ended, ...counts);
    return Number(row.lastInsertRowid);
  });
  const plant = preparePlanting(store);
  for (let seq = 1; seq <= rounds; seq += 1) plant(numbers, seq);
  return numbers;
}

/** Each round goes through all sessions, as recorders that write at once do; pages then hold rows of many. */
function preparePlanting(store: Store): (numbers: readonly number[], seq: number) => void {
  const statements = [
    "INSERT INTO frame (session, seq, at, channel, size, payload) VALUES (@session, @seq, @at, 'stdin', @size, @blob)",
    "INSERT INTO message (session, seq, n, kind, id, method, target) VALUES (@session, @seq, 0, 'request', @word, @word, @text)",
    'INSERT INTO sse_event (session, seq, event, id) VALUES (@session, @seq, @word, @text)',
    'INSERT INTO frame_redaction (session, seq, rules) VALUES (@session, @seq, @word)',
    'INSERT INTO frame_edit (session, seq, original) VALUES (@session, @seq, @blob)',
    "INSERT INTO unfinished (session, channel, part, at, bytes) VALUES (@session, 'stdin', @seq, 1, @blob)",
    'DELETE FROM unfinished WHERE session = @session AND part % 2 = 0',
    `INSERT OR REPLACE INTO http_exchange (session, number, method, path, version, client, request_headers,
       request_bytes, response_bytes, at) VALUES (@session, @seq / 2, 'POST', @text, '1.1', @word, @text, 1, 1, 1)`,
    'INSERT OR REPLACE INTO label (session, key, value) VALUES (@session, @word, @text)',
    'UPDATE session SET server_name = @text WHERE number = @session',
  ].map((sql) => store.prepare(sql));
  return store.transaction((numbers: readonly number[], seq: number) => {
    for (const [i, session] of numbers.entries()) {
      const word = wordOf(i);
      const times = 1 + ((seq * 7919 + i * 104_729) % (seq % 29 === 0 ? 3000 : 60));
      const text = word.repeat(1 + (times % 40));
      const blob = Buffer.from(word.repeat(times));
      const at = 1e15 + seq;
      for (const statement of statements) {
        const named = { session, seq, at, word, text, blob, size: blob.length };
        statement.run(named);
      }
    }
  });
}

export function wordOf(i: number): string {
  return `PLANT${i}END`;
}

/** How often any of these words stands in any file of the store: the database, its WAL, what else lies beside it. */
export function countInFiles(db: string, words: readonly string[]): number {
  const names = readdirSync(dirname(db)).filter((name) => name.startsWith(basename(db)));
  expect(names).toContain(basename(db));
  const texts = names.map((name) => readFileSync(join(dirname(db), name), 'latin1'));
  return texts.flatMap((text) => words.map((word) => text.split(word).length - 1)).reduce((a, b) => a + b);
}
