/** Command lines that are talked to while they run, in this process: a tenth of the time that one of its own takes. */
import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { onTestFinished } from 'vitest';
import type { Io } from '../../src/cli/io.ts';
import { main } from '../../src/cli/main.ts';

/** Has of a process what tests ask of one, under the same names. */
export type InProcessRun = {
  child: { stdin: PassThrough; kill(signal: 'SIGINT' | 'SIGTERM'): void };
  /** What came so far. */
  stdout(): Buffer;
  stderr(): string;
  ended: Promise<{ code: number; signal: null; stdout: Buffer; stderr: string }>;
};

/**
 * For commands that answer clients (`replay`, `verify`). Where the process itself matters (its death, pipes that break,
 * what is left in its temporary folder), use `tapedeck`. It is stopped if the test ends first.
 */
export function startInProcess(
  args: readonly string[],
  {
    env = {},
    cwd = process.cwd(),
    isTerminal = false,
  }: { env?: Record<string, string>; cwd?: string; isTerminal?: boolean } = {},
): InProcessRun {
  const signals = new EventEmitter();
  const stdin = new PassThrough();
  const [output, errors] = [collector(), collector()];
  const io: Io = {
    ...{ stdin, stdout: Object.assign(output.stream, { isTTY: isTerminal }), stderr: errors.stream },
    env: { ...process.env, ...env },
    cwd: () => cwd,
    exit() {},
    on: (signal, listener) => signals.on(signal, listener),
    off: (signal, listener) => signals.off(signal, listener),
  };
  const stdout = output.bytes;
  const stderr = () => errors.bytes().toString();
  const ended = main(args, io).then(() => {
    return { code: Number(io.exitCode ?? 0), signal: null, stdout: stdout(), stderr: stderr() };
  });
  onTestFinished(async () => {
    stdin.end();
    signals.emit('SIGTERM');
    await ended;
  });
  return { child: { stdin, kill: (signal) => void signals.emit(signal) }, stdout, stderr, ended };
}

function collector(): { stream: Writable; bytes(): Buffer } {
  const pieces: Buffer[] = [];
  const stream = new Writable({
    write(bytes: Buffer, _encoding, done) {
      pieces.push(bytes);
      done();
    },
  });
  return { stream, bytes: () => Buffer.concat(pieces) };
}
