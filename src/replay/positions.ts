/** How far a client has come among the identical calls of each key. It takes memory for the keys that it asked for. */
import { createColumn } from './column.ts';

export type Positions = {
  /** `isRepeat`: all calls of the key were reached before. */
  reach(key: number, call: number, isRepeat: boolean): void;
  /** The call that was given last; -1 for none. */
  reached(key: number): number;
  /** Whether a call was given at any time. */
  hasReached(key: number, call: number): boolean;
  /** Whether all calls of the key were given. */
  isAround(key: number): boolean;
};

export function createPositions(): Positions {
  /** The call plus one, doubled, and one more where all calls of the key were given. */
  const positions = createColumn(Uint32Array);
  const isAround = (key: number) => positions.at(key) % 2 === 1;
  const reached = (key: number) => (positions.at(key) >>> 1) - 1;
  return {
    reach(key, call, isRepeat) {
      positions.set(key, 2 * (call + 1) + Number(isRepeat || isAround(key)));
    },
    reached,
    hasReached: (key, call) => isAround(key) || call <= reached(key),
    isAround,
  };
}
