/** Headers and statuses of the Streamable HTTP transport. Specification, basic/transports. */

import { BoundedMap } from '../../protocol/bounded.ts';
import { HTTP2_REQUEST } from '../../protocol/wire/http-event.ts';
import { readSse } from '../../protocol/wire/sse.ts';
import {
  type CheckedFrame,
  type CheckedHttpExchange,
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
} from './checked-message.ts';
import type { Report } from './rules.ts';

/** Errors that come with a status of their own in 2026-07-28, by code. */
const STATUS_OF: Readonly<Record<number, number>> = { '-32601': 404, '-32020': 400, '-32022': 400 };

/** The messages of one HTTP exchange. */
type HttpMessages = { asked: CheckedMessage[]; answers: CheckedMessage[]; noted: CheckedMessage[] };

export function inspectHttp(report: Report, { transport, basis }: CheckedSession): Inspector {
  const carried = new BoundedMap<string, HttpMessages>(MAX_REMEMBERED);
  let negotiated: string | null = null;
  let sessionId: string | null = null;

  function message(seen: CheckedMessage): void {
    if (seen.http === null) return;
    const key = String(seen.http);
    const own = carried.get(key) ?? { asked: [], answers: [], noted: [] };
    if (seen.channel === 'request') (seen.message.kind === 'request' ? own.asked : own.noted).push(seen);
    else if (seen.message.kind === 'result' || seen.message.kind === 'error') own.answers.push(seen);
    carried.set(key, own);
  }

  function httpExchange(http: CheckedHttpExchange): void {
    if (http.method === HTTP2_REQUEST.method)
      report(
        'http2-unread',
        'client',
        { place: null, revision: null, http: http.number },
        'HTTP/1.1',
        'the preface of HTTP/2',
      );
    const own = carried.get(String(http.number));
    carried.delete(String(http.number));
    if (own === undefined || http.method !== 'POST' || basis === 'sse-endpoint') return;
    const first = own.asked[0] ?? own.noted[0];
    if (first === undefined) return;
    const isTaken = http.status !== null && http.status < 300;
    accept(http, first);
    if (!first.message.details.isModern && methodOf(first) !== 'initialize') session(http, first, isTaken);
    if (own.asked.length === 0 && isTaken) accepted(http, first);
    for (const answer of own.answers) status(http, answer);
    learn(http, own);
  }

  function accept(http: CheckedHttpExchange, first: CheckedMessage): void {
    const value = http.requestHeaders.get('accept') ?? '';
    const types = value.split(',').map((type) => type.split(';')[0]?.trim().toLowerCase());
    const hasAll = types.includes('*/*');
    const isFull = hasAll || (types.includes('application/json') && types.includes('text/event-stream'));
    if (!isFull)
      say(
        'accept',
        'client',
        http,
        first,
        'application/json, text/event-stream',
        value === '' ? 'no `Accept`' : value,
      );
  }

  function session(http: CheckedHttpExchange, first: CheckedMessage, isTaken: boolean): void {
    if (!isTaken) return;
    if (sessionId !== null && http.requestHeaders.get('mcp-session-id') === undefined)
      say('session-header', 'client', http, first, '`Mcp-Session-Id`', 'none');
    const version = http.requestHeaders.get('mcp-protocol-version');
    if (negotiated !== null && version !== negotiated)
      say(
        'version-header',
        'client',
        http,
        first,
        `\`MCP-Protocol-Version: ${negotiated}\``,
        version ?? 'none',
      );
  }

  function accepted(http: CheckedHttpExchange, first: CheckedMessage): void {
    if (http.status !== 202 || http.responseBytes > 0)
      say(
        'status-accepted',
        'server',
        http,
        first,
        'status 202 and no body',
        `status ${http.status}, ${http.responseBytes} bytes`,
      );
  }

  function status(http: CheckedHttpExchange, answer: CheckedMessage): void {
    if (answer.message.kind !== 'error' || answer.message.code === null || http.status === null) return;
    const expected = STATUS_OF[answer.message.code];
    // An error that comes on a stream comes too late for a status.
    if (expected === undefined || answer.channel === 'sse' || http.status === expected) return;
    say(
      'status-error',
      'server',
      http,
      answer,
      `status ${expected} for ${answer.message.code}`,
      `status ${http.status}`,
    );
  }

  function learn(http: CheckedHttpExchange, own: HttpMessages): void {
    for (const answer of own.answers) {
      if (answer.message.kind !== 'result' || answer.asked?.method !== 'initialize') continue;
      negotiated = answer.message.details.protocolVersion;
      sessionId = http.responseHeaders.get('mcp-session-id') ?? null;
    }
  }

  function say(
    rule: 'accept' | 'version-header' | 'session-header' | 'status-accepted' | 'status-error',
    side: 'client' | 'server',
    http: CheckedHttpExchange,
    { place, revision }: CheckedMessage,
    expected: string,
    seen: string,
  ): void {
    report(rule, side, { place, revision, http: http.number }, expected, seen);
  }

  return transport === 'http' ? { message, httpExchange } : {};
}

/** The stream of the older transport, HTTP+SSE. Specification 2024-11-05, basic/transports. */

export function inspectEndpoint(report: Report, { basis }: CheckedSession): Inspector {
  /** HTTP exchanges whose stream has begun. */
  const begun = new BoundedMap<string, true>(MAX_REMEMBERED);

  function frame({ place, http, channel, payload }: CheckedFrame): void {
    if (channel !== 'sse' || http === null || begun.has(String(http))) return;
    const { event, data } = readSse(payload);
    // Comments keep a connection alive, and say nothing.
    if (event === null && data === null) return;
    begun.set(String(http), true);
    if (event !== 'endpoint')
      report(
        'endpoint-first',
        'server',
        { place, revision: null, http },
        '`event: endpoint`',
        event === null ? 'an event without a name' : `\`event: ${event}\``,
      );
  }

  return basis === 'sse-endpoint' ? { frame } : {};
}
