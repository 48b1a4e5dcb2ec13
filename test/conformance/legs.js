// The legs of the comparison: what is tested (a server, the client, or the mock), at which revision. `run` tests it direct
// and `way`: through the proxy, or on the mock; `runAlone` does so with one scenario. `mustBeAccepted` is a server whose
// direct run is to pass.
import { existsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { scenariosThatDiffer } from './expected-differences.js';
import { testScenarioOnMock } from './mock.js';
import { isOtherProxy, startProxy } from './proxy.js';
import { servers } from './servers.js';
import { listClientScenarios, testClientScenario, testServer, testServerScenario } from './suite.js';

export const revisions = ['2025-11-25', '2026-07-28'];
const throughProxy = 'through the proxy';
const directClient = 'client.js';
const proxiedClient = 'client-through-proxy.js';
// Names the file that tells that a client went past the forward proxy: its checks would pass all the same.
const MISSED = 'CONFORMANCE_MISSED';
const forwardClient = 'client-through-forward.js';

export function listLegs(progress) {
  return revisions.flatMap((revision) => [
    ...Object.keys(servers).map((server) => createServerLeg(server, revision, progress)),
    createClientLeg(revision, progress),
    // Another proxy has no forward mode, and its recordings cannot be replayed.
    ...(isOtherProxy ? [] : [createForwardLeg(revision, progress), createMockLeg(revision, progress)]),
  ]);
}

function createServerLeg(server, revision, progress) {
  const subject = `server ${server}`;
  const name = `${subject} ${revision}`;
  const run = async (test) => {
    const target = await servers[server]();
    const proxy = await startProxy(target.url);
    progress(`${name}: direct`);
    const direct = await test(target.url);
    progress(`${name}: through the proxy`);
    const through = await test(proxy.url);
    await proxy.stop();
    await target.stop();
    return { direct, through };
  };
  return {
    name,
    subject,
    way: throughProxy,
    mustBeAccepted: server === 'dual-era',
    run: () => run((url) => testServer(url, revision)),
    runAlone: (scenario) => run((url) => testServerScenario(url, revision, scenario)),
  };
}

function createClientLeg(revision, progress) {
  const whole = { subject: 'client', way: throughProxy, program: proxiedClient };
  return createLegOfClient(revision, progress, whole, () => listClientScenarios(revision));
}

// What the reverse proxy cannot pass: the client keeps its URL here, so nothing may differ.
function createForwardLeg(revision, progress) {
  const check = () => {
    if (existsSync(process.env[MISSED])) throw new Error('the client went past the forward proxy');
  };
  process.env[MISSED] ??= join(tmpdir(), `tapedeck-conformance-missed-${process.pid}`);
  const forward = {
    subject: 'forward client',
    way: 'through the forward proxy',
    program: forwardClient,
    check,
  };
  return createLegOfClient(revision, progress, forward, async () => {
    const differing = scenariosThatDiffer('client');
    return (await listClientScenarios(revision)).filter((name) => differing.includes(name));
  });
}

function createLegOfClient(revision, progress, { subject, way, program, check }, listScenarios) {
  const name = `${subject} ${revision}`;
  const run = async (client, scenarios) => {
    if (scenarios.length > 1) progress(`${name}: ${client}, ${scenarios.length} scenarios`);
    const runs = await mapInParallel(scenarios, (scenario) => testClientScenario(client, revision, scenario));
    check?.();
    return { scenarios: new Map(runs.flatMap((run) => [...run.scenarios])) };
  };
  const runBoth = async (scenarios) => ({
    direct: await run(directClient, scenarios),
    through: await run(program, scenarios),
  });
  return {
    name,
    subject,
    way,
    run: async () => runBoth(await listScenarios()),
    runAlone: (scenario) => runBoth([scenario]),
  };
}

// Each scenario is a recording of its own.
function createMockLeg(revision, progress) {
  const name = `mock ${revision}`;
  const run = async (test) => {
    const target = await servers['dual-era']();
    progress(`${name}: direct`);
    const direct = await test(target.url);
    const names = [...direct.scenarios.keys()];
    progress(`${name}: recorded and replayed, ${names.length} scenarios`);
    const runs = await mapInParallel(names, (scenario) => testScenarioOnMock(target.url, revision, scenario));
    await target.stop();
    return { direct, through: { scenarios: new Map(runs.flatMap((run) => [...run.scenarios])) } };
  };
  return {
    name,
    subject: 'mock',
    way: 'on the mock',
    mustBeAccepted: true,
    run: () => run((url) => testServer(url, revision)),
    runAlone: (scenario) => run((url) => testServerScenario(url, revision, scenario)),
  };
}

async function mapInParallel(items, work) {
  const results = [];
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: availableParallelism() + 1 }, worker));
  return results;
}
