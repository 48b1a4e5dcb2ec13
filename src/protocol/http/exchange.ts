/** One HTTP exchange while it is recorded or imported: what its row will hold, before anything is redacted. */

import type { InvalidReason, Message } from '../message/message.ts';
import type { FramePart } from '../wire/frame.ts';
import type { HeaderEdit, HttpEndEvent, HttpRequestEvent, HttpResponseEvent } from '../wire/http-event.ts';

/** A header that tapedeck changed: in which head, its name, and the value that its sender wrote. */
export type SidedEdit = { side: 'request' | 'response'; header: string; original: string };

type Information = { at: number; status: number; headers: readonly string[] };

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
  /** Never changed in place: many exchanges may have the same list. */
  edits: readonly SidedEdit[];
};

const NO_EDITS: readonly SidedEdit[] = [];

const NO_HEADERS: readonly string[] = [];

/** An HTTP exchange that has only begun. `at`: microseconds since the Unix epoch. */
export function newHttpExchange(number: number, at: number): HttpExchange {
  return {
    number,
    method: '',
    path: '',
    version: '',
    client: '',
    requestHeaders: NO_HEADERS,
    requestTrailers: NO_HEADERS,
    requestBytes: 0,
    informations: [],
    status: null,
    statusText: null,
    responseHeaders: null,
    responseTrailers: NO_HEADERS,
    responseBytes: 0,
    at,
    requestEndedAt: null,
    responseAt: null,
    endedAt: null,
    endedAfter: null,
    closedBy: null,
    error: null,
    edits: NO_EDITS,
  };
}

/** The exchange that a request begins. It has no number yet. */
export function beginHttpExchange(event: HttpRequestEvent): HttpExchange {
  const httpExchange = newHttpExchange(0, event.at);
  httpExchange.method = event.method;
  httpExchange.path = event.path;
  httpExchange.version = event.httpVersion;
  httpExchange.client = event.clientAddress;
  httpExchange.requestHeaders = event.rawHeaders;
  httpExchange.edits = requestEdits(event.edits);
  return httpExchange;
}

export function addResponse(httpExchange: HttpExchange, event: HttpResponseEvent): void {
  httpExchange.status = event.status;
  httpExchange.statusText = event.statusMessage;
  httpExchange.responseHeaders = event.rawHeaders;
  httpExchange.responseAt = event.at;
  if (event.edits.length > 0)
    httpExchange.edits = [...httpExchange.edits, ...event.edits.map((edit) => sided('response', edit))];
}

/** The same list for the same list: `Host` is edited alike in thousands of requests. */
function requestEdits(edits: readonly HeaderEdit[]): readonly SidedEdit[] {
  if (edits.length === 0) return NO_EDITS;
  let known = knownEdits.get(edits);
  if (known === undefined) {
    known = edits.map((edit) => sided('request', edit));
    knownEdits.set(edits, known);
  }
  return known;
}

const knownEdits = new WeakMap<readonly HeaderEdit[], readonly SidedEdit[]>();

function sided(side: SidedEdit['side'], edit: HeaderEdit): SidedEdit {
  return { side, ...edit };
}

export function addEnd(httpExchange: HttpExchange, event: HttpEndEvent, lastSeq: number): void {
  httpExchange.endedAt = event.at;
  httpExchange.endedAfter = lastSeq;
  httpExchange.closedBy = event.closedBy;
  httpExchange.error = event.error;
  httpExchange.responseTrailers = event.rawTrailers;
}

/**
 * Decides whether an HTTP body is meant to hold messages. HTTP exchanges without MCP in them (OAuth, error pages) are recorded
 * too, since they are what people debug, but their bodies are not reported as malformed messages.
 * Specification: basic/transports/streamable-http, "Sending Messages to the Server".
 */

/** The reasons for which a message has nothing of JSON-RPC in it. */
const FOREIGN: ReadonlySet<InvalidReason> = new Set<InvalidReason>([
  'not-json',
  'not-object',
  'empty-batch',
  'no-jsonrpc',
]);

type RequestShape = { method: string; isMcpPath: boolean };

/** A POST to the MCP server holds messages, whatever it looks like; elsewhere a body tells by its looks. */
export function partOfRequest({ method, isMcpPath }: RequestShape, messages: readonly Message[]): FramePart {
  return looksLikeMcp(messages) || (method === 'POST' && isMcpPath) ? 'body' : 'foreign-body';
}

/**
 * An answer of status 200 to a JSON-RPC request holds messages, whatever it looks like. With any other status it may
 * (an error), or be a sentence for people: only then is it read.
 */
export function partOfResponse(
  status: number,
  asked: readonly Message[],
  messages: () => readonly Message[],
): FramePart {
  const isAnswer = status === 200 && asked.some(({ kind }) => kind === 'request');
  return isAnswer || looksLikeMcp(messages()) ? 'body' : 'foreign-body';
}

export function looksLikeMcp(messages: readonly Message[]): boolean {
  return messages.some((message) => message.kind !== 'invalid' || !FOREIGN.has(message.reason));
}
