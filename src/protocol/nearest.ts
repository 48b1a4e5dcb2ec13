/** Which of the known names is most like the one that was written; null where none is nearer than half of its own length. */
export function nearest(written: string, known: readonly string[]): string | null {
  const lower = written.toLowerCase().slice(0, NEAREST_MAX_LENGTH);
  let best: { name: string; distance: number } | null = null;
  for (const name of known) {
    const other = name.toLowerCase().slice(0, NEAREST_MAX_LENGTH);
    const distance = lower !== '' && other.startsWith(lower) ? 0.5 : editDistance(lower, other);
    if (distance <= name.length / 2 && (best === null || distance < best.distance)) best = { name, distance };
  }
  return best?.name ?? null;
}

const NEAREST_MAX_LENGTH = 40;

/** Characters to insert, remove or replace, and neighbours to swap, until the one is the other. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const changed = (last[j - 1] ?? 0) + (isSame ? 0 : 1);
      const swapped = isSwap ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(changed, swapped, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
