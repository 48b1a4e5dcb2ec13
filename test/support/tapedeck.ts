/** Runs the command line, in processes or in this one, each test with a store and a folder of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { onTestFinished } from 'vitest';
import type { Io, Output } from '../../src/cli/io.ts';
import { main } from '../../src/cli/main.ts';

export const ROOT = resolve(import.meta.dirname, '../..');
export const BIN = join(ROOT, 'bin/tapedeck.js');

export function fixture(name: string): string {
  return join(ROOT, 'test/fixtures', name);
}

/** A folder that is removed after the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tapedeck-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The path of a store that does not exist yet. */
export function tempStore(): string {
  return join(tempFolder(), 'recordings.db');
}

export type Run = {
  child: ChildProcessWithoutNullStreams;
  /** What came so far. */
  stdout: () => Buffer;
  stderr: () => string;
  ended: Promise<Ended>;
};

type Ended = { code: number | null; signal: string | null; stdout: Buffer; stderr: string };

type RunOptions = { env?: Record<string, string>; cwd?: string };

/** Starts a program. It is killed if the test ends first. */
export function start(command: string, args: readonly string[], options: RunOptions = {}): Run {
  const child = spawn(command, args, { ...options, env: { ...process.env, ...options.env } });
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on('data', (bytes) => output.push(bytes));
  child.stderr.on('data', (bytes) => errors.push(bytes));
  // A test may close its end at any moment; what then happens is seen in the exit.
  child.stdin.on('error', () => {});
  const stdout = () => Buffer.concat(output);
  const stderr = () => Buffer.concat(errors).toString();
  const ended = new Promise<Ended>((done, failed) => {
    child.on('error', failed);
    child.on('close', (code, signal) => done({ code, signal, stdout: stdout(), stderr: stderr() }));
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, stdout, stderr, ended };
}

export function tapedeck(args: readonly string[], options: RunOptions = {}): Run {
  return start(process.execPath, [BIN, ...args], options);
}

type InProcessOptions = RunOptions & {
  stdin?: string | Buffer;
  /** What stdin and both outputs are, where they are one. */
  terminal?: Pick<Output, 'isTTY' | 'columns'>;
};

/**
 * Runs one command line in this process, at a fraction of the time. For commands that read a store or files, for help and
 * for usage errors; where the process itself matters (signals, pipes, `record`), use `tapedeck`.
 */
export async function tapedeckInProcess(
  args: readonly string[],
  { env, cwd = process.cwd(), stdin = '', terminal = {} }: InProcessOptions = {},
): Promise<Ended> {
  const [stdout, stderr] = [collector(terminal), collector(terminal)];
  const io: Io = {
    ...{
      stdin: Object.assign(new PassThrough().end(stdin), terminal),
      stdout: stdout.output,
      stderr: stderr.output,
    },
    env: { ...process.env, ...env },
    cwd: () => cwd,
    exit() {},
    on() {},
    off() {},
  };
  await main(args, io);
  const code = Number(io.exitCode ?? 0);
  return { code, signal: null, stdout: stdout.bytes(), stderr: stderr.bytes().toString() };
}

/** A stream that keeps what is written to it. */
function collector(terminal: Pick<Output, 'isTTY' | 'columns'>) {
  const pieces: Buffer[] = [];
  const output: Output = new Writable({
    write(bytes: Buffer, _encoding, done) {
      pieces.push(bytes);
      done();
    },
  });
  return { output: Object.assign(output, terminal), bytes: () => Buffer.concat(pieces) };
}

/** Records a fixture server (a file of test/fixtures) into `db`. */
export function record(
  db: string,
  server: readonly string[],
  options: readonly string[] = [],
  how: RunOptions = {},
): Run {
  const [name = '', ...args] = server;
  return tapedeck(['record', '--db', db, ...options, '--', process.execPath, fixture(name), ...args], how);
}

/** One line of `show --json`. */
export type JsonFrame = {
  session: string;
  seq: number;
  at: string;
  direction: string;
  channel: string;
  size: number;
  text?: string;
  base64?: string;
  http: { exchange: number } | null;
  messages: JsonMessage[];
};

type JsonMessage = {
  kind: string;
  id: string | null;
  idType: string | null;
  method: string | null;
  replyTo: number | null;
  latencyMs: number | null;
  problem: string | null;
};

export type JsonSession = {
  session: string;
  name: string | null;
  client: { name: string; version: string | null } | null;
  server: { name: string; version: string | null } | null;
  protocolVersion: string | null;
  target: string;
  startedAt: string;
  endedAt: string | null;
  frames: number;
  dropped: number;
  exchanges: number;
  errors: number;
  unanswered: number;
  exitCode: number | null;
  signal: string | null;
  endReason: string | null;
};

export async function showFrames(db: string, session = 'latest'): Promise<JsonFrame[]> {
  return jsonLines<JsonFrame>(await tapedeckInProcess(['show', session, '--json', '--db', db]));
}

export async function listSessions(db: string): Promise<JsonSession[]> {
  return jsonLines<JsonSession>(await tapedeckInProcess(['list', '--limit', '0', '--json', '--db', db]));
}

/** The newest session. Fails where there is none. */
export async function latestSession(db: string): Promise<JsonSession> {
  const [session] = await listSessions(db);
  if (session === undefined) throw new Error(`no session in ${db}`);
  return session;
}

function jsonLines<T>({ code, stdout, stderr }: Ended): T[] {
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`);
  const lines = stdout.toString().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as T);
}

export function payloadOf(frame: JsonFrame): Buffer {
  return frame.text === undefined ? Buffer.from(frame.base64 ?? '', 'base64') : Buffer.from(frame.text);
}

/** Waits until `condition` holds, and fails with `what` if it does not within the deadline. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  deadlineMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
