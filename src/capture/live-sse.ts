/**
 * A live server over the older HTTP+SSE, talked to by us: all that it says comes on one stream, whose first event names the
 * URL that messages are posted to. Specification: 2024-11-05, basic/transports, "HTTP with SSE".
 */
import type { LiveEvents, LiveServer, Outgoing } from '../protocol/live-server.ts';
import { isMessageEvent } from '../protocol/sse.ts';
import { bodyOf, type Exchanges, eachEvent, isEventStream, textOf } from './live-exchanges.ts';

const NAMES_ENDPOINT_WITHIN_MS = 5000;
const OK = 200;
const REDIRECT = 300;

/** Settles with null where `url` gives no such stream. Rejects where the server cannot be reached. */
export async function connectSse(
  url: URL,
  exchanges: Exchanges,
  events: LiveEvents,
): Promise<LiveServer | null> {
  const response = await exchanges.request(url, 'GET', { Accept: 'text/event-stream' });
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

  async function post({ json, id }: Outgoing, target: URL): Promise<void> {
    const headers: Record<string, string> = { 'Content-Type': 'application/json' };
    if (version !== null) headers['MCP-Protocol-Version'] = version;
    try {
      const answer = await exchanges.request(target, 'POST', headers, json);
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
      exchanges.close();
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
