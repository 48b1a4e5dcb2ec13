// What a run of the suite's server set did not pass, held against a list of what is not offered. Both must agree: a failure that no
// row names is a defect, and a row without a failure holds no longer.

// Returns a line for each disagreement. `rows`: as in `not-offered.js`.
export function disagreements(scenarios, rows, revision) {
  const ours = rows.filter(({ revisions }) => revisions.includes(revision));
  const used = new Set();
  const problems = [];
  for (const [scenario, checks] of scenarios)
    for (const { id, status, errorMessage = '' } of checks) {
      if (status === 'SUCCESS' || status === 'INFO') continue;
      const row = ours.find(
        (one) => one.scenario === scenario && one.check === id && one.says.test(errorMessage),
      );
      if (row === undefined) problems.push(`${scenario} ${id}: ${status} ${errorMessage}`.trimEnd());
      else used.add(row);
    }
  const stale = ours.filter((row) => !used.has(row));
  return [
    ...problems,
    ...stale.map(
      ({ scenario, check, reason }) =>
        `${scenario} ${check}: listed as not offered (${reason}), and it did not fail so`,
    ),
  ];
}
