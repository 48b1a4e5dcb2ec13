/** Forward proxies, and clients that go through them, on any Node. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { onTestFinished } from 'vitest';
import { issueCertificate, makeAuthority } from '../../src/capture/forward/authority.ts';
import {
  captureForward,
  type ForwardCapture,
  type ForwardOptions,
} from '../../src/capture/forward/forward.ts';
import type { HttpEvent } from '../../src/protocol/wire/http-event.ts';

export type Forward = {
  capture: ForwardCapture;
  port: number;
  /** What passed of all origins. */
  events: HttpEvent[];
  notices: string[];
  /** The certificate of the CA. */
  ca: string;
};

/** A proxy in front of these origins. */
export async function startForward(
  urls: readonly string[],
  options: Partial<ForwardOptions> = {},
): Promise<Forward> {
  const events: HttpEvent[] = [];
  const notices: string[] = [];
  const named = urls.map((url) => new URL(url));
  const authority = await makeAuthority(named.map(({ hostname }) => hostname));
  const origins = named.map(async (url) => ({
    url,
    tls: url.protocol === 'https:' ? await issueCertificate(authority, url.hostname) : null,
    onEvent: (event: HttpEvent) => void events.push(event),
  }));
  const capture = await captureForward({
    listen: { host: '127.0.0.1', port: 0 },
    origins: await Promise.all(origins),
    password: null,
    onward: () => null,
    isInsecure: false,
    graceMs: 0,
    trustAdvice: (agent) => `advice for ${agent}`,
    onNotice: (text) => void notices.push(text),
    ...options,
  });
  onTestFinished(() => capture.stop());
  return { capture, port: capture.address.port, events, notices, ca: authority.certificate };
}

export type Connected = { status: number; head: string; socket: Socket };

/** Asks for a tunnel; settles with the answer. `target` and `lines` are sent as they are. */
export function connectThrough(
  port: number,
  target: string,
  lines: readonly string[] = [],
): Promise<Connected> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write([`CONNECT ${target} HTTP/1.1`, `Host: ${target}`, ...lines, '', ''].join('\r\n'), 'latin1');
  return new Promise((resolve, reject) => {
    let head = '';
    const onClose = () => reject(new Error(`closed after: ${head}`));
    // As Node's documentation reads a head off a stream: what is behind it stays whole for whoever reads on.
    const onReadable = () => {
      for (let bytes = socket.read(); bytes !== null; bytes = socket.read()) {
        head += (bytes as Buffer).toString('latin1');
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) continue;
        socket.off('error', reject).off('close', onClose).off('readable', onReadable);
        socket.on('error', () => {});
        const rest = Buffer.from(head.slice(end + 4), 'latin1');
        if (rest.length > 0) socket.unshift(rest);
        resolve({ status: Number(head.split(' ')[1]), head, socket });
        return;
      }
    };
    socket.once('error', reject).once('close', onClose).on('readable', onReadable);
  });
}

/** `fetch` by way of a proxy, with CONNECT for http too, as Node's own has it. `ca` vouches for servers with TLS. */
export function fetchThrough(port: number, ca = ''): typeof fetch {
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const isTls = url.protocol === 'https:';
    const target = `${url.hostname}:${url.port || (isTls ? 443 : 80)}`;
    const { status, socket } = await connectThrough(port, target);
    if (status !== 200) throw new TypeError(`the proxy answers CONNECT with ${status}`);
    const createConnection = () => (isTls ? connectTls({ socket, ca, host: url.hostname }) : socket);
    const headers = Object.fromEntries(new Headers(init.headers));
    const send = isTls ? httpsRequest : httpRequest;
    const call = send(url, {
      ...{ method: init.method ?? 'GET', headers, createConnection },
      ...(init.signal && { signal: init.signal }),
    });
    const body = new Request('http://x', { ...init, method: 'POST', signal: null }).body;
    if (init.body == null || body === null) call.end();
    else call.end(Buffer.from(await new Response(body).arrayBuffer()));
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      call.once('response', resolve).once('error', reject);
    });
    const isBodyless = [204, 205, 304].includes(answer.statusCode ?? 0);
    if (isBodyless) answer.resume();
    return new Response(isBodyless ? null : (Readable.toWeb(answer) as ReadableStream), {
      status: answer.statusCode ?? 0,
      headers: answer.headers as Record<string, string>,
    });
  };
}
