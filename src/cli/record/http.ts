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
import type { HttpRecorder } from '../../store/record/http-recorder.ts';
import type { RecordingRules } from '../../store/record/thread.ts';
import { type Io, ignoreErrors } from '../io.ts';
import { cannotListen, warnBeyondLoopback } from '../listening.ts';
import { thisKeeper, thisMachine } from '../machine.ts';
import {
  createRecordingStop,
  type Desk,
  leave,
  NO_PROCESS_END,
  openDesk,
  openUrlRecorder,
  type ProxyRecording,
  recordUntil,
  reloadAtHangUp,
  STRICT_REFUSED,
  sayFailed,
  withHandedSocket,
} from './desk.ts';
import type { HttpRecordOptions, ProxyOptions } from './http-options.ts';
import type { Log } from './log.ts';
import { type RecordOptions, withRules } from './options.ts';

type HttpRecording = ProxyRecording & {
  capture: HttpCapture;
  /** Counts for what is not stored yet. */
  setRules(rules: RecordingRules): void;
};

/**
 * Null where `--strict` refuses, because there is no store. `onFailure` is called, at most once, where `--strict` asks
 * for the end. Rejects with Node's error where it cannot listen.
 */
async function startHttpRecording(
  desk: Desk,
  given: RecordOptions,
  http: HttpRecordOptions,
  onFailure: () => void,
): Promise<HttpRecording | null> {
  const { log, operations, recorders } = desk;
  const { isStrict } = given;
  const options = await withRules(given);
  const faulty = options.faults === null ? null : await import('./faulty-http.ts');
  const open = () => openUrlRecorder(desk, options, http.upstream, onFailure);
  let recorder: HttpRecorder | undefined = isStrict ? open() : undefined;
  const close = () => recorder?.close({ at: now(), reason: 'stopped', ...NO_PROCESS_END });
  if (recorder !== undefined && !(await recorder.opened)) return null;
  const record = (event: HttpEvent) => {
    operations?.onHttpEvent(event);
    return recorder?.append(event);
  };
  const onPurpose = faulty?.putHttpFaultsIn(options.faults ?? {}, record, (text) => log.info('fault', text));
  const capture = await captureHttp({
    ...http,
    ...(onPurpose?.hooks ?? { onEvent: record }),
    onNotice: (text) => log.info('notice', text),
    onForwarded: operations?.onForwarded,
  }).catch(async (error) => {
    // Its thread would keep this process alive.
    await close();
    throw error;
  });
  // In the same turn, so that nothing has passed yet.
  recorder ??= open();
  recorders.push({ transport: 'http', figures: recorder.figures, queue: recorder.queue });
  return {
    capture,
    setRules: recorder.setRules,
    async close() {
      sayFailed(log, capture.failedEvents());
      onPurpose?.end();
      await close();
    },
  };
}

/** `tapedeck record <url>`: runs one recording HTTP proxy until it is stopped. */

/** `argv`: what SIGHUP reads anew, if anything. Exits with 0 when it was stopped, with 1 where `--strict` refused or stopped. Throws `TapedeckError` if it cannot listen. */
export async function recordHttp(
  io: Io,
  options: RecordOptions,
  given: HttpRecordOptions,
  argv: readonly string[] | null,
): Promise<void> {
  const http = await withHandedSocket(io, given);
  const stop = createRecordingStop(io, argv !== null);
  // Its reader may have left: that is no reason to end the traffic.
  ignoreErrors(io.stderr);
  let desk: Desk | undefined;
  try {
    desk = await openDesk(io, options, http);
    const recording = await startHttpRecording(desk, options, http, stop.fail).catch((error) => {
      throw error instanceof TapedeckError
        ? error
        : cannotListen(http.listen, error as NodeJS.ErrnoException);
    });
    if (recording === null) return leave(io, STRICT_REFUSED);
    sayWhere(desk, http, recording.capture);
    reloadAtHangUp(desk, stop, [recording], options, argv);
    await recordUntil(desk, stop, [recording], http);
    leave(io, stop.hasFailed() ? STRICT_REFUSED : 0);
  } finally {
    desk?.operations?.close();
    stop.end();
  }
}

