// The proxy under test: tapedeck's HTTP edge. Its command is a parameter, so that another proxy can stand for comparison:
//   CONFORMANCE_PROXY="node other-proxy.js" npm run conformance
// is started as `node other-proxy.js <url> --listen 127.0.0.1:<port> --db <file>` and says on stderr where it listens.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort, startProgram } from './processes.js';

const edge = [process.execPath, fileURLToPath(new URL('./edge.js', import.meta.url))];

export const proxyCommand = process.env.CONFORMANCE_PROXY?.split(' ') ?? edge;

// Starts the proxy in front of `target` and resolves with the URL that a client is to use instead.
export async function startProxy(target) {
  const folder = await mkdtemp(join(tmpdir(), 'tapedeck-conformance-'));
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  const port = await findFreePort();
  const options = ['--listen', `127.0.0.1:${port}`, '--db', join(folder, 'recordings.db')];
  const program = await startProgram([...proxyCommand, target, ...options], {
    isReady: (said) => said.includes(`:${port}`),
  }).catch(async (error) => {
    await removeFolder();
    throw error;
  });
  const { pathname, search } = new URL(target);
  const stop = async () => {
    await program.stop();
    await removeFolder();
  };
  return { url: `http://127.0.0.1:${port}${pathname}${search}`, stop };
}
