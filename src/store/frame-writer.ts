/** Rows of `frame`: the hottest statements of the project, so many rows go into one. */
import type { Frame } from '../protocol/frame.ts';
import { flagsOf } from './frame-flags.ts';
import type { Store } from './open.ts';

/** Measured: 1.5 µs a row one by one, 0.8 µs in statements of 32. */
const ROWS_AT_ONCE = 32;
/** Larger payloads are stored in parts, so that no copy of a whole large frame is ever made inside SQLite. */
export const PART_BYTES = 1024 * 1024;

/** Returns a function that inserts frames, the first of them as number `firstSeq`; call it inside a transaction. */
export function prepareFrameInsert(
  store: Store,
  session: number,
): (frames: readonly Frame[], firstSeq: number) => void {
  const row = `(${session}, ?, ?, ?, ?, ?, ?)`;
  const sql = 'INSERT INTO frame (session, seq, at, channel, size, flags, payload) VALUES ';
  const insertOne = store.prepare(sql + row);
  const insertMany = store.prepare(sql + Array(ROWS_AT_ONCE).fill(row).join(', '));
  const insertPart = store.prepare(
    `INSERT INTO frame_part (session, seq, part, bytes) VALUES (${session}, ?, ?, ?)`,
  );
  const insertRedaction = prepareRedactionInsert(store);
  let values: unknown[] = [];

  function addRow(frame: Frame, seq: number): void {
    const { payload } = frame;
    const isLarge = payload.length > PART_BYTES;
    values.push(seq, frame.at, frame.channel, frame.size, flagsOf(frame));
    values.push(isLarge ? payload.subarray(0, PART_BYTES) : payload);
    if (frame.redacted !== undefined) insertRedaction(session, seq, frame.redacted);
    for (let part = 1; part * PART_BYTES < payload.length; part += 1) {
      insertPart.run(seq, part, payload.subarray(part * PART_BYTES, (part + 1) * PART_BYTES));
    }
  }

  return (frames, firstSeq) => {
    const many = frames.length - (frames.length % ROWS_AT_ONCE);
    for (const [i, frame] of frames.entries()) {
      addRow(frame, firstSeq + i);
      if (i < many && (i + 1) % ROWS_AT_ONCE !== 0) continue;
      (i < many ? insertMany : insertOne).run(...values);
      values = [];
    }
  };
}

/** Returns a function that keeps which rules replaced something in a frame. */
export function prepareRedactionInsert(
  store: Store,
): (session: number, seq: number, rules: readonly string[]) => void {
  const insert = store.prepare('INSERT INTO frame_redaction (session, seq, rules) VALUES (?, ?, ?)');
  return (session, seq, rules) => void insert.run(session, seq, rules.join(' '));
}
