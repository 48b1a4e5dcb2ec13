/**
 * A recording and a live server together: what record modes other than `none` run on. It owns neither files nor
 * processes: the server is reached by `connect`, and what it answers is added to `tape`.
 */

import type { Block, Tape } from '../../store/write/import.ts';
import type { Connect } from '../../talk/server.ts';
import type { Recording } from '../recording/recording.ts';
import { type BlockForm, blockOf, type Episode } from './episode.ts';
import { createLive, type Live } from './live.ts';

export type LiveRecorderOptions = {
  /** What is played; null where everything is asked live. */
  played: Recording | null;
  connect: Connect;
  tape: Tape;
  form: BlockForm;
  /** An old recording is there until the tape takes its place, which it does only where no call has failed. */
  replaces: boolean;
  /** Adds calls too that the server did not answer by itself. */
  keepsFailures: boolean;
  timeoutMs: number;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  /** Told of every call that went live. `withheld`: why it was not added; null where it was. */
  onCall: (episode: Episode, withheld: string | null) => void;
};

export type LiveRecorderEnd = {
  added: number;
  /** Calls that were not added, and of these the ones that the server is the cause of. */
  withheld: number;
  failed: number;
  /** An old recording was to be replaced, and was not. */
  isLeft: boolean;
  /** False where calls have failed, and the server has never said anything. */
  hasServer: boolean;
};

type LiveRecorder = {
  /** For `createMock`. */
  live: Live;
  /**
   * Ends the server, and the recording with what was added. Rejects where that could not be stored, with `TapedeckError`
   * or SQLite's errors; the server has ended all the same.
   */
  finish(): Promise<LiveRecorderEnd>;
};

export function createLiveRecorder(options: LiveRecorderOptions): LiveRecorder {
  const { played, connect, tape, replaces, timeoutMs, now, onCall } = options;
  let trouble: { error: unknown } | null = null;
  let [added, withheld, failed] = [0, 0, 0];
  const onEpisode = createKeeper({
    form: options.form,
    isWhole: played === null,
    keepsFailures: options.keepsFailures,
    add(block) {
      try {
        tape.add(block);
      } catch (error) {
        trouble ??= { error };
        throw error;
      }
    },
    onCall(episode, why) {
      if (why === null) added += 1;
      else withheld += 1;
      if (why !== null && episode.failure?.by !== 'client') failed += 1;
      onCall(episode, why);
    },
  });
  const live = createLive({ connect, recording: played, timeoutMs, now, onEpisode });

  async function finish(): Promise<LiveRecorderEnd> {
    // All episodes are told at once; the server may take its time to end.
    const closed = live.close();
    try {
      const isLeft = replaces && (failed > 0 || added === 0);
      await (isLeft ? tape.discard() : tape.finish(now()));
      if (trouble !== null) throw trouble.error;
      return { added, withheld, failed, isLeft, hasServer: failed === 0 || live.hasHeard() };
    } finally {
      await closed;
    }
  }

  return { live, finish };
}

/**
 * Which episodes are added to a recording. Errors and failed tools are answers, as a server gives them to whoever asks the
 * same: a test may be about them. What tells of the moment instead is withheld, unless it is asked for: no server, a server
 * that died, a stream that broke off, no answer in time, a call that its client took back.
 */

type KeeperOptions = {
  form: BlockForm;
  /** Nothing is played: what was said outside of calls has its place, too. */
  isWhole: boolean;
  keepsFailures: boolean;
  /** May throw where it cannot be stored. */
  add: (block: Block) => void;
  /** Told of every call. `withheld`: why it was not added; null where it was. */
  onCall: (episode: Episode, withheld: string | null) => void;
};

function createKeeper({ form, isWhole, keepsFailures, add, onCall }: KeeperOptions) {
  let hasKept = false;

  return (episode: Episode): void => {
    const isAside = episode.topic === null;
    // Before the first call that is added, there is none of this run that it could follow.
    if (isAside && !isWhole && !hasKept) return;
    const withheld = keepsFailures ? null : (episode.failure?.why ?? null);
    const trouble = withheld === null ? tryAdd(episode) : null;
    hasKept ||= withheld === null && trouble === null && !isAside;
    if (!isAside) onCall(episode, withheld ?? trouble);
  };

  /** Recording trouble is not the traffic's. */
  function tryAdd(episode: Episode): string | null {
    try {
      add(blockOf(episode, form));
      return null;
    } catch (error) {
      return `it cannot be stored: ${(error as Error).message}`;
    }
  }
}

/**
 * Record modes, by the names that VCR gave them: what is answered from a recording, and what by a live server whose answers
 * are then added to it.
 *
 * | mode           | a recording is there                                    | none is there          |
 * |----------------|---------------------------------------------------------|------------------------|
 * | `none`         | it is played; what it has not is refused                | an error               |
 * | `once`         | as `none`                                               | everything is recorded |
 * | `new_episodes` | it is played; what it has not is asked live, and added  | everything is recorded |
 * | `all`          | everything is recorded anew, and takes its place        | everything is recorded |
 */
export const MODES = ['none', 'once', 'new_episodes', 'all'] as const;

export type Mode = (typeof MODES)[number];

/** `plays`: what is recorded is answered from the recording. `asks`: what is not goes to a live server. */
export type ModePlan = { plays: boolean; asks: boolean };

export function planMode(mode: Mode, isThere: boolean): ModePlan {
  if (mode === 'none') return { plays: true, asks: false };
  if (!isThere || mode === 'all') return { plays: false, asks: true };
  return { plays: true, asks: mode === 'new_episodes' };
}
