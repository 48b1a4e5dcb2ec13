// The proxy under test: `tapedeck record <url>`. Its command is a parameter, so that another proxy can stand for comparison:
//   CONFORMANCE_PROXY="node other-proxy.js" npm run conformance
// is started as `node other-proxy.js <url> --listen 127.0.0.1:<port> --db <file> --grace 1` and says on stderr where it listens.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort, startProgram } from './processes.js';

export const bin = fileURLToPath(new URL('../../bin/tapedeck.js', import.meta.url));

export const isOtherProxy = process.env.CONFORMANCE_PROXY !== undefined;
export const proxyCommand = process.env.CONFORMANCE_PROXY?.split(' ') ?? [process.execPath, bin, 'record'];

// Starts the proxy in front of `target` and resolves with the URL that a client is to use instead.
export async function startProxy(target) {
  const { folder, remove } = await createFolder();
  const proxy = await startRecording(target, join(folder, 'recordings.db')).catch(async (error) => {
    await remove();
    throw error;
  });
  const stop = async () => {
    await proxy.stop();
    await remove();
  };
  return { url: proxy.url, stop };
}

// The same into a store that stays. `env` goes to the proxy beside this process's own.
export async function startRecording(target, db, env = {}) {
  const port = await findFreePort();
  const options = ['--listen', `127.0.0.1:${port}`, '--db', db, '--grace', '1'];
  const { stop } = await startProgram([...proxyCommand, target, ...options], {
    env,
    isReady: (said) => said.includes(`:${port}`),
  });
  const { pathname, search } = new URL(target);
  return { url: `http://127.0.0.1:${port}${pathname}${search}`, stop };
}

export async function createFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'tapedeck-conformance-'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}