function sayWhere(
  { io, log }: Desk,
  { upstream, listen, isInsecure }: HttpRecordOptions,
  { url, address }: HttpCapture,
): void {
  if (isInsecure) log.warn('insecure', 'WARNING: --insecure: the certificate of the server is not verified');
  const where = listen.fd === undefined ? listen : { ...listen, host: address.address };
  warnBeyondLoopback(io, where, 'use the server through it', (text) => log.warn('beyond-loopback', text));
  log.info(
    'listening',
    `listening on ${url.href} for ${upstream.href}; put the first URL into the client’s config in place of the second`,
    { url: url.href, upstream: shownUrl(upstream.href) },
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
  argv: readonly string[] | null,
): Promise<void> {
  const desk = await openDesk(io, options, http);
  const { log } = desk;
  const listeners = findListeners(desk, words);
  const stop = createRecordingStop(io, argv !== null);
  // Its reader may have left: that is no reason to end the traffic.
  ignoreErrors(io.stderr);
  if (http.isInsecure)
    log.warn('insecure', 'WARNING: --insecure: the certificates of the servers are not verified');
  try {
    const recordings: HttpRecording[] = [];
    for (const listener of listeners) {
      const recording = await tryStart(desk, listener, options, http, stop.fail);
      if (recording !== null) recordings.push(recording);
      else if (options.isStrict) stop.fail();
    }
    if (recordings.length === 0) return leave(io, options.isStrict ? STRICT_REFUSED : NOTHING_TO_SERVE);
    reloadAtHangUp(desk, stop, recordings, options, argv);
    await recordUntil(desk, stop, recordings, http);
    leave(io, stop.hasFailed() ? STRICT_REFUSED : 0);
  } finally {
    desk.operations?.close();
    stop.end();
  }
}

function findListeners({ io, log }: Desk, words: readonly string[]): Listener[] {
  const keeper = thisKeeper(io);
  const known = keeper.all().map(({ file }) => file);
  const wanted = words.length === 0 ? [ALL_TARGETS] : words;
  const targets = wanted.flatMap((word) => findTargets(word, thisMachine(io), known));
  const listeners = targets.flatMap((target) => tryListenersOf(log, target, keeper));
  if (listeners.length > 0) return [...new Map(listeners.map((one) => [one.port, one])).values()];
  throw new TapedeckError(
    'not-found',
    `No URL server is wrapped${words.length === 0 ? '' : ` there: ${words.join(', ')}`}. See: tapedeck wrap --list`,
  );
}

/** None where the config cannot be read: the others can. */
function tryListenersOf(log: Log, target: Target, keeper: Keeper): Listener[] {
  try {
    return listenersOf(target, keeper);
  } catch (error) {
    if (!(error instanceof TapedeckError)) throw error;
    log.error('not-served', escapeText(`${target.file} is not served: ${error.message}`));
    return [];
  }
}

/** Null where it cannot be served: the others can. */
async function tryStart(
  desk: Desk,
  { port, url, name, db, file }: Listener,
  options: RecordOptions,
  http: ProxyOptions,
  onFailure: () => void,
): Promise<HttpRecording | null> {
  const upstream = new URL(url);
  const listen = { host: '127.0.0.1', port };
  const own = { ...options, name: name === '' ? null : name, file: options.file ?? db ?? undefined };
  try {
    const recording = await startHttpRecording(
      desk,
      own,
      { ...http, upstream, listen, tls: null },
      onFailure,
    );
    if (recording !== null)
      desk.log.info(
        'listening',
        escapeText(
          `listening on ${shownUrl(recording.capture.url.href)} for ${name} at ${shownUrl(url)} (${file})`,
        ),
      );
    return recording;
  } catch (error) {
    desk.log.error(
      'not-served',
      escapeText(`${name} is not served: ${whyNot(port, error as NodeJS.ErrnoException)}`),
    );
    return null;
  }
}

function whyNot(port: number, { code, message }: NodeJS.ErrnoException): string {
  return code === 'EADDRINUSE'
    ? `something else listens on port ${port}. If that is not a tapedeck, unwrap it and wrap it again: it gets another port`
    : message;
}
