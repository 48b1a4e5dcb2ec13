/** One HTTP proxy and its recorder, joined: from the moment that it listens all that passes is recorded. */

import { now } from '../../capture/clock.ts';
import { captureHttp, type HttpCapture } from '../../capture/http/proxy.ts';
import type { Keeper } from '../../clients/keeper.ts';
import { type Listener, listenersOf } from '../../clients/ports.ts';
import { ALL_TARGETS, findTargets, type Target } from '../../clients/targets.ts';
import { shownUrl } from '../../clients/url.ts';
import { TapedeckError } from '../../errors.ts';
import { escapeText } from '../../protocol/text.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import { type HttpRecorder, openHttpRecorder } from '../../store/record/http-recorder.ts';
import { VERSION } from '../../version.ts';
import { type Io, ignoreErrors, onStopSignals, say, storeOf } from '../io.ts';
import { cannotListen, warnBeyondLoopback } from '../listening.ts';
import { thisKeeper, thisMachine } from '../machine.ts';
import type { HttpRecordOptions, ProxyOptions } from './http-options.ts';
import { checkRedaction, labelsIn, type RecordOptions, troubleText } from './options.ts';

type HttpRecording = {
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
async function startHttpRecording(
  io: Io,
  options: RecordOptions,
  http: HttpRecordOptions,
  onFailure: () => void,
): Promise<HttpRecording | null> {
  const { isStrict, redaction } = options;
  await checkRedaction(redaction);
  const faulty = options.faults === null ? null : await import('./faulty-http.ts');
  const open = () => openRecorder(io, options, http.upstream, onFailure);
  let recorder: HttpRecorder | undefined = isStrict ? open() : undefined;
  const close = () => recorder?.close({ at: now(), reason: 'stopped', ...NOTHING });
  if (recorder !== undefined && !(await recorder.opened)) return null;
  const record = (event: HttpEvent) => recorder?.append(event);
  const onPurpose = faulty?.putHttpFaultsIn(options.faults ?? {}, record, (text) => say(io, text));
  const capture = await captureHttp({
    ...http,
    ...(onPurpose?.hooks ?? { onEvent: record }),
    onNotice: (text) => say(io, text),
  }).catch(async (error) => {
    // Its thread would keep this process alive.
    await close();
    throw error;
  });
  // In the same turn, so that nothing has passed yet.
  recorder ??= open();
  return {
    capture,
    async close() {
      const failed = capture.failedEvents();
      if (failed > 0)
        say(io, `${failed} pieces of traffic could not be recorded, because of a fault of tapedeck`);
      onPurpose?.end();
      await close();
    },
  };
}

function openRecorder(io: Io, options: RecordOptions, upstream: URL, onFailure: () => void): HttpRecorder {
  const { name, labels, faults: _, ...recording } = options;
  return openHttpRecorder({
    ...recording,
    file: storeOf(io, recording.file),
    session: {
      name,
      labels: labelsIn(io.env, labels),
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
    onNotice: (text) => say(io, text),
    onTrouble(text) {
      say(io, troubleText(text, recording.isStrict));
      if (recording.isStrict) onFailure();
    },
  });
}

/** What asks a recording to end: a signal, or a failure where `--strict` is on. */
type Stop = {
  asked: Promise<void>;
  fail(): void;
  hasFailed(): boolean;
  /** Called for a second signal. */
  onCut(listener: () => void): void;
  /** Hears no more signals. */
  end(): void;
};

/** Hears signals from now on. */
function createStop(io: Io): Stop {
  let ask = () => {};
  let hasFailed = false;
  let cut = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const ignoreSignals = onStopSignals(io, (count) => (count === 1 ? ask() : cut()));
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
    end: ignoreSignals,
  };
}

/** Records until it is asked to stop; settles once all is closed and stored. A second signal cuts what is still open. */
async function recordUntil(
  io: Io,
  stop: Stop,
  recordings: readonly HttpRecording[],
  graceMs: number,
): Promise<void> {
  const captures = recordings.map(({ capture }) => capture);
  stop.onCut(() => {
    for (const capture of captures) capture.cut();
  });
  await stop.asked;
  const open = captures.reduce((sum, capture) => sum + capture.openHttpExchanges(), 0);
  if (open > 0 && graceMs > 0) {
    const what = open === 1 ? 'an exchange is' : `${open} exchanges are`;
    say(
      io,
      `stopping; ${what} open and may go on for ${graceMs / 1000} s, unless a second signal cuts it short`,
    );
  }
  await Promise.all(captures.map((capture) => capture.stop()));
  await Promise.all(recordings.map((recording) => recording.close()));
}

/** `tapedeck record <url>`: runs one recording HTTP proxy until it is stopped. */

/** Exits with 0 when it was stopped, with 1 where `--strict` refused or stopped. Throws `TapedeckError` if it cannot listen. */
export async function recordHttp(io: Io, options: RecordOptions, http: HttpRecordOptions): Promise<void> {
  const stop = createStop(io);
  // Its reader may have left: that is no reason to end the traffic.
  ignoreErrors(io.stderr);
  try {
    const recording = await startHttpRecording(io, options, http, stop.fail).catch((error) => {
      throw error instanceof TapedeckError
        ? error
        : cannotListen(http.listen, error as NodeJS.ErrnoException);
    });
    if (recording === null) return leave(io, STRICT_REFUSED);
    sayWhere(io, http, recording.capture.url);
    await recordUntil(io, stop, [recording], http.graceMs);
    leave(io, stop.hasFailed() ? STRICT_REFUSED : 0);
  } finally {
    stop.end();
  }
}

const STRICT_REFUSED = 1;

/** Connections that are still open would keep the process alive. */
function leave(io: Io, code: number): void {
  io.exitCode = code;
  io.exit(code);
}

function sayWhere(io: Io, { upstream, listen, isInsecure }: HttpRecordOptions, url: URL): void {
  if (isInsecure) say(io, 'WARNING: --insecure: the certificate of the server is not verified');
  warnBeyondLoopback(io, listen, 'use the server through it');
  say(
    io,
    `listening on ${url.href} for ${upstream.href}; put the first URL into the client’s config in place of the second`,
  );
}

/** `tapedeck record --wrapped`: serves the URL entries that were wrapped, all in one process. */

const NOTHING_TO_SERVE = 2;

/** Exits as `recordHttp` does. Throws `TapedeckError` `not-found` where there is nothing to serve. */
export async function recordWrapped(
  io: Io,
  words: readonly string[],
  options: RecordOptions,
  http: ProxyOptions,
): Promise<void> {
  const listeners = findListeners(io, words);
  const stop = createStop(io);
  // Its reader may have left: that is no reason to end the traffic.
  ignoreErrors(io.stderr);
  if (http.isInsecure) say(io, 'WARNING: --insecure: the certificates of the servers are not verified');
  try {
    const recordings: HttpRecording[] = [];
    for (const listener of listeners) {
      const recording = await tryStart(io, listener, options, http, stop.fail);
      if (recording !== null) recordings.push(recording);
      else if (options.isStrict) stop.fail();
    }
    if (recordings.length === 0) return leave(io, options.isStrict ? STRICT_REFUSED : NOTHING_TO_SERVE);
    await recordUntil(io, stop, recordings, http.graceMs);
    leave(io, stop.hasFailed() ? STRICT_REFUSED : 0);
  } finally {
    stop.end();
  }
}

function findListeners(io: Io, words: readonly string[]): Listener[] {
  const keeper = thisKeeper(io);
  const known = keeper.all().map(({ file }) => file);
  const wanted = words.length === 0 ? [ALL_TARGETS] : words;
  const targets = wanted.flatMap((word) => findTargets(word, thisMachine(io), known));
  const listeners = targets.flatMap((target) => tryListenersOf(io, target, keeper));
  if (listeners.length > 0) return [...new Map(listeners.map((one) => [one.port, one])).values()];
  throw new TapedeckError(
    'not-found',
    `No URL server is wrapped${words.length === 0 ? '' : ` there: ${words.join(', ')}`}. See: tapedeck wrap --list`,
  );
}

/** None where the config cannot be read: the others can. */
function tryListenersOf(io: Io, target: Target, keeper: Keeper): Listener[] {
  try {
    return listenersOf(target, keeper);
  } catch (error) {
    if (!(error instanceof TapedeckError)) throw error;
    say(io, escapeText(`${target.file} is not served: ${error.message}`));
    return [];
  }
}

/** Null where it cannot be served: the others can. */
async function tryStart(
  io: Io,
  { port, url, name, db, file }: Listener,
  options: RecordOptions,
  http: ProxyOptions,
  onFailure: () => void,
): Promise<HttpRecording | null> {
  const upstream = new URL(url);
  const listen = { host: '127.0.0.1', port };
  const own = { ...options, name: name === '' ? null : name, file: options.file ?? db ?? undefined };
  try {
    const recording = await startHttpRecording(io, own, { ...http, upstream, listen, tls: null }, onFailure);
    if (recording !== null)
      say(
        io,
        escapeText(
          `listening on ${shownUrl(recording.capture.url.href)} for ${name} at ${shownUrl(url)} (${file})`,
        ),
      );
    return recording;
  } catch (error) {
    say(io, escapeText(`${name} is not served: ${whyNot(port, error as NodeJS.ErrnoException)}`));
    return null;
  }
}

function whyNot(port: number, { code, message }: NodeJS.ErrnoException): string {
  return code === 'EADDRINUSE'
    ? `something else listens on port ${port}. If that is not a tapedeck, unwrap it and wrap it again: it gets another port`
    : message;
}
