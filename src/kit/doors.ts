/** Opens the ways by which clients of this process reach a recording. Each client has a mock of its own. */

import { setImmediate } from 'node:timers';
import { now } from '../capture/clock.ts';
import { TapedeckError } from '../errors.ts';
import type { FaultPlace } from '../fault/action.ts';
import { createFaults, type Faults, type RawFaults, readFaults } from '../fault/faults.ts';
import { createHttpFaults } from '../fault/http/http.ts';
import { createLineLane } from '../fault/stdio.ts';
import { parseMessages } from '../protocol/message/message.ts';
import { messageText } from '../protocol/message/payload.ts';
import { oneLine } from '../protocol/wire/lines.ts';
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

/** `faults`: what goes wrong on purpose for each client. */
export function createDoors(recording: Recording, createMock: () => Mock, faults: RawFaults | null): Doors {
  const open = new Set<() => Promise<void>>();
  let isClosed = false;

  function refuseIfClosed(): void {
    if (isClosed) throw new TapedeckError('usage', 'The deck is closed. Open the recording again.');
  }

  async function listen(): Promise<Listening> {
    refuseIfClosed();
    const onPurpose = faultsFor('replay-http');
    const { createHttpMock } = await import('../replay/serve/http.ts');
    const onOpen = onPurpose === null ? undefined : createHttpFaults({ faults: onPurpose, now }).open;
    const server = await createHttpMock({ recording, mock: createMock(), ...ANY_PORT, onOpen });
    const close = async () => {
      open.delete(close);
      await server.stop();
      onPurpose?.close();
    };
    // The deck may have been closed meanwhile.
    if (isClosed) await close();
    refuseIfClosed();
    open.add(close);
    return { url: server.url.href, close };
  }

  function faultsFor(place: FaultPlace): Faults | null {
    const settings = faults === null ? null : readFaults(faults, place);
    return settings === null ? null : createFaults(settings);
  }

  return {
    refuseIfClosed,
    listen,
    transport() {
      refuseIfClosed();
      const onPurpose = faultsFor('kit-transport');
      const transport = createTransport(createMock(), onPurpose, () => {
        open.delete(transport.close);
        onPurpose?.close();
      });
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
function createTransport(mock: Mock, faults: Faults | null, onClosed: () => void): DeckTransport {
  let client: MockClient | null = null;
  let isClosed = false;
  const lanes =
    faults === null ? null : createLanes(faults, deliver, (json) => client && receive(client, json), close);

  const send = lanes?.say ?? deliver;

  /** One message a turn, as from a pipe: the SDK's client would take an answer before progress that came along with it. */
  function deliver(json: Buffer): void {
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
      const json = Buffer.from(JSON.stringify(message));
      if (lanes === null) receive(client, json);
      else lanes.hear(json);
    },
    close,
  };
  return transport;

  async function close(): Promise<void> {
    if (isClosed) return;
    isClosed = true;
    lanes?.cancel();
    if (client !== null) {
      client.leave();
      mock.end();
    }
    onClosed();
    transport.onclose?.();
  }
}

/** Both directions of a client in this process, with faults. Messages pass as lines do, one at a time. */
function createLanes(
  faults: Faults,
  deliver: (json: Buffer) => void,
  receive: (json: Buffer) => void,
  close: () => Promise<void>,
) {
  // Nothing is recorded, and whoever listens learns of a close as of any other.
  const common = { faults, now, onChunk() {}, onFaulty() {}, besides: () => void close() };
  const withoutEnd = (line: Buffer) => line.subarray(0, -1);
  const said = createLineLane({
    ...common,
    channel: 'stdout',
    write: (line) => deliver(withoutEnd(line)),
  });
  const heard = createLineLane({
    ...common,
    channel: 'stdin',
    write: (line) => receive(withoutEnd(line)),
  });
  const asLine = (json: Buffer) => Buffer.concat([oneLine(json), LINE_END]);
  return {
    say: (json: Buffer) => said.feed(asLine(json)),
    hear: (json: Buffer) => heard.feed(asLine(json)),
    cancel() {
      said.cancel();
      heard.cancel();
    },
  };
}

const LINE_END = Buffer.from('\n');

function notSent(reason: string): TapedeckError {
  return new TapedeckError('usage', `Expected a JSON-RPC 2.0 message, got something else (${reason}).`);
}
