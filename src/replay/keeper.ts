/**
 * Which episodes are added to a recording. Errors and failed tools are answers, as a server gives them to whoever asks the
 * same: a test may be about them. What tells of the moment instead is withheld, unless it is asked for: no server, a server
 * that died, a stream that broke off, no answer in time, a call that its client took back.
 */
import type { Block } from '../store/session-append.ts';
import type { Episode } from './episode.ts';
import { type BlockForm, blockOf } from './episode-block.ts';

export type KeeperOptions = {
  form: BlockForm;
  /** Nothing is played: what was said outside of calls has its place, too. */
  isWhole: boolean;
  keepsFailures: boolean;
  /** May throw where it cannot be stored. */
  add: (block: Block) => void;
  /** Told of every call. `withheld`: why it was not added; null where it was. */
  onCall: (episode: Episode, withheld: string | null) => void;
};

export function createKeeper({ form, isWhole, keepsFailures, add, onCall }: KeeperOptions) {
  let hasKept = false;

  return (episode: Episode): void => {
    const isAside = episode.asked === null;
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
