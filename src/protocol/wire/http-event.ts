import type { FrameFault } from './frame.ts';

/**
 * The events of one HTTP exchange (a request and its response) at the proxy, piece by piece, as they pass. `request` comes first
 * and `end` last; the two directions interleave between them as they did on the wire.
 * `exchange` counts from 1 within one proxy; `at` is microseconds since the Unix epoch, stamped once, in capture.
 */
export type HttpEvent =
  | HttpRequestEvent
  | { type: 'request-body'; exchange: number; at: number; bytes: Uint8Array }
  /** `isComplete` is false where the client went away, or the server answered, before the body had ended. */
  | { type: 'request-end'; exchange: number; at: number; rawTrailers: readonly string[]; isComplete: boolean }
  /** An answer of status 1xx that came before the final one. */
  | { type: 'information'; exchange: number; at: number; status: number; rawHeaders: readonly string[] }
  | HttpResponseEvent
  /** `bytes` as they went to the client; `original` where an edit made them differ. */
  | { type: 'response-body'; exchange: number; at: number; bytes: Uint8Array; original?: Uint8Array }
  /** A body, of either side, or an event of a stream, that a fault was put into: whole. `bytes` as they went on. */
  | HttpFaultEvent
  | HttpEndEvent;

export type HttpFaultEvent = {
  type: 'fault';
  exchange: number;
  at: number;
  channel: 'request' | 'response' | 'sse';
  bytes: Uint8Array;
  fault: FrameFault;
};

export type HttpRequestEvent = {
  type: 'request';
  exchange: number;
  at: number;
  method: string;
  /** The request target as the client wrote it. */
  path: string;
  httpVersion: string;
  /** Name, value, name, value… as the client wrote them, with the edits in place. */
  rawHeaders: readonly string[];
  edits: readonly HeaderEdit[];
  clientAddress: string;
};

export type HttpResponseEvent = {
  type: 'response';
  exchange: number;
  at: number;
  status: number;
  statusMessage: string;
  /** As the server wrote them, with the edits in place. */
  rawHeaders: readonly string[];
  edits: readonly HeaderEdit[];
  /** The body comes without the content coding that its header names. */
  isDecoded?: true;
};

export type HttpEndEvent = {
  type: 'end';
  exchange: number;
  at: number;
  /** Who ended it: `server` by a whole answer or by dying, `client` by leaving early, `proxy` by refusing or stopping. */
  closedBy: 'server' | 'client' | 'proxy';
  /** Null where the answer arrived whole. */
  error: string | null;
  /** Whether the whole answer, the server's or ours, went to the client. */
  isComplete: boolean;
  /** Trailers of the answer. */
  rawTrailers: readonly string[];
};

/** How a connection begins that speaks HTTP/2 without having been asked to (RFC 9113, 3.4). */
export const HTTP2_PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/**
 * Such a connection passes unread, as one HTTP exchange: this is its head, its bodies are all the bytes from the preface on, and
 * nothing stands for an answer's head. No request of HTTP/1.1 has this method.
 */
export const HTTP2_REQUEST = { method: 'PRI', path: '*', httpVersion: '2.0' } as const;

/** A header that tapedeck changed on its way: its name and the value that its sender had given. */
export type HeaderEdit = { header: string; original: string };
