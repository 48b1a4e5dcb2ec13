/**
 * HTTP/2 from the first byte on (RFC 9113, 3.3), as clients speak it who know that their server does: gRPC, or whatever comes
 * after HTTP/1.1. The proxy does not read it. The bytes go to the server and back as they come, and are shown as the two bodies
 * of one HTTP exchange that is named as the preface reads.
 *
 * Nothing looks for the preface: Node's parser stops at it with an error of its own. No web page can make a browser send it, so
 * there is no `Host` or `Origin` to check.
 */

import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { withoutBrackets } from '../../protocol/http/origin.ts';
import { HTTP2_PREFACE, HTTP2_REQUEST, type HttpEndEvent } from '../../protocol/wire/http-event.ts';
import { now } from '../clock.ts';
import type { Show } from './answer.ts';
import type { Way } from './upstream.ts';

export type ClientError = Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number };

/** What a client sent from the preface on; null where the error is another one, or an answer to HTTP/1.1 is still on its way. */
export function readPreface(
  { code, rawPacket, bytesParsed = 0 }: ClientError,
  client: Socket,
): Buffer | null {
  const isBusy = (client as Socket & { _httpMessage?: unknown })._httpMessage != null;
  if (code !== 'HPE_PAUSED_H2_UPGRADE' || isBusy) return null;
  // It may have come in pieces, of which the packet has the last.
  return Buffer.concat([Buffer.from(HTTP2_PREFACE), rawPacket?.subarray(bytesParsed) ?? Buffer.alloc(0)]);
}

type Http2Options = {
  exchange: number;
  client: Socket;
  /** What the client has sent so far. */
  beginning: Buffer;
  upstream: URL;
  isInsecure: boolean;
  /** How the upstream is reached, where it speaks without TLS; null: as Node does it. */
  way: Way | null;
  show: Show;
  /** Whether the proxy breaks off what is open. */
  isCut: () => boolean;
  /** The server was not reached, or speaks no HTTP/2, in words. */
  onTrouble: (reason: string) => void;
  onEnd: () => void;
};

/** Relays one connection until both ends have closed it. Returns how to break it off. */
export function relayHttp2(options: Http2Options): () => void {
  const { exchange, client, beginning, upstream, show, isCut, onTrouble, onEnd } = options;
  const server = connectTo(options, () => {
    const { alpnProtocol } = server as Partial<TLSSocket>;
    if (upstream.protocol !== 'https:' || alpnProtocol === 'h2') begin();
    else refuse(`${upstream.origin} does not speak HTTP/2`);
  });
  let isReached = false;
  let isRequestOver = false;
  let isOver = false;
  let trouble: string | null = null;
  /** Who closed first. */
  let closedBy: HttpEndEvent['closedBy'] | null = null;
  let broken: string | null = null;

  takeOver(client);
  const { remoteAddress, remotePort } = client;
  const clientAddress = `${remoteAddress}:${remotePort}`;
  show({ type: 'request', exchange, at: now(), ...HTTP2_REQUEST, rawHeaders: [], edits: [], clientAddress });

  function begin(): void {
    isReached = true;
    server.write(beginning);
    show({ type: 'request-body', exchange, at: now(), bytes: beginning });
    relayBytes(client, server, (bytes, hold) =>
      show({ type: 'request-body', exchange, at: now(), bytes }, hold),
    );
    relayBytes(server, client, (bytes, hold) =>
      show({ type: 'response-body', exchange, at: now(), bytes }, hold),
    );
  }

  function endRequest(isComplete: boolean): void {
    if (isRequestOver) return;
    isRequestOver = true;
    show({ type: 'request-end', exchange, at: now(), rawTrailers: [], isComplete });
  }

  function refuse(reason: string): void {
    if (trouble !== null || isCut()) return;
    trouble = reason;
    onTrouble(reason);
    client.end();
    // What else it sends goes nowhere; its end must be seen.
    client.resume();
    server.destroy();
  }

  client.once('end', () => {
    closedBy ??= 'client';
    endRequest(true);
  });
  server.once('end', () => {
    closedBy ??= 'server';
  });
  server.once('error', (error) => {
    if (!isReached) refuse(`cannot speak HTTP/2 with ${upstream.origin}: ${error.message}`);
    broken ??= error.message;
  });
  client.on('error', () => {});
  client.once('close', () => {
    closedBy ??= 'client';
    breakOff(server, client);
    finish();
  });
  server.once('close', () => {
    closedBy ??= 'server';
    if (trouble === null) breakOff(client, server);
    finish();
  });

  function finish(): void {
    if (isOver || !client.closed || !server.closed) return;
    isOver = true;
    endRequest(false);
    const isComplete = server.readableEnded && client.writableFinished;
    const how = howItEnded(isComplete);
    show({ type: 'end', exchange, at: now(), ...how, isComplete, rawTrailers: [] });
    onEnd();
  }

  function howItEnded(isComplete: boolean): Pick<HttpEndEvent, 'closedBy' | 'error'> {
    if (isCut()) return { closedBy: 'proxy', error: 'tapedeck stopped' };
    if (trouble !== null) return { closedBy: 'proxy', error: trouble };
    if (closedBy === 'server') return { closedBy, error: isComplete ? null : (broken ?? 'it broke off') };
    return { closedBy: 'client', error: isComplete ? null : 'the client closed the connection' };
  }

  return () => {
    client.destroy();
    server.destroy();
  };
}

/** The other end has closed. What it had said before its end still goes out; a connection that broke breaks here too. */
export function breakOff(socket: Socket, other: Duplex): void {
  if (other.readableEnded) socket.destroySoon();
  else socket.destroy();
}

function connectTo({ upstream, isInsecure, way }: Http2Options, onReady: () => void): Socket {
  const host = withoutBrackets(upstream.hostname);
  const at = { host, allowHalfOpen: true };
  if (upstream.protocol !== 'https:') {
    if (way !== null) return dialBy(way, onReady);
    return connectTcp({ ...at, port: Number(upstream.port || 80) }, onReady);
  }
  const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
  return connectTls(
    {
      ...{ ...at, ...servername, port: Number(upstream.port || 443) },
      ...{ ALPNProtocols: ['h2'], rejectUnauthorized: !isInsecure },
    },
    onReady,
  );
}

/** What fails on the way is the connection's error. */
function dialBy(way: Way, onReady: () => void): Socket {
  const socket = way.dial((error) => {
    if (error === null) onReady();
    else socket.destroy(error);
  });
  return socket;
}

/** From now on Node's HTTP server does nothing with the connection but forget it at its end. */
function takeOver(client: Socket): void {
  for (const event of ['data', 'end', 'drain', 'timeout']) client.removeAllListeners(event);
  client.setTimeout(0);
  // Who listens for data takes the bytes away from Node's parser. They wait until there is a server.
  client.on('data', () => {});
  client.removeAllListeners('data');
  client.pause();
}

/** Forwards what comes, then shows it; the slower end sets the pace, and who shows may hold it up. */
export function relayBytes(
  from: Readable,
  to: Writable,
  onBytes: (bytes: Buffer, hold: (wait: Promise<void>) => void) => void,
): void {
  let held = 0;
  const release = () => {
    held -= 1;
    if (held === 0) from.resume();
  };
  const stop = () => {
    held += 1;
    from.pause();
  };
  const hold = (wait: Promise<void>) => {
    stop();
    void wait.then(release);
  };
  from.on('data', (bytes: Buffer) => {
    if (!to.write(bytes)) {
      stop();
      to.once('drain', release);
    }
    onBytes(bytes, hold);
  });
  from.once('end', () => to.end());
  from.resume();
}
