/**
 * What a door of the library records into. It is opened with the first that passes, and is a guest of its host: whatever goes
 * wrong in it is told and goes no further, and nothing waits for it but who asks for that.
 */

import { writeSync } from 'node:fs';
import { now } from '../capture/clock.ts';
import { labelsIn } from '../config/labels.ts';
import type { SessionEnd } from '../store/file/columns.ts';
import type { Recorder } from '../store/record/recorder.ts';
import type { RecorderOptions, RecordingStart } from '../store/record/thread.ts';
import { VERSION } from '../version.ts';
import { currentFolder, type DoorSettings } from './options.ts';
import { hostThread } from './thread.ts';

type Ending = Pick<Recorder, 'flush' | 'close' | 'closeAtExit'>;

/** What a session says of itself, besides what is the same for all of this process. */
export type TapeStart = Pick<RecordingStart, 'basis' | 'transport' | 'target' | 'command' | 'parentPid'>;

export type DoorTape<R extends Ending> = {
  /** Calls `work` with the recorder, unless the recording has ended. `at`: when what it is called for passed. Never throws. */
  use(at: number, work: (recorder: R) => void): void;
  flush(): Promise<void>;
  /** Settles once it is stored. Keeps the process alive until then only where `isAwaited`. */
  close(isAwaited?: boolean): Promise<void>;
};

/** So long the end of a process may be held up for what is still to be stored, once the writers run. It takes some milliseconds. */
const EXIT_MS = 2000;

type OpenTape = {
  /** Why something is lost, or null. */
  closeAtExit(exitCode: number, waitMs: number): string | null;
  /** Its user knows that not all of it is stored. */
  isTroubled(): boolean;
};

const open = new Set<OpenTape>();

let isHeard = false;

/** Whether `TAPEDECK_RECORD=0` turns all doors off. */
export function isTurnedOff(): boolean {
  return process.env['TAPEDECK_RECORD'] === '0';
}

/**
 * `begin` is called with the first that passes, `end` when the recording ends: with the code of the process where that ends, else
 * with null.
 */
export function createTape<R extends Ending>(
  settings: DoorSettings,
  openRecorder: (options: RecorderOptions) => R,
  begin: () => TapeStart,
  end: (exitCode: number | null) => SessionEnd,
): DoorTape<R> {
  const { tell } = settings;
  let recorder: R | undefined;
  let closing: Promise<void> | undefined;
  let isOver = isTurnedOff();
  let isTroubled = false;

  function fail(error: unknown): void {
    isOver = true;
    tell(`nothing more is recorded, by a fault of tapedeck: ${(error as Error).message}`);
  }

  const own: OpenTape = {
    closeAtExit: (exitCode, waitMs) => recorder?.closeAtExit(end(exitCode), waitMs) ?? null,
    isTroubled: () => isTroubled,
  };

  return {
    use(at, work) {
      if (isOver) return;
      try {
        if (recorder === undefined) {
          const onTrouble = () => {
            isTroubled = true;
          };
          recorder = openRecorder(recorderOptions(settings, begin(), at, onTrouble));
          open.add(own);
          hearExit();
        }
        work(recorder);
      } catch (error) {
        fail(error);
      }
    },
    flush: () => (recorder === undefined ? Promise.resolve() : alive(recorder.flush())),
    close(isAwaited = true) {
      isOver = true;
      if (recorder === undefined) return Promise.resolve();
      closing ??= recorder.close(end(null)).then(
        () => void open.delete(own),
        (error) => {
          open.delete(own);
          fail(error);
        },
      );
      return isAwaited ? alive(closing) : closing;
    },
  };
}

function recorderOptions(
  { name, labels, recorder, tell }: DoorSettings,
  start: TapeStart,
  at: number,
  onTrouble: () => void,
): RecorderOptions {
  return {
    ...recorder,
    isStrict: false,
    thread: hostThread,
    session: {
      ...start,
      ...{ name, at, labels: labelsIn(process.env, labels), cwd: currentFolder() },
      ...{ pid: process.pid, tapedeck: VERSION },
    },
    onTrouble(text) {
      onTrouble();
      // Whatever follows from it: one warning for a store.
      tell(`${text}. Traffic goes on; what cannot be recorded is counted.`, `trouble: ${recorder.file}`);
    },
    onNotice: (text) => tell(text),
  };
}

/** Somebody waits for it, so the process stays until it is done. */
async function alive(work: Promise<void>): Promise<void> {
  const timer = setInterval(() => {}, 1000);
  try {
    await work;
  } finally {
    clearInterval(timer);
  }
}

/** By draining, `process.exit` or an uncaught error: not by a signal, as a host hears those itself or dies at once. */
function hearExit(): void {
  if (isHeard) return;
  isHeard = true;
  process.on('exit', (exitCode) => {
    let waitMs = EXIT_MS;
    for (const tape of open) {
      try {
        const why = tape.closeAtExit(exitCode, waitMs);
        if (why === null) continue;
        if (waitMs > 0 && !tape.isTroubled()) sayLast(why);
        waitMs = 0;
      } catch {
        // The host ends as it would have without us.
      }
    }
  });
}

/** Nobody can be called any more. */
function sayLast(why: string): void {
  writeSync(2, `tapedeck: ${why}; something is lost\n`);
}

/** `parentPid` as in `RecordingStart`. */
export function httpStart(target: string, parentPid: number | null): TapeStart {
  return { basis: 'stateless', transport: 'http', target, command: null, parentPid };
}

/** The end of a session that nothing else tells of. */
export function endOf(reason: SessionEnd['reason'], more: Partial<SessionEnd> = {}): SessionEnd {
  const none = { exitCode: null, signal: null, clientClosedAt: null, serverClosedAt: null };
  return { ...none, at: now(), reason, ...more };
}
