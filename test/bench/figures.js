// Medians, percentiles and the table of ratios.

export function percentile(values, p) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
}

/** Of an even number the mean of the two in the middle: of two rounds, neither the better nor the worse. */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  return (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2;
}

/**
 * One row: what was measured, ours against theirs round by round, and the bound that the design sets, if it sets one.
 * `yardstick` says in a few words whose figure theirs is. `others` are the figures of whoever else took part, by name, each against
 * theirs, too: the plainest recorder (`least`) and the plainest one that reads what it records (`reader`), since so near comes a
 * recorder that does hardly anything else; tapedeck's forwarding before the plainest one's storing (`limit`); another version of
 * tapedeck (`before`); a rival.
 */
export function ratioRow(what, ours, theirs, { atMost, atLeast, yardstick, others = {} }, unit) {
  const ratios = ratiosOf(ours, theirs);
  const isMet = atMost === undefined ? median(ratios) >= atLeast : median(ratios) <= atMost;
  const hasBound = atMost !== undefined || atLeast !== undefined;
  const wanted = atMost === undefined ? `≥ ${atLeast}×` : `≤ ${atMost}×`;
  const taking = Object.entries(others).filter(([, figures]) => figures !== undefined);
  const spread = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
  return {
    what,
    tapedeck: `${format(median(ours))} ${unit}`,
    against: `${format(median(theirs))} ${unit}, ${yardstick}`,
    ratio: `${median(ratios).toFixed(2)}× (${spread})`,
    wanted: hasBound ? wanted : '',
    met: hasBound ? (isMet ? 'yes' : 'NO') : '',
    ...Object.fromEntries(
      taking.map(([name, figures]) => [name, `${median(ratiosOf(figures, theirs)).toFixed(2)}×`]),
    ),
  };
}

/** A row of a figure that stands for itself; without `atMost` nothing is wanted of it. */
export function figureRow(what, value, { atMost, unit = 'ms', against = '' }) {
  const hasBound = atMost !== undefined;
  const isMet = value <= atMost;
  return {
    what,
    tapedeck: `${format(value)} ${unit}`,
    against,
    ratio: '',
    wanted: hasBound ? `≤ ${format(atMost)} ${unit}` : '',
    met: hasBound ? (isMet ? 'yes' : 'NO') : '',
  };
}

const ratiosOf = (ours, theirs) => ours.map((value, i) => value / theirs[i]);

/** The upper ends of the classes of a histogram, in microseconds: each is twice the one before. */
const CLASS_ENDS = Array.from({ length: 14 }, (_, i) => 16 * 2 ** i);

/** How many of the times, in microseconds, fall into each class; the last class has all that took longer. */
export function classify(times) {
  const counts = CLASS_ENDS.map(() => 0);
  for (const time of times) {
    const i = CLASS_ENDS.findIndex((end) => time < end);
    counts[i < 0 ? counts.length - 1 : i] += 1;
  }
  return counts;
}

/** A row for each class that is not empty everywhere: of how many thousandths of its calls each variant took so long. */
export function histogram(countsByVariant) {
  const sums = Object.entries(countsByVariant).map(([name, rounds]) => {
    const counts = CLASS_ENDS.map((_, i) => rounds.reduce((sum, round) => sum + round[i], 0));
    return [name, counts, counts.reduce((sum, count) => sum + count, 0)];
  });
  return CLASS_ENDS.flatMap((end, i) => {
    if (sums.every(([, counts]) => counts[i] === 0)) return [];
    const isLast = i === CLASS_ENDS.length - 1;
    const parts = sums.map(([name, counts, all]) => [name, perMille(counts[i], all)]);
    return [{ took: isLast ? `${end / 2} µs and more` : `under ${end} µs`, ...Object.fromEntries(parts) }];
  });
}

function perMille(count, all) {
  return count === 0 ? '' : `${((count / all) * 1000).toFixed(2)} ‰`;
}

export function format(value) {
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

export function printTable(rows) {
  const columns = [...new Set(rows.flatMap(Object.keys))];
  const widths = columns.map((column) =>
    Math.max(column.length, ...rows.map((row) => String(row[column] ?? '').length)),
  );
  const line = (cells) => `| ${cells.map((cell, i) => String(cell).padEnd(widths[i])).join(' | ')} |`;
  console.log(line(columns));
  console.log(line(widths.map((width) => '-'.repeat(width))));
  for (const row of rows) console.log(line(columns.map((column) => row[column] ?? '')));
}
