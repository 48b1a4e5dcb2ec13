/**
 * The door for servers over HTTP: a listener of `node:http` that records what passes by another one. It watches the two objects
 * of each exchange, and takes nothing from them: a body is shown as it arrives, an answer once it was written.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type HttpRecorder, openHttpRecorder } from '../store/record/http-recorder.ts';
import type { Door, RecordingOptions } from './door.ts';
import { HandledExchange } from './handled-exchange.ts';
import { readRecordingOptions } from './options.ts';
import { createTape, type DoorTape, endOf, httpStart, isTurnedOff } from './tape.ts';

/** Options of `recordedHandler`. */
export type HandlerRecordingOptions = RecordingOptions & {
  /** The path at which the server speaks MCP; default: `/mcp`. What passes at others is recorded, too. */
  path?: string | undefined;
};

/** What `recordedHandler` returns. */
export type RecordedHandler = ((request: IncomingMessage, response: ServerResponse) => void) & Door;

/** What `createServer` of `node:http` takes, such as an app of Express. */
type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Records all that passes by a listener of `node:http`: `createServer(recordedHandler(app))`. It has to be the outermost one: what
 * was read before it is called is not recorded, and told. Throws `TapedeckError` for a wrong option, and nothing afterwards.
 */
export function recordedHandler(listener: Handler, options: HandlerRecordingOptions = {}): RecordedHandler {
  const { path = '/mcp' } = options;
  const settings = readRecordingOptions(options);
  let tape: DoorTape<HttpRecorder> | undefined;
  const isOff = isTurnedOff();
  let count = 0;
  let isTold = false;

  function tapeFor({ socket }: IncomingMessage): DoorTape<HttpRecorder> {
    // Who is at the other end of a connection is looked up as for a proxy.
    tape ??= createTape(
      settings,
      openHttpRecorder,
      () => httpStart(urlOf(socket, path), null),
      () => endOf('stopped'),
    );
    return tape;
  }

  function watch(request: IncomingMessage, response: ServerResponse): void {
    count += 1;
    const exchange = new HandledExchange(tapeFor(request), count, request, response);
    if (!exchange.isLate || isTold) return;
    isTold = true;
    settings.tell(
      'recordedHandler was called after the body of a request had been read, so that the body is not recorded. Give it the whole listener: createServer(recordedHandler(app))',
    );
  }

  function recorded(this: unknown, request: IncomingMessage, response: ServerResponse): void {
    if (!isOff) {
      try {
        watch(request, response);
      } catch (error) {
        settings.tell(`a request is not recorded, by a fault of tapedeck: ${(error as Error).message}`);
      }
    }
    listener.call(this, request, response);
  }

  const close = async () => tape?.close();
  const door: Door = { flush: async () => tape?.flush(), close, [Symbol.asyncDispose]: close };
  return Object.assign(recorded, door);
}

/** By the socket, not by the header `Host`, which may say anything. */
function urlOf(socket: Socket, path: string): string {
  const { localAddress = '127.0.0.1', localPort = 0 } = socket;
  const address = localAddress.replace(/^::ffff:/i, '');
  const host = address.includes(':') ? `[${address.replace(/%.*/, '')}]` : address;
  const url = `${'encrypted' in socket ? 'https' : 'http'}://${host}:${localPort}`;
  return URL.canParse(path, url) ? new URL(path, url).href : `${url}/`;
}
