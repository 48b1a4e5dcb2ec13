/** What all HTTP recordings of a process share: who watches them, and what asks them to end or to read their rules anew. */

import type { WatchedRecorder } from '../../admin/metrics.ts';
import type { Service } from '../../admin/service.ts';
import { escapeText } from '../../protocol/text.ts';
import type { RecordingRules } from '../../store/record/thread.ts';
import { type Io, onStopSignals } from '../io.ts';
import type { Operations } from './admin.ts';
import type { HttpRecordOptions, ProxyOptions } from './http-options.ts';
import { createLog, type Log } from './log.ts';
import type { RecordOptions } from './options.ts';

export type Desk = {
  io: Io;
  log: Log;
  recorders: WatchedRecorder[];
  operations: Operations | null;
  /** Null where no service manager wants to know. */
  service: Service | null;
};

/** Throws `TapedeckError` where there is to be an admin port, and cannot be. */
export async function openDesk(
  io: Io,
  { admin, log: logging }: RecordOptions,
  http: ProxyOptions,
): Promise<Desk> {
  const log = createLog(logging, io.env, (line) => void io.stderr.write(line));
  const recorders: WatchedRecorder[] = [];
  const service = await serviceOf(io, log, recorders);
  if (admin === null) return { io, log, recorders, operations: null, service };
  const { openOperations } = await import('./admin.ts');
  return { io, log, recorders, operations: await openOperations(admin, http, recorders, log), service };
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
  { io, log, service }: Desk,
  stop: RecordingStop,
  recordings: readonly { setRules(rules: RecordingRules): void }[],
  options: RecordOptions,
  argv: readonly string[] | null,
): void {
  if (argv === null) return;
  async function reload(words: readonly string[]): Promise<void> {
    const { rereadOptions } = await import('./reload.ts');
    await service?.reloading();
    try {
      const { options: next, later } = await rereadOptions(io, words, options);
      for (const recording of recordings) recording.setRules(next);
      log.setLevel(next.log.level);
      log.info(
        'reloaded',
        'the configuration was read anew: redaction, retention and log level count from now on',
      );
      if (later.length > 0)
        log.warn('restart-needed', `changed, and counts from the next start on: ${later.join(', ')}`);
    } catch (error) {
      log.error('not-reloaded', escapeText(`everything stays as it was: ${(error as Error).message}`));
    }
    await service?.ready('recording');
  }
  let last = Promise.resolve();
  stop.onHangUp(() => {
    last = last.then(() => reload(argv));
  });
}
