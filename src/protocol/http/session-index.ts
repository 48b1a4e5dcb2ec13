/**
 * Where open sessions are looked for: by a key that names one, or on a shelf, where those stand that a request of one kind
 * could belong to. However many are open, a look takes constant time.
 */

import { BoundedMap } from '../bounded.ts';

/** Sessions in the order in which they came to a key, or were active on a shelf. */
type Row<S> = BoundedMap<S, S>;

/** Of a shelf so many are looked at, those active last first. */
const LOOKED_AT = 100;

export type Shelved = {
  /** The shelves it stands on. */
  shelves: readonly string[];
  /** Grows with each activity of any session. */
  turn: number;
};

export type Shelves<S> = {
  /** Puts the session on these shelves, and on no others: where it is new, as the last. */
  put(session: S, names: readonly string[]): void;
  /** It was active: it becomes the last on its shelves. */
  use(session: S): void;
  /** Of these shelves the session active last that suits, among the `LOOKED_AT` last of each. */
  latest(names: readonly string[], suits: (session: S) => boolean): S | undefined;
};

export function createShelves<S extends Shelved>(): Shelves<S> {
  const shelves = new Map<string, Row<S>>();

  function remove(session: S, name: string): void {
    const shelf = shelves.get(name);
    shelf?.delete(session);
    if (shelf?.size === 0) shelves.delete(name);
  }

  function add(session: S, name: string): void {
    let shelf = shelves.get(name);
    if (shelf === undefined) {
      shelf = new BoundedMap(Number.POSITIVE_INFINITY);
      shelves.set(name, shelf);
    }
    shelf.set(session, session);
  }

  return {
    put(session, names) {
      for (const name of session.shelves) if (!names.includes(name)) remove(session, name);
      for (const name of names) add(session, name);
      session.shelves = names;
    },
    use(session) {
      for (const name of session.shelves) shelves.get(name)?.use(session);
    },
    latest(names, suits) {
      let latest: S | undefined;
      for (const name of names) {
        const found = shelves.get(name)?.newest(suits, LOOKED_AT);
        if (found !== undefined && (latest === undefined || found.turn > latest.turn)) latest = found;
      }
      return latest;
    },
  };
}

export type Keys<S> = {
  /** The session that has taken this key last: an open one where there is one. */
  find(key: string): S | undefined;
  add(key: string, session: S): void;
  remove(key: string, session: S): void;
  /** Whether the session is open has changed: all of its keys are told so. */
  move(keys: readonly string[], session: S): void;
};

/** The sessions of one key, where it has several. */
class Crowd<S> {
  readonly open: Row<S> = new BoundedMap(Number.POSITIVE_INFINITY);
  readonly all: Row<S> = new BoundedMap(Number.POSITIVE_INFINITY);
}

export function createKeys<S extends { endReason: string | null }>(): Keys<S> {
  /** Nearly every key has one session, which then stands there by itself. */
  const holders = new Map<string, S | Crowd<S>>();

  function add(key: string, session: S): void {
    const holder = holders.get(key);
    if (holder === undefined || holder === session) holders.set(key, session);
    else if (holder instanceof Crowd) join(holder, session);
    else {
      const crowd = new Crowd<S>();
      holders.set(key, crowd);
      join(crowd, holder);
      join(crowd, session);
    }
  }

  function join({ open, all }: Crowd<S>, session: S): void {
    all.set(session, session);
    if (session.endReason === null) open.set(session, session);
  }

  function remove(key: string, session: S): void {
    const holder = holders.get(key);
    if (holder === session) holders.delete(key);
    if (!(holder instanceof Crowd)) return;
    holder.open.delete(session);
    holder.all.delete(session);
    if (holder.all.size === 0) holders.delete(key);
  }

  return {
    find(key) {
      const holder = holders.get(key);
      return holder instanceof Crowd ? (holder.open.newest() ?? holder.all.newest()) : holder;
    },
    add,
    remove,
    move(keys, session) {
      for (const key of keys) {
        const holder = holders.get(key);
        if (!(holder instanceof Crowd)) continue;
        if (session.endReason === null) holder.open.set(session, session);
        else holder.open.delete(session);
      }
    },
  };
}
