/**
 * A live server over Streamable HTTP of both eras, talked to by us. Every message is a POST; an answer comes as JSON or as
 * a stream of events, which is resumed where it ends too early and had event ids. In the legacy era a GET stream is opened
 * once the server knows that we are ready, and the session is deleted at the end. A server that has HTTP+SSE alone is
 * talked to in that way (live-sse.ts).
 */
import type { IncomingMessage } from 'node:http';
// Tests replace the globals by clocks of their own.
import { setTimeout } from 'node:timers';
import type { Connect, LiveEvents, LiveServer, Outgoing } from '../protocol/live-server.ts';
import { parseMessages } from '../protocol/message.ts';
import { headerText } from '../protocol/mirrored-headers.ts';
import { isMessageEvent } from '../protocol/sse.ts';
import { bodyOf, createExchanges, eachEvent, type Headers, isEventStream, textOf } from './live-exchanges.ts';
import { connectSse } from './live-sse.ts';

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
  return (events) => createClient(url, extra, events);
}

function createClient(url: URL, extra: Headers, events: LiveEvents): LiveServer {
  const exchanges = createExchanges(url, extra);
  let sessionId: string | null = null;
  let version: string | null = null;
  let isClosed = false;
  /** Takes over where the server has nothing newer. */
  let older: LiveServer | null = null;

  function exchange(
    method: string,
    headers: Headers,
    body?: Buffer,
    id: string | null = null,
  ): Promise<IncomingMessage> {
    const own: Headers = { ...headers };
    if (sessionId !== null) own['Mcp-Session-Id'] = sessionId;
    if (version !== null) own['MCP-Protocol-Version'] ??= version;
    return exchanges.request(url, method, own, body, id);
  }

  async function send(message: Outgoing): Promise<void> {
    if (older !== null) return older.send(message);
    const posted = post(message);
    if (message.kind !== 'request') await posted;
    if (message.method === INITIALIZED) await openStream();
  }

  async function post(message: Outgoing): Promise<void> {
    const { json, id, method, target, mirrored, version: own } = message;
    const headers: Headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
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
      const response = await exchange('POST', headers, json, id);
      if (method === 'initialize' && NO_STREAMABLE_HTTP.has(response.statusCode ?? 0)) {
        older = await connectSse(url, exchanges, events);
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
    const resumed = await exchange('GET', { Accept: 'text/event-stream', 'Last-Event-ID': eventId });
    await read(resumed, id, fail);
  }

  /** Servers may have none: they answer 405. */
  async function openStream(): Promise<void> {
    const opened = exchange('GET', { Accept: 'text/event-stream' }).then(
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
      const deleted = exchange('DELETE', {}).then(bodyOf, () => {});
      const late = new Promise((resolve) => setTimeout(resolve, 2000).unref());
      await Promise.race([deleted, late]);
    }
    exchanges.close();
  }

  return {
    send,
    transport: () => older?.transport() ?? 'http',
    abandon: exchanges.abandon,
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
