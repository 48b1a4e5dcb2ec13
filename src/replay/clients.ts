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
