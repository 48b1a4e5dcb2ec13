// `npm run conformance`: the official suite's verdict on two servers and on the official client, direct and through
// tapedeck, and on the mock that replays what was recorded of a server, compared check by check. Exits with 1 where they differ, except as `expected-differences.js` says.
// Our own server, `tapedeck mcp`, is held against the suite by itself: `not-offered.js` names what it does not offer.
// Arguments choose legs by a part of their name: `npm run conformance -- client 2026-07-28`.
import { startAsk } from './ask.js';
import { compareRuns, countStatuses, formatDifference } from './compare.js';
import { findReason } from './expected-differences.js';
import { listLegs, revisions } from './legs.js';
import { notOffered } from './not-offered.js';
import { disagreements } from './offers.js';
import { isOtherProxy, proxyCommand, startProxy } from './proxy.js';
import { testServer } from './suite.js';

const startedAt = Date.now();
const wanted = process.argv.slice(2);
const isWanted = (name) => wanted.every((word) => name.includes(word));
const legs = listLegs(progress).filter(({ name }) => isWanted(name));
const ownLegs = isOtherProxy ? [] : revisions.filter((revision) => isWanted(ownName(revision)));

progress(`the proxy is: ${proxyCommand.join(' ')}`);
await checkProxy();
const outcomes = [];
await runAll([
  ...legs.map((leg) => () => runLeg(leg)),
  ...ownLegs.map((revision) => () => runOwnLeg(revision)),
]);
reportTotals();

// Two at a time: for much of its time a leg waits for what its scenarios wait for.
async function runAll(runs) {
  const rest = runs.values();
  const lane = async () => {
    for (const run of rest) outcomes.push(await run());
  };
  await Promise.all([lane(), lane()]);
}

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

function ownName(revision) {
  return `tapedeck mcp ${revision}`;
}

async function runOwnLeg(revision) {
  const name = ownName(revision);
  progress(`${name}: the server set`);
  const ask = await startAsk();
  const run = await testServer(ask.url, revision);
  await ask.stop();
  const lasting = disagreements(run.scenarios, notOffered, revision);
  const listed = notOffered.filter(({ revisions }) => revisions.includes(revision));
  const part = new Set(listed.map(({ scenario }) => scenario)).size;
  print(`${name}: ${run.scenarios.size} scenarios; ${listed.length} checks of ${part} listed as not offered`);
  const { SUCCESS, FAILURE, WARNING, SKIPPED } = countStatuses(run.scenarios);
  print(`  ${SUCCESS} checks passed, ${FAILURE + WARNING + SKIPPED} did not`);
  for (const one of lasting) print(`  DIFFERS   ${one}`);
  for (const reason of new Set(listed.map((row) => row.reason))) {
    const rows = listed.filter((row) => row.reason === reason);
    print(`  not offered, ${reason}: ${rows.map(({ check }) => check).join(', ')}`);
  }
  const checks = [...run.scenarios.values()].flat().length;
  return { checks, explained: [], lasting, isVain: false };
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
