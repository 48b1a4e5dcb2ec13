/** Between a shipper and its engine: passes bytes on, and at a chosen one cuts, resets, stalls, or lets somebody be killed. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export type Relay = {
  port: number;
  /** From now on, once so many more bytes have come from shippers, this happens; until then nothing does. */
  after(bytes: number, what: (relay: Relay) => void): void;
  /** The next answer to a COMMIT is not passed on: the connection is cut in its place. */
  cutNextCommit(): void;
  /** Cuts all connections; `isReset`: without a farewell. */
  cut(isReset?: boolean): void;
  /** Passes nothing on for so many milliseconds. */
  stall(ms: number): void;
  /** For so many milliseconds each piece waits for `delayMs`. */
  slow(ms: number, delayMs: number): void;
  /** How many bytes have come from shippers, and how often an answer to a COMMIT was cut off. */
  counts(): { bytes: number; commitsCut: number };
  close(): Promise<void>;
};

/** CommandComplete of a COMMIT: https://www.postgresql.org/docs/15/protocol-message-formats.html */
const COMMITTED = Buffer.from('C\0\0\0\x0bCOMMIT\0', 'latin1');

export async function startRelay(target: number): Promise<Relay> {
  const pairs = new Set<[Socket, Socket]>();
  let bytes = 0;
  let commitsCut = 0;
  let isCommitCut = false;
  let trap: { at: number; what: (relay: Relay) => void } | null = null;
  let stalledUntil = 0;
  let slowed = { until: 0, delayMs: 0 };

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    const pair: [Socket, Socket] = [client, upstream];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end).setNoDelay(true);
    // One after the other, in the order in which they came.
    const tails = new Map<Socket, Promise<void>>();
    const pass = (chunk: Buffer, to: Socket) => {
      const before = tails.get(to) ?? Promise.resolve();
      tails.set(
        to,
        before.then(async () => {
          const now = performance.now();
          const wait = Math.max(stalledUntil - now, slowed.until > now ? slowed.delayMs : 0);
          if (wait > 0) await sleep(wait);
          to.write(chunk);
        }),
      );
    };
    client.on('data', (chunk) => {
      bytes += chunk.length;
      pass(chunk, upstream);
      if (trap === null || bytes < trap.at) return;
      const { what } = trap;
      trap = null;
      what(relay);
    });
    upstream.on('data', (chunk) => {
      if (isCommitCut && chunk.includes(COMMITTED)) {
        isCommitCut = false;
        commitsCut += 1;
        end();
      } else pass(chunk, client);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const relay: Relay = {
    port: (server.address() as AddressInfo).port,
    after(more, what) {
      trap = { at: bytes + more, what };
    },
    cutNextCommit() {
      isCommitCut = true;
    },
    cut(isReset = false) {
      for (const pair of pairs)
        for (const socket of pair) isReset ? socket.resetAndDestroy() : socket.destroy();
    },
    stall(ms) {
      stalledUntil = performance.now() + ms;
    },
    slow(ms, delayMs) {
      slowed = { until: performance.now() + ms, delayMs };
    },
    counts: () => ({ bytes, commitsCut }),
    async close() {
      relay.cut();
      server.close();
      await once(server, 'close');
    },
  };
  return relay;
}

/** Chance that can be repeated: mulberry32. */
export function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
