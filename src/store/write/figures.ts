/**
 * What a recorder has done so far, counted as it is committed, so that the figures are those of the store. Only for a
 * recorder that is watched: others do not count.
 */

import type { Channel } from '../../protocol/wire/frame.ts';
import type { Basis, EndReason, Loss } from '../file/columns.ts';
import type { PendingSession, SessionKey } from './pending.ts';

/** Who sent a frame; `stderr` is the server's, beside the protocol. */
type Sender = 'client' | 'server' | 'stderr';

export type RecorderFigures = {
  /** Stored frames by sender, and the bytes that passed for them. */
  recorded: Readonly<Record<Sender, Loss>>;
  lost: Loss;
  /** Sessions that were stored, by basis, once they were answered or had ended. */
  started: Readonly<Partial<Record<Basis, number>>>;
  /** Sessions that are open, but for those that are left out of the sample. */
  open: number;
  /** Sessions that were left out of the sample, and passed without being stored. */
  sampledOut: number;
  /** Nothing reaches the store at the moment: it waits in a spool or in memory. */
  isStoreTroubled: boolean;
  /** What passes can be stored, in the store or in a spool. */
  isStoring: boolean;
  /** The path of the store. */
  store: string;
};

export type SessionNews =
  | { type: 'started'; session: string; basis: Basis }
  | { type: 'ended'; session: string; reason: EndReason };

export type RecorderTally = {
  /** Call it for what a session has stored, before `PendingSession.confirm`. */
  stored(session: PendingSession, key: SessionKey): void;
  /** More of a session is lost, stored or not. */
  lost(session: PendingSession): void;
  figures(): Pick<RecorderFigures, 'recorded' | 'lost' | 'started'>;
};

const SENDERS: Readonly<Record<Channel, Sender>> = {
  stdin: 'client',
  request: 'client',
  stdout: 'server',
  response: 'server',
  sse: 'server',
  stderr: 'stderr',
};

export function createRecorderTally(onSession: (news: SessionNews) => void): RecorderTally {
  const none = (): Loss => ({ frames: 0, bytes: 0 });
  const recorded = { client: none(), server: none(), stderr: none() };
  const lost = none();
  const started: Partial<Record<Basis, number>> = {};
  /** `frames` and `bytes`: what of its loss is counted. */
  const known = new WeakMap<PendingSession, Loss & { isCounted: boolean; hasEnded: boolean }>();

  function knownOf(session: PendingSession) {
    const before = known.get(session);
    if (before !== undefined) return before;
    const begun = { ...none(), isCounted: false, hasEnded: false };
    known.set(session, begun);
    return begun;
  }

  function countLoss(session: PendingSession): void {
    const before = knownOf(session);
    const { frames, bytes } = session.loss;
    lost.frames += frames - before.frames;
    lost.bytes += bytes - before.bytes;
    before.frames = frames;
    before.bytes = bytes;
  }

  return {
    stored(session, { id }) {
      const state = knownOf(session);
      const { basis, end } = session.state;
      let isAnswered = basis !== 'stateless' || end !== null;
      for (const { channel, size } of session.frames()) {
        const sender = SENDERS[channel];
        recorded[sender].frames += 1;
        recorded[sender].bytes += size;
        if (sender !== 'client') isAnswered = true;
      }
      countLoss(session);
      // Before its first answer nobody knows what a session by HTTP is told by.
      if (isAnswered && !state.isCounted) {
        state.isCounted = true;
        started[basis] = (started[basis] ?? 0) + 1;
        onSession({ type: 'started', session: id, basis });
      }
      if (end !== null && !state.hasEnded) onSession({ type: 'ended', session: id, reason: end.reason });
      state.hasEnded = end !== null;
    },
    lost: countLoss,
    figures: () => ({ recorded, lost, started }),
  };
}
