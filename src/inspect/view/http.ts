/** HTTP exchanges for people: a line where one begins, its headers, and a line where it ends, if that says something. */

import { EVENTS_TYPE, fieldOf, joinedFields, mediaType } from '../../protocol/http/headers.ts';
import { escapeText } from '../../protocol/text.ts';
import { HTTP2_REQUEST } from '../../protocol/wire/http-event.ts';
import type { HttpExchangeRow } from '../../store/read/http.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { dimBlock, INDENT, margin, noteLine, tagOf } from './block.ts';
import {
  type Colors,
  clip,
  clipMiddle,
  formatDuration,
  formatSize,
  type TerminalStyle,
  widthOf,
} from './text.ts';

export type HttpViewOptions = {
  style: TerminalStyle;
  /** Lines shown of each header. */
  payloadLines: number;
  /** Whether an answer may still come. */
  isOpen: boolean;
};

/** `telling`: those that people debug with. */
type ShownHeaders = 'none' | 'telling' | 'all';

const TELLING =
  /^(?:www-authenticate|location|allow|access-control-.*|content-type|mcp-.*|authorization|origin|last-event-id)$/i;

/** The time is that until the head of the answer, whatever the answer is; how long a stream lasted stands at its end. */
export function* httpExchangeBlock(
  session: SessionRow,
  httpExchange: HttpExchangeRow,
  headers: ShownHeaders,
  { style, payloadLines, isOpen }: HttpViewOptions,
): Generator<string> {
  const { colors, width } = style;
  const tag = tagOf(httpExchange.number);
  const room = width - INDENT - tag.length;
  const status = clip(escapeText(statusText(httpExchange, isOpen)), Math.floor(room / 2));
  const name = escapeText(`${httpExchange.method} ${httpExchange.path}`);
  const call = clipMiddle(name, room - widthOf(status) - 2);
  const paint = painterOf(colors, httpExchange);
  yield `${margin(style, session, httpExchange.at, ' ')}${colors.dim(`${tag}${call}`)}  ${paint(status)}`;
  for (const { side, header, original } of httpExchange.edits) {
    // Nearly every request has this one.
    const isUsual = side === 'request' && header.toLowerCase() === 'host';
    if (!isUsual || headers === 'all') yield noteLine(`edited: ${header}, was ${original}`, style);
  }
  if (headers === 'none') return;
  for (const line of headerTexts(httpExchange, headers === 'all')) yield* dimBlock(line, style, payloadLines);
}

/** `isConcluded`: what came last on it was an answer, so that the end of a stream of its own says nothing. */
export function* httpExchangeEnd(
  session: SessionRow,
  httpExchange: HttpExchangeRow,
  isConcluded: boolean,
  { style }: HttpViewOptions,
): Generator<string> {
  const { colors, width } = style;
  const { number, endedAt, closedBy, status } = httpExchange;
  const text = endText(httpExchange, isConcluded);
  if (text === '' || endedAt === null) return;
  const tag = tagOf(number);
  const paint = isFault(httpExchange)
    ? colors.red
    : closedBy === 'client' && status === null
      ? colors.yellow
      : colors.dim;
  const line = clip(escapeText(text), width - INDENT - tag.length);
  yield `${margin(style, session, endedAt, ' ')}${colors.dim(tag)}${paint(line)}`;
}

/** Whether an HTTP exchange is probably MCP. Its body would say for sure, but is not known where it begins. */
export function isProbablyMcp(httpExchange: HttpExchangeRow, mcpPath: string): boolean {
  const { method, path, status, requestHeaders } = httpExchange;
  if (method === 'OPTIONS' || (status !== null && (status < 200 || status > 299))) return false;
  return (
    path.split('?', 1)[0] === mcpPath ||
    status === 202 ||
    answerType(httpExchange) === EVENTS_TYPE ||
    joinedFields(requestHeaders).get('accept')?.includes(EVENTS_TYPE) === true
  );
}

function statusText(httpExchange: HttpExchangeRow, isOpen: boolean): string {
  const { method, status, at, responseAt, endedAt, requestBytes, responseBytes } = httpExchange;
  if (method === HTTP2_REQUEST.method) {
    const bytes = `${formatSize(requestBytes)} sent, ${formatSize(responseBytes)} received`;
    return `HTTP/2, unread: ${endedAt === null ? 'open' : bytes}`;
  }
  if (status === null || responseAt === null)
    return isOpen && endedAt === null ? 'no answer yet' : 'no answer';
  const type = answerType(httpExchange);
  const took = formatDuration((responseAt - at) / 1000);
  return `${status}${type === '' ? '' : ` ${type}`}  ${took}`;
}

/** The media type of the answer; `''` where it has none. */
function answerType({ responseHeaders }: HttpExchangeRow): string {
  return mediaType(fieldOf(responseHeaders ?? [], 'content-type'));
}

function painterOf(colors: Colors, { status }: HttpExchangeRow): (text: string) => string {
  if (status === null || (status >= 400 && status < 500)) return colors.yellow;
  return status >= 500 ? colors.red : colors.dim;
}

/** A client may leave whenever it wants; whatever else is not whole is a fault. */
function isFault({ closedBy, error }: HttpExchangeRow): boolean {
  return error !== null && closedBy !== 'client';
}

function endText(httpExchange: HttpExchangeRow, isConcluded: boolean): string {
  const { method, at, endedAt, closedBy, error } = httpExchange;
  const lasted = formatDuration(((endedAt ?? at) - at) / 1000);
  if (closedBy === 'client') return `the client closed it after ${lasted}`;
  const why = error === null ? '' : `: ${error}`;
  if (closedBy === 'proxy') return `tapedeck closed it after ${lasted}${why}`;
  if (error !== null) return `the server broke it off after ${lasted}${why}`;
  const isStream = answerType(httpExchange) === EVENTS_TYPE;
  return isStream && !(isConcluded && method === 'POST') ? `the server ended the stream after ${lasted}` : '';
}

function* headerTexts(
  { requestHeaders, responseHeaders }: HttpExchangeRow,
  hasAll: boolean,
): Generator<string> {
  for (const [mark, fields] of [
    ['>', requestHeaders],
    ['<', responseHeaders ?? []],
  ] as const) {
    for (const [name, value] of fields) if (hasAll || TELLING.test(name)) yield `${mark} ${name}: ${value}`;
  }
}
