/** Frames, as far as they may be seen. */

import { TapedeckError } from '../../errors.ts';
import { frameTitle } from '../../inspect/view/conversation.ts';
import { formatIsoTime } from '../../protocol/text.ts';
import { directionOf } from '../../protocol/wire/frame.ts';
import {
  type BareFrame,
  lastSeqOf,
  prepareFramesAfter,
  prepareMessagesBetween,
  unfinishedFrames,
} from '../../store/read/frames.ts';
import { prepareHttpSummary } from '../../store/read/http.ts';
import { openAsked, type ToolAnswer, type ToolQuestion } from './asked.ts';
import type { Opened } from './redacted.ts';
import { prepareAmong, type SeenScope } from './scope.ts';

export type SeenFrames = {
  /** Undefined: there is none, or it may not be seen. */
  at(seq: number): BareFrame | undefined;
  /** Those between two frames, both left out. */
  between(after: number, before: number): Generator<BareFrame>;
  /** In a line. */
  title(frame: BareFrame): string;
};

export function prepareFrames(opened: Opened, scope: SeenScope): SeenFrames {
  const { store, session } = opened;
  const only = scope.only(opened, undefined);
  const isAmong = prepareAmong(opened, only);
  const after = prepareFramesAfter(store, session.number, 1);
  const messagesBetween = prepareMessagesBetween(store, session.number);

  function at(seq: number): BareFrame | undefined {
    const [frame] = after(seq - 1);
    if (frame?.seq === seq) return isAmong(seq) ? frame : undefined;
    const unfinished = [...unfinishedFrames(store, session.number, lastSeqOf(store, session.number))];
    const found = unfinished.find((one) => one.seq === seq);
    return found !== undefined && (only?.hasUnfinished(session, found) ?? true) ? found : undefined;
  }

  return {
    at,
    *between(first, before) {
      for (let seq = first; ; ) {
        const [frame] = after(seq);
        if (frame === undefined || frame.seq >= before) return;
        if (isAmong(frame.seq)) yield frame;
        seq = frame.seq;
      }
    },
    title: (frame) => frameTitle(frame, messagesBetween(frame.seq - 1, frame.seq)),
  };
}

export async function getFrame(asked: ToolQuestion): Promise<ToolAnswer> {
  const { scope, room, args } = asked;
  const opened = await openAsked(asked);
  const { seq = 0, from = 0 } = args;
  const { store, session } = opened;
  const frame = prepareFrames(opened, scope).at(seq);
  if (frame === undefined)
    throw new TapedeckError(
      'not-found',
      `Expected the number of a frame of session ${session.id}, got ${seq}: there is none that may be seen.`,
    );
  const { at, channel, size, isEdited, truncated, isUnfinished, http, redacted } = frame;
  const messages = prepareMessagesBetween(store, session.number)(seq - 1, seq);
  const facts = room.admit({
    ...{ session: session.id, seq, at: formatIsoTime(at), direction: directionOf(channel), channel, size },
    ...{ isEdited, isTruncated: truncated, isUnfinished, redactedBy: redacted ?? [] },
    http: http === null ? null : { exchange: http.exchange, ...httpOf(opened, http.exchange) },
    messages: messages
      .slice(0, MOST_MESSAGES)
      .map(({ kind, id, method, toSeq, relation, problem, outcome }) => ({
        ...{ kind, id, method, relation, toSeq, outcome, problem },
      })),
  });
  const payload = room.payload(frame.payload, from);
  const leftOut: string[] = [];
  if (messages.length > MOST_MESSAGES)
    leftOut.push(
      `${messages.length - MOST_MESSAGES} more messages of this batch: they stand in its payload.`,
    );
  if ('next' in payload)
    leftOut.push(
      `What is behind byte ${payload.next} of ${payload.bytes}: ask again with from ${payload.next}.`,
    );
  return { recorded: { ...facts, payload }, leftOut };
}

const MOST_MESSAGES = 10;

function httpOf({ store, session }: Opened, exchange: number): object {
  const found = prepareHttpSummary(store, session.number)(exchange);
  return found === undefined ? {} : { method: found.method, path: found.path, status: found.status };
}
