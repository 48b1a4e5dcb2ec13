/**
 * The payloads of a session's frames by number, for who needs few of them at a time and mostly one after another: where
 * frames are asked for in their order, small ones that follow are read with them. Memory is bounded: nothing large is kept.
 */
import type { Channel } from '../protocol/frame.ts';
import { PART_BYTES } from './frame-writer.ts';
import type { Store } from './open.ts';

export type Payload = { channel: Channel; payload: Buffer };

type Row = [seq: number, channel: Channel, size: number, payload: Buffer];

const MOST_AHEAD = 64;
/** An answer mostly follows its request. */
const LEAST_AHEAD = 2;
/** Larger ones are read when they are asked for. */
const MAX_BYTES_AHEAD = 16 * 1024;
const MAX_KEPT = 256;

/** Gives undefined for a frame that there is not. */
export function preparePayloads(store: Store, session: number): (seq: number) => Payload | undefined {
  const select = store
    .prepare<[number, number, number, number], Row>(
      `SELECT seq, channel, size, payload FROM frame
       WHERE session = ? AND seq >= ? AND seq < ? AND (size <= ${MAX_BYTES_AHEAD} OR seq = ?) ORDER BY seq`,
    )
    .raw();
  const parts = store
    .prepare<[number, number], Buffer>(
      'SELECT bytes FROM frame_part WHERE session = ? AND seq = ? ORDER BY part',
    )
    .pluck();
  const kept = new Map<number, Payload>();
  /** What was read last ends before this one. */
  let next = 0;
  let ahead = LEAST_AHEAD;

  function read(from: number): Payload | undefined {
    ahead = from >= next && from < next + LEAST_AHEAD ? Math.min(ahead * 2, MOST_AHEAD) : LEAST_AHEAD;
    next = from + ahead;
    if (kept.size + ahead > MAX_KEPT) kept.clear();
    let asked: Payload | undefined;
    for (const [seq, channel, size, payload] of select.all(session, from, next, from)) {
      const frame = { channel, payload: whole(seq, payload) };
      if (seq === from) asked = frame;
      if (size <= MAX_BYTES_AHEAD) kept.set(seq, frame);
    }
    return asked;
  }

  /** Joins a large payload, which is stored in parts. */
  function whole(seq: number, payload: Buffer): Buffer {
    const rest = payload.length === PART_BYTES ? parts.all(session, seq) : [];
    return rest.length > 0 ? Buffer.concat([payload, ...rest]) : payload;
  }

  return (seq) => kept.get(seq) ?? read(seq);
}
