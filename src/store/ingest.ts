/**
 * From chunks to frames: one line splitter per channel, one numbering per session. Frames wait here until the writer
 * has them safely, so a store that is busy or full loses nothing by itself.
 */
import { CHANNELS, type Channel, type Chunk, type Frame } from '../protocol/frame.ts';
import { createLineSplitter, type LineSplitter } from '../protocol/lines.ts';

/** Bytes of a line that has not ended yet. `part` counts from 0 within the line. */
export type Held = { channel: Channel; part: number; at: number; bytes: Buffer };

/** What was forwarded but could not be kept: `frames` lines, `bytes` bytes. */
export type Loss = { frames: number; bytes: number };

export type Ingest = {
  feed(chunk: Chunk): void;
  gap(channel: Channel, loss: Loss, endsInsideLine: boolean): void;
  end(): void;
  /** Frames not confirmed yet, the oldest first. */
  frames(): readonly Frame[];
  /** The number in the session of the first of them; the others follow it. */
  firstSeq(): number;
  /** Says that all these frames are stored, or given up. */
  confirm(): void;
  /** The bytes of unfinished lines that were not confirmed yet. */
  held(): Held[];
  confirmHeld(held: readonly Held[]): void;
  loss(): Loss;
};

type Lane = { splitter: LineSplitter; at: number; heldSaved: number };

export function createIngest(maxFrameBytes: number): Ingest {
  const lost: Loss = { frames: 0, bytes: 0 };
  let frames: Frame[] = [];
  let firstSeq = 1;

  const lanes: Record<Channel, Lane> = {
    stdin: createLane('stdin'),
    stdout: createLane('stdout'),
    stderr: createLane('stderr'),
  };

  function createLane(channel: Channel): Lane {
    const splitter = createLineSplitter({
      channel,
      maxBytes: maxFrameBytes,
      onSkip(bytes) {
        lost.bytes += bytes;
      },
      onFrame(frame) {
        lanes[channel].heldSaved = 0;
        frames.push(frame);
      },
    });
    return { splitter, at: 0, heldSaved: 0 };
  }

  function held(): Held[] {
    return CHANNELS.flatMap((channel) => {
      const { splitter, heldSaved, at } = lanes[channel];
      const fresh = splitter.held().slice(heldSaved);
      return fresh.map((bytes, i) => ({ channel, part: heldSaved + i, at, bytes }));
    });
  }

  return {
    feed({ channel, at, bytes }) {
      lanes[channel].at = at;
      lanes[channel].splitter.feed(bytes, at);
    },
    gap(channel, { frames, bytes }, endsInsideLine) {
      const isFirstCounted = lanes[channel].splitter.gap(endsInsideLine);
      lost.frames += isFirstCounted ? frames - 1 : frames;
      lost.bytes += bytes;
    },
    end() {
      for (const channel of CHANNELS) lanes[channel].splitter.end();
    },
    frames: () => frames,
    firstSeq: () => firstSeq,
    confirm() {
      firstSeq += frames.length;
      frames = [];
    },
    held,
    confirmHeld(saved) {
      for (const { channel, part } of saved) lanes[channel].heldSaved = part + 1;
    },
    loss: () => lost,
  };
}
