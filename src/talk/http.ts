/**
 * A client of a live server over Streamable HTTP of both eras. Every message is a POST; an answer comes as JSON or as a stream of
 * events, which is resumed where it ends too early and had event ids. In the legacy era a GET stream is opened once the server
 * knows that we are ready, and the session is deleted at the end. A server that only has HTTP+SSE is served by `connectSse`.
 */

import { Agent, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps, Agent as TlsAgent } from 'node:https';
import { setTimeout } from 'node:timers';
import { EVENTS_TYPE, JSON_TYPE, mediaType } from '../protocol/http/headers.ts';
import { headerText } from '../protocol/http/mirrored-headers.ts';
import { parseMessages } from '../protocol/message/message.ts';
import { createSseSplitter, isMessageEvent, readSse, type SseFields } from '../protocol/wire/sse.ts';
import type { Connect, LiveEvents, LiveServer, OutgoingMessage } from './server.ts';

const RETRY_MS = 1000;

/** A server may hold back the head of a stream until it has something to say on it. */
const STREAM_OPENS_WITHIN_MS = 500;

const NAMED = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
]);

const INITIALIZED = 'notifications/initialized';

/** What a server of the older HTTP+SSE alone may say to `initialize` (2025-11-25, basic/transports, "Backwards Compatibility"). */
const NO_STREAMABLE_HTTP = new Set([400, 404, 405]);

/** `extra`: headers that every request has, such as `Authorization`. */
export function liveHttp(url: URL, extra: Headers): Connect {
  return (events) => createStreamableClient(url, extra, events);
}

function createStreamableClient(url: URL, extra: Headers, events: LiveEvents): LiveServer {
  const http = createHttpClient(url, extra);
  let sessionId: string | null = null;
  let version: string | null = null;
  let isClosed = false;
  /** Takes over where the server has nothing newer. */
  let older: LiveServer | null = null;

  function request(
    method: string,
    headers: Headers,
    body?: Buffer,
    id: string | null = null,
  ): Promise<IncomingMessage> {
    const own: Headers = { ...headers };
    if (sessionId !== null) own['Mcp-Session-Id'] = sessionId;
    if (version !== null) own['MCP-Protocol-Version'] ??= version;
    return http.request(url, method, own, body, id);
  }

  async function send(message: OutgoingMessage): Promise<void> {
    if (older !== null) return older.send(message);
    const posted = post(message);
    if (message.kind !== 'request') await posted;
    if (message.method === INITIALIZED) await openStream();
  }

  async function post(message: OutgoingMessage): Promise<void> {
    const { json, id, method, target, mirrored, version: own } = message;
    const headers: Headers = {
      'Content-Type': JSON_TYPE,
      Accept: `${JSON_TYPE}, ${EVENTS_TYPE}`,
    };
    if (own !== null) {
      headers['MCP-Protocol-Version'] = own;
      if (method !== null) headers['Mcp-Method'] = headerText(method);
      if (method !== null && target !== null && NAMED.has(method)) headers['Mcp-Name'] = headerText(target);
      for (const [name, text] of mirrored) headers[name] = headerText(text);
    }
    const fail = (why: string) => {
      if (id !== null) events.onFailed(id, why);
    };
    try {
      const response = await request('POST', headers, json, id);
      if (method === 'initialize' && NO_STREAMABLE_HTTP.has(response.statusCode ?? 0)) {
        older = await connectSse(url, http, events);
        if (older !== null) {
          response.resume();
          return await older.send(message);
        }
      }
      const given = response.headers['mcp-session-id'];
      if (method === 'initialize' && typeof given === 'string') sessionId = given;
      await read(response, id, fail);
    } catch (error) {
      if (!isClosed) fail(`the server cannot be reached: ${textOf(error)}`);
    }
  }

  async function read(
    response: IncomingMessage,
    id: string | null,
    fail: (why: string) => void,
  ): Promise<void> {
    if (isEventStream(response)) return readEvents(response, id, fail);
    const body = await bodyOf(response);
    const [message] = body.length === 0 ? [] : parseMessages(body);
    if (message?.kind === 'error' && message.id === null && id !== null) {
      // Refused before its id was read.
      events.onPayload(withId(body, id), { status: response.statusCode });
    } else if (message !== undefined && message.kind !== 'invalid')
      events.onPayload(body, { status: response.statusCode });
    else fail(refusalText(response.statusCode ?? 0));
  }

  async function readEvents(response: IncomingMessage, id: string | null, fail: (why: string) => void) {
    let isAnswered = id === null;
    let eventId: string | null = null;
    let retryMs = RETRY_MS;
    await eachEvent(response, (event) => {
      eventId = event.id ?? eventId;
      if (event.retry !== null && /^\d{1,6}$/.test(event.retry)) retryMs = Number(event.retry);
      if (event.data === null || !isMessageEvent(event)) return;
      isAnswered ||= parseMessages(event.data).some(({ kind }) => kind === 'result' || kind === 'error');
      events.onPayload(event.data, { isUnasked: id === null });
    });
    if (isAnswered || isClosed) return;
    if (eventId === null || eventId === '') return fail('the stream has ended without an answer');
    await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
    if (isClosed) return;
    const resumed = await request('GET', { Accept: EVENTS_TYPE, 'Last-Event-ID': eventId });
    await read(resumed, id, fail);
  }

  /** Servers may have none: they answer 405. */
  async function openStream(): Promise<void> {
    const opened = request('GET', { Accept: EVENTS_TYPE }).then(
      (response) => void read(response, null, () => {}).catch(() => {}),
      () => {},
    );
    const late = new Promise((resolve) => setTimeout(resolve, STREAM_OPENS_WITHIN_MS).unref());
    await Promise.race([opened, late]);
  }

  async function close(): Promise<void> {
    const isHurried = isClosed;
    isClosed = true;
    if (sessionId !== null && !isHurried) {
      const deleted = request('DELETE', {}).then(bodyOf, () => {});
      const late = new Promise((resolve) => setTimeout(resolve, 2000).unref());
      await Promise.race([deleted, late]);
    }
    http.close();
  }

  return {
    send,
    transport: () => older?.transport() ?? 'http',
    abandon: http.abandon,
    agreed(agreed) {
      version = agreed;
      older?.agreed(agreed);
    },
    close,
  };
}

