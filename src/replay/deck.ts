/**
 * A recording and a live server together: what record modes other than `none` run on. It owns neither files nor
 * processes: the server is reached by `connect`, and what it answers is added to `tape`.
 */
import type { Connect } from '../protocol/live-server.ts';
import type { Tape } from '../store/session-append.ts';
import type { Episode } from './episode.ts';
import type { BlockForm } from './episode-block.ts';
import { createKeeper } from './keeper.ts';
import { createLive, type Live, type LiveOptions } from './live.ts';
import type { Recording } from './recording.ts';

export type DeckOptions = {
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
  /** Told of every request that got no answer from the live server either. */
  onRefusal: LiveOptions['onRefusal'];
};

export type DeckEnd = {
  added: number;
  /** Calls that were not added, and of these the ones that the server is the cause of. */
  withheld: number;
  failed: number;
  /** An old recording was to be replaced, and was not. */
  isLeft: boolean;
  /** False where calls have failed, and the server has never said anything. */
  hasServer: boolean;
};

export type Deck = {
  /** For `createMock`. */
  live: Live;
  /**
   * Ends the server, and the recording with what was added. Rejects where that could not be stored, with `TapedeckError`
   * or SQLite's errors; the server has ended all the same.
   */
  finish(): Promise<DeckEnd>;
};

export function createDeck(options: DeckOptions): Deck {
  const { played, connect, tape, replaces, timeoutMs, now, onCall, onRefusal } = options;
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
  const live = createLive({ connect, recording: played, timeoutMs, now, onEpisode, onRefusal });

  async function finish(): Promise<DeckEnd> {
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
