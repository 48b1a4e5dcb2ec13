// The servers that the suite is run against. Each starts on a free port of loopback.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort, startProgram } from './processes.js';

const resolve = createRequire(import.meta.url).resolve;
const fixture = fileURLToPath(new URL('../fixtures/dual-era-server.js', import.meta.url));
const loopbackOnly = new URL('./loopback-only.js', import.meta.url).href;

export const servers = { 'dual-era': startDualEraServer, everything: startEverything };

async function startDualEraServer() {
  const program = await startProgram([process.execPath, fixture], {
    isReady: (said) => said.includes('/mcp\n'),
  });
  return { url: program.said.stdout.trim(), stop: program.stop };
}

async function startEverything() {
  const root = dirname(resolve('@modelcontextprotocol/server-everything/package.json'));
  const port = await findFreePort();
  const program = await startProgram(
    [process.execPath, '--import', loopbackOnly, join(root, 'dist', 'index.js'), 'streamableHttp'],
    { env: { PORT: String(port) }, isReady: (said) => said.includes(`port ${port}`) },
  );
  return { url: `http://127.0.0.1:${port}/mcp`, stop: program.stop };
}
