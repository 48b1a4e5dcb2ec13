/** From chunks to the frames of one session: a line splitter per channel, one numbering for all of them. */

import { CHANNELS, type Frame, type StdioChannel } from '../../protocol/wire/frame.ts';
import { createLineSplitter, type LineSplitter } from '../../protocol/wire/lines.ts';
import type { Basis } from '../file/columns.ts';
import type { PendingSession } from '../write/pending.ts';
import { FAULT_KIND, type FaultyFrame, readFaultItem } from './batch.ts';
import type { Framer } from './framer.ts';
import { type FirstSign, type PendingPiece, UnfinishedFrame } from './unfinished.ts';

type Lane = { splitter: LineSplitter; unfinished: UnfinishedFrame; at: number };

/**
 * Frames are added to the session in the order in which they become whole. Of the basis `sdk-transport` they are not what passed. `firstSign`: where what is not whole could give a
 * secret away; null: it may all be stored.
 */
export function createStdioFramer(
  session: PendingSession,
  maxFrameBytes: number,
  firstSign: FirstSign | null,
  basis: Basis,
): Framer {
  const isParsed = basis === 'sdk-transport';
  const lanes: Record<StdioChannel, Lane> = {
    stdin: createLane('stdin'),
    stdout: createLane('stdout'),
    stderr: createLane('stderr'),
  };

  function createLane(channel: StdioChannel): Lane {
    const unfinished = new UnfinishedFrame(firstSign, false);
    const splitter = createLineSplitter({
      channel,
      maxBytes: maxFrameBytes,
      onSkip: (bytes) => session.lose(0, bytes),
      onFrame: (frame) =>
        session.add(isParsed ? { ...frame, part: 'reserialised' } : frame, unfinished.finish()),
    });
    return { splitter, unfinished, at: 0 };
  }

  function unfinished(): PendingPiece[] {
    return CHANNELS.flatMap((channel) => {
      const { splitter, unfinished, at } = lanes[channel];
      return unfinished.pieces(splitter.held(), { session, channel, exchange: null, at });
    });
  }

  return {
    feed({ kind, at, bytes }) {
      if (session.isLeftOut) return;
      if (kind === FAULT_KIND) {
        session.add(lineOf(readFaultItem(bytes, at)), false);
        return;
      }
      const lane = lanes[CHANNELS[kind] ?? 'stderr'];
      lane.at = at;
      lane.splitter.feed(bytes, at);
    },
    abandon: ({ bytes }) => session.lose(1, bytes.length),
    gap({ channel, loss: { frames, bytes }, endsInsideLine }) {
      const isFirstCounted = lanes[channel].splitter.gap(endsInsideLine);
      session.lose(isFirstCounted ? frames - 1 : frames, bytes);
    },
    unfinished,
    hasUnfinished: () => unfinished().length > 0,
    tick() {},
    async finish() {
      for (const channel of CHANNELS) lanes[channel].splitter.end();
    },
  };
}

/** The bytes are copied: those of the item go with its batch. */
function lineOf({ channel, at, payload, lineEnd, fault }: FaultyFrame): Frame {
  const copied = Buffer.from(payload);
  const original = fault.original && Buffer.from(fault.original);
  const size = copied.length;
  return {
    ...{ channel, at, payload: copied, lineEnd, size, truncated: false, part: 'line', http: null },
    fault: { ...fault, original },
  };
}
