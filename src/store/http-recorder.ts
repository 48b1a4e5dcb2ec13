/**
 * Recording HTTP, on the proxy's thread: takes what passes and never makes the traffic wait (unless it is told to). What
 * is on its way to the writer is bounded in bytes; beyond that, bodies and then whole exchanges are dropped and counted.
 */
import type { HttpEvent } from '../protocol/http-event.ts';
import { appendNews, sizeOf } from './http-items.ts';
import { createLosses, LostExchange } from './http-losses.ts';
import type { SessionEnd } from './session-writer.ts';
import { type RecorderOptions, startWriter } from './writer-thread.ts';

export type HttpRecorder = {
  /** Keeps a copy. In strict mode it may return a promise: wait for it before reading on. */
  append(event: HttpEvent): Promise<void> | undefined;
  /** Whether the store could be opened. */
  opened: Promise<boolean>;
  /** Stores what is on its way, then the end of the sessions that are open. */
  close(end: SessionEnd): Promise<void>;
};

/** How often what was dropped is told, where nothing that is kept takes the word along. */
const TELL_AFTER_MS = 100;

export function openHttpRecorder(options: RecorderOptions): HttpRecorder {
  const writer = startWriter(options);
  /** Exchanges that began while there was no room. */
  const lost = new Map<number, LostExchange>();
  const untold = createLosses((loss) => appendNews(writer.append, loss));
  let timer: NodeJS.Timeout | undefined;

  function append(event: HttpEvent): Promise<void> | undefined {
    if (!options.isStrict && drops(event)) {
      timer ??= setTimeout(tell, TELL_AFTER_MS);
      return undefined;
    }
    untold.tell(event.exchange);
    appendNews(writer.append, event);
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
      untold.add({ exchange, at, side: 'exchange', pieces: whole.frames, bytes: whole.bytes });
      return true;
    }
    if (!writer.isFull(sizeOf(event))) return false;
    if (type === 'request') lost.set(exchange, new LostExchange());
    else if (type === 'request-body' || type === 'response-body') {
      const side = type === 'request-body' ? 'request' : 'response';
      untold.add({ exchange, at, side, pieces: 1, bytes: event.bytes.length });
    } else return false;
    return true;
  }

  /** Not while there is no room: what is told of the losses must not be more than what was lost. */
  function tell(): void {
    timer = undefined;
    if (writer.isFull(0)) timer = setTimeout(tell, TELL_AFTER_MS);
    else untold.tellAll();
  }

  return {
    append,
    opened: writer.opened,
    close(end) {
      clearTimeout(timer);
      untold.tellAll();
      return writer.close(end);
    },
  };
}
