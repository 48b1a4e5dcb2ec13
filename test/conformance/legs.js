// The legs of the comparison: what is tested (a server or the client), at which revision. `run` tests it direct and
// through the proxy; `runAlone` does so with one scenario. `mustBeAccepted` is a server whose direct run is to pass.
import { availableParallelism } from 'node:os';
import { startProxy } from './proxy.js';
import { servers } from './servers.js';
import { listClientScenarios, testClientScenario, testServer, testServerScenario } from './suite.js';

const revisions = ['2025-11-25', '2026-07-28'];
const directClient = 'client.js';
const proxiedClient = 'client-through-proxy.js';

export function listLegs(progress) {
  return revisions.flatMap((revision) => [
    ...Object.keys(servers).map((server) => createServerLeg(server, revision, progress)),
    createClientLeg(revision, progress),
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
    run: async () => runBoth(await listClientScenarios(revision)),
    runAlone: (scenario) => runBoth([scenario]),
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
