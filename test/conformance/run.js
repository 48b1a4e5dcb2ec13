// `npm run conformance`: the official suite's verdict on two servers and on the official client, direct and through
// tapedeck, and on the mock that replays what was recorded of a server, compared check by check. Exits with 1 where they differ, except as `expected-differences.js` says.
// Arguments choose legs by a part of their name: `npm run conformance -- client 2026-07-28`.
import { compareRuns, countStatuses, formatDifference } from './compare.js';
import { findReason } from './expected-differences.js';
import { listLegs } from './legs.js';
import { proxyCommand, startProxy } from './proxy.js';

const startedAt = Date.now();
const wanted = process.argv.slice(2);
const legs = listLegs(progress).filter(({ name }) => wanted.every((word) => name.includes(word)));

progress(`the proxy is: ${proxyCommand.join(' ')}`);
await checkProxy();
const outcomes = [];
for (const leg of legs) outcomes.push(await runLeg(leg));
reportTotals();

// A proxy that cannot even start is said once, not as a difference of every check.
async function checkProxy() {
  const proxy = await startProxy('http://127.0.0.1:9/mcp');
  await proxy.stop();
}

async function runLeg(leg) {
  const { direct, through } = await leg.run();
  const differences = compareRuns(direct.scenarios, through.scenarios);
  const explained = differences.filter((difference) => findReason(leg, difference) !== undefined);
  const lasting = await keepLasting(leg, differences);
  reportLeg(leg, { direct, through, explained, lasting });
  const isVain = leg.mustBeAccepted && !direct.accepted;
  if (isVain) print('  REJECTED  the suite must accept this server, or the comparison means little');
  return { checks: [...direct.scenarios.values()].flat().length, explained, lasting, isVain };
}

// Timing decides some checks. An unexplained difference counts when its scenario, run again alone, differs again.
async function keepLasting(leg, differences) {
  const unexplained = (list) => list.filter((difference) => findReason(leg, difference) === undefined);
  const lasting = [];
  for (const scenario of new Set(unexplained(differences).map((difference) => difference.scenario))) {
    const { direct, through } = await leg.runAlone(scenario);
    const again = unexplained(compareRuns(direct.scenarios, through.scenarios));
    const first = differences.filter((difference) => difference.scenario === scenario);
    const outcome =
      again.length > 0
        ? 'differs again'
        : `does not differ again: ${first.map((one) => formatDifference(one, leg.way))}`;
    progress(`${leg.name}: ${scenario}, run alone, ${outcome}`);
    lasting.push(...again);
  }
  return lasting;
}

function reportLeg(leg, { direct, through, explained, lasting }) {
  print(`${leg.name}: ${direct.scenarios.size} scenarios`);
  print(`  ${'direct'.padEnd(leg.way.length)}  ${formatRun(direct)}`);
  print(`  ${leg.way}  ${formatRun(through)}`);
  for (const difference of lasting) print(`  DIFFERS   ${formatDifference(difference, leg.way)}`);
  const verdicts = explained.filter(({ isLogOnly }) => !isLogOnly);
  const reasonOf = (difference) => findReason(leg, difference);
  for (const reason of new Set(verdicts.map(reasonOf))) {
    print(`  expected, because ${reason}:`);
    const rows = verdicts.filter((difference) => reasonOf(difference) === reason);
    for (const difference of rows) print(`    ${formatDifference(difference, leg.way)}`);
  }
}

function formatRun({ scenarios, accepted }) {
  const { SUCCESS, FAILURE, WARNING } = countStatuses(scenarios);
  const counts = `${SUCCESS} passed, ${FAILURE} failed, ${WARNING} warnings`;
  return accepted === undefined ? counts : `${counts}; the suite ${accepted ? 'accepts' : 'rejects'} it`;
}

function reportTotals() {
  const sum = (count) => outcomes.map(count).reduce((one, other) => one + other, 0);
  const checks = sum((outcome) => outcome.checks);
  const explained = sum((outcome) => outcome.explained.filter(({ isLogOnly }) => !isLogOnly).length);
  const lasting = sum((outcome) => outcome.lasting.length);
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  print(
    `conformance: ${checks} checks in ${outcomes.length} legs; ${lasting} differ, ` +
      `${explained} as expected (${seconds} s)`,
  );
  process.exitCode = lasting > 0 || outcomes.length === 0 || outcomes.some(({ isVain }) => isVain) ? 1 : 0;
}

function print(line) {
  process.stdout.write(`${line}\n`);
}

function progress(line) {
  process.stderr.write(`[${Math.round((Date.now() - startedAt) / 1000)} s] ${line}\n`);
}
