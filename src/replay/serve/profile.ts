/** Reads from a recording how its server spoke HTTP. For a stdio recording: what a server like it would do. */

import { EVENTS_TYPE, fieldOf } from '../../protocol/http/headers.ts';
import type { HttpHead } from '../../store/read/http.ts';
import { recordedType } from '../http/headers.ts';
import type { Recording } from '../recording/recording.ts';
import type { Step } from '../recording/script.ts';

export type HttpProfile = {
  /** The path where clients reach it, without a query. */
  path: string;
  /** Legacy HTTP+SSE. */
  isSse: boolean;
  servesLegacy: boolean;
  servesModern: boolean;
  /** Whether it hands out session ids. */
  hasSessions: boolean;
  /** The status with which its server refused every stream that was asked for; null where it gave one, or nobody asked. */
  streamRefusal: number | null;
  /** HTTP exchanges that opened the stream of unasked messages, accepted a message without an answer, ended a session. */
  stream: HttpHead | undefined;
  accepted: HttpHead | undefined;
  deleted: HttpHead | undefined;
  /** Legacy HTTP+SSE: the target that messages were posted to. */
  postTarget: string;
};

const DEFAULT_PATH = '/mcp';

const DEFAULT_POST_TARGET = '/messages';

/** Clients do each of these soon after the handshake. */
const SEARCHED_EXCHANGES = 1000;

const OK = 200;

const ACCEPTED = 202;

const FIRST_ERROR = 400;

const NOT_ALLOWED = 405;

export function readHttpProfile(recording: Recording): HttpProfile {
  const { basis, transport, era, target } = recording.session;
  const isSse = transport === 'sse';
  const rows = firstExchanges(recording);
  const gets = rows.filter(({ method, path }) => method === 'GET' && !path.includes('/.well-known/'));
  const stream = gets.find((row) => cameAsStream(row));
  const hasSessions = basis === 'session-header' || transport === 'stdio';
  const firstPost = firstPostOf(recording);
  const path = isSse ? stream?.path : firstPost?.path;
  return {
    path: transport === 'stdio' ? DEFAULT_PATH : pathOf(path ?? target),
    isSse,
    servesLegacy: era !== 'modern',
    servesModern: era === 'modern' || era === 'dual',
    hasSessions,
    streamRefusal: stream === undefined ? refusalIn(gets, hasSessions) : null,
    stream,
    accepted: rows.find(({ method, status }) => method === 'POST' && status === ACCEPTED),
    deleted: rows.find(({ method, status }) => method === 'DELETE' && status === OK),
    postTarget: firstPost?.path ?? DEFAULT_POST_TARGET,
  };
}

/** Other refusals than 405 may be about the session, which the mock judges by itself where there are some. */
function refusalIn(gets: readonly HttpHead[], hasSessions: boolean): number | null {
  if (gets.some(({ status }) => status === NOT_ALLOWED)) return NOT_ALLOWED;
  if (hasSessions) return null;
  const asked = gets.filter((row) => fieldOf(row.requestHeaders(), 'accept')?.includes(EVENTS_TYPE));
  const isRefused = ({ status }: HttpHead) => status !== null && status >= FIRST_ERROR;
  return asked.length > 0 && asked.every(isRefused) ? (asked[0]?.status ?? null) : null;
}

export function cameAsStream(row: HttpHead | undefined): boolean {
  return recordedType(row) === EVENTS_TYPE;
}

/** Whether a message came on the stream of unasked messages, even if it came during a call. */
export function cameUnasked({ httpExchange }: Recording, step: Step): boolean {
  if (step.httpExchange === null || step.isAnswer) return false;
  const row = httpExchange(step.httpExchange);
  // A resumed stream carries what belongs to a call.
  return row?.method === 'GET' && fieldOf(row.requestHeaders(), 'last-event-id') === undefined;
}

function firstExchanges({ session, httpExchange }: Recording): HttpHead[] {
  const rows: HttpHead[] = [];
  const last = Math.min(session.httpExchanges, SEARCHED_EXCHANGES);
  for (let number = 1; number <= last; number += 1) {
    const row = httpExchange(number);
    if (row !== undefined) rows.push(row);
  }
  return rows;
}

function firstPostOf({ script, httpExchange }: Recording): HttpHead | undefined {
  const number = script.size === 0 ? null : script.httpExchangeOf(0);
  return number === null ? undefined : httpExchange(number);
}

function pathOf(target: string): string {
  return URL.canParse(target, 'http://host') ? new URL(target, 'http://host').pathname : DEFAULT_PATH;
}
