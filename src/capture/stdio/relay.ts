/**
 * The stdio relay: starts the server's command and stands between it and the client. The server gets our environment,
 * folder and arguments as they are. Bytes are forwarded before anything else happens to them; each chunk is stamped
 * once, here, and shown to `onChunk`.
 */

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Chunk, StdioChannel } from '../../protocol/wire/frame.ts';
import { now } from '../clock.ts';
import { createTerminator, forwardSignals, spawn } from './child.ts';

/** What the relay stands between. */
export type RelayedStreams = {
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  /** May return a promise: the channel then pauses until it is settled. */
  onChunk: (chunk: Chunk) => Promise<void> | undefined;
};

type StdioOptions = RelayedStreams & {
  command: string;
  args: readonly string[];
  /** Asked from time to time once the client has closed our stdin. */
  isClientGone: () => boolean;
  /** Called for SIGHUP; missing: it is the server's, as all signals are. */
  onHangUp?: (() => void) | undefined;
};

/** What happened to both ends; times in microseconds since the Unix epoch. */
export type StdioEnd = {
  at: number;
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  /** Set if the command never ran. */
  spawnError: NodeJS.ErrnoException | null;
  clientClosedAt: number | null;
  serverClosedAt: number | null;
  /** A signal came to us for the server. */
  wasSignalled: boolean;
  /** A process that the server has left behind still held its output open, and was not waited for any longer. */
  isCutOff: boolean;
};

type StdioCapture = {
  /** The server's process id, unless it could not be started. */
  pid: number | undefined;
  end: Promise<StdioEnd>;
  /** Ends the server, first kindly. */
  stop(): void;
};

type Exit = Pick<StdioEnd, 'exitCode' | 'signal'>;

type Observed = Pick<StdioEnd, 'clientClosedAt' | 'serverClosedAt' | 'wasSignalled'> & {
  wasTerminated: boolean;
  /** Nothing will reach the server's stdin any more, whichever side closed it. */
  isInputOver: boolean;
  lastOutputAt: number;
  isClientDeaf: boolean;
};

/**
 * A process that the server started may write after the server's exit, and a client that reads a pipe gets all of it. But it
 * may also keep the pipe open for good, and a client that waits for our exit would wait for ever. So long after the last byte
 * we stop waiting.
 */
const SILENCE_AFTER_EXIT_MS = 5000;

/** The same where the client has ended its input, or has left: it wants to end. */
const SILENCE_AFTER_CLIENT_MS = 1000;

export function captureStdio(options: StdioOptions): StdioCapture {
  const { isClientGone } = options;
  const child = startServer(options);
  if (child instanceof Promise) return { pid: undefined, end: child.then(endOfUnstarted), stop: () => {} };
  const observed: Observed = {
    clientClosedAt: null,
    serverClosedAt: null,
    wasSignalled: false,
    wasTerminated: false,
    isInputOver: false,
    lastOutputAt: 0,
    isClientDeaf: false,
  };
  const terminator = createTerminator(child);
  const exit = waitForExit(child);
  const outputs = relayOutputs(child, options, observed);
  const followShutdown = () => {
    if (observed.wasTerminated && observed.isInputOver) terminator.followClient();
  };
  relayInput(child, options, observed, () => {
    terminator.watch(() => observed.isClientDeaf || isClientGone());
    followShutdown();
  });
  const signals = relaySignals(child, observed, followShutdown, options.onHangUp);

  const end = exit.then(async ({ exitCode, signal }): Promise<StdioEnd> => {
    terminator.cancel();
    observed.serverClosedAt ??= now();
    const isCutOff = await Promise.race([
      outputs.then(() => false),
      waitForSilence(observed, options).then(() => true),
      signals.afterExit.then(() => true),
    ]);
    signals.stop();
    const { clientClosedAt, serverClosedAt, wasSignalled } = observed;
    const closed = { clientClosedAt, serverClosedAt, wasSignalled };
    return { at: now(), exitCode, signal, spawnError: null, ...closed, isCutOff };
  });
  return { pid: child.pid, end, stop: terminator.terminate };
}

/** The running server, or why there is none: Node throws some of these errors and emits others. */
function startServer({
  command,
  args,
}: StdioOptions): ChildProcessWithoutNullStreams | Promise<NodeJS.ErrnoException> {
  try {
    const child = spawn(command, args, {
      stdio: 'pipe',
      windowsHide: true,
    }) as ChildProcessWithoutNullStreams;
    if (child.pid === undefined) return new Promise((resolve) => child.once('error', resolve));
    // Emitted when a signal could not be sent: the server's exit tells the rest.
    child.on('error', () => {});
    return child;
  } catch (error) {
    return Promise.resolve(error as NodeJS.ErrnoException);
  }
}

function endOfUnstarted(spawnError: NodeJS.ErrnoException): StdioEnd {
  const unknown = { exitCode: null, signal: null, clientClosedAt: null };
  return { ...unknown, at: now(), spawnError, serverClosedAt: now(), wasSignalled: false, isCutOff: false };
}

function waitForExit(child: ChildProcessWithoutNullStreams): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }));
  });
}

