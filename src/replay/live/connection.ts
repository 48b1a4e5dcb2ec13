/**
 * Connects one client to a live server. The first message opens the connection, and so does the first one after the server
 * has ended. A client that shook hands with the recording has not done so with the server. Then the connection does it
 * first, with the client's own `initialize`, and repeats the settings that the client has made since.
 * MCP specification 2025-11-25, basic/lifecycle. Requests of 2026-07-28 carry all of it themselves.
 */

import { type Substitution, sourceAt, substitute } from '../../protocol/json/edit.ts';
import { type Message, parseMessages, type RequestMessage } from '../../protocol/message/message.ts';
import { messageText } from '../../protocol/message/payload.ts';
import { type Connect, type LiveServer, type OutgoingMessage, settleVersion } from '../../talk/server.ts';
import { outgoingCancellation, outgoingNotification, outgoingRequest } from '../recording/outgoing.ts';

type LiveConnectionEvents = {
  /** The server has sent something. */
  onHeard(): void;
  /** `status`: of the HTTP answer that carried the message; null without HTTP. */
  onMessage(message: Message, json: Buffer, status: number | null): void;
  /** Nothing can answer this request any more. `id`: as it was sent. */
  onFailed(id: string, why: string): void;
  /** The server has gone: it will answer nothing more. */
  onClosed(why: string): void;
};

type LiveConnection = {
  /** Takes every message of the client, whoever answers it, to learn its handshake and its settings. */
  learn(message: Message, json: Buffer): void;
  /** Sends after all earlier messages. `onSent` is called when the message's turn has come. */
  send(message: OutgoingMessage, onSent?: () => void): void;
  /** Nobody waits for the answer to this request any more. */
  cancel(id: string, isModern: boolean): void;
  /** Whether a server runs, and whether this connection shook hands with it. */
  state(): 'closed' | 'open' | 'open, hands shaken';
  /** Ends the server. A second call hurries it; a later message starts it again. */
  close(): Promise<void>;
};

type Opened = {
  server: LiveServer;
  hasShaken: boolean;
  /** The id of an `initialize` that the client itself sent. */
  hello: string | null;
  ready: Promise<void>;
};

type Own = { resolve: (answer: Buffer) => void; reject: (error: Error) => void };

const INITIALIZE = 'initialize';

const INITIALIZED = 'notifications/initialized';

const SETTINGS = new Set(['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']);

const MAX_SETTINGS = 1000;

