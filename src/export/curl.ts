/** The HTTP requests of a session as a shell script of curl commands. Nothing recorded is anything but an argument. */

import { isUtf8 } from 'node:buffer';
import { TapedeckError } from '../errors.ts';
import { type HeaderFields, joinedFields } from '../protocol/http/headers.ts';
import { messagesOf } from '../protocol/message/conversation.ts';
import { messageLabel } from '../protocol/message/label.ts';
import { escapeText, shellQuoted } from '../protocol/text.ts';
import type { Store } from '../store/file/open.ts';
import type { BareFrame } from '../store/read/frames.ts';
import {
  eachHttpExchange,
  type HttpExchangeRow,
  prepareBodies,
  prepareHttpExchange,
} from '../store/read/http.ts';
import type { SessionRow } from '../store/read/sessions.ts';
import type { WriteOptions } from './format.ts';
import { upstreamUrl } from './parts.ts';

/** curl sets these itself. */
const OWN = new Set([
  'host',
  'content-length',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'accept-encoding',
  'expect',
]);

/** A placeholder of a redacted value. */
const REDACTED = /\[redacted:|masked-[0-9a-f]{8}/;

/** What a server gives its client for later requests, as far as the script has it by then. */
type Given = { sessionId: boolean; endpoint: boolean };

const SESSION_ID = 'mcp-session-id';

/** The variables are of the script. A header that was not there leaves the session as it is. */
const BEGINNING = `#!/bin/sh
# What the server gives is taken from its answers: its session, and the endpoint of HTTP+SSE. Streams that stay open run beside
# the rest, and end with it.
headers=$(mktemp) && events=$(mktemp) || exit 1
session= endpoint= streams=
trap 'kill $streams 2>/dev/null; rm -f "$headers" "$events"' EXIT
`;

const TAKE_SESSION = `session=$(sed -n 's/^[Mm][Cc][Pp]-[Ss]ession-[Ii][Dd]: *//p' "$headers" | tr -d '\\r' | tail -n 1)
`;

const BESIDE = `streams="$streams $!"
`;

/** The stream's first event names where to POST to (2024-11-05, basic/transports, "HTTP with SSE"). */
function takeEndpoint(origin: string): string {
  return `while [ -z "$endpoint" ] && kill -0 $! 2>/dev/null; do
  sleep 1
  endpoint=$(sed -n 's/^data: *//p' "$events" | tr -d '\\r' | head -n 1)
done
case $endpoint in /*) endpoint=${shellQuoted(origin)}$endpoint ;; esac
`;
}

/** What comes late on a stream has a second. */
const END = `
[ -z "$streams" ] || sleep 1
cat "$events"
`;

const NOT_HTTP = 'curl speaks HTTP, and this session came over stdio.';

export function* writeCurl(
  store: Store,
  session: SessionRow,
  { only, onFrame }: WriteOptions,
): Generator<string> {
  if (session.transport === 'stdio')
    throw new TapedeckError('refused', `${NOT_HTTP} Take --format ndjson, and replay it.`);
  yield* scriptOf(store, session, prepareBodies(store, session.number, only), onFrame);
}

/** Of the exchanges that have bodies, though these may be empty. */
function* scriptOf(
  store: Store,
  session: SessionRow,
  bodiesOf: ReturnType<typeof prepareBodies>,
  onExchange: (number: number) => void,
): Generator<string> {
  const given: Given = { sessionId: false, endpoint: false };
  yield BEGINNING;
  for (const [httpExchange, next] of withNext(eachHttpExchange(store, session.number))) {
    const bodies = bodiesOf(httpExchange.number);
    if (bodies === undefined) continue;
    yield* exchangeLines(session, httpExchange, next, bodies.request, given);
    onExchange(httpExchange.number);
  }
  yield END;
}

/**
 * The commands that send the request of one HTTP exchange again. Where it needs what a server gives at its beginning, its session
 * or its endpoint, they begin as the session did. Throws `TapedeckError` `refused` where there is no such exchange.
 */
export function curlCommands(store: Store, session: SessionRow, number: number): string {
  const httpExchange = prepareHttpExchange(store, session.number)(number);
  if (httpExchange === undefined)
    throw new TapedeckError(
      'refused',
      session.transport === 'stdio'
        ? NOT_HTTP
        : 'Expected a frame that came by HTTP exchange, got one without.',
    );
  const sessionId = joinedFields(httpExchange.requestHeaders).get(SESSION_ID) ?? '';
  const isEndpoint = session.basis === 'sse-endpoint' && httpExchange.method === 'POST';
  if (!REDACTED.test(sessionId) && !isEndpoint) {
    const body = prepareBodies(store, session.number)(number)?.request ?? [];
    const given = { sessionId: false, endpoint: false };
    return [...commandLines(session, httpExchange, body, given, '', '')].join('');
  }
  const wanted = new Set([...beginningOf(store, session, number), number]);
  const bodiesOf = prepareBodies(store, session.number);
  const ofWanted = (one: number) => (wanted.has(one) ? bodiesOf(one) : undefined);
  return [...scriptOf(store, session, ofWanted, () => {})].join('');
}

/** The exchanges by which a session begins, up to this one: of HTTP+SSE the stream, and then the handshake. */
function beginningOf(store: Store, { number: session, basis }: SessionRow, until: number): number[] {
  const saying = store.prepare<[number, string, number], number | null>(
    `SELECT max(f.http) FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
     WHERE m.session = ? AND m.canonical = ? AND f.channel = 'request' AND f.http <= ?`,
  );
  const stream = store.prepare<[number, number], number | null>(
    "SELECT max(number) FROM http_exchange WHERE session = ? AND method = 'GET' AND number < ?",
  );
  return [
    basis === 'sse-endpoint' ? stream.pluck().get(session, until) : null,
    saying.pluck().get(session, 'initialize', until),
    saying.pluck().get(session, 'notifications/initialized', until),
  ].filter((number) => number != null);
}

function* withNext<T>(items: Iterable<T>): Generator<[item: T, next: T | undefined]> {
  let last: { item: T } | undefined;
  for (const item of items) {
    if (last !== undefined) yield [last.item, item];
    last = { item };
  }
  if (last !== undefined) yield [last.item, undefined];
}

function* exchangeLines(
  session: SessionRow,
  httpExchange: HttpExchangeRow,
  next: HttpExchangeRow | undefined,
  body: readonly BareFrame[],
  given: Given,
): Generator<string> {
  const { number, method, status, closedBy, endedAt } = httpExchange;
  const said = body.flatMap((frame) =>
    messagesOf(frame).map((message, n) => messageLabel(message, frame.payload, n, null)),
  );
  yield `\n# ${escapeText([`exchange ${number}`, ...said, `status ${status ?? 'none'}`].join(', '))}\n`;
  const response = joinedFields(httpExchange.responseHeaders ?? []);
  const isStream = response.get('content-type')?.startsWith('text/event-stream') === true;
  const isEndpoint = isStream && method === 'GET' && session.basis === 'sse-endpoint';
  // The server ends a stream as it likes, or after its client has answered a question on it.
  const isEndless = method === 'GET' || closedBy !== 'server' || endedAt === null;
  const isBeside = isStream && (isEndless || (next !== undefined && next.at < endedAt));
  const isFirst = response.has(SESSION_ID) && !given.sessionId;
  const more = isEndpoint ? ' > "$events" &' : isBeside ? ' &' : '';
  yield* commandLines(session, httpExchange, body, given, isFirst ? ' --dump-header "$headers"' : '', more);
  if (isBeside) yield BESIDE;
  if (isFirst) yield TAKE_SESSION;
  if (isEndpoint) yield takeEndpoint(new URL(session.target).origin);
  given.sessionId ||= isFirst;
  given.endpoint ||= isEndpoint;
}

/** `options` and `more` are of the script: words of curl, and what follows the command. */
function* commandLines(
  { target }: SessionRow,
  { method, path, requestHeaders }: HttpExchangeRow,
  body: readonly BareFrame[],
  given: Given,
  options: string,
  more: string,
): Generator<string> {
  const isTaken = (name: string) => given.sessionId && name.toLowerCase() === SESSION_ID;
  const redacted = requestHeaders.filter(([name, value]) => REDACTED.test(value) && !isTaken(name));
  if (redacted.length > 0)
    yield `# Redacted in the recording, to be filled in: ${escapeText(redacted.map(([name]) => name).join(', '))}\n`;
  const bytes = Buffer.concat(body.map(({ payload }) => payload));
  // curl would take a word that begins with `@` for the name of a file.
  const isPlain = isUtf8(bytes) && bytes[0] !== 0x40 && !UNPRINTABLE.test(bytes.toString('utf8'));
  if (!isPlain) yield `printf %s ${shellQuoted(bytes.toString('base64'))} | base64 -d | `;
  const isToEndpoint = method === 'POST' && given.endpoint;
  const words = [
    `curl --silent --show-error --no-buffer --globoff --request ${shellQuoted(method)}${options}`,
    ...requestHeaders
      .filter(isSent)
      .map(([name, value]) =>
        isTaken(name)
          ? `--header ${shellQuoted(`${name}: `)}"$session"`
          : `--header ${shellQuoted(`${name}: ${escapeText(value)}`)}`,
      ),
    ...(bytes.length === 0 ? [] : [`--data-binary ${isPlain ? shellQuoted(bytes.toString('utf8')) : '@-'}`]),
    isToEndpoint ? '"$endpoint"' : shellQuoted(upstreamUrl(target, path).href),
  ];
  yield `${words.join(' \\\n  ')}${more}\n`;
}

/** Kept out of a script that a terminal may show. A line end and a tab are harmless. */
const UNPRINTABLE = /[^\P{C}\n\t]/u;

function isSent([name]: HeaderFields[number]): boolean {
  return !OWN.has(name.toLowerCase());
}
