/** One HTTP proxy and its recorder, joined: from the moment that it listens all that passes is recorded. */
import { now } from '../capture/clock.ts';
import { captureHttp, type HttpCapture } from '../capture/http.ts';
import { type HttpRecorder, openHttpRecorder } from '../store/http-recorder.ts';
import { VERSION } from '../version.ts';
import type { HttpRecordOptions } from './http-options.ts';
import { onStopSignals, say } from './listening.ts';
import { checkRedaction, type RecordOptions, troubleText } from './record-options.ts';

export type HttpRecording = {
  capture: HttpCapture;
  /** Stores what is on its way. Call it once the capture has stopped. */
  close(): Promise<void>;
};

/** What only the end of a process has. */
const NOTHING = { exitCode: null, signal: null, clientClosedAt: null, serverClosedAt: null };

/**
 * Null where `--strict` refuses, because there is no store. `onFailure` is called, at most once, where `--strict` asks
 * for the end. Rejects with Node's error where it cannot listen.
 */
export async function startHttpRecording(
  options: RecordOptions,
  http: HttpRecordOptions,
  onFailure: () => void,
): Promise<HttpRecording | null> {
  const { isStrict, redaction } = options;
  await checkRedaction(redaction);
  const open = () => openRecorder(options, http.upstream, onFailure);
  let recorder: HttpRecorder | undefined = isStrict ? open() : undefined;
  const close = () => recorder?.close({ at: now(), reason: 'stopped', ...NOTHING });
  if (recorder !== undefined && !(await recorder.opened)) return null;
  const capture = await captureHttp({ ...http, onEvent: (event) => recorder?.append(event) }).catch(
    async (error) => {
      // Its thread would keep this process alive.
      await close();
      throw error;
    },
  );
  // In the same turn, so that nothing has passed yet.
  recorder ??= open();
  return {
    capture,
    async close() {
      const failed = capture.failedEvents();
      if (failed > 0)
        say(`${failed} pieces of traffic could not be recorded, because of a fault of tapedeck`);
      await close();
    },
  };
}

function openRecorder(options: RecordOptions, upstream: URL, onFailure: () => void): HttpRecorder {
  const { name, labels, ...recording } = options;
  return openHttpRecorder({
    ...recording,
    session: {
      name,
      labels,
      basis: 'stateless',
      transport: 'http',
      target: upstream.href,
      command: null,
      cwd: null,
      at: now(),
      pid: process.pid,
      parentPid: process.ppid,
      tapedeck: VERSION,
    },
    onNotice: say,
    onTrouble(text) {
      say(troubleText(text, recording.isStrict));
      if (recording.isStrict) onFailure();
    },
  });
}

/** What asks a recording to end: a signal, or a failure where `--strict` is on. */
export type Stop = {
  asked: Promise<void>;
  fail(): void;
  hasFailed(): boolean;
  /** Called for a second signal. */
  onCut(listener: () => void): void;
};

/** Hears signals from now on. */
export function createStop(): Stop {
  let ask = () => {};
  let hasFailed = false;
  let cut = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  onStopSignals((count) => (count === 1 ? ask() : cut()));
  return {
    asked,
    fail() {
      hasFailed = true;
      ask();
    },
    hasFailed: () => hasFailed,
    onCut(listener) {
      cut = listener;
    },
  };
}

/** Records until it is asked to stop; settles once all is closed and stored. A second signal cuts what is still open. */
export async function recordUntil(
  stop: Stop,
  recordings: readonly HttpRecording[],
  graceMs: number,
): Promise<void> {
  const captures = recordings.map(({ capture }) => capture);
  stop.onCut(() => {
    for (const capture of captures) capture.cut();
  });
  await stop.asked;
  const open = captures.reduce((sum, capture) => sum + capture.openExchanges(), 0);
  if (open > 0 && graceMs > 0) {
    const what = open === 1 ? 'an exchange is' : `${open} exchanges are`;
    say(`stopping; ${what} open and may go on for ${graceMs / 1000} s, unless a second signal cuts it short`);
  }
  await Promise.all(captures.map((capture) => capture.stop()));
  await Promise.all(recordings.map((recording) => recording.close()));
}
