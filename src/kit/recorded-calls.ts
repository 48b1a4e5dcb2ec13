/** The calls of a recording, and which of them nobody has asked for. */
import type { Recording } from '../replay/recording.ts';
import type { Place } from '../replay/script.ts';
import type { RecordedCall } from './deck.ts';

export type RecordedCalls = {
  without(played: readonly Place[]): readonly RecordedCall[];
};

/** `playable`: the calls that a client can ask for, by their numbers in the script. */
export function createRecordedCalls(
  { script, load, read }: Recording,
  playable: readonly number[],
): RecordedCalls {
  function callAt(place: Place): RecordedCall[] {
    const json = load(place);
    const message = read(json);
    if (message?.kind !== 'request') return [];
    const { canonical: method, details } = message;
    const { params } = JSON.parse(json.toString()) as { params?: unknown };
    return [{ method, target: details.target, params, frame: place.seq }];
  }

  return {
    without(played) {
      const places = new Set(played.map(keyOf));
      const left = playable.map(script.placeOf).filter((place) => !places.has(keyOf(place)));
      return left.flatMap(callAt);
    },
  };
}

function keyOf({ seq, n }: Place): string {
  return `${seq}.${n}`;
}
