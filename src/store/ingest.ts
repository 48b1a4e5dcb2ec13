/**
 * From chunks to what is stored: one line splitter per channel, one conversation per session. Pure bookkeeping;
 * the rows wait here until the writer has them safely, so a store that is busy or full loses nothing by itself.
 */
import { createConversation, type Facts, type IndexedMessage } from '../protocol/conversation.ts';
import { CHANNELS, type Channel, type Chunk, type Frame } from '../protocol/frame.ts';
import { createLineSplitter, type LineSplitter } from '../protocol/lines.ts';

/** A frame with its number in the session and the index rows of its messages. */
export type Entry = { seq: number; frame: Frame; messages: IndexedMessage[] };

/** Bytes of a line that has not ended yet. `part` counts from 0 within the line. */
export type Held = { channel: Channel; part: number; at: number; bytes: Uint8Array };

/** What was forwarded but could not be kept: `frames` lines, `bytes` bytes. */
export type Loss = { frames: number; bytes: number };

export type Ingest = {
  feed(chunk: Chunk): void;
  gap(channel: Channel, loss: Loss, endsInsideLine: boolean): void;
  end(): void;
  /** Entries not confirmed yet, the oldest first. */
  entries(): readonly Entry[];
  /** Says that the first `count` entries are stored, or given up. */
  confirm(count: number): void;
  /** The bytes of unfinished lines that were not confirmed yet. */
  held(): Held[];
  confirmHeld(held: readonly Held[]): void;
  facts(): Facts;
  loss(): Loss;
};

type Lane = { splitter: LineSplitter; at: number; heldSaved: number };

export function createIngest(maxFrameBytes: number): Ingest {
  const conversation = createConversation();
  const lost: Loss = { frames: 0, bytes: 0 };
  let entries: Entry[] = [];
  let seq = 0;

  const lanes = Object.fromEntries(CHANNELS.map((channel) => [channel, createLane(channel)])) as Record<
    Channel,
    Lane
  >;

  function createLane(channel: Channel): Lane {
    const splitter = createLineSplitter({
      maxBytes: maxFrameBytes,
      onSkip(bytes) {
        lost.bytes += bytes;
      },
      onLine(line) {
        lanes[channel].heldSaved = 0;
        seq += 1;
        const frame = { channel, ...line };
        entries.push({ seq, frame, messages: conversation.add(frame, seq) });
      },
    });
    return { splitter, at: 0, heldSaved: 0 };
  }

  function held(): Held[] {
    return CHANNELS.flatMap((channel) => {
      const { splitter, heldSaved, at } = lanes[channel];
      return splitter
        .held()
        .slice(heldSaved)
        .map((bytes, i) => ({ channel, part: heldSaved + i, at, bytes }));
    });
  }

  return {
    feed({ channel, at, bytes }) {
      lanes[channel].at = at;
      lanes[channel].splitter.feed(bytes, at);
    },
    gap(channel, { frames, bytes }, endsInsideLine) {
      lost.frames += frames;
      lost.bytes += bytes;
      lanes[channel].splitter.gap(endsInsideLine);
    },
    end() {
      for (const channel of CHANNELS) lanes[channel].splitter.end();
    },
    entries: () => entries,
    confirm(count) {
      entries = entries.slice(count);
    },
    held,
    confirmHeld(saved) {
      for (const { channel, part } of saved) lanes[channel].heldSaved = part + 1;
    },
    facts: conversation.facts,
    loss: () => lost,
  };
}
