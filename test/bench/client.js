// A raw client over stdio: newline-delimited calls, answers matched by id, nothing else that could cost time.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { processorTime } from './processor.js';

/** Starts `command`; resolves after the answer to initialize, with the time that took in milliseconds. */
export async function startClient([command, ...args], env = {}) {
  const began = performance.now();
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'], env: { ...process.env, ...env } });
  const waiting = new Map();
  let rest = '';
  let nextId = 1;
  let errors = 0;
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const { id, error } = JSON.parse(line);
      if (error !== undefined) errors += 1;
      waiting.get(id)?.();
      waiting.delete(id);
    }
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));

  function call(method, params) {
    const id = nextId++;
    return new Promise((resolve) => {
      waiting.set(id, resolve);
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  }

  const clientInfo = { name: 'bench', version: '1' };
  await call('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  const startMs = performance.now() - began;
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  const close = () => {
    child.stdin.end();
    return exited;
  };
  const memoryMb = (field) => {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)[1]) / 1024;
  };
  return {
    pid: child.pid,
    startMs,
    call,
    close,
    memoryMb,
    errors: () => errors,
    processor: () => processorTime(child.pid),
  };
}

/**
 * Calls the tool `echo` `count` times, `inFlight` at once. Resolves with each call's round trip in milliseconds.
 * `textOf` gives what the call of that number, from 0, says. As `text` our echo server gives it back, as `message` the
 * official one.
 */
export async function callEcho(client, count, inFlight, textOf = () => 'hello') {
  const times = new Float64Array(count);
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const i = next++;
      const began = performance.now();
      const text = textOf(i);
      await client.call('tools/call', { name: 'echo', arguments: { text, message: text } });
      times[i] = performance.now() - began;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return times;
}