async function relayOutputs(
  child: ChildProcessWithoutNullStreams,
  { stdout, stderr, onChunk }: StdioOptions,
  observed: Observed,
): Promise<void> {
  const show = (channel: StdioChannel) => (bytes: Buffer) => {
    observed.lastOutputAt = performance.now();
    return onChunk({ channel, at: now(), bytes });
  };
  const onSourceEnd = () => {
    observed.serverClosedAt ??= now();
  };
  const onSinkClosed = () => {
    observed.isClientDeaf = true;
  };
  await Promise.all([
    pump({ source: child.stdout, sink: stdout, onBytes: show('stdout'), onSourceEnd, onSinkClosed }),
    // What tapedeck itself has to say goes to the same stderr, so it stays open.
    pump({ source: child.stderr, sink: stderr, onBytes: show('stderr'), keepSinkOpen: true }),
  ]);
}

function relayInput(
  child: ChildProcessWithoutNullStreams,
  { stdin, onChunk }: StdioOptions,
  observed: Observed,
  onInputOver: () => void,
): void {
  const endInput = () => {
    observed.isInputOver = true;
    onInputOver();
  };
  void pump({
    source: stdin,
    sink: child.stdin,
    onBytes: (bytes) => onChunk({ channel: 'stdin', at: now(), bytes }),
    onSourceEnd: () => {
      observed.clientClosedAt ??= now();
      endInput();
    },
    onSinkClosed: endInput,
  });
}

/** `afterExit` settles if a signal comes when the server has gone: then it is meant for us, who wait for the client. */
function relaySignals(
  child: ChildProcessWithoutNullStreams,
  observed: Observed,
  onTerminate: () => void,
  onHangUp: (() => void) | undefined,
): { afterExit: Promise<void>; stop: () => void } {
  let stop = () => {};
  const afterExit = new Promise<void>((resolve) => {
    stop = forwardSignals((signal) => {
      observed.wasSignalled = true;
      if (child.exitCode !== null || child.signalCode !== null) return resolve();
      child.kill(signal);
      if (signal !== 'SIGTERM') return;
      observed.wasTerminated = true;
      onTerminate();
    }, onHangUp);
  });
  return { afterExit, stop };
}

/** Settles once nothing came for a while and the client has taken all that did come. */
function waitForSilence(observed: Observed, { stdout, stderr, isClientGone }: StdioOptions): Promise<void> {
  return new Promise((resolve) => {
    const exitedAt = performance.now();
    const timer = setInterval(() => {
      const silentFor = performance.now() - Math.max(exitedAt, observed.lastOutputAt);
      const isClientEnding = observed.clientClosedAt !== null || observed.isClientDeaf || isClientGone();
      const longest = isClientEnding ? SILENCE_AFTER_CLIENT_MS : SILENCE_AFTER_EXIT_MS;
      if (silentFor < longest || stdout.writableLength + stderr.writableLength > 0) return;
      clearInterval(timer);
      resolve();
    }, SILENCE_AFTER_CLIENT_MS / 4);
    timer.unref();
  });
}

/**
 * One direction of a relay: what comes out of `source` goes into `sink`, first and untouched; a copy is shown to
 * `onBytes`. The slower end sets the pace. Each end's close or failure is passed on to the other at once.
 */

type PumpOptions = {
  source: Readable;
  sink: Writable;
  /** May return a promise: the source then pauses until it is settled. */
  onBytes: (bytes: Buffer) => Promise<void> | undefined;
  /** The source has said all it had to say, or broke: nothing more comes from it. */
  onSourceEnd?: () => void;
  /** Nobody reads the sink any more. */
  onSinkClosed?: () => void;
  /** For a sink that others write to as well. */
  keepSinkOpen?: boolean;
};

/** Starts the pump. Settles when the source is over and the sink has taken everything, or is closed. */
function pump(options: PumpOptions): Promise<void> {
  const { source, sink, onBytes, onSourceEnd, onSinkClosed, keepSinkOpen = false } = options;
  let blockers = 0;

  const block = () => {
    blockers += 1;
    source.pause();
  };
  const unblock = () => {
    blockers -= 1;
    if (blockers === 0) source.resume();
  };

  source.on('data', (bytes: Buffer) => {
    // A write that the kernel took at once leaves nothing to wait for, whatever `write` answers.
    if (!sink.write(bytes) && sink.writableLength > 0) {
      block();
      sink.once('drain', unblock);
    }
    const ready = shown(onBytes, bytes);
    if (ready !== undefined) {
      block();
      ready.then(unblock);
    }
  });

  return new Promise<void>((resolve) => {
    let isSourceOver = false;
    const endSource = () => {
      if (isSourceOver) return;
      isSourceOver = true;
      onSourceEnd?.();
      if (sink.destroyed) resolve();
      else if (keepSinkOpen) sink.write('', () => resolve());
      else sink.end();
    };
    source.on('end', endSource);
    source.on('close', endSource);
    source.on('error', endSource);
    sink.on('finish', resolve);
    sink.on('close', resolve);
    sink.on('error', () => {
      // EPIPE and its kin: the reader has gone. Closing the source tells the writer so, as a plain pipe would.
      // That is our doing, so it is not told as the source's own end.
      isSourceOver = true;
      onSinkClosed?.();
      sink.destroy();
      source.destroy();
    });
  });
}

/** Whatever goes wrong with the copy, the traffic goes on. */
function shown(onBytes: PumpOptions['onBytes'], bytes: Buffer): Promise<void> | undefined {
  try {
    return onBytes(bytes);
  } catch {
    return undefined;
  }
}
