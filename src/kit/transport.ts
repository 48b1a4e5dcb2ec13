/** The mock server in this process, as the official SDK's `Client` wants its transport. */
import { setImmediate } from 'node:timers';
import type { DeckTransport, JsonRpcMessage } from './deck.ts';

/** Opens the server's end: what the server says goes to `onMessage`, as JSON text. */
export type Connect = (onMessage: (json: Buffer) => void) => {
  /** Throws for what is no message. */
  send(json: Buffer): void;
  close(): void;
};

export function createTransport(connect: Connect, onClosed: () => void): DeckTransport {
  let server: ReturnType<Connect> | null = null;
  let isClosed = false;

  /** One message a turn, as from a pipe: the SDK's client would take an answer before progress that came along with it. */
  function onMessage(json: Buffer): void {
    setImmediate(() => {
      if (isClosed) return;
      try {
        transport.onmessage?.(JSON.parse(json.toString()) as JsonRpcMessage);
      } catch (error) {
        transport.onerror?.(error as Error);
      }
    });
  }

  const transport: DeckTransport = {
    async start() {
      if (isClosed) throw new Error('The transport is closed. Take a new one: deck.transport()');
      if (server !== null) throw new Error('The transport is in use. Take another one: deck.transport()');
      server = connect(onMessage);
    },
    async send(message) {
      if (server === null) throw new Error('The transport is not started: connect a client with it first.');
      if (isClosed) throw new Error('The transport is closed: nothing can be sent.');
      server.send(Buffer.from(JSON.stringify(message)));
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      server?.close();
      onClosed();
      transport.onclose?.();
    },
  };
  return transport;
}
