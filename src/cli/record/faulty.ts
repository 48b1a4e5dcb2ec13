/** `record` with faults, over stdio: between the relay and the client stand streams that put them in. */

import { now } from '../../capture/clock.ts';
import type { RelayedStreams } from '../../capture/stdio/relay.ts';
import type { Exit } from '../../fault/effect.ts';
import { createFaults, type FaultSettings, type RawFaults, readFaults } from '../../fault/faults.ts';
import { type FaultyLine, faultyStreams } from '../../fault/stdio.ts';

type Surroundings = {
  say: (text: string) => void;
  onFaulty: (line: FaultyLine) => void;
  /** Undefined where it could not be started. */
  serverPid: () => number | undefined;
};

type FaultyRecording = {
  streams: RelayedStreams;
  /** All is over: says what was done. Returns how this process is to end, where a fault has ended it. */
  end(): Exit | null;
};

type PutIn = (streams: RelayedStreams, surroundings: Surroundings) => FaultyRecording;

/**
 * What puts them in. Throws `TapedeckError` `usage` for a fault that cannot be read, or not be carried out here; so call it before
 * our own streams are open, which keep this process alive until the client closes them.
 */
export function readStdioFaults(raw: RawFaults): PutIn | null {
  const settings = readFaults(raw, 'record-stdio');
  return settings && ((streams, surroundings) => putFaultsIn(settings, streams, surroundings));
}

/** Says that faults come. */
function putFaultsIn(
  settings: FaultSettings,
  streams: RelayedStreams,
  { say, onFaulty, serverPid }: Surroundings,
): FaultyRecording {
  const faults = createFaults(settings);
  let exit: Exit | null = null;
  say(faults.startText());
  return {
    streams: faultyStreams({
      ...streams,
      faults,
      now,
      onFaulty,
      onExit(how) {
        exit ??= how;
        const pid = serverPid();
        if (pid !== undefined) kill(pid, 'SIGKILL');
      },
      isServerThere() {
        const pid = serverPid();
        return pid !== undefined && kill(pid, 0);
      },
    }),
    end() {
      faults.close();
      for (const text of faults.endTexts()) say(text);
      return exit;
    },
  };
}

/** False: it has gone. */
function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