function refusalText(status: number): string {
  const what = `the server answered HTTP ${status} without an MCP message`;
  if (status === 401 || status === 403)
    return `${what}: it wants credentials. Try --header "Authorization: Bearer …"`;
  if (status === 404 || status === 405)
    return `${what}: no MCP there, neither Streamable HTTP nor the older HTTP+SSE`;
  return what;
}

function withId(body: Buffer, id: string): Buffer {
  const { error } = JSON.parse(body.toString()) as { error: unknown };
  return Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`);
}

/**
 * A client of a live server over the older HTTP+SSE: all messages of the server come on one stream, whose first event names the
 * URL that messages are posted to. Specification: 2024-11-05, basic/transports, "HTTP with SSE".
 */

const NAMES_ENDPOINT_WITHIN_MS = 5000;

const OK = 200;

const REDIRECT = 300;

/** Settles with null where `url` has no such stream. Rejects where the server cannot be reached. */
async function connectSse(url: URL, http: HttpClient, events: LiveEvents): Promise<LiveServer | null> {
  const response = await http.request(url, 'GET', { Accept: EVENTS_TYPE });
  if (response.statusCode !== OK || !isEventStream(response)) {
    response.destroy();
    return null;
  }
  let version: string | null = null;
  let isInUse = false;
  let name = (_endpoint: URL | null) => {};
  const named = new Promise<URL | null>((resolve) => {
    name = resolve;
  });
  const timer = setTimeout(() => name(null), NAMES_ENDPOINT_WITHIN_MS);
  void eachEvent(response, (event) => {
    if (event.event === 'endpoint') name(endpointIn(event.data, url));
    else if (event.data !== null && isMessageEvent(event)) events.onPayload(event.data);
  }).then(() => {
    name(null);
    if (isInUse) events.onClosed('the server has ended its event stream');
  });
  const endpoint = await named;
  clearTimeout(timer);
  if (endpoint === null) {
    response.destroy();
    return null;
  }
  isInUse = true;

  async function post({ json, id }: OutgoingMessage, target: URL): Promise<void> {
    const headers: Record<string, string> = { 'Content-Type': JSON_TYPE };
    if (version !== null) headers['MCP-Protocol-Version'] = version;
    try {
      const answer = await http.request(target, 'POST', headers, json);
      await bodyOf(answer);
      const { statusCode = 0 } = answer;
      if (id !== null && (statusCode < OK || statusCode >= REDIRECT))
        events.onFailed(id, `the server answered HTTP ${statusCode}`);
    } catch (error) {
      if (id !== null) events.onFailed(id, `the server cannot be reached: ${textOf(error)}`);
    }
  }

  return {
    send: (message) => post(message, endpoint),
    transport: () => 'sse',
    agreed(agreed) {
      version = agreed;
    },
    async close() {
      response.destroy();
      http.close();
    },
  };
}

/** Null for what is no URL, or one of another origin: clients must not post there. */
function endpointIn(data: Buffer | null, url: URL): URL | null {
  const text = data?.toString() ?? '';
  if (text === '' || !URL.canParse(text, url.href)) return null;
  const endpoint = new URL(text, url);
  return endpoint.origin === url.origin ? endpoint : null;
}

/** HTTP requests of our own to a live server, over connections that are kept alive. */

type Headers = Record<string, string>;

type HttpClient = {
  /**
   * Settles with the head of the response. Rejects where the server cannot be reached. `id` is that of the JSON-RPC request
   * whose answer is awaited.
   */
  request(
    url: URL,
    method: string,
    headers: Headers,
    body?: Buffer,
    id?: string | null,
  ): Promise<IncomingMessage>;
  /** Cuts the HTTP exchange that awaits the answer to this JSON-RPC request. */
  abandon(id: string): void;
  /** Cuts whatever is still open. */
  close(): void;
};

const MAX_BYTES = 256 * 1024 * 1024;

/** `extra`: headers that every request has, such as `Authorization`. */
function createHttpClient({ protocol }: URL, extra: Headers): HttpClient {
  const isTls = protocol === 'https:';
  const agent = isTls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  const open = new Set<IncomingMessage>();
  const asked = new Map<string, () => void>();
  return {
    request(url, method, headers, body, id = null) {
      const own: Headers = { ...extra, ...headers };
      if (body !== undefined) own['Content-Length'] = String(body.length);
      return new Promise((resolve, reject) => {
        const ask = isTls ? requestHttps : requestHttp;
        const asking = ask(url, { method, headers: own, agent }, (response) => {
          open.add(response);
          response.once('close', () => open.delete(response));
          response.on('error', () => {});
          resolve(response);
        });
        asking.once('error', reject);
        asking.end(body);
        if (id === null) return;
        asked.set(id, () => asking.destroy());
        asking.once('close', () => asked.delete(id));
      });
    },
    abandon: (id) => asked.get(id)?.(),
    close() {
      for (const response of open) response.destroy();
      agent.destroy();
    },
  };
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > MAX_BYTES) throw new Error(`an answer of more than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function isEventStream({ headers }: IncomingMessage): boolean {
  return mediaType(headers['content-type']) === EVENTS_TYPE;
}

/** Settles when the stream has ended. Events that are not whole, or longer than any server's, are left out. */
async function eachEvent(response: IncomingMessage, onEvent: (event: SseFields) => void): Promise<void> {
  const splitter = createSseSplitter({
    maxBytes: MAX_BYTES,
    onBlock({ payload, truncated, isComplete }) {
      if (!truncated && isComplete) onEvent(readSse(payload));
    },
    onOversize() {},
    onSkip() {},
  });
  response.on('data', (bytes: Buffer) => splitter.feed(bytes, 0));
  await new Promise<void>((resolve) => response.once('close', resolve));
  splitter.end();
}

function textOf(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  return message === '' ? (code ?? 'no connection') : message;
}
