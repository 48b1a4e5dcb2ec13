/**
 * What waits under a key, several under one key where need be. Bounded: of more than `max` things in all, the
 * oldest under the key that was used longest ago is forgotten.
 */
export type Waiting<V> = {
  add(key: string, value: V): void;
  /** All that waits under the key, the oldest first. */
  under(key: string): readonly V[];
  remove(key: string, value: V): void;
};

export function createWaiting<V>(max: number): Waiting<V> {
  const byKey = new Map<string, V[]>();
  let count = 0;

  function add(key: string, value: V): void {
    const values = byKey.get(key) ?? [];
    values.push(value);
    // Delete first, so that the map's order stays the order of the latest use.
    byKey.delete(key);
    byKey.set(key, values);
    count += 1;
    if (count > max) forgetOldest();
  }

  function forgetOldest(): void {
    for (const [key, values] of byKey) {
      values.shift();
      count -= 1;
      if (values.length === 0) byKey.delete(key);
      return;
    }
  }

  function remove(key: string, value: V): void {
    const values = byKey.get(key) ?? [];
    const at = values.lastIndexOf(value);
    if (at === -1) return;
    values.splice(at, 1);
    count -= 1;
    if (values.length === 0) byKey.delete(key);
  }

  return { add, under: (key) => byKey.get(key) ?? [], remove };
}

/** What is made of a short text, made once: clients send the same headers with every request. Bounded. */

const MAX_KNOWN = 64;

const MAX_LENGTH = 1024;

export function remembering<T>(make: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const made = make(text);
    if (text.length > MAX_LENGTH) return made;
    if (known.size === MAX_KNOWN) known.clear();
    known.set(text, made);
    return made;
  };
}

/**
 * The state of each client, by a key; of too many, the one that was quiet for longest is dropped. What takes the place
 * of another one does not drop it: under one key there may be several clients, and each is still being answered.
 */

export type Clients<T> = {
  get(key: string): T | undefined;
  set(key: string, client: T): void;
  delete(key: string): void;
  values(): Iterable<T>;
};

const MAX_CLIENTS = 10_000;

export function createClients<T>(onDropped: (client: T) => void): Clients<T> {
  /** The one that was heard of last at the end. */
  const clients = new Map<string, T>();
  let last: string | null = null;

  function drop(key: string): void {
    const client = clients.get(key);
    if (client === undefined) return;
    clients.delete(key);
    onDropped(client);
  }

  return {
    get(key) {
      const client = clients.get(key);
      if (client === undefined || key === last) return client;
      clients.delete(key);
      clients.set(key, client);
      last = key;
      return client;
    },
    set(key, client) {
      clients.delete(key);
      clients.set(key, client);
      last = key;
      const [oldest] = clients.keys();
      if (clients.size > MAX_CLIENTS && oldest !== undefined) drop(oldest);
    },
    delete: drop,
    values: () => clients.values(),
  };
}

/** A map that forgets its oldest entries, so that a session of any length is checked in constant memory. */
type Recent<V> = {
  get(key: string): V | undefined;
  has(key: string): boolean;
  set(key: string, value: V): void;
  delete(key: string): void;
  values(): IterableIterator<V>;
};

const MAX_ENTRIES = 65_536;

export function createRecent<V>(maxEntries = MAX_ENTRIES): Recent<V> {
  const map = new Map<string, V>();
  return {
    get: (key) => map.get(key),
    has: (key) => map.has(key),
    set(key, value) {
      map.set(key, value);
      if (map.size <= maxEntries) return;
      const [oldest] = map.keys();
      if (oldest !== undefined) map.delete(oldest);
    },
    delete: (key) => void map.delete(key),
    values: () => map.values(),
  };
}
