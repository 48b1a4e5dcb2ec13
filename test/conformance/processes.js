// Child processes of a run: started, waited for, and ended with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

const startDeadline = 30_000;
const termDeadline = 5_000;

const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

// Starts a program which goes on, and resolves once `isReady` accepts what it has said (stdout and stderr together).
export async function startProgram([command, ...args], { env = {}, isReady }) {
  const child = spawnChild(command, args, env);
  const said = collect(child);
  try {
    await waitUntilReady(child, said, isReady, command);
  } catch (error) {
    await stopProgram(child);
    throw error;
  }
  return { said, stop: () => stopProgram(child) };
}

// Runs a program to its end and resolves with its exit code and what it said.
export async function runProgram([command, ...args], { env = {}, deadline }) {
  const child = spawnChild(command, args, env);
  const said = collect(child);
  const timer = setTimeout(() => child.kill('SIGKILL'), deadline);
  const [exitCode] = await once(child, 'close');
  clearTimeout(timer);
  return { exitCode, stdout: said.stdout, stderr: said.stderr };
}

export async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

function spawnChild(command, args, env) {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32' && command === 'npm',
  });
  running.add(child);
  child.on('close', () => running.delete(child));
  return child;
}

function collect(child) {
  const said = { stdout: '', stderr: '' };
  for (const channel of ['stdout', 'stderr']) {
    child[channel].setEncoding('utf8').on('data', (text) => {
      said[channel] += text;
    });
  }
  return said;
}

function waitUntilReady(child, said, isReady, command) {
  return new Promise((resolve, reject) => {
    const fail = (what) => reject(new Error(`${command} ${what}:\n${said.stdout}${said.stderr}`));
    const timer = setTimeout(() => fail('did not start in time'), startDeadline);
    const look = () => {
      if (!isReady(said.stdout + said.stderr)) return;
      clearTimeout(timer);
      resolve();
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      fail(`ended with ${code} before it was ready`);
    });
  });
}

async function stopProgram(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), termDeadline);
  await closed;
  clearTimeout(timer);
}
