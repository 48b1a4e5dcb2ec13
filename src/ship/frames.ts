/** The frames of a slice, with what belongs to each of them: large ones in parts, and never whole in memory. */

import { tableNamed } from '../engine/tables.ts';
import { partSql, payloadSql } from '../store/file/codec.ts';
import { PART_BYTES } from '../store/file/columns.ts';
import type { Store } from '../store/file/open.ts';
import { type Copied, type CopyValue, createRowCopy, type RowCopy, valueColumns } from './copy-rows.ts';
import { type DigestedFrame, digestWith, digestWithWhole } from './digest.ts';
import type { Advance, SessionProgress } from './progress.ts';

/** The rest of a frame that is too large for one slice. */
export type LargePart = { seq: number; part: number; bytes: Buffer };

/** What a slice may hold. It is exceeded by one frame at most. */
export type Budget = { frames: number; bytes: number };

/** A frame with more parts than that has slices of its own. */
const PARTS_AT_ONCE = 4;

/** Beside its payload. */
export const ROW_BYTES = 200;

/** The columns of `frame`, in their order. */
type FrameRow = [...digested: CopyValue[], payload: Buffer];

/** By table. */
export type CopyOf = (table: string) => RowCopy;

/** For rows that come in the order of the columns. */
export function columnListOf(table: string): string {
  return valueColumns(tableNamed(table))
    .map(({ name }) => name)
    .join(', ');
}

type Frames = {
  after: Pick<Advance, 'seq' | 'frames' | 'bytes' | 'digest' | 'part'>;
  parts: LargePart[];
  largeEdits: () => Iterable<Copied>;
  hasMore: boolean;
  weight: number;
};

/** Frames with what belongs to them. `after`: how far the engine is then. */
export function prepareFrameCopies(
  store: Store,
): (progress: SessionProgress, budget: Budget, copyOf: CopyOf) => Frames {
  const select = store
    .prepare<[number, number], FrameRow>(
      `SELECT f.seq, f.at, f.channel, f.size, f.flags, f.http, f.sha256, r.rules, ${payloadSql('f.')} AS payload FROM frame AS f
         LEFT JOIN frame_redaction AS r ON r.session = f.session AND r.seq = f.seq
         WHERE f.session = ? AND f.seq > ? ORDER BY f.seq`,
    )
    .raw();
  const lastPart = store
    .prepare<[number, number], number>(
      'SELECT ifnull(max(part), 0) FROM frame_part WHERE session = ? AND seq = ?',
    )
    .pluck();
  const partsAfter = store.prepare<[number, number, number], LargePart>(
    `SELECT seq, part, ${partSql()} AS bytes FROM frame_part WHERE session = ? AND seq = ? AND part > ? ORDER BY part`,
  );
  const copyDetails = prepareDetails(store);

  function* payloadOf(session: number, seq: number, payload: Buffer): Generator<Buffer> {
    yield payload;
    for (const { bytes } of partsAfter.iterate(session, seq, 0)) yield bytes;
  }

  function digestOf(before: Buffer, session: number, frame: FrameRow, payload: Buffer): Buffer {
    const columns = frame.slice(0, -1);
    if (payload.length < PART_BYTES) return digestWithWhole(before, columns, payload);
    const [seq, at, channel, size, flags, http, sha256, rules] = columns;
    const digested = { seq, at, channel, size, flags, http, sha256, rules } as DigestedFrame;
    return digestWith(before, digested, payloadOf(session, digested.seq, payload));
  }

  /** Some of the parts of a large frame; null: all of them are there, and the frame itself can follow. */
  function someParts(
    { number, part: there }: SessionProgress,
    seq: number,
    last: number,
  ): LargePart[] | null {
    if (there >= last) return null;
    const parts: LargePart[] = [];
    for (const part of partsAfter.iterate(number, seq, there)) {
      parts.push(part);
      if (parts.length === PARTS_AT_ONCE) break;
    }
    return parts;
  }

  return (progress, budget, copyOf) => {
    const { number } = progress;
    let { seq, frames, bytes, digest } = progress;
    let weight = 0;
    let count = 0;
    const result = (hasMore: boolean, parts: LargePart[] = []): Frames => {
      const part = parts.at(-1)?.part ?? 0;
      const largeEdits = seq > progress.seq ? copyDetails(progress, seq, copyOf) : () => [];
      return { after: { seq, frames, bytes, digest, part }, parts, largeEdits, hasMore, weight };
    };
    const copy = copyOf('frame');
    for (const frame of select.iterate(number, seq)) {
      if (count >= budget.frames || weight >= budget.bytes) return result(true);
      const payload = frame[PAYLOAD] as Buffer;
      const next = Number(frame[0]);
      const last = payload.length < PART_BYTES ? 0 : Number(lastPart.get(number, next));
      if (last >= PARTS_AT_ONCE) {
        // It begins a slice: its parts are counted from there.
        if (count > 0) return result(true);
        const parts = someParts(progress, next, last);
        if (parts !== null) return result(true, parts);
      } else if (last > 0) {
        for (const part of partsAfter.iterate(number, next, 0)) {
          copyOf('frame_part').add([part.seq, part.part, part.bytes]);
          weight += part.bytes.length;
        }
      }
      digest = digestOf(digest, number, frame, payload);
      copy.add(frame);
      seq = next;
      frames += 1;
      bytes += Number(frame[SIZE]);
      count += 1;
      weight += payload.length + ROW_BYTES;
    }
    return result(false);
  };
}

const SIZE = 3;

const PAYLOAD = 8;

type Details = (progress: SessionProgress, upTo: number, copyOf: CopyOf) => () => Iterable<Copied>;

/** Rows of tables that have one for some frames. Returns those of the edits that are large. */
function prepareDetails(store: Store): Details {
  const plain = ['frame_fault', 'sse_event'].map((table) => ({
    table,
    select: store
      .prepare<[number, number, number], CopyValue[]>(
        `SELECT ${columnListOf(table)} FROM ${table} WHERE session = ? AND seq > ? AND seq <= ?`,
      )
      .raw(),
  }));
  const edits = store.prepare<[number, number, number], { seq: number; size: number }>(
    'SELECT seq, length(original) AS size FROM frame_edit WHERE session = ? AND seq > ? AND seq <= ?',
  );
  // A part of no bytes is NULL to SQLite.
  const piece = store
    .prepare<[number, number, number, number], Buffer>(
      "SELECT ifnull(substr(original, ?, ?), x'') FROM frame_edit WHERE session = ? AND seq = ?",
    )
    .pluck();
  return ({ number, key, day, seq: after }, upTo, copyOf) => {
    for (const { table, select } of plain)
      for (const row of select.iterate(number, after, upTo)) copyOf(table).add(row);
    const large: { seq: number; size: number }[] = [];
    for (const edit of edits.all(number, after, upTo)) {
      if (edit.size > PART_BYTES) large.push(edit);
      else copyOf('frame_edit').add([edit.seq, 0, piece.get(1, PART_BYTES, number, edit.seq)]);
    }
    return function* largeEdits() {
      const copy = createRowCopy(tableNamed('frame_edit'), key, day);
      for (const { seq, size } of large)
        for (let part = 0; part * PART_BYTES < size; part += 1) {
          const original = piece.get(part * PART_BYTES + 1, PART_BYTES, number, seq);
          // What is gone by now was rewritten: then all of the session is shipped anew.
          if (original === undefined) break;
          copy.add([seq, part, original]);
          yield copy.take();
        }
    };
  };
}
