/**
 * From chunks to frames: one line splitter per channel, one numbering per session. Frames wait here until the writer
 * has them safely, so a store that is busy or full loses nothing by itself.
 */
import { CHANNELS, type Chunk, type Frame, type StdioChannel } from '../protocol/frame.ts';
import { createLineSplitter, type LineSplitter } from '../protocol/lines.ts';
import { type FirstSign, HeldBack } from './held-back.ts';

/** Bytes of a line that has not ended yet. `part` counts from 0 within the line. */
export type Held = { channel: StdioChannel; part: number; at: number; bytes: Buffer };

/** What was forwarded but could not be kept: `frames` lines, `bytes` bytes. */
export type Loss = { frames: number; bytes: number };

/** Chunks of one channel that were dropped on their way here. */
export type StdioGap = { channel: StdioChannel; loss: Loss; endsInsideLine: boolean };

export type Ingest = {
  feed(chunk: Chunk): void;
  gap(gap: StdioGap): void;
  end(): void;
  /** Frames not confirmed yet, the oldest first. */
  frames(): readonly Frame[];
  /** Changes those frames that it has not changed before. */
  change(change: (frame: Frame) => Frame): void;
  /** The number in the session of the first of them; the others follow it. */
  firstSeq(): number;
  /** Says that all these frames are stored, or given up. */
  confirm(): void;
  /** The bytes of unfinished lines that were not confirmed yet. */
  held(): Held[];
  confirmHeld(held: readonly Held[]): void;
  loss(): Loss;
};

type Lane = { splitter: LineSplitter; at: number; heldSaved: number; heldBack: HeldBack | null };

/** `firstSign`: where what is not whole could give a secret away; null: it may all be stored. */
export function createIngest(maxFrameBytes: number, firstSign: FirstSign | null = null): Ingest {
  const lost: Loss = { frames: 0, bytes: 0 };
  let frames: Frame[] = [];
  let firstSeq = 1;
  let changed = 0;

  const lanes: Record<StdioChannel, Lane> = {
    stdin: createLane('stdin'),
    stdout: createLane('stdout'),
    stderr: createLane('stderr'),
  };

  function createLane(channel: StdioChannel): Lane {
    const splitter = createLineSplitter({
      channel,
      maxBytes: maxFrameBytes,
      onSkip(bytes) {
        lost.bytes += bytes;
      },
      onFrame(frame) {
        lanes[channel].heldSaved = 0;
        lanes[channel].heldBack = null;
        frames.push(frame);
      },
    });
    return { splitter, at: 0, heldSaved: 0, heldBack: null };
  }

  function releasable(channel: StdioChannel, fragments: readonly Buffer[]): readonly Buffer[] {
    if (firstSign === null) return fragments;
    lanes[channel].heldBack ??= new HeldBack(firstSign, false);
    return lanes[channel].heldBack.released(fragments);
  }

  function held(): Held[] {
    return CHANNELS.flatMap((channel) => {
      const { splitter, heldSaved, at } = lanes[channel];
      const fresh = releasable(channel, splitter.held()).slice(heldSaved);
      return fresh.map((bytes, i) => ({ channel, part: heldSaved + i, at, bytes }));
    });
  }

  return {
    feed({ channel, at, bytes }) {
      lanes[channel].at = at;
      lanes[channel].splitter.feed(bytes, at);
    },
    gap({ channel, loss: { frames, bytes }, endsInsideLine }) {
      const isFirstCounted = lanes[channel].splitter.gap(endsInsideLine);
      lost.frames += isFirstCounted ? frames - 1 : frames;
      lost.bytes += bytes;
    },
    end() {
      for (const channel of CHANNELS) lanes[channel].splitter.end();
    },
    frames: () => frames,
    change(change) {
      for (; changed < frames.length; changed += 1) frames[changed] = change(frames[changed] as Frame);
    },
    firstSeq: () => firstSeq,
    confirm() {
      firstSeq += frames.length;
      frames = [];
      changed = 0;
    },
    held,
    confirmHeld(saved) {
      for (const { channel, part } of saved) lanes[channel].heldSaved = part + 1;
    },
    loss: () => lost,
  };
}
