/** A client of a live stdio server, which it starts: one message a line. Ends the server as the specification asks of clients. */

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { clearTimeout, setTimeout } from 'node:timers';
import { createTerminator, spawn, whyNotStarted } from '../capture/stdio/child.ts';
import { createLineSplitter, oneLine } from '../protocol/wire/lines.ts';
import type { Connect, LiveEvents, LiveServer } from './server.ts';

const LINE_END = Buffer.from('\n');

/** A process that the server started may keep its stdout open for good. */
const SILENCE_AFTER_EXIT_MS = 1000;

const MAX_BYTES = 256 * 1024 * 1024;

/** `onStderr` gets what the server says besides; without `env` and `cwd` it has ours. */
export function liveStdio(
  command: string,
  args: readonly string[],
  onStderr: (bytes: Buffer) => void,
  env: NodeJS.ProcessEnv = process.env,
  cwd?: string,
): Connect {
  return (events) => {
    try {
      const child = spawn(command, args, { stdio: 'pipe', windowsHide: true, env, cwd });
      return talkTo(child as ChildProcessWithoutNullStreams, command, events, onStderr);
    } catch (error) {
      queueMicrotask(() => events.onClosed(whyNotStarted(command, error as NodeJS.ErrnoException)));
      return { send: async () => {}, transport: () => 'stdio', agreed() {}, close: async () => {} };
    }
  };
}

function talkTo(
  child: ChildProcessWithoutNullStreams,
  command: string,
  events: LiveEvents,
  onStderr: (bytes: Buffer) => void,
): LiveServer {
  const terminator = createTerminator(child);
  const lines = createLineSplitter({
    channel: 'stdout',
    maxBytes: MAX_BYTES,
    onFrame: ({ payload, truncated }) => {
      if (!truncated) events.onPayload(payload);
    },
    onSkip: () => {},
  });
  const gone = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      if (child.pid !== undefined) return;
      events.onClosed(whyNotStarted(command, error));
      resolve();
    });
    child.once('exit', (code, signal) => {
      terminator.cancel();
      // What it wrote last may still be on its way.
      let isSettled = false;
      const settle = () => {
        if (isSettled) return;
        isSettled = true;
        lines.end();
        events.onClosed(`the server has ended (${signal ?? `exit ${code}`})`);
        child.stdout.destroy();
        child.stderr.destroy();
        resolve();
      };
      if (child.stdout.closed) return settle();
      const timer = setTimeout(settle, SILENCE_AFTER_EXIT_MS);
      child.stdout.once('close', () => {
        clearTimeout(timer);
        settle();
      });
    });
  });
  child.on('error', () => {});
  child.stdin.on('error', () => {});
  child.stdout.on('data', (bytes: Buffer) => lines.feed(bytes, 0));
  child.stderr.on('data', onStderr);

  return {
    async send({ json }) {
      if (child.stdin.writable) child.stdin.write(Buffer.concat([oneLine(json), LINE_END]));
    },
    transport: () => 'stdio',
    agreed() {},
    async close() {
      const isRunning = child.pid !== undefined && child.exitCode === null && child.signalCode === null;
      if (isRunning && child.stdin.writableEnded) {
        child.kill('SIGTERM');
        terminator.followClient();
      } else if (isRunning) terminator.watch(() => true);
      child.stdin.end();
      await gone;
    },
  };
}
