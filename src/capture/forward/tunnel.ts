/** Tunnels: bytes to a server and back, unread and unrecorded, as the client would have them without a proxy. */

import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { breakOff } from '../http/http2.ts';
import { ESTABLISHED, refuseConnect } from './refuse.ts';
import type { HostPort } from './target.ts';
import type { Dial } from './way.ts';

export type TunnelLimits = {
  /** So many may be open, or about to be. */
  most: number;
  /** One in which nothing has moved for so long is closed, in milliseconds. */
  silentMs: number;
  /** The same once either end has said that it will send no more. */
  halfClosedMs: number;
};

/** An hour is what proxies commonly wait; TCP alone would wait for ever for a peer that is gone. */
export const TUNNEL_LIMITS: TunnelLimits = { most: 1000, silentMs: 3_600_000, halfClosedMs: 300_000 };

/** Finds peers that are gone without a word; servers and their clients do not see it. */
const PROBE_MS = 60_000;

type TunnelsOptions = {
  dial: Dial;
  limits: TunnelLimits;
  /** Called with what the proxy's user should know, once. */
  onFull: (text: string) => void;
};

export type Tunnels = {
  /** `head`: what the client sent right behind its CONNECT. */
  open(client: Socket, head: Buffer, target: HostPort): void;
  /** Bytes count in both directions. */
  passed(): { opened: number; bytes: number; refused: number; silent: number };
  /** Closes what is open, at both ends. */
  cut(): void;
};

export function createTunnels({ dial, limits, onFull }: TunnelsOptions): Tunnels {
  const counts = { opened: 0, refused: 0, silent: 0 };
  /** The server's end of each, with how many bytes were no client's when it opened; null: it has not yet. */
  const open = new Map<Socket, number | null>();
  let closedBytes = 0;
  const passedIn = (server: Socket) => {
    const before = open.get(server) ?? null;
    return before === null ? 0 : bytesOf(server) - before;
  };
  return {
    open(client, head, target) {
      if (open.size >= limits.most) {
        counts.refused += 1;
        const limit = limits.most.toLocaleString('en-US');
        onFull(`${limit} tunnels to other hosts are open; more are refused with 503 until one closes`);
        refuseConnect(client, 503, `${limit} tunnels are open, and no more are opened until one closes`);
        return;
      }
      const server = openTunnel(client, head, target, dial, limits, {
        onOpen() {
          counts.opened += 1;
          open.set(server, bytesOf(server));
        },
        onSilent() {
          counts.silent += 1;
        },
        onClose() {
          closedBytes += passedIn(server);
          open.delete(server);
        },
      });
      open.set(server, null);
    },
    passed: () => ({
      ...counts,
      bytes: [...open.keys()].reduce((sum, one) => sum + passedIn(one), closedBytes),
    }),
    cut() {
      for (const server of open.keys()) server.destroy();
    },
  };
}

function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten;
}

type TunnelEvents = { onOpen: () => void; onSilent: () => void; onClose: () => void };

/** The slower end sets the pace; either may close its side; whichever breaks, so does the other. Returns the server's end. */
function openTunnel(
  client: Socket,
  head: Buffer,
  target: HostPort,
  dial: Dial,
  { silentMs, halfClosedMs }: TunnelLimits,
  { onOpen, onSilent, onClose }: TunnelEvents,
): Socket {
  const { host, port } = target;
  let isOpen = false;
  const server = dial(target, (error) => {
    if (error !== null) {
      const why = error.message || (error as NodeJS.ErrnoException).code;
      refuseConnect(client, 502, `cannot reach ${host}:${port}: ${why}`);
      return;
    }
    isOpen = true;
    onOpen();
    client.write(ESTABLISHED);
    if (head.length > 0) server.write(head);
    client.pipe(server);
    server.pipe(client);
    for (const one of [client, server]) {
      one.setKeepAlive(true, PROBE_MS);
      one.once('end', () => server.setTimeout(halfClosedMs));
    }
    // Whatever moves in either direction moves here.
    server.setTimeout(silentMs);
    server.once('timeout', () => {
      onSilent();
      // Whoever still waits must not take it for the other's end.
      reset(server);
      reset(client);
    });
  });
  server.on('error', (error: NodeJS.ErrnoException) => {
    if (isOpen && error.code === 'ECONNRESET') reset(client);
  });
  client.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') reset(server);
  });
  server.once('close', () => {
    if (isOpen) breakOff(client, server);
    onClose();
  });
  client.once('close', () => breakOff(server, client));
  return server;
}

/** Node resets no connection of TLS, as one to a proxy may be. */
function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}
