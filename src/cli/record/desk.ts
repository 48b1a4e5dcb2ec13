/** What all HTTP recordings of a process share: who watches them, and what asks them to end or to read their rules anew. */

import type { WatchedRecorder } from '../../admin/metrics.ts';
import type { Service } from '../../admin/service.ts';
import { now } from '../../capture/clock.ts';
import type { HttpCapture } from '../../capture/http/proxy.ts';
import { labelsIn } from '../../config/labels.ts';
import type { SampleJudges } from '../../inspect/sample/judging.ts';
import { escapeText } from '../../protocol/text.ts';
import { type HttpRecorder, openHttpRecorder } from '../../store/record/http-recorder.ts';
import type { RecordingRules } from '../../store/record/thread.ts';
import type { SamplingRules } from '../../store/sample/sampling.ts';
import { VERSION } from '../../version.ts';
import { type Io, onStopSignals, storeOf } from '../io.ts';
import type { AdminAccess, Operations } from './admin.ts';
import type { EndLimits, HttpRecordOptions } from './http-options.ts';
import { createLog, type Log, watcherFor } from './log.ts';
import { type RecordOptions, shippingOf, troubleText, unshippedLimit } from './options.ts';
import type { Shipping, Unshipped } from './ship-child.ts';

export type Desk = {
  io: Io;
  log: Log;
  recorders: WatchedRecorder[];
  operations: Operations | null;
  /** Null where no service manager wants to know. */
  service: Service | null;
  /** Null: what is recorded is not shipped. */
  shipping: Shipping | null;
  /** Who decides which sessions are kept once they have ended, in which stores. */
  judging: { sampling: SamplingRules | null; files: Set<string>; judges: SampleJudges | null };
};

/** Throws `TapedeckError` where there is to be an admin port, and cannot be. `write` gets the lines that are said. */
export async function openDesk(
  io: Io,
  options: RecordOptions,
  access: AdminAccess,
  write: (line: string) => void = (line) => io.stderr.write(line),
): Promise<Desk> {
  const { admin } = options;
  const log = createLog(options.log, io.env, write);
  const recorders: WatchedRecorder[] = [];
  const service = await serviceOf(io, log, recorders);
  const to = shippingOf(options, io.env);
  const shipping = to && (await import('./ship-child.ts')).createShipping(to, io.env, log);
  const judging = { sampling: options.sampling, files: new Set<string>(), judges: null };
  const desk = { io, log, recorders, service, shipping, judging };
  if (admin === null) return { ...desk, operations: null };
  const { openOperations } = await import('./admin.ts');
  const operations = await openOperations(admin, access, recorders, log, shipping !== null);
  operations.setShipLimit(unshippedLimit(options));
  return { ...desk, operations };
}

/** Does nothing where no session waits for its end to be decided. */
async function judge({ judging }: Desk): Promise<void> {
  if (judging.sampling?.keep == null) return;
  const { createJudges } = await import('../../inspect/sample/judging.ts');
  judging.judges ??= createJudges();
  for (const file of judging.files) judging.judges.begin(file);
}

async function serviceOf(io: Io, log: Log, recorders: readonly WatchedRecorder[]): Promise<Service | null> {
  if (!io.env['NOTIFY_SOCKET']) return null;
  const { createService } = await import('../../admin/service.ts');
  return createService({
    ...{ env: io.env, pid: process.pid, recorders: () => recorders },
    onTrouble: (text) => log.warn('service', text),
  });
}

/** The socket that the service manager has handed over takes the place of `--listen`. */
export async function withHandedSocket({ env }: Io, http: HttpRecordOptions): Promise<HttpRecordOptions> {
  if (env['LISTEN_FDS'] === undefined) return http;
  const { handedSocket } = await import('../../admin/service.ts');
  const fd = handedSocket(env, process.pid);
  return fd === undefined ? http : { ...http, listen: { ...http.listen, fd } };
}

/** What asks a recording to end: a signal, or a failure where `--strict` is on. */
export type RecordingStop = {
  asked: Promise<void>;
  fail(): void;
  hasFailed(): boolean;
  /** Called for a second signal. */
  onCut(listener: () => void): void;
  onHangUp(listener: () => void): void;
  /** Hears no more signals. */
  end(): void;
};

/** Hears signals from now on. `reloads`: SIGHUP is for `onHangUp`. */
export function createRecordingStop(io: Io, reloads: boolean): RecordingStop {
  let ask = () => {};
  let hasFailed = false;
  let cut = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  let hangUp = () => {};
  const ignoreSignals = onStopSignals(
    io,
    (count) => (count === 1 ? ask() : cut()),
    reloads ? () => hangUp() : undefined,
  );
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
    onHangUp(listener) {
      hangUp = listener;
    },
    end: ignoreSignals,
  };
}

/**
 * Reads the configuration file anew at each SIGHUP, one after the other. `argv`: the words of the command line, whose file it
 * is; null: nothing is read anew.
 */
