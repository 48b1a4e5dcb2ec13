/**
 * Parts of a session, for whoever shows it piece by piece: the beginnings of frames, the bytes of one, rows of an outline. Each
 * statement ends at once, so that the store is free for writing in between.
 */

import { partLengthSql, partSql, payloadLengthSql, payloadSql } from '../file/codec.ts';
import { PART_BYTES } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { type BareFrame, FAULT_COLUMN, type FrameRow, frameOf } from './frames.ts';

/** A frame with the beginning of its payload. `storedBytes`: of the whole. */
export type FrameBeginning = BareFrame & { storedBytes: number };

type Row = FrameRow & { first: number; isEdited: 0 | 1 };

/** Up to `limit` frames after a `seq`, each with at most `maxBytes` of its payload. */
export function prepareBeginnings(
  store: Store,
  session: number,
  { limit, maxBytes }: { limit: number; maxBytes: number },
): (seq: number) => FrameBeginning[] {
  const select = store.prepare<[number, number, number, number], Row>(
    `SELECT seq, at, channel, size, flags, ifnull(substr(${payloadSql()}, 1, ?), x'') AS payload, ${payloadLengthSql()} AS first, http AS exchange, sha256,
       (SELECT rules FROM frame_redaction AS r WHERE r.session = frame.session AND r.seq = frame.seq) AS rules,
       ${FAULT_COLUMN},
       EXISTS (SELECT 1 FROM frame_edit AS e WHERE e.session = frame.session AND e.seq = frame.seq) AS isEdited
     FROM frame WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?`,
  );
  const restOf = store
    .prepare<[number, number], number>(
      `SELECT ifnull(sum(${partLengthSql()}), 0) FROM frame_part WHERE session = ? AND seq = ?`,
    )
    .pluck();
  return (after) =>
    select.all(maxBytes, session, after, limit).map(({ first, isEdited, ...row }) => {
      const rest = first === PART_BYTES ? (restOf.get(session, row.seq) ?? 0) : 0;
      return { ...frameOf(row, isEdited === 1), storedBytes: first + rest };
    });
}

/** Bytes that are read piece by piece. */
export type StoredBytes = {
  size: number;
  /** Up to a MiB from this place on, none of it behind the end. */
  from(at: number): Buffer;
};

/** The payload of a frame; undefined where there is no such frame. */
export function payloadBytes(store: Store, session: number, seq: number): StoredBytes | undefined {
  const first = store
    .prepare<[number, number], number>(
      `SELECT ${payloadLengthSql()} FROM frame WHERE session = ? AND seq = ?`,
    )
    .pluck()
    .get(session, seq);
  if (first === undefined) return undefined;
  const rest = store
    .prepare<[number, number], number>(
      `SELECT ifnull(sum(${partLengthSql()}), 0) FROM frame_part WHERE session = ? AND seq = ?`,
    )
    .pluck()
    .get(session, seq);
  const head = store
    .prepare<[number, number], Buffer>(`SELECT ${payloadSql()} FROM frame WHERE session = ? AND seq = ?`)
    .pluck();
  const part = store
    .prepare<[number, number, number], Buffer>(
      `SELECT ${partSql()} FROM frame_part WHERE session = ? AND seq = ? AND part = ?`,
    )
    .pluck();
  return {
    size: first + (rest ?? 0),
    from(at) {
      const number = Math.floor(at / PART_BYTES);
      const bytes = number === 0 ? head.get(session, seq) : part.get(session, seq, number);
      return bytes?.subarray(at - number * PART_BYTES) ?? Buffer.alloc(0);
    },
  };
}

/** What the sender had sent in place of an edited frame; undefined where it was not edited. */
export function originalBytes(store: Store, session: number, seq: number): StoredBytes | undefined {
  const length = store
    .prepare<[number, number], number>(
      'SELECT length(original) FROM frame_edit WHERE session = ? AND seq = ?',
    )
    .pluck()
    .get(session, seq);
  if (length === undefined) return undefined;
  const piece = store
    .prepare<[number, number, number, number], Buffer>(
      'SELECT substr(original, ?, ?) FROM frame_edit WHERE session = ? AND seq = ?',
    )
    .pluck();
  return { size: length, from: (at) => piece.get(at + 1, PART_BYTES, session, seq) ?? Buffer.alloc(0) };
}

/** The last frame of a session and when it passed; null where it has none. */
export function lastFrame(store: Store, session: number): { seq: number; at: number } | null {
  const last = store.prepare<[number], { seq: number; at: number }>(
    'SELECT seq, at FROM frame WHERE session = ? ORDER BY seq DESC LIMIT 1',
  );
  return last.get(session) ?? null;
}

/** The frames of one HTTP exchange among those after one up to another, that one too. There is no index: it reads all of these. */
export function prepareFramesOfExchange(
  store: Store,
  session: number,
  exchange: number,
): (after: number, upTo: number) => number[] {
  const select = store
    .prepare<[number, number, number, number], number>(
      'SELECT seq FROM frame WHERE session = ? AND seq > ? AND seq <= ? AND http = ? ORDER BY seq',
    )
    .pluck();
  return (after, upTo) => select.all(session, after, upTo, exchange);
}
