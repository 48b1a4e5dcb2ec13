/**
 * Who the clients of an HTTP proxy are: looked up beside the recording, once for each connection, many at a time, and so seldom
 * that the writer hardly notices. A session that two processes speak in tells nothing of its client's run.
 */

import { BoundedMap } from '../../protocol/bounded.ts';
import type { Store } from '../file/open.ts';
import { loopbackEnd, type PeerFinder } from '../file/peer.ts';
import { type ClientProcess, processKey } from '../file/process.ts';
import type { PendingSession, SessionKey } from './pending.ts';
import { byProcess, prepareRunJoin, withdrawEvidence } from './run.ts';

export type Peers = {
  /** An exchange of the session came on a connection from this address. */
  saw(session: PendingSession, address: string): void;
  /**
   * Looks up those that wait, if it is time, and stores what it finds. Settles when that is done, with the milliseconds until the
   * next ones may be looked up; null: none waits. Never rejects.
   */
  look(): Promise<number | null>;
  /** Nothing more is to be stored. */
  stop(): void;
};

/** Of connections that were looked up. */
const MAX_KNOWN = 10_000;

/** More than wait already are not looked up at all. */
const MAX_WAITING = 1000;

/** What the system tells of its connections is read once for so many. */
const MOST_AT_ONCE = 100;

/** After a look of one millisecond so many pass before the next, */
const SHARE = 20;

/** but no more than so many: on a busy machine a look takes long and costs little. */
const LONGEST_REST_MS = 1000;

type Waiting = { session: PendingSession; address: string };

type Found = { client: ClientProcess; isToldApart: boolean };

/** `current` is what is written to at the moment; `host` that of this machine. */
export function createPeers(current: () => Store | null, host: string, find: PeerFinder): Peers {
  const known = new BoundedMap<string, true>(MAX_KNOWN);
  const found = new WeakMap<PendingSession, Found>();
  const waiting: Waiting[] = [];
  let isLooking = false;
  let isStopped = false;
  let notBefore = 0;

  function take(session: PendingSession, client: ClientProcess): void {
    const before = found.get(session);
    if (before === undefined) found.set(session, { client, isToldApart: true });
    else if (!before.isToldApart || isSame(before.client, client)) return;
    else before.isToldApart = false;
    const [store, key] = [current(), session.key];
    if (store === null || key === null) return;
    store.transaction(() => (before === undefined ? tie : untie)(store, key, client, host)).immediate();
  }

  /** One that is not stored yet is looked for once it is. */
  const hasReady = () => !isStopped && waiting.some(({ session }) => session.key !== null);

  /** Takes those out that can be looked up. */
  function takeReady(): Waiting[] {
    const ready = waiting.filter(({ session }) => session.key !== null).slice(0, MOST_AT_ONCE);
    const left = waiting.filter((one) => !ready.includes(one));
    waiting.splice(0, waiting.length, ...left);
    return ready;
  }

  async function lookAt(ready: readonly Waiting[]): Promise<void> {
    const clients = await find(ready.map(({ address }) => address));
    for (const [i, { session }] of ready.entries()) {
      const client = clients[i] ?? null;
      if (client === null || isStopped) continue;
      try {
        take(session, client);
      } catch {
        // The store has other troubles: the session stays without its client.
        found.delete(session);
      }
    }
  }

  return {
    saw(session, address) {
      // A port comes again in later connections, of other processes.
      const connection = `${session.id} ${address}`;
      if (known.has(connection) || waiting.length >= MAX_WAITING || isStopped) return;
      known.set(connection, true);
      if (loopbackEnd(address) !== null) waiting.push({ session, address });
    },
    async look() {
      const began = performance.now();
      if (isLooking || isStopped) return null;
      if (began < notBefore) return hasReady() ? notBefore - began : null;
      const ready = takeReady();
      if (ready.length === 0) return null;
      isLooking = true;
      await lookAt(ready);
      isLooking = false;
      const rest = Math.min(LONGEST_REST_MS, SHARE * (performance.now() - began));
      notBefore = performance.now() + rest;
      return hasReady() ? rest : null;
    },
    stop() {
      isStopped = true;
      waiting.length = 0;
    },
  };
}

function isSame(one: ClientProcess, other: ClientProcess): boolean {
  return one.pid === other.pid && one.started === other.started;
}

function tie(store: Store, { number }: SessionKey, client: ClientProcess, host: string): void {
  const { pid, program, started } = client;
  store
    .prepare(
      `UPDATE session SET client_pid = ?, client_program = ?, client_started = ?, amendments = amendments + 1
         WHERE number = ?`,
    )
    .run(pid, program, started, number);
  prepareRunJoin(store)(number, byProcess('peer', processKey(host, client)));
}

/** The session is of both clients, and so of neither: what it alone had tied together are several runs again. */
function untie(store: Store, { number }: SessionKey): void {
  store
    .prepare(
      `UPDATE session SET client_pid = NULL, client_program = NULL, client_started = NULL, amendments = amendments + 1
         WHERE number = ?`,
    )
    .run(number);
  withdrawEvidence(store, number, 'peer');
}
