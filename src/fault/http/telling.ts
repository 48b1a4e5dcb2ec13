/**
 * What a recorder is told of one HTTP exchange with faults. The proxy tells what was answered, a moment after it was; here that
 * is replaced by what went on, in the order in which it did. What passes as it is, is told by the proxy alone.
 */

import type { IncomingMessage } from 'node:http';
import type { FrameFault } from '../../protocol/wire/frame.ts';
import type { HttpEvent, HttpResponseEvent } from '../../protocol/wire/http-event.ts';
import type { ResponseHead } from './head.ts';

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
  /** The request goes on with a fault in it. `bytes`: its body as it went, without its coding. */
  asked(bytes: Buffer, fault: FrameFault): void;
  /** The request never goes on. `said`: what had come of its body; `fault`: why not; null: its client left first. */
  unsent(request: IncomingMessage, said: readonly Buffer[], fault: FrameFault | null): void;
  /** It was answered in place of the server. */
  accepted(rawHeaders: readonly string[]): void;
  /** What never went on is over. */
  ended(isAnswered: boolean): void;
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
  /** What went on in place of the request's body. */
  let asked: { bytes: Buffer; fault: FrameFault } | null = null;

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
    if (head !== null && !isOther) return { ...head, at, rawHeaders: asSent(head.rawHeaders, sent) };
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
    asked(bytes, fault) {
      asked = { bytes, fault };
    },
    unsent(request, said, fault) {
      onEvent(requestEvent(exchange, now(), request));
      for (const bytes of said) onEvent({ type: 'request-body', exchange, at: now(), bytes });
      if (fault !== null)
        onEvent({ type: 'fault', exchange, at: now(), channel: 'request', bytes: NO_BYTES, fault });
      const { rawTrailers, complete } = request;
      onEvent({ type: 'request-end', exchange, at: now(), rawTrailers, isComplete: complete });
      if (fault !== null) brokenBy ??= 'kept back';
    },
    accepted(rawHeaders) {
      brokenBy = 'accepted';
      const head = { status: 202, statusMessage: 'Accepted', rawHeaders, edits: [] };
      onEvent({ type: 'response', exchange, at: now(), ...head });
    },
    ended(isAnswered) {
      const by =
        brokenBy === null
          ? ({ closedBy: 'client', error: 'the client closed the connection' } as const)
          : ({ closedBy: 'proxy', error: `${brokenBy} by a fault on purpose` } as const);
      onEvent({ type: 'end', exchange, at: now(), ...by, isComplete: isAnswered, rawTrailers: [] });
    },
    answered(event) {
      if (asked !== null && event.type === 'request-body') return undefined;
      if (asked !== null && event.type === 'request-end') {
        onEvent({ type: 'fault', exchange, at: event.at, channel: 'request', ...asked });
        asked = null;
      }
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

const NO_BYTES: Buffer = Buffer.alloc(0);

/** As the proxy tells of one that it forwards. */
function requestEvent(exchange: number, at: number, request: IncomingMessage): HttpEvent {
  const { method = '', url: path = '', httpVersion, rawHeaders, socket } = request;
  const clientAddress = `${socket.remoteAddress}:${socket.remotePort}`;
  return { type: 'request', exchange, at, method, path, httpVersion, rawHeaders, edits: [], clientAddress };
}

/** The headers as the server wrote them, with what was changed in those that tell of the body. */
function asSent(shown: readonly string[], { rawHeaders }: ResponseHead): readonly string[] {
  const headers: string[] = [];
  for (let i = 0; i + 1 < shown.length; i += 2) {
    const [name = '', value = ''] = shown.slice(i, i + 2);
    const lowerName = name.toLowerCase();
    if (lowerName !== 'content-length' && lowerName !== 'content-encoding') headers.push(name, value);
    else {
      const at = rawHeaders.findIndex((one, k) => k % 2 === 0 && one.toLowerCase() === lowerName);
      // Chunks take the place of a length; what the proxy itself left out is still as the server wrote it.
      if (at >= 0) headers.push(name, rawHeaders[at + 1] ?? value);
      else if (lowerName === 'content-length') headers.push(name, value);
    }
  }
  return headers;
}
