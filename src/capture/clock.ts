/** The one clock of the edge: microseconds since the Unix epoch; never runs backwards within a process. */
export function now(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}
