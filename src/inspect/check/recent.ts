/** A map that forgets its oldest entries, so that a session of any length is checked in constant memory. */
export type Recent<V> = {
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
