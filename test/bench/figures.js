// Medians, percentiles and the table of ratios.

export function percentile(values, p) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
}

export const median = (values) => percentile(values, 0.5);

/**
 * One row: what was measured, ours against theirs round by round, and the bound that the design sets, if it sets one.
 * `yardstick` says in a few words whose figure theirs is.
 */
export function ratioRow(what, ours, theirs, { atMost, atLeast, yardstick }, unit) {
  const ratios = ours.map((value, i) => value / theirs[i]);
  const isMet = atMost === undefined ? median(ratios) >= atLeast : median(ratios) <= atMost;
  const hasBound = atMost !== undefined || atLeast !== undefined;
  const wanted = atMost === undefined ? `≥ ${atLeast}×` : `≤ ${atMost}×`;
  const spread = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
  return {
    what,
    tapedeck: `${format(median(ours))} ${unit}`,
    against: `${format(median(theirs))} ${unit}, ${yardstick}`,
    ratio: `${median(ratios).toFixed(2)}× (${spread})`,
    wanted: hasBound ? wanted : '',
    met: hasBound ? (isMet ? 'yes' : 'NO') : '',
  };
}

export function format(value) {
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

export function printTable(rows) {
  const columns = Object.keys(rows[0]);
  const widths = columns.map((column) =>
    Math.max(column.length, ...rows.map((row) => String(row[column]).length)),
  );
  const line = (cells) => `| ${cells.map((cell, i) => String(cell).padEnd(widths[i])).join(' | ')} |`;
  console.log(line(columns));
  console.log(line(widths.map((width) => '-'.repeat(width))));
  for (const row of rows) console.log(line(columns.map((column) => row[column])));
}
