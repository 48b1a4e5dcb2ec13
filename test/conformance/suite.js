// Runs the official conformance suite and reads what it found: a Map from scenario to its checks.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from './processes.js';
import { findSuiteNode } from './suite-node.js';

const deadline = 300_000;
const clientTimeout = 60_000;
const heavy = createRequire(new URL('../heavy/package.json', import.meta.url));
const packageRoot = dirname(heavy.resolve('@modelcontextprotocol/conformance/package.json'));
const program = join(packageRoot, 'dist', 'index.js');
const loopbackOnly = new URL('./loopback-only.js', import.meta.url).href;
const here = fileURLToPath(new URL('.', import.meta.url));

// All scenarios that `revision` requires of a server, one after the other.
export function testServer(url, revision) {
  return runSuite(['server', '--url', url, '--requirements', revision]);
}

export function testServerScenario(url, revision, scenario) {
  return runSuite(['server', '--url', url, '--spec-version', revision, '--force', '--scenario', scenario]);
}

// `client` is the name of a program beside this one; the suite gives it the URL as its last argument.
export function testClientScenario(client, revision, scenario) {
  const command = `node ${relative(process.cwd(), join(here, client)).replaceAll('\\', '/')}`;
  const options = ['--spec-version', revision, '--force', '--timeout', String(clientTimeout)];
  return runSuite(['client', '--command', command, '--scenario', scenario, ...options]);
}

// The suite would run all of them at once, which a small machine answers with late clients.
export async function listClientScenarios(revision) {
  const { stdout } = await runCommand(['list', '--client', '--requirements', revision]);
  const required = stdout.split('Client scenarios')[1]?.split('\n\n')[0] ?? '';
  const names = [...required.matchAll(/^ {2}- (\S+)$/gm), ...stdout.matchAll(/^ {4}- (\S+) \[client\]$/gm)];
  if (names.length === 0) throw new Error(`The suite lists no client scenario for ${revision}:\n${stdout}`);
  return names.map((match) => match[1]);
}

async function runSuite(args) {
  const folder = await mkdtemp(join(tmpdir(), 'tapedeck-conformance-'));
  try {
    const { exitCode, stdout, stderr } = await runCommand([...args, '--output-dir', folder]);
    const scenarios = await readScenarios(folder, args[0] === 'server' ? 'server-' : '');
    if (scenarios.size === 0)
      throw new Error(`The suite left no results (exit ${exitCode}):\n${stdout}${stderr}`);
    return { accepted: exitCode === 0, scenarios };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runCommand(args) {
  return runProgram([await findSuiteNode(), '--import', loopbackOnly, program, ...args], { deadline });
}

// A scenario's folder is its name (which may have a slash), for servers after `server-`, and the time.
async function readScenarios(folder, prefix) {
  const scenarios = new Map();
  for (const path of await readdir(folder, { recursive: true })) {
    if (!path.endsWith('checks.json')) continue;
    const name = dirname(path)
      .replaceAll('\\', '/')
      .slice(prefix.length)
      .replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
    scenarios.set(name, JSON.parse(await readFile(join(folder, path), 'utf8')));
  }
  return scenarios;
}
