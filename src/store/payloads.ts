/**
 * The payloads of a session's frames by number, for who needs few of them at a time and mostly one after another: where
 * frames are asked for in their order, small ones that follow are read with them. Memory is bounded: nothing large is kept.
 */
import type { Channel } from '../protocol/frame.ts';
import { PART_BYTES } from './frame-writer.ts';
import type { Store } from './open.ts';

export type Payload = { channel: Channel; payload: Buffer };

/** Lists with a space between, and the payloads in the same order, one after another. Null where there is no frame. */
type Together = [seqs: string, channels: string, lengths: string, bytes: Buffer] | [null, null, null, null];

const MOST_AHEAD = 64;
/** An answer mostly follows its request. */
const LEAST_AHEAD = 2;
/** Larger ones are read when they are asked for. */
const MAX_BYTES_AHEAD = 16 * 1024;
const MAX_KEPT = 256;
const NOTHING: Together = [null, null, null, null];

/** Gives undefined for a frame that there is not. */
export function preparePayloads(store: Store, session: number): (seq: number) => Payload | undefined {
  // In one value, as to hand over a row costs more than all else. As text they are joined byte for byte, whatever they are.
  const selectSmall = store
    .prepare<[number, number, number], Together>(
      `SELECT group_concat(seq, ' '), group_concat(channel, ' '), group_concat(length(payload), ' '),
         CAST(group_concat(payload, '') AS BLOB)
       FROM frame WHERE session = ? AND seq >= ? AND seq < ? AND size <= ${MAX_BYTES_AHEAD}`,
    )
    .raw();
  const select = store.prepare<[number, number], Payload>(
    'SELECT channel, payload FROM frame WHERE session = ? AND seq = ?',
  );
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
    keep(selectSmall.get(session, from, next) ?? NOTHING);
    return kept.get(from) ?? readAlone(from);
  }

  function keep([seqs, channels, lengths, bytes]: Together): void {
    if (seqs === null) return;
    const channelOf = channels.split(' ') as Channel[];
    const lengthOf = lengths.split(' ');
    let at = 0;
    for (const [i, seq] of seqs.split(' ').entries()) {
      const end = at + Number(lengthOf[i]);
      kept.set(Number(seq), { channel: channelOf[i] as Channel, payload: bytes.subarray(at, end) });
      at = end;
    }
  }

  /** Joins a large payload, which is stored in parts. */
  function readAlone(seq: number): Payload | undefined {
    const frame = select.get(session, seq);
    const rest = frame?.payload.length === PART_BYTES ? parts.all(session, seq) : [];
    if (frame === undefined || rest.length === 0) return frame;
    return { channel: frame.channel, payload: Buffer.concat([frame.payload, ...rest]) };
  }

  return (seq) => kept.get(seq) ?? read(seq);
}