export function reloadAtHangUp(
  desk: Desk,
  stop: Pick<RecordingStop, 'onHangUp'>,
  recordings: readonly { setRules(rules: RecordingRules): void }[],
  options: RecordOptions,
  argv: readonly string[] | null,
): void {
  if (argv === null) return;
  const { io, log, service } = desk;
  async function onRules(next: RecordOptions): Promise<void> {
    desk.judging.sampling = next.sampling;
    desk.shipping?.setSampling(next.shipSampling);
    desk.operations?.setShipLimit(unshippedLimit(next));
    await judge(desk);
  }
  async function reloadNow(words: readonly string[]): Promise<void> {
    const { reload } = await import('./reload.ts');
    await service?.reloading();
    await reload({ io, log, argv: words, options, recordings, onRules });
    await service?.ready('recording');
  }
  let last = Promise.resolve();
  stop.onHangUp(() => {
    last = last.then(() => reloadNow(argv));
  });
}

/** What passes through one proxy, while it is recorded. */
export type ProxyRecording = {
  capture: Pick<HttpCapture, 'openHttpExchanges' | 'stop' | 'cut'>;
  /** Stores what is on its way. Call it once the capture has stopped. */
  close(): Promise<void>;
};

/** What only the end of a process has. */
export const NO_PROCESS_END = { exitCode: null, signal: null, clientClosedAt: null, serverClosedAt: null };

/** Says, where there were any, how many events of a proxy its recorder did not take. */
export function sayFailed(log: Log, count: number): void {
  if (count > 0)
    log.error(
      'fault-of-tapedeck',
      `${count} pieces of traffic could not be recorded, because of a fault of tapedeck`,
    );
}

/** A recorder of what passes to this server. `onFailure` is called where `--strict` asks for the end. */
export function openUrlRecorder(
  desk: Desk,
  options: RecordOptions,
  upstream: URL,
  onFailure: () => void,
): HttpRecorder {
  const { name, labels, faults: _, admin: __, ship: ___, log: logging, ...recording } = options;
  const { io, log, operations, service, shipping, judging } = desk;
  const file = storeOf(io, recording.file);
  shipping?.begin(file);
  judging.files.add(file);
  void judge(desk);
  return openHttpRecorder({
    ...{ ...recording, file },
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
      parentPid: null,
      tapedeck: VERSION,
    },
    onNotice: (text) => log.info('notice', text),
    watcher: watcherFor(log, logging, operations, service !== null),
    onTrouble(text) {
      log.error('trouble', troubleText(text, recording.isStrict));
      if (recording.isStrict) onFailure();
    },
  });
}

/** Records until it is asked to stop; settles once all is closed and stored. A second signal cuts what is still open. */
export async function recordUntil(
  { log, operations, service, shipping, judging }: Desk,
  stop: RecordingStop,
  recordings: readonly ProxyRecording[],
  { graceMs, drainMs }: EndLimits,
): Promise<void> {
  const captures = recordings.map(({ capture }) => capture);
  const hurry = new AbortController();
  stop.onCut(() => {
    hurry.abort();
    for (const capture of captures) capture.cut();
  });
  operations?.setObstacle(null);
  void service?.ready('recording');
  await stop.asked;
  operations?.setObstacle('draining');
  void service?.stopping();
  const open = captures.reduce((sum, capture) => sum + capture.openHttpExchanges(), 0);
  if (open > 0 && graceMs > 0) {
    const what = open === 1 ? 'an exchange is' : `${open} exchanges are`;
    log.info(
      'stopping',
      `stopping; ${what} open and may go on for ${graceMs / 1000} s, unless a second signal cuts it short`,
      { open },
    );
  }
  await Promise.all(captures.map((capture) => capture.stop()));
  await Promise.all(recordings.map((recording) => recording.close()));
  await judging.judges?.finish(LAST_JUDGING_MS);
  log.debug('stopped', 'what passed is stored');
  if (shipping === null) return;
  shipping.atEnd();
  if (drainMs > 0)
    log.info('draining', `waiting for the shipper, for ${drainMs / 1000} s at most or until a second signal`);
  sayShipped(log, await shipping.drain(drainMs, hurry.signal));
}

/** Once the shipper was waited for. */
function sayShipped(log: Log, { trouble, leftOut, ...left }: Unshipped): void {
  const { sessions, frames, bytes } = left;
  if (sessions === 0 && trouble === null) {
    const what = leftOut === 0 ? 'all that was recorded' : 'all of the sample that is shipped';
    log.info('shipped', `the engine has ${what}`);
    return;
  }
  const why = trouble === null ? '' : ` (${escapeText(trouble)})`;
  log.warn(
    'not-shipped',
    `${frames} frames of ${sessions} sessions, ${bytes} bytes, are not in the engine yet${why}. They stay in the store, and its shipper goes on`,
    { ...left, trouble },
  );
}

/** Sessions that are not decided by then are the next recorder's. */
const LAST_JUDGING_MS = 1000;

export const STRICT_REFUSED = 1;

/** Connections that are still open would keep the process alive. */
export function leave(io: Io, code: number): void {
  io.exitCode = code;
  io.exit(code);
}
