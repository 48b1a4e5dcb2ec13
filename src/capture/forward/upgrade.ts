/**
 * A request that asks for a WebSocket (RFC 6455, 1.3), as one HTTP exchange: its head goes to the server, and once that has
 * switched protocols, every byte passes unread. The bytes are shown as the exchange's two bodies, in order.
 */

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { withoutBrackets } from '../../protocol/http/origin.ts';
import type { HttpEndEvent } from '../../protocol/wire/http-event.ts';
import { now } from '../clock.ts';
import { originForm, whyBroken } from '../http/exchange.ts';
import { relayHeaders } from '../http/headers.ts';
import { breakOff, relayBytes } from '../http/http2.ts';
import type { OtherExchange } from '../http/relay.ts';
import { MAX_HEADER_BYTES, servernameOf } from '../http/upstream.ts';
import { refuseConnect } from './refuse.ts';

type UpgradeOptions = OtherExchange & {
  request: IncomingMessage;
  client: Socket;
  /** What the client sent behind the head. */
  head: Buffer;
};

/** Whether it is one: the other kinds of `Upgrade` are not passed on. */
export function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/** Returns how to break it off. */
export function relayUpgrade(options: UpgradeOptions): () => void {
  const { exchange, client, upstream, show, isCut, onEnd } = options;
  let server: Socket | null = null;
  let closedBy: HttpEndEvent['closedBy'] | null = null;
  let error: string | null = null;
  let isRequestOver = false;
  const proxied = send(options);

  showRequest(options);

  function showHead({ statusCode: status = 0, statusMessage = '', rawHeaders }: IncomingMessage): void {
    client.write(headOf(status, statusMessage, rawHeaders));
    show({ type: 'response', exchange, at: now(), status, statusMessage, rawHeaders, edits: [] });
  }

  function showBytes(type: 'request-body' | 'response-body') {
    return (bytes: Buffer, hold?: (wait: Promise<void>) => void) =>
      show({ type, exchange, at: now(), bytes }, hold);
  }

  function endRequest(isComplete: boolean): void {
    if (isRequestOver) return;
    isRequestOver = true;
    show({ type: 'request-end', exchange, at: now(), rawTrailers: [], isComplete });
  }

  proxied.once('upgrade', (answer, socket: Socket, first) => {
    server = socket;
    showHead(answer);
    if (first.length > 0) {
      client.write(first);
      showBytes('response-body')(first);
    }
    if (options.head.length > 0) {
      socket.write(options.head);
      showBytes('request-body')(options.head);
    }
    relayBytes(client, socket, showBytes('request-body'));
    relayBytes(socket, client, showBytes('response-body'));
    socket.on('error', (failure) => {
      error ??= whyBroken(failure);
    });
    socket.once('end', () => {
      closedBy ??= 'server';
    });
    socket.once('close', () => breakOff(client, socket));
  });
  // It stays with HTTP: an answer as any other, and the last one of this connection.
  proxied.once('response', (answer) => {
    endRequest(true);
    answer.rawHeaders = [...relayHeaders(answer.rawHeaders, asItIs, 'without-chunks').forwarded, ...CLOSE];
    showHead(answer);
    relayBytes(answer, client, showBytes('response-body'));
    answer.once('end', () => {
      closedBy ??= 'server';
    });
  });
  proxied.once('error', (failure) => {
    error ??= whyBroken(failure);
    closedBy ??= 'proxy';
    refuseConnect(client, 502, `cannot reach ${upstream.origin}: ${error}`);
  });
  client.on('error', () => {});
  client.once('end', () => {
    closedBy ??= 'client';
    endRequest(true);
  });
  client.once('close', () => {
    closedBy ??= 'client';
    if (server === null) proxied.destroy();
    else breakOff(server, client);
    endRequest(false);
    const isComplete = client.writableFinished;
    const how = isCut() ? ({ closedBy: 'proxy', error: 'tapedeck stopped' } as const) : { closedBy, error };
    show({ type: 'end', exchange, at: now(), ...how, isComplete, rawTrailers: [] });
    onEnd();
  });

  return () => {
    client.destroy();
    server?.destroy();
  };
}

const CLOSE: readonly string[] = ['Connection', 'close'];

function asItIs(_name: string, value: string): string {
  return value;
}

function send({ request, upstream, isInsecure, way }: UpgradeOptions) {
  const ask = upstream.protocol === 'https:' ? httpsRequest : httpRequest;
  const proxied = ask({
    hostname: withoutBrackets(upstream.hostname),
    port: upstream.port,
    method: request.method,
    path: originForm(request) ?? '/',
    headers: request.rawHeaders,
    agent: way?.tunnelAgent() ?? false,
    setHost: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    ...(upstream.protocol === 'https:' && { servername: servernameOf(upstream) }),
    rejectUnauthorized: !isInsecure,
  });
  proxied.end();
  return proxied;
}

function showRequest({ request, client, exchange, show }: UpgradeOptions): void {
  const { method = '', url: path = '', httpVersion, rawHeaders } = request;
  const clientAddress = `${client.remoteAddress}:${client.remotePort}`;
  const what = { method, path, httpVersion, rawHeaders, edits: [], clientAddress };
  show({ type: 'request', exchange, at: now(), ...what });
}

function headOf(status: number, text: string, rawHeaders: readonly string[]): Buffer {
  const lines = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1]}`] : []));
  return Buffer.from([`HTTP/1.1 ${status} ${text}`, ...lines, '', ''].join('\r\n'), 'latin1');
}
