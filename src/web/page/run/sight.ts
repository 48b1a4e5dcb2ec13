/** Which part of a stretch is in sight, as it stands in the address: `t=FROM-TO`, in milliseconds since the stretch began. */
import type { RunLane } from '../../api.ts';
import type { Sight } from './lanes.ts';

export function sightOf(text: string | null, whole: Sight): Sight {
  const [, from, to] = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text ?? '') ?? [];
  const sight = { from: Number(from) * 1000, to: Math.min(Number(to) * 1000, whole.to) };
  return sight.from >= 0 && sight.to > sight.from ? sight : whole;
}

/** Less than that has no bars to look at. */
const LEAST_SIGHT = 100;

/** The text of a sight `factor` times as wide around a moment; null: all of it. */
export function zoomedSight(sight: Sight, whole: Sight, middle: number, factor: number): string | null {
  const width = Math.max(LEAST_SIGHT, (sight.to - sight.from) * factor);
  if (width >= whole.to - whole.from) return null;
  const from = Math.min(Math.max(whole.from, middle - width / 2), whole.to - width);
  const ms = (micros: number) => String(Math.round(micros) / 1000);
  return `${ms(from)}-${ms(from + width)}`;
}

/** What a server is called: by itself, else by its user, else what was started. */
export function serverName({ server, name, target }: RunLane): string {
  return server?.name ?? name ?? target;
}
