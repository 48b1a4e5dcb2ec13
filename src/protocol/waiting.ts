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
