/**
 * What a recorder is told of one HTTP exchange with faults. The proxy tells what was answered, a moment after it was; here that
 * is replaced by what went on, in the order in which it did. What passes as it is, is told by the proxy alone.
 */

import type { FrameFault } from '../protocol/wire/frame.ts';
import type { HttpEvent, HttpResponseEvent } from '../protocol/wire/http-event.ts';
import type { ResponseHead } from './http-head.ts';

export type Telling = {
  /** An answer begins. `isOwn`: what goes on of it is told here. */
  expect(isOwn: boolean): void;
  /** Bytes were answered, which the proxy will tell of. */
  wrote(): void;
  /** The head went on. `isOther`: not as it was answered. */
  head(head: ResponseHead, isOther: boolean): void;
  /** Bytes went on as they were. */
  bytes(bytes: Buffer): void;
  fault(channel: 'response' | 'sse', bytes: Buffer, fault: FrameFault): void;
  /** The connection was broken on purpose. */
  broken(how: 'closed' | 'reset'): void;
  /** What the proxy tells. */
  answered(event: HttpEvent): Promise<void> | undefined;
};

type Said =
  | { type: 'head'; at: number; head: ResponseHead; isOther: boolean }
  | { type: 'event'; event: HttpEvent };

export function createTelling(
  exchange: number,
  now: () => number,
  onEvent: (event: HttpEvent) => Promise<void> | undefined,
): Telling {
  let isOwn = false;
  let head: HttpResponseEvent | null = null;
  let brokenBy: string | null = null;
  /** Pieces that were answered, and that the proxy has not told of. */
  let untold = 0;
  /** A permitted edit that was made in an answer. */
  let edit: { bytes: Buffer; original: Buffer } | null = null;
  let waiting: Said[] = [];

  /** The proxy's head comes before all else, and its edits before what they are in. */
  function tell(isEnd = false): void {
    if ((head === null || untold > 0) && !isEnd) return;
    const all = waiting;
    waiting = [];
    for (const said of all) {
      if (said.type === 'event') onEvent(withEdit(said.event));
      else onEvent(headEvent(said));
    }
  }

  function headEvent({ at, head: sent, isOther }: Extract<Said, { type: 'head' }>): HttpResponseEvent {
    if (head !== null && !isOther) return { ...head, at, rawHeaders: sameLength(head.rawHeaders, sent) };
    const { status, rawHeaders } = sent;
    return { type: 'response', exchange, at, status, statusMessage: '', rawHeaders, edits: [] };
  }

  function withEdit(event: HttpEvent): HttpEvent {
    if (edit === null || event.type !== 'response-body') return event;
    const { bytes, original } = edit;
    if (!bytes.subarray(0, event.bytes.length).equals(event.bytes)) return event;
    edit = null;
    // What follows the edited event is in both.
    const rest = bytes.length - event.bytes.length;
    return { ...event, original: original.subarray(0, original.length - rest) };
  }

  function say(event: HttpEvent): void {
    waiting.push({ type: 'event', event });
    tell();
  }

  return {
    expect(own) {
      isOwn = own;
    },
    wrote() {
      untold += 1;
    },
    head(sent, isOther) {
      waiting.push({ type: 'head', at: now(), head: sent, isOther });
      tell();
    },
    bytes(bytes) {
      if (bytes.length > 0) say({ type: 'response-body', exchange, at: now(), bytes });
    },
    fault: (channel, bytes, fault) => say({ type: 'fault', exchange, at: now(), channel, bytes, fault }),
    broken(how) {
      brokenBy = how;
    },
    answered(event) {
      if (event.type === 'end') {
        tell(true);
        if (brokenBy === null) return onEvent(event);
        const error = `${brokenBy} by a fault on purpose`;
        return onEvent({ ...event, closedBy: 'proxy', error, isComplete: false });
      }
      if (!isOwn || (event.type !== 'response' && event.type !== 'response-body')) return onEvent(event);
      if (event.type === 'response') head = event;
      else {
        untold = Math.max(0, untold - 1);
        if (event.original !== undefined)
          edit = { bytes: Buffer.from(event.bytes), original: Buffer.from(event.original) };
      }
      tell();
      return undefined;
    },
  };
}

/** The headers as the server wrote them, with the length of what went on. */
function sameLength(shown: readonly string[], { rawHeaders }: ResponseHead): readonly string[] {
  const at = rawHeaders.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length');
  if (at < 0) return shown;
  return shown.map((text, i) =>
    i % 2 === 1 && shown[i - 1]?.toLowerCase() === 'content-length' ? (rawHeaders[at + 1] ?? text) : text,
  );
}
