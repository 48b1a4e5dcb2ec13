/**
 * Recording HTTP, on the proxy's thread: takes what passes and never makes the traffic wait (unless it is told to). What
 * is on its way to the writer is bounded in bytes; beyond that, bodies and then whole exchanges are dropped and counted.
 */

import { EVENTS_TYPE, mediaTypeOf } from '../../protocol/http/headers.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import type { SessionEnd } from '../file/columns.ts';
import { appendHttpItem, type HttpLoss, sizeOf } from './http-items.ts';
import { type RecorderOptions, type RecordingRules, startWriter, type Watched } from './thread.ts';

export type HttpRecorder = Watched & {
  /** What has not been stored yet is recorded by these rules. */
  setRules(rules: RecordingRules): void;
  /** Counts a body, or its rest, that nobody could show. */
  lose(exchange: number, at: number, side: 'request' | 'response', bytes: number): void;
  /** Keeps a copy. In strict mode it may return a promise: wait for it before reading on. */
  append(event: HttpEvent): Promise<void> | undefined;
  /** Whether the store could be opened. */
  opened: Promise<boolean>;
  /** Settles once everything appended so far is stored, or given up. */
  flush(): Promise<void>;
  /** Stores what is on its way, then the end of the sessions that are open. */
  close(end: SessionEnd): Promise<void>;
  /** The same where the process ends in this turn (thread.ts). Returns why something is lost, or null. */
  closeAtExit(end: SessionEnd, waitMs: number): string | null;
};

/** How often losses are reported while no event that is kept takes them along. */
const REPORT_AFTER_MS = 100;

export function openHttpRecorder(options: RecorderOptions): HttpRecorder {
  const writer = startWriter(options);
  /** Exchanges that began while there was no room. */
  const lost = new Map<number, LostExchange>();
  const unreported = createLosses((loss) => appendHttpItem(writer.append, loss));
  let timer: NodeJS.Timeout | undefined;

  function append(event: HttpEvent): Promise<void> | undefined {
    if (!options.isStrict && drops(event)) {
      timer ??= setTimeout(report, REPORT_AFTER_MS).unref();
      return undefined;
    }
    unreported.report(event.exchange);
    appendHttpItem(writer.append, event);
    return writer.room();
  }

  /** The heads of an exchange that was begun are kept, whatever comes: they are few and small. */
  function drops(event: HttpEvent): boolean {
    const { exchange, at, type } = event;
    const whole = lost.get(exchange);
    if (whole !== undefined) {
      whole.add(event);
      if (type !== 'end') return true;
      lost.delete(exchange);
      unreported.add({ exchange, at, side: 'exchange', pieces: whole.frames, bytes: whole.bytes });
      return true;
    }
    if (!writer.isFull(sizeOf(event))) return false;
    if (type === 'request') lost.set(exchange, new LostExchange());
    else if (type === 'request-body' || type === 'response-body') {
      const side = type === 'request-body' ? 'request' : 'response';
      unreported.add({ exchange, at, side, pieces: 1, bytes: event.bytes.length });
    } else return false;
    return true;
  }

  /** Not while there is no room: reports of losses must not take more than what was lost. */
  function report(): void {
    timer = undefined;
    if (writer.isFull(0)) timer = setTimeout(report, REPORT_AFTER_MS).unref();
    else unreported.reportAll();
  }

  return {
    append,
    setRules: writer.setRules,
    figures: writer.figures,
    queue: writer.queue,
    lose: (exchange, at, side, bytes) =>
      appendHttpItem(writer.append, { type: 'lost', exchange, at, side, pieces: 1, bytes }),
    opened: writer.opened,
    flush() {
      unreported.reportAll();
      return writer.flush();
    },
    close(end) {
      clearTimeout(timer);
      unreported.reportAll();
      return writer.close(end);
    },
    closeAtExit(end, waitMs) {
      unreported.reportAll();
      return writer.closeAtExit(end, waitMs);
    },
  };
}

/** What was dropped of HTTP exchanges, added up until it is reported to the writer. */

type LossOfExchange = Omit<HttpLoss, 'type'>;

type Losses = {
  /** More pieces of an exchange, or one more whole exchange. */
  add(lost: LossOfExchange): void;
  /** Reports what was lost of an exchange; call it before more of that exchange is kept, so that the gap has its place. */
  report(exchange: number): void;
  reportAll(): void;
};

export function createLosses(onLoss: (loss: HttpLoss) => void): Losses {
  const byExchange = new Map<number, HttpLoss>();
  let whole: HttpLoss | undefined;

  function add(lost: LossOfExchange): void {
    const { exchange, side } = lost;
    if (side === 'exchange') {
      whole = plus(whole, lost);
      return;
    }
    const before = byExchange.get(exchange);
    if (before !== undefined && before.side !== side) report(exchange);
    byExchange.set(exchange, plus(byExchange.get(exchange), lost));
  }

  function report(exchange: number): void {
    const loss = byExchange.get(exchange);
    if (loss === undefined) return;
    byExchange.delete(exchange);
    onLoss(loss);
  }

  return {
    add,
    report,
    reportAll() {
      for (const exchange of byExchange.keys()) report(exchange);
      if (whole !== undefined) onLoss(whole);
      whole = undefined;
    },
  };
}

function plus(before: HttpLoss | undefined, lost: LossOfExchange): HttpLoss {
  if (before === undefined) return { type: 'lost', ...lost };
  return { type: 'lost', ...lost, pieces: before.pieces + lost.pieces, bytes: before.bytes + lost.bytes };
}

/** What an exchange had that was lost from its beginning on: each body is one frame, each piece of a stream one. */
export class LostExchange {
  bytes = 0;
  #frames = 0;
  #isStream = false;
  #hasRequest = false;
  #hasResponse = false;

  /** At least one, so that the loss is seen. */
  get frames(): number {
    return Math.max(1, this.#frames);
  }

  add(event: HttpEvent): void {
    if (event.type === 'response') this.#isStream = mediaTypeOf(event.rawHeaders) === EVENTS_TYPE;
    if (event.type !== 'request-body' && event.type !== 'response-body') return;
    this.bytes += event.bytes.length;
    const isRequest = event.type === 'request-body';
    const isCounted = isRequest ? this.#hasRequest : this.#hasResponse && !this.#isStream;
    if (!isCounted) this.#frames += 1;
    if (isRequest) this.#hasRequest = true;
    else this.#hasResponse = true;
  }
}
