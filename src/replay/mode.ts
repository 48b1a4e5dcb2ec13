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
