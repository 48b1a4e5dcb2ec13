/**
 * One process at a time prunes a store, or redacts what is in it: two that plan at once would both delete what one of them
 * has to.
 */

import { hostname } from 'node:os';
import { TapedeckError } from '../../errors.ts';
import { pause, type Store } from './open.ts';
import { isAlive, processStarted } from './process.ts';

/** Who holds the turn says so again at least this often (see `renew`); after as long again it counts as gone. */
const RENEWED_EVERY_MS = 20_000;

const GONE_AFTER_MS = 3 * RENEWED_EVERY_MS;

/** Another one that prunes in the background is soon through. */
const TURN_ATTEMPTS = 100;

const TURN_PAUSE_MS = 100;

type Holder = { host: string | null; pid: number; processStarted: string | null; at: number };

/** Where it says who has the turn: `upkeep`, or `shipper` for the one that ships the store. */
type TurnTable = 'upkeep' | 'shipper';

const selectHolder = (table: TurnTable) =>
  `SELECT host, pid, process_started AS processStarted, at FROM ${table}`;

export type Turn = {
  /** Takes the turn, if nobody else has it. True: it is ours. */
  take(): boolean;
  /** Says that we are at work still. Cheap: it writes seldom. False: it was taken from us meanwhile. */
  renew(): boolean;
  /** The same, where nothing can go on without it: throws `TapedeckError` `busy` where it was taken from us. */
  keep(): void;
  end(): void;
};

/** Throws SQLite's errors. */
export function createTurn(store: Store, table: TurnTable = 'upkeep'): Turn {
  const select = store.prepare<[], Holder>(selectHolder(table));
  const take = store.prepare(`UPDATE ${table} SET host = ?, pid = ?, process_started = ?, at = ?`);
  const end = store.prepare(
    `UPDATE ${table} SET host = NULL, pid = NULL, process_started = NULL, at = NULL WHERE host = ? AND pid = ?`,
  );
  const own = { host: hostname(), pid: process.pid, processStarted: processStarted(process.pid) };
  let renewedAt = 0;

  const tryTake = store.transaction(() => {
    if (isOthers(select.get())) return false;
    renewedAt = Date.now();
    take.run(own.host, own.pid, own.processStarted, renewedAt);
    return true;
  }).immediate;

  function isOthers(holder: Holder | undefined): boolean {
    if (holder === undefined) return false;
    const isOwn = holder.pid === own.pid && holder.processStarted === own.processStarted;
    return !(isOwn && holder.host === own.host) && isAtWork(holder);
  }

  const renew = () => Date.now() - renewedAt < RENEWED_EVERY_MS || tryTake();

  return {
    // Without a lock first: this is asked often.
    take: () => !isOthers(select.get()) && tryTake(),
    renew,
    keep() {
      if (!renew()) throw busy();
    },
    end: () => void end.run(own.host, own.pid),
  };
}

/** Waits some seconds for the turn. Throws `TapedeckError` `busy` where another process keeps it for longer. */
export function waitForTurn(turn: Turn): void {
  for (let attempt = 1; !turn.take(); attempt += 1) {
    if (attempt === TURN_ATTEMPTS) throw busy();
    pause(TURN_PAUSE_MS);
  }
}

function busy(): TapedeckError {
  return new TapedeckError(
    'busy',
    'Another tapedeck is pruning or redacting this store. Wait until it is done, and try again.',
  );
}

/** Whether a process that is alive has the turn. */
export function isTurnTaken(store: Store): boolean {
  const holder = store.prepare<[], Holder>(selectHolder('upkeep')).get();
  return holder !== undefined && isAtWork(holder);
}

function isAtWork({ host, pid, processStarted, at }: Holder): boolean {
  if (host === null) return false;
  if (Math.abs(Date.now() - at) > GONE_AFTER_MS) return false;
  return host !== hostname() || isAlive(pid, processStarted);
}
