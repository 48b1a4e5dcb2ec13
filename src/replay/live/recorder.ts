/**
 * Puts requests to a live server and adds its answers to a recording: all record modes other than `none` do that. It owns
 * neither files nor processes. `connect` reaches the server, `tape` stores what it answers.
 */

import type { Block, Tape } from '../../store/write/import.ts';
import type { Connect } from '../../talk/server.ts';
import type { Recording } from '../recording/recording.ts';
import { type BlockForm, blockOf, type Episode, type EpisodeMessage } from './episode.ts';
import { createLive, type Live } from './live.ts';

export type LiveRecorderOptions = {
  /** The recording that is played; null where every request goes live. */
  played: Recording | null;
  connect: Connect;
  tape: Tape;
  form: BlockForm;
  /** The tape takes the place of an old recording, but only where no call has failed. */
  replaces: boolean;
  /** Also adds calls that the server did not answer by itself. */
  keepsFailures: boolean;
  /** What is stored of a message. */
  edit?: ((json: Buffer, from: 'client' | 'server') => Buffer) | undefined;
  timeoutMs: number;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  /** Called with every call that went live. `withheld`: why it was not added; null where it was. */
  onCall: (episode: Episode, withheld: string | null) => void;
};

export type LiveRecorderEnd = {
  added: number;
  /** How many calls were not added; `failed` counts those of them that the server caused. */
  withheld: number;
  failed: number;
  /** An old recording should have been replaced, but was kept. */
  isLeft: boolean;
  /** False where calls have failed and the server never sent anything. */
  hasServer: boolean;
};

type LiveRecorder = {
  /** The option `live` of `createMock`. */
  live: Live;
  /**
   * Ends the server, and stores the end of the recording. Rejects with `TapedeckError` or SQLite's errors where that fails;
   * the server has ended even then.
   */
  finish(): Promise<LiveRecorderEnd>;
  /** Ends the server, and stores nothing of what the tape still holds. Settles when both are done. */
  discard(): Promise<void>;
};

export function createLiveRecorder(options: LiveRecorderOptions): LiveRecorder {
  const { played, connect, tape, replaces, timeoutMs, now, onCall } = options;
  let trouble: { error: unknown } | null = null;
  let [added, withheld, failed] = [0, 0, 0];
  /** When the last message that was added passed. */
  let lastAt = 0;
  const onEpisode = createKeeper({
    form: options.form,
    isWhole: played === null,
    keepsFailures: options.keepsFailures,
    edit: options.edit ?? ((json) => json),
    add(block) {
      try {
        tape.add(block);
        lastAt = block.frames.at(-1)?.at ?? lastAt;
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
    // Closing reports all episodes at once; the server may take longer to end.
    const closed = live.close();
    try {
      const isLeft = replaces && (failed > 0 || added === 0);
      await (isLeft ? tape.discard() : tape.finish(Math.max(now(), lastAt)));
      if (trouble !== null) throw trouble.error;
      return { added, withheld, failed, isLeft, hasServer: failed === 0 || live.hasHeard() };
    } finally {
      await closed;
    }
  }

  async function discard(): Promise<void> {
    const closed = live.close();
    try {
      await tape.discard();
    } finally {
      await closed;
    }
  }

  return { live, finish, discard };
}

/**
 * Chooses the episodes that are added to a recording. Errors and failed tools are answers: the server repeats them for the
 * same request, and a test may be about them. Without `keepsFailures`, troubles of the moment are withheld: no server, a
 * server that died, a stream that broke off, no answer in time, a call that its client took back.
 */

type KeeperOptions = {
  form: BlockForm;
  /** Nothing is played, so messages outside of calls have their place, too. */
  isWhole: boolean;
  keepsFailures: boolean;
  edit: (json: Buffer, from: 'client' | 'server') => Buffer;
  /** May throw where the block cannot be stored. */
  add: (block: Block) => void;
  /** Called with every call. `withheld`: why it was not added; null where it was. */
  onCall: (episode: Episode, withheld: string | null) => void;
};

function createKeeper({ form, isWhole, keepsFailures, edit, add, onCall }: KeeperOptions) {
  let hasKept = false;
  let lastAt = 0;

  return (episode: Episode): void => {
    const isAside = episode.topic === null;
    // Before the first added call, no call of this run precedes it.
    if (isAside && !isWhole && !hasKept) return;
    const withheld = keepsFailures ? null : (episode.failure?.why ?? null);
    const trouble = withheld === null ? tryAdd(episode) : null;
    hasKept ||= withheld === null && trouble === null && !isAside;
    if (!isAside) onCall(episode, withheld ?? trouble);
  };

  function edited(message: EpisodeMessage): EpisodeMessage {
    return { ...message, json: edit(message.json, message.from) };
  }

  /** Trouble with storing does not disturb the traffic. */
  function tryAdd(episode: Episode): string | null {
    try {
      const later = behind(lastAt, { ...episode, messages: episode.messages.map(edited) });
      add(blockOf(later, form));
      lastAt = later.messages.at(-1)?.at ?? lastAt;
      return null;
    } catch (error) {
      return `it cannot be stored: ${(error as Error).message}`;
    }
  }
}

/**
 * Calls that were open at one time stand one behind the other in the recording, and time never runs back in it: so the later
 * one is moved behind the earlier, with its own distances.
 */
function behind(at: number, episode: Episode): Episode {
  const late = at - (episode.messages[0]?.at ?? at);
  if (late <= 0) return episode;
  return { ...episode, messages: episode.messages.map((one) => ({ ...one, at: one.at + late })) };
}

/**
 * Record modes, named as in VCR. A mode says which requests the recording answers, and which go to a live server whose
 * answers are then added.
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

/** `plays`: the recording answers what it has. `asks`: a live server answers the rest. */
export type ModePlan = { plays: boolean; asks: boolean };

export function planMode(mode: Mode, isThere: boolean): ModePlan {
  if (mode === 'none') return { plays: true, asks: false };
  if (!isThere || mode === 'all') return { plays: false, asks: true };
  return { plays: true, asks: mode === 'new_episodes' };
}
