/** Small sessions by hand, and what the check finds in them. */
import { join } from 'node:path';
import { createCheck } from '../../../src/inspect/check/check.ts';
import type { CheckedSession } from '../../../src/inspect/check/checked-message.ts';
import type { Finding } from '../../../src/inspect/check/rules.ts';
import type { Schemas } from '../../../src/inspect/schema/schemas.ts';
import type { HttpClosing } from '../../../src/protocol/message/correlate.ts';
import type { Channel, Frame, FramePart, HttpMark } from '../../../src/protocol/wire/frame.ts';
import { ROOT } from '../../support/tapedeck.ts';

/** As tsc has made it, because its thread cannot run TypeScript. */
export const { createSchemas }: typeof import('../../../src/inspect/schema/schemas.ts') = await import(
  join(ROOT, 'build/inspect/schema/schemas.js')
);

/** A frame, or the end of an HTTP exchange. */
export type Step =
  | {
      channel: Channel;
      text: string | Buffer;
      afterMs: number;
      exchange: number | null;
      part?: FramePart;
      marks?: HttpMark[];
    }
  | {
      end: number;
      method: string;
      status: number;
      request: Record<string, string>;
      response: Record<string, string>;
      bytes: number;
      how: HttpClosing | null;
    };

export type Script = { steps: Step[]; facts?: Partial<CheckedSession> };

type Json = Record<string, unknown>;

function step(channel: Channel, message: unknown, afterMs = 1): Step {
  const isRaw = typeof message === 'string' || Buffer.isBuffer(message);
  return { channel, text: isRaw ? message : JSON.stringify(message), afterMs, exchange: null };
}

export const client = (message: unknown, afterMs?: number): Step => step('stdin', message, afterMs);
export const server = (message: unknown, afterMs?: number): Step => step('stdout', message, afterMs);

export const ask = (id: unknown, method: string, params?: unknown): Json => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params === undefined ? {} : { params }),
});
export const note = (method: string, params?: unknown): Json => ({
  jsonrpc: '2.0',
  method,
  ...(params === undefined ? {} : { params }),
});
export const give = (id: unknown, result: unknown = {}): Json => ({ jsonrpc: '2.0', id, result });
export const fail = (id: unknown, code: unknown, message: unknown = 'no'): Json => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

/** A whole handshake; its id is "hello". */
export function hello(
  version = '2025-11-25',
  clientCan: Json = {},
  serverCan: Json = { tools: {}, logging: {}, resources: { subscribe: true }, prompts: {} },
): Step[] {
  return [
    client(
      ask('hello', 'initialize', {
        protocolVersion: version,
        capabilities: clientCan,
        clientInfo: { name: 'c', version: '1' },
      }),
    ),
    server(
      give('hello', {
        protocolVersion: version,
        capabilities: serverCan,
        serverInfo: { name: 's', version: '1' },
      }),
    ),
    client(note('notifications/initialized')),
  ];
}

const META = 'io.modelcontextprotocol/';

/** `_meta` of a request of the 2026-07-28 era. */
export function modern(clientCan: Json = {}, more: Json = {}): Json {
  return { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: clientCan, ...more };
}

/** A whole result of the 2026-07-28 era, as lists and resources have it. */
export function cacheable(more: Json = {}): Json {
  return { resultType: 'complete', ttlMs: 60_000, cacheScope: 'private', ...more };
}

export const LISTEN_ID = `${META}subscriptionId`;

/** The steps of one HTTP exchange: a POST with one message, and its answers as JSON or as events. */
export function post(
  exchange: number,
  message: unknown,
  answers: unknown[],
  {
    status = 200,
    request = {},
    response = {},
    isStream = false,
    how = status >= 400 ? 'refused' : null,
    bytes = answers.length * 10,
  }: PostOptions = {},
): Step[] {
  const asked: Step = { channel: 'request', text: JSON.stringify(message), afterMs: 1, exchange };
  const given = answers.map((answer): Step => {
    const json = JSON.stringify(answer);
    const text = isStream ? `data: ${json}\n\n` : json;
    return { channel: isStream ? 'sse' : 'response', text, afterMs: 1, exchange };
  });
  const accept = 'application/json, text/event-stream';
  return [
    asked,
    ...given,
    { end: exchange, method: 'POST', status, request: { accept, ...request }, response, bytes, how },
  ];
}

type PostOptions = {
  status?: number;
  request?: Record<string, string>;
  response?: Record<string, string>;
  isStream?: boolean;
  how?: HttpClosing | null;
  bytes?: number;
};

export const HTTP: Partial<CheckedSession> = { transport: 'http', basis: 'session-header' };

/** A handshake over HTTP, as exchanges 1 and 2. */
export function helloHttp(version = '2025-11-25', sessionId: string | null = 'abc'): Step[] {
  const [asked, answered, done] = hello(version) as { text: string }[];
  const response: Record<string, string> = sessionId === null ? {} : { 'mcp-session-id': sessionId };
  return [
    ...post(1, JSON.parse(asked?.text ?? ''), [JSON.parse(answered?.text ?? '')], { response }),
    ...post(2, JSON.parse(done?.text ?? ''), [], { status: 202, request: headersOf(version, sessionId) }),
  ];
}

export function headersOf(version = '2025-11-25', sessionId: string | null = 'abc'): Record<string, string> {
  return { 'mcp-protocol-version': version, ...(sessionId === null ? {} : { 'mcp-session-id': sessionId }) };
}

const START = 1_700_000_000_000_000;

export function findingsOf({ steps, facts }: Script, schemas: Schemas): Finding[] {
  const check = createCheck(
    { transport: 'stdio', basis: 'stdio-process', isWhole: true, lingeredMs: null, ...facts },
    schemas,
  );
  let at = START;
  let seq = 0;
  const findings: Finding[] = [];
  for (const one of steps) {
    if ('end' in one) {
      findings.push(...check.httpExchange(exchangeOf(one), one.how));
      continue;
    }
    at += one.afterMs * 1000;
    seq += 1;
    findings.push(...check.frame(frameOf(one, at), seq));
  }
  return [...findings, ...check.end()];
}

function exchangeOf({ end, method, status, request, response, bytes }: Extract<Step, { end: number }>) {
  const requestHeaders = new Map(Object.entries(request));
  return {
    number: end,
    method,
    status,
    requestHeaders,
    responseHeaders: new Map(Object.entries(response)),
    responseBytes: bytes,
  };
}

function frameOf(one: Extract<Step, { channel: Channel }>, at: number): Frame {
  const payload = Buffer.isBuffer(one.text) ? one.text : Buffer.from(one.text);
  const isHttp = one.exchange !== null;
  const part = one.part ?? (one.channel === 'sse' ? 'event' : isHttp ? 'body' : 'line');
  const http =
    one.exchange === null
      ? null
      : { exchange: one.exchange, marks: one.marks ?? [], original: null, sha256: null };
  return {
    channel: one.channel,
    at,
    payload,
    lineEnd: isHttp ? '' : '\n',
    size: payload.length,
    truncated: false,
    part,
    http,
  };
}
