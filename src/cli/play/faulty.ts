/** `replay` with faults: the mock's answers go to the client by way of them. */

import { now } from '../../capture/clock.ts';
import { dieBy } from '../../capture/stdio/child.ts';
import type { Effect, Exit } from '../../fault/effect.ts';
import {
  createFaults,
  type FaultSettings,
  type Faults,
  type RawFaults,
  readFaults,
} from '../../fault/faults.ts';
import { createHttpFaults } from '../../fault/http/http.ts';
import { faultPlan } from '../../fault/plan.ts';
import { createLineLane } from '../../fault/stdio.ts';
import type { Mock } from '../../replay/mock.ts';
import type { Recording } from '../../replay/recording/recording.ts';
import { createStdioMock } from '../../replay/serve/stdio.ts';
import { type Io, say } from '../io.ts';
import { withLineEnds, writeOutput } from '../output.ts';

/** Throws `TapedeckError` `usage` for a fault that cannot be read, or not be carried out by this mock. */
export function readReplayFaults(raw: RawFaults & { listen: string | undefined }): FaultSettings | null {
  return readFaults(raw, raw.listen === undefined ? 'replay-stdio' : 'replay-http');
}

/** Prints which recorded calls would get which faults. */
export async function printPlan(io: Io, recording: Recording, settings: FaultSettings): Promise<void> {
  await writeOutput(io, withLineEnds(faultPlan(recording, settings)));
}

/** As `createHttpMock` wants it. Says that faults come. */
export function mockFaults(io: Io, settings: FaultSettings) {
  const faults = begin(io, settings);
  return { onOpen: createHttpFaults({ faults, now }).open, end: () => end(io, faults) };
}

function begin(io: Io, settings: FaultSettings): Faults {
  const faults = createFaults(settings, (text) => say(io, text));
  say(io, faults.startText());
  return faults;
}

function end(io: Io, faults: Faults): void {
  faults.close();
  for (const text of faults.endTexts()) say(io, text);
}

/**
 * Runs until the client has closed its end and has its answers, takes no more, until it is stopped by a signal, or until a fault
 * ends it. Then `leave` ends the process as that fault has it.
 */
export async function serveFaultyStdio(
  io: Io,
  mock: Mock,
  stopped: Promise<void>,
  settings: FaultSettings,
): Promise<{ leave: (() => void) | null }> {
  const faults = begin(io, settings);
  let exit: Exit | null = null;
  let onBroken = () => {};
  const broken = new Promise<void>((resolve) => {
    onBroken = resolve;
  });
  const besides = (what: NonNullable<Effect['besides']>) => {
    if (typeof what === 'object') exit ??= what;
    onBroken();
  };
  // Only a recorder wants to know.
  const common = { faults, now, onChunk() {}, onFaulty() {}, besides };
  const said = createLineLane({
    ...common,
    channel: 'stdout',
    write: (bytes) => void io.stdout.write(bytes),
  });
  const server = createStdioMock(mock, said.feed);
  const heard = createLineLane({ ...common, channel: 'stdin', write: server.feed });
  const ended = new Promise<void>((resolve) => {
    io.stdin.on('data', heard.feed);
    io.stdin.on('end', resolve);
    io.stdin.on('error', () => resolve());
  });
  const answered = ended.then(async () => {
    await heard.finish();
    server.end();
    await mock.idle();
    await said.finish();
  });
  const left = new Promise<void>((resolve) => {
    io.stdout.on('error', () => resolve());
  });
  await Promise.race([answered, left, stopped, broken]);
  heard.cancel();
  said.cancel();
  // An open stdin would keep the process alive.
  io.stdin.destroy();
  end(io, faults);
  return { leave: exit === null ? null : () => leaveBy(io, exit) };
}

function leaveBy(io: Io, exit: Exit | null): void {
  if (exit === null) return;
  if (exit.signal === null) io.exitCode = exit.code;
  else dieBy(exit.signal);
}
