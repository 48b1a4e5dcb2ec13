/** Serves a mock to clients: over stdio, or over HTTP with `--listen`. */

import { TapedeckError } from '../../errors.ts';
import type { FaultSettings, RawFaults } from '../../fault/faults.ts';
import type { Mock } from '../../replay/mock.ts';
import type { Recording } from '../../replay/recording/recording.ts';
import { createStdioMock } from '../../replay/serve/stdio.ts';
import { asksForFaults } from '../fault-options.ts';
import { type Io, onStopSignals, say } from '../io.ts';
import { cannotListen, readListen, warnBeyondLoopback } from '../listening.ts';

export type ServingOptions = RawFaults & {
  listen: string | undefined;
  'allow-host': string[];
  'allow-origin': string[];
};

/** Throws `TapedeckError` `usage`. */
export function checkServing(argv: ServingOptions): void {
  for (const name of ['allow-host', 'allow-origin'] as const) {
    if (argv.listen === undefined && argv[name].length > 0)
      throw new TapedeckError('usage', `Expected \`--listen\` with \`--${name}\`: stdio has no such thing.`);
  }
}

/** What puts faults in, and which. */
export type ServingFaults = Pick<
  typeof import('./faulty.ts'),
  'mockFaults' | 'printPlan' | 'serveFaultyStdio'
> & { settings: FaultSettings };

/** Null where none are asked for: then nothing of them is loaded. Throws `TapedeckError` `usage`. */
export async function loadFaults(argv: ServingOptions): Promise<ServingFaults | null> {
  if (!asksForFaults(argv)) return null;
  const { mockFaults, printPlan, readReplayFaults, serveFaultyStdio } = await import('./faulty.ts');
  const settings = readReplayFaults(argv);
  return settings === null ? null : { mockFaults, printPlan, serveFaultyStdio, settings };
}

export type Stop = { asked: Promise<void>; ignoreSignals: () => void };

export function createStop(io: Io): Stop {
  let ask = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  return { asked, ignoreSignals: onStopSignals(io, () => ask()) };
}

/**
 * Runs until the clients have left or a signal has come, or until a fault ends it. Then what it returns ends the process as that
 * fault has it; null: it ends as ever.
 */
export async function serve(
  io: Io,
  recording: Recording,
  mock: Mock,
  argv: ServingOptions,
  faults: ServingFaults | null,
  stopped: Promise<void>,
): Promise<(() => void) | null> {
  let leave: (() => void) | null = null;
  if (argv.listen !== undefined) await serveHttp(io, recording, mock, argv, faults, stopped);
  else if (faults === null) await serveStdio(io, mock, stopped);
  else ({ leave } = await faults.serveFaultyStdio(io, mock, stopped, faults.settings));
  mock.end();
  return leave;
}

/** Runs until the client has closed its end and has its answers, takes no more, or until it is stopped by a signal. */
async function serveStdio(io: Io, mock: Mock, stopped: Promise<void>): Promise<void> {
  const { feed, end } = createStdioMock(mock, (line) => void io.stdout.write(line));
  const ended = new Promise<void>((resolve) => {
    io.stdin.on('data', feed);
    io.stdin.on('end', resolve);
    io.stdin.on('error', () => resolve());
  });
  const answered = ended.then(() => {
    end();
    return mock.idle();
  });
  const left = new Promise<void>((resolve) => {
    io.stdout.on('error', () => resolve());
  });
  await Promise.race([answered, left, stopped]);
  // An open stdin would keep the process alive.
  io.stdin.destroy();
}

/** Runs until it is stopped by a signal. */
async function serveHttp(
  io: Io,
  recording: Recording,
  mock: Mock,
  argv: ServingOptions,
  onPurpose: ServingFaults | null,
  stopped: Promise<void>,
): Promise<void> {
  const listen = readListen(argv.listen ?? '');
  const allow = { allowHosts: argv['allow-host'], allowOrigins: argv['allow-origin'] };
  const { createHttpMock } = await import('../../replay/serve/http.ts');
  const faults = onPurpose === null ? null : onPurpose.mockFaults(io, onPurpose.settings);
  const hooks = faults === null ? {} : { onOpen: faults.onOpen };
  const server = await createHttpMock({ recording, mock, listen, ...allow, ...hooks }).catch((error) => {
    throw cannotListen(listen, error);
  });
  warnBeyondLoopback(io, listen, 'call it');
  say(io, `listening on ${server.url.href}; put this URL into the client’s config in place of the server’s`);
  await stopped;
  await server.stop();
  faults?.end();
}
