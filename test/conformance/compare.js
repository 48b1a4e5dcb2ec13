// Two runs of the same scenarios, check by check. What must agree is the verdict of each check (how often it came
// out with which status), not its wording: messages name ports and times.

// The checks whose verdicts differ. `direct` and `through` are like `2 SUCCESS, 1 FAILURE`; `isLogOnly` says that the
// check is no verdict but the suite's log.
export function compareRuns(direct, through) {
  const differences = [];
  for (const scenario of unionOfKeys(direct, through)) {
    const before = verdictsByCheck(direct.get(scenario));
    const after = verdictsByCheck(through.get(scenario));
    for (const check of unionOfKeys(before, after)) {
      const difference = { scenario, check, direct: before.get(check), through: after.get(check) };
      if (difference.direct === difference.through) continue;
      differences.push({ ...difference, isLogOnly: isLog(difference.direct) && isLog(difference.through) });
    }
  }
  return differences;
}

export function countStatuses(scenarios) {
  const counts = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0, INFO: 0 };
  for (const check of [...scenarios.values()].flat()) counts[check.status] += 1;
  return counts;
}

// `way` says how the second run went.
export function formatDifference({ scenario, check, direct = 'absent', through = 'absent' }, way) {
  return `${scenario} ${check}: direct ${direct}; ${way} ${through}`;
}

const isLog = (verdict = '') => /^(\d+ INFO)?$/.test(verdict);

function verdictsByCheck(checks = []) {
  const statuses = new Map();
  for (const { id, status } of checks) statuses.set(id, [...(statuses.get(id) ?? []), status]);
  return new Map([...statuses].map(([id, list]) => [id, formatStatuses(list)]));
}

function formatStatuses(list) {
  const kinds = [...new Set(list)].sort();
  return kinds.map((kind) => `${list.filter((status) => status === kind).length} ${kind}`).join(', ');
}

function unionOfKeys(one, other) {
  return [...new Set([...one.keys(), ...other.keys()])].sort();
}