/** `agreedVersion`: the protocol version of the recorded handshake. `nextId` returns a new id for a request. */
export function createLiveConnection(
  connect: Connect,
  agreedVersion: string | null,
  nextId: () => string,
  events: LiveConnectionEvents,
): LiveConnection {
  let opened: Opened | null = null;
  let initialize: Buffer | null = null;
  let initialized: Buffer = Buffer.from(`{"jsonrpc":"2.0","method":"${INITIALIZED}"}`);
  const settings: { message: RequestMessage; json: Buffer }[] = [];
  /** Requests of our own, by their ids. */
  const own = new Map<string, Own>();
  /** Servers that are ending, each with the promise of its end. */
  const closing = new Map<LiveServer, Promise<void>>();

  function learn(message: Message, json: Buffer): void {
    if (message.kind === 'notification' && message.canonical === INITIALIZED) initialized = json;
    if (message.kind !== 'request' || message.details.isModern) return;
    if (message.canonical === INITIALIZE) initialize = json;
    else if (SETTINGS.has(message.canonical)) {
      settings.push({ message, json });
      if (settings.length > MAX_SETTINGS) settings.shift();
    }
  }

  function open(first: OutgoingMessage): Opened {
    const hasShaken = initialize !== null && first.method !== INITIALIZE && first.version === null;
    const one: Opened = { server: NO_SERVER, hasShaken, hello: null, ready: Promise.resolve() };
    opened = one;
    const isCurrent = () => opened === one;
    one.server = connect({
      onPayload: (payload, about) => {
        if (isCurrent()) take(one, payload, about?.status ?? null);
      },
      onFailed(id, why) {
        if (isCurrent()) failed(id, why);
      },
      onClosed(why) {
        if (isCurrent()) gone(why);
      },
    });
    if (hasShaken && initialize !== null) one.ready = shakeHands(one, initialize);
    return one;
  }

  function take({ server, hello }: Opened, payload: Buffer, status: number | null): void {
    for (const [n, message] of parseMessages(payload).entries()) {
      if (message.kind === 'invalid' && message.reason === 'not-json') continue;
      const json = messageText(payload, n);
      events.onHeard();
      const waiting = isAnswer(message) && message.id !== null ? own.get(message.id.text) : undefined;
      if (waiting !== undefined) waiting.resolve(json);
      else {
        if (message.kind === 'result' && message.id.text === hello) settleVersion(server, json);
        events.onMessage(message, json, status);
      }
    }
  }

  function failed(id: string, why: string): void {
    const waiting = own.get(id);
    if (waiting === undefined) events.onFailed(id, why);
    else waiting.reject(new Error(why));
  }

  function gone(why: string): void {
    opened = null;
    for (const { reject } of own.values()) reject(new Error(why));
    own.clear();
    events.onClosed(why);
  }

  async function shakeHands(one: Opened, hello: Buffer): Promise<void> {
    const substitutions: Substitution[] = [];
    // The client was answered with this version, so it speaks it.
    if (agreedVersion !== null)
      substitutions.push({ path: ['params', 'protocolVersion'], text: JSON.stringify(agreedVersion) });
    const answer = await ask(one, substitute(hello, substitutions), INITIALIZE, null);
    const refusal = sourceAt(answer, ['error', 'message']);
    if (refusal !== undefined) throw new Error(`the live server has refused the handshake: ${refusal}`);
    settleVersion(one.server, answer);
    await one.server.send(outgoingNotification(initialized, INITIALIZED));
    for (const { message, json } of settings) {
      // The client has its answer already, so the server's does not matter.
      await ask(one, json, message.canonical, message.details.target).catch(() => {});
    }
  }

  function ask({ server }: Opened, json: Buffer, method: string, target: string | null): Promise<Buffer> {
    const id = nextId();
    const answer = new Promise<Buffer>((resolve, reject) => own.set(id, { resolve, reject }));
    const sent = substitute(json, [{ path: ['id'], text: id }]);
    void server.send(outgoingRequest(sent, id, { method, target }, NO_TOOLS));
    return answer.finally(() => own.delete(id));
  }

  function send(message: OutgoingMessage, onSent: () => void = () => {}): void {
    const one = opened ?? open(message);
    if (message.method === INITIALIZE) one.hello = message.id;
    one.ready = one.ready.then(() => {
      onSent();
      return one.server.send(message);
    });
    one.ready.catch((error: Error) => {
      if (opened !== one) return;
      leave(one);
      gone(error.message);
    });
  }

  function leave({ server }: Opened): void {
    const closed = server.close();
    closing.set(server, closed);
    void closed.finally(() => closing.delete(server));
  }

  return {
    learn,
    send,
    cancel(id, isModern) {
      if (opened === null) return;
      if (isModern && opened.server.abandon !== undefined) opened.server.abandon(id);
      else send(outgoingCancellation(id));
    },
    state: () => (opened === null ? 'closed' : opened.hasShaken ? 'open, hands shaken' : 'open'),
    async close() {
      for (const server of closing.keys()) void server.close();
      if (opened !== null) leave(opened);
      opened = null;
      await Promise.all(closing.values());
    },
  };
}

function isAnswer(message: Message): message is Message & { kind: 'result' | 'error' } {
  return message.kind === 'result' || message.kind === 'error';
}

/** No request of this module calls a tool. */
const NO_TOOLS = new Map();

/** Stands in until the connection is made. */
const NO_SERVER: LiveServer = {
  send: async () => {},
  transport: () => 'http',
  agreed() {},
  close: async () => {},
};
