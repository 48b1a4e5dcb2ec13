/** One process at a time prunes a store: two that plan at once would both delete what one of them has to. */
import { hostname } from 'node:os';
import type { Store } from './open.ts';
import { isAlive, processStarted } from './process.ts';

/** Who holds the turn says so again at least this often (see `renew`); after as long again it counts as gone. */
const RENEWED_EVERY_MS = 20_000;
const GONE_AFTER_MS = 3 * RENEWED_EVERY_MS;

type Holder = { host: string | null; pid: number; processStarted: string | null; at: number };

export type Turn = {
  /** Takes the turn, if nobody else has it. True: it is ours. */
  take(): boolean;
  /** Says that we are at work still. Cheap: it writes seldom. False: it was taken from us meanwhile. */
  renew(): boolean;
  end(): void;
};

/** Throws SQLite's errors. */
export function createTurn(store: Store): Turn {
  const select = store.prepare<[], Holder>(
    'SELECT host, pid, process_started AS processStarted, at FROM upkeep',
  );
  const take = store.prepare('UPDATE upkeep SET host = ?, pid = ?, process_started = ?, at = ?');
  const end = store.prepare(
    'UPDATE upkeep SET host = NULL, pid = NULL, process_started = NULL, at = NULL WHERE host = ? AND pid = ?',
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
    if (holder === undefined || holder.host === null) return false;
    const isOwn = holder.pid === own.pid && holder.processStarted === own.processStarted;
    return !(isOwn && holder.host === own.host) && isAtWork(holder);
  }

  return {
    // Without a lock first: this is asked often.
    take: () => !isOthers(select.get()) && tryTake(),
    renew: () => Date.now() - renewedAt < RENEWED_EVERY_MS || tryTake(),
    end: () => void end.run(own.host, own.pid),
  };
}

function isAtWork({ host, pid, processStarted, at }: Holder): boolean {
  if (Math.abs(Date.now() - at) > GONE_AFTER_MS) return false;
  return host !== hostname() || isAlive(pid, processStarted);
}
