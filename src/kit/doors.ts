/** Opens the ways by which clients of this process reach a recording. Each client has a mock of its own. */

import { setImmediate } from 'node:timers';
import { TapedeckError } from '../errors.ts';
import { parseMessages } from '../protocol/message/message.ts';
import { messageText } from '../protocol/message/payload.ts';
import type { Mock, MockClient } from '../replay/mock.ts';
import type { Recording } from '../replay/recording/recording.ts';
import type { Deck, DeckTransport, JsonRpcMessage, Listening } from './deck.ts';

export type Doors = Pick<Deck, 'transport' | 'listen'> & {
  /** Throws `TapedeckError` after `close`, as `transport` and `listen` do. */
  refuseIfClosed(): void;
  /** Closes what is open, for good. */
  close(): Promise<void>;
};

const ANY_PORT = { listen: { host: '127.0.0.1', port: 0 }, allowHosts: [], allowOrigins: [] };

export function createDoors(recording: Recording, createMock: () => Mock): Doors {
  const open = new Set<() => Promise<void>>();
  let isClosed = false;

  function refuseIfClosed(): void {
    if (isClosed) throw new TapedeckError('usage', 'The deck is closed. Open the recording again.');
  }

  async function listen(): Promise<Listening> {
    refuseIfClosed();
    const { createHttpMock } = await import('../replay/serve/http.ts');
    const server = await createHttpMock({ recording, mock: createMock(), ...ANY_PORT });
    const close = () => {
      open.delete(close);
      return server.stop();
    };
    // The deck may have been closed meanwhile.
    if (isClosed) await close();
    refuseIfClosed();
    open.add(close);
    return { url: server.url.href, close };
  }

  return {
    refuseIfClosed,
    listen,
    transport() {
      refuseIfClosed();
      const transport = createTransport(createMock(), () => open.delete(transport.close));
      open.add(transport.close);
      return transport;
    },
    async close() {
      isClosed = true;
      await Promise.allSettled([...open].map((closeOne) => closeOne()));
    },
  };
}

/** A client of the mock server in this process, as the official SDK's `Client` wants its transport. */
function createTransport(mock: Mock, onClosed: () => void): DeckTransport {
  let client: MockClient | null = null;
  let isClosed = false;

  /** One message a turn, as from a pipe: the SDK's client would take an answer before progress that came along with it. */
  function send(json: Buffer): void {
    setImmediate(() => {
      if (isClosed) return;
      try {
        transport.onmessage?.(JSON.parse(json.toString()) as JsonRpcMessage);
      } catch (error) {
        transport.onerror?.(error as Error);
      }
    });
  }

  /** As over stdio, but message by message. */
  function receive({ receive }: MockClient, json: Buffer): void {
    for (const [n, message] of parseMessages(json).entries()) {
      if (message.kind === 'invalid') throw notSent(message.reason);
      receive(message, messageText(json, n), { send });
    }
  }

  const transport: DeckTransport = {
    async start() {
      if (isClosed) throw new Error('The transport is closed. Take a new one: deck.transport()');
      if (client !== null) throw new Error('The transport is in use. Take another one: deck.transport()');
      client = mock.createClient(send);
      client.begin();
    },
    async send(message) {
      if (client === null) throw new Error('The transport is not started: connect a client with it first.');
      if (isClosed) throw new Error('The transport is closed: nothing can be sent.');
      receive(client, Buffer.from(JSON.stringify(message)));
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      if (client !== null) {
        client.leave();
        mock.end();
      }
      onClosed();
      transport.onclose?.();
    },
  };
  return transport;
}

function notSent(reason: string): TapedeckError {
  return new TapedeckError('usage', `Expected a JSON-RPC 2.0 message, got something else (${reason}).`);
}
