/** What is known of one HTTP exchange, as it will stand in its row. Nothing is masked yet. */
import type { HttpEndEvent, HttpRequestEvent, HttpResponseEvent } from '../protocol/http-event.ts';

/** A header that tapedeck changed: in which head, its name, and the value that its sender had given. */
export type SidedEdit = { side: 'request' | 'response'; header: string; original: string };

export type Information = { at: number; status: number; headers: readonly string[] };

export type HttpExchange = {
  /** Counts from 1 within the session; 0 until the exchange has one. */
  number: number;
  method: string;
  path: string;
  version: string;
  client: string;
  requestHeaders: readonly string[];
  requestTrailers: readonly string[];
  requestBytes: number;
  informations: Information[];
  status: number | null;
  statusText: string | null;
  responseHeaders: readonly string[] | null;
  responseTrailers: readonly string[];
  responseBytes: number;
  at: number;
  requestEndedAt: number | null;
  responseAt: number | null;
  endedAt: number | null;
  /** The session's last frame when it ended. */
  endedAfter: number | null;
  closedBy: HttpEndEvent['closedBy'] | null;
  error: string | null;
  edits: SidedEdit[];
};

export function beginExchange(event: HttpRequestEvent): HttpExchange {
  return {
    number: 0,
    method: event.method,
    path: event.path,
    version: event.httpVersion,
    client: event.clientAddress,
    requestHeaders: event.rawHeaders,
    requestTrailers: [],
    requestBytes: 0,
    informations: [],
    status: null,
    statusText: null,
    responseHeaders: null,
    responseTrailers: [],
    responseBytes: 0,
    at: event.at,
    requestEndedAt: null,
    responseAt: null,
    endedAt: null,
    endedAfter: null,
    closedBy: null,
    error: null,
    edits: event.edits.map((edit) => ({ side: 'request', ...edit })),
  };
}

export function addResponse(exchange: HttpExchange, event: HttpResponseEvent): void {
  exchange.status = event.status;
  exchange.statusText = event.statusMessage;
  exchange.responseHeaders = event.rawHeaders;
  exchange.responseAt = event.at;
  for (const edit of event.edits) exchange.edits.push({ side: 'response', ...edit });
}

export function addEnd(exchange: HttpExchange, event: HttpEndEvent, lastSeq: number): void {
  exchange.endedAt = event.at;
  exchange.endedAfter = lastSeq;
  exchange.closedBy = event.closedBy;
  exchange.error = event.error;
  exchange.responseTrailers = event.rawTrailers;
}

/** The value of a header, `''` where there is none; the first of several. */
export function headerOf(rawHeaders: readonly string[] | null, lowerName: string): string {
  if (rawHeaders === null) return '';
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === lowerName.length && name.toLowerCase() === lowerName) return rawHeaders[i + 1] ?? '';
  }
  return '';
}

/** The media type of a head, in lower case, without parameters. */
export function mediaTypeOf(rawHeaders: readonly string[] | null): string {
  return (headerOf(rawHeaders, 'content-type').split(';')[0] ?? '').trim().toLowerCase();
}

export function contentCodingOf(rawHeaders: readonly string[] | null): string {
  return headerOf(rawHeaders, 'content-encoding').trim().toLowerCase();
}
