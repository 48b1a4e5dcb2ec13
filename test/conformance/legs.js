// The legs of the comparison: what is tested (a server, the client, or the mock), at which revision. `run` tests it direct
// and `way`: through the proxy, or on the mock; `runAlone` does so with one scenario. `mustBeAccepted` is a server whose
// direct run is to pass.
import { availableParallelism } from 'node:os';
import { testScenarioOnMock } from './mock.js';
import { isOtherProxy, startProxy } from './proxy.js';
import { servers } from './servers.js';
import { listClientScenarios, testClientScenario, testServer, testServerScenario } from './suite.js';

const revisions = ['2025-11-25', '2026-07-28'];
const throughProxy = 'through the proxy';
const directClient = 'client.js';
const proxiedClient = 'client-through-proxy.js';

export function listLegs(progress) {
  return revisions.flatMap((revision) => [
    ...Object.keys(servers).map((server) => createServerLeg(server, revision, progress)),
    createClientLeg(revision, progress),
    // Only tapedeck's own recordings can be replayed.
    ...(isOtherProxy ? [] : [createMockLeg(revision, progress)]),
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
  const name = `client ${revision}`;
  const run = async (client, scenarios) => {
    if (scenarios.length > 1) progress(`${name}: ${client}, ${scenarios.length} scenarios`);
    const runs = await mapInParallel(scenarios, (scenario) => testClientScenario(client, revision, scenario));
    return { scenarios: new Map(runs.flatMap((run) => [...run.scenarios])) };
  };
  const runBoth = async (scenarios) => ({
    direct: await run(directClient, scenarios),
    through: await run(proxiedClient, scenarios),
  });
  return {
    name,
    subject: 'client',
    way: throughProxy,
    run: async () => runBoth(await listClientScenarios(revision)),
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
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return results;
}
