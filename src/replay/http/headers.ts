/** Reads the headers of live requests, and makes those of answers from the recorded ones. */

import { type IncomingHttpHeaders, validateHeaderName, validateHeaderValue } from 'node:http';
import { memoize } from '../../protocol/bounded.ts';
import {
  EVENTS_TYPE,
  fieldOf,
  type HeaderFields,
  JSON_TYPE,
  mediaType,
} from '../../protocol/http/headers.ts';
import type { HttpHead } from '../../store/read/http.ts';

/** Which forms of an answer the client accepts. */
export type AcceptedForms = { json: boolean; events: boolean };

export function acceptedForms({ accept = '' }: IncomingHttpHeaders): AcceptedForms {
  return acceptedBy(accept);
}

const acceptedBy = memoize((accept): AcceptedForms => {
  const ranges = accept.split(',').map(rangeOf);
  const takes = (type: string) => {
    const [main = ''] = type.split('/');
    return ranges.some((range) => range === type || range === `${main}/*` || range === '*/*');
  };
  return { json: takes(JSON_TYPE), events: takes(EVENTS_TYPE) };
});

/** The media range, in lower case; empty where its weight forbids it. */
function rangeOf(entry: string): string {
  const [range = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
  return parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter)) ? '' : range;
}

/** The media type of the recorded answer. */
export function recordedType(row: HttpHead | undefined): string {
  const headers = row?.responseHeaders ?? null;
  if (headers === null) return '';
  let type = types.get(headers);
  if (type === undefined) {
    type = mediaType(fieldOf(headers, 'content-type'));
    types.set(headers, type);
  }
  return type;
}

/** Cached, because most answers share their headers. */
const types = new WeakMap<HeaderFields, string>();

/** The recorded request's headers, as a server sees them. */
export function requestHeadersOf(row: HttpHead | undefined): IncomingHttpHeaders {
  return Object.fromEntries(
    (row?.requestHeaders() ?? []).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/** Headers that belong to the recorded connection, or to the recorded run. */
const NOT_REPLAYED = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'date',
  'keep-alive',
  'proxy-connection',
  'set-cookie',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'www-authenticate',
]);

const SESSION_ID = 'mcp-session-id';

/** Servers send these with a stream, so that no proxy buffers it. */
const STREAM_HEADERS = ['Cache-Control', 'no-cache, no-transform', 'X-Accel-Buffering', 'no'];

/**
 * Returns name, value, name, value: the recorded headers with the live content type (`''`: none) and session id. Without a
 * recorded HTTP exchange: only what is needed.
 */
export function answerHeaders(row: HttpHead | undefined, type: string, sessionId: string | null): string[] {
  const recorded = row?.responseHeaders ?? null;
  if (recorded === null) return makeHeaders(row, type, sessionId);
  let made = latest.get(recorded);
  if (made === undefined || made.type !== type || made.sessionId !== sessionId) {
    made = { type, sessionId, headers: makeHeaders(row, type, sessionId) };
    latest.set(recorded, made);
  }
  return [...made.headers];
}

/** Cached by the recorded headers: many answers share them, and mostly the rest, too. */
const latest = new WeakMap<HeaderFields, { type: string; sessionId: string | null; headers: string[] }>();

function makeHeaders(row: HttpHead | undefined, type: string, sessionId: string | null): string[] {
  const headers = (row?.responseHeaders ?? []).flatMap(([name, value]) => {
    const live = liveValue(name.toLowerCase(), value, type, sessionId);
    return live === null || !isSendable(name, live) ? [] : [name, live];
  });
  const has = (lowerName: string) =>
    headers.some((text, i) => i % 2 === 0 && text.toLowerCase() === lowerName);
  if (type !== '' && !has('content-type')) headers.push('Content-Type', type);
  if (type === EVENTS_TYPE && !has('cache-control')) headers.push(...STREAM_HEADERS);
  if (sessionId !== null && !has(SESSION_ID) && (row === undefined || type !== ''))
    headers.push(SESSION_ID, sessionId);
  return headers;
}

function liveValue(
  lowerName: string,
  recorded: string,
  type: string,
  sessionId: string | null,
): string | null {
  if (lowerName === SESSION_ID) return sessionId;
  if (lowerName === 'content-type') return mediaType(recorded) === type ? recorded : null;
  return NOT_REPLAYED.has(lowerName) ? null : recorded;
}

/** A recording may have been edited by hand. */
function isSendable(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}
