/**
 * Gives episodes out in the order in which their calls were asked, as a recorder would have seen them: the k-th identical
 * call is to get the k-th answer. An answer that is an error is kept back for a moment: a server that dies may say one
 * before, and that is the death's and not the server's answer.
 */
// Tests replace the globals by clocks of their own.
import { clearTimeout, setTimeout } from 'node:timers';
import type { Episode } from './episode.ts';

export type Place = {
  /** The episode is over. `isSure` false: it waits for `confirm`, a moment, or `doubt`. */
  fill(episode: Episode, isSure: boolean): void;
};

export type EpisodeOrder = {
  /** A place behind all that were taken before. */
  take(): Place;
  /** The server has said something more, so it lives. */
  confirm(): void;
  /** The server has gone: what is not sure was its end. */
  doubt(why: string): void;
  /** Gives out what is there, and leaves a gap where nothing is yet. */
  flush(): void;
  /** Settles when nothing waits for a moment to pass. */
  sure(): Promise<void>;
};

type Slot = { episode: Episode | null; isSure: boolean };

const SURE_AFTER_MS = 250;

export function createEpisodeOrder(onEpisode: (episode: Episode) => void): EpisodeOrder {
  let slots: Slot[] = [];
  let timer: NodeJS.Timeout | undefined;
  let onSure = () => {};

  function giveOut(): void {
    while (slots[0]?.episode != null && slots[0].isSure) {
      const [slot] = slots.splice(0, 1);
      if (slot?.episode != null) onEpisode(slot.episode);
    }
    if (!hasUnsure()) onSure();
  }

  function hasUnsure(): boolean {
    return slots.some(({ episode, isSure }) => episode !== null && !isSure);
  }

  function confirm(): void {
    clearTimeout(timer);
    for (const slot of slots) slot.isSure ||= slot.episode !== null;
    giveOut();
  }

  return {
    take() {
      const slot: Slot = { episode: null, isSure: false };
      slots.push(slot);
      return {
        fill(episode, isSure) {
          slot.episode = episode;
          slot.isSure = isSure;
          if (!isSure) {
            clearTimeout(timer);
            timer = setTimeout(confirm, SURE_AFTER_MS);
          }
          giveOut();
        },
      };
    },
    confirm,
    doubt(why) {
      clearTimeout(timer);
      const failure = { by: 'server', why: `its answer was an error, and then ${why}` } as const;
      for (const slot of slots) {
        if (slot.episode === null || slot.isSure) continue;
        slot.episode = { ...slot.episode, failure };
        slot.isSure = true;
      }
      giveOut();
    },
    flush() {
      slots = slots.filter(({ episode }) => episode !== null);
      confirm();
    },
    sure: () =>
      new Promise((resolve) => {
        onSure = resolve;
        if (!hasUnsure()) resolve();
      }),
  };
}
