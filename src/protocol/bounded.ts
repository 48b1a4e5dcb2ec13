/**
 * Maps that hold a limited number of things, so that a session of any length takes constant memory. Every operation takes
 * constant time: the order of ages is a linked list, since the first key of a `Map` that had many keys deleted is slow to find.
 */

type Entry<K, V> = { readonly key: K; value: V; older: Entry<K, V> | null; newer: Entry<K, V> | null };

/** Where entries are found by their keys: a `Map`, or a `NumberMap` for numbers that come and go all the time. */
type Places<K, E> = {
  readonly size: number;
  get(key: K): E | undefined;
  set(key: K, entry: E): unknown;
  delete(key: K): unknown;
  clear(): void;
};

/** One value a key. Of more than `max` keys the oldest is forgotten. `Infinity` forgets none. */
export class BoundedMap<K, V> {
  readonly #max: number;
  readonly #onForgotten: ((value: V, key: K) => void) | undefined;
  readonly #entries: Places<K, Entry<K, V>>;
  #oldest: Entry<K, V> | null = null;
  #newest: Entry<K, V> | null = null;

  /** `onForgotten` is called with what the limit has pushed out, not with what was deleted or replaced. */
  constructor(
    max: number,
    onForgotten?: (value: V, key: K) => void,
    entries: Places<K, Entry<K, V>> = new Map(),
  ) {
    this.#max = max;
    this.#onForgotten = onForgotten;
    this.#entries = entries;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: K): boolean {
    return this.#entries.get(key) !== undefined;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** As `get`, and makes the key the newest: for maps that forget what was not used for longest. */
  use(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry !== this.#newest) {
      this.#unlink(entry);
      this.#append(entry);
    }
    return entry.value;
  }

  /** A key that is there keeps its age. */
  set(key: K, value: V): void {
    const before = this.#entries.get(key);
    if (before !== undefined) {
      before.value = value;
      return;
    }
    const entry = { key, value, older: null, newer: null };
    this.#entries.set(key, entry);
    this.#append(entry);
    if (this.#entries.size > this.#max) this.#forgetOldest();
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#unlink(entry);
  }

  clear(): void {
    this.#entries.clear();
    this.#oldest = null;
    this.#newest = null;
  }

  oldestKey(): K | undefined {
    return this.#oldest?.key;
  }

  /** Returns the newest value, or of the `among` newest the first that suits. */
  newest(suits?: (value: V) => boolean, among: number = Number.POSITIVE_INFINITY): V | undefined {
    let left = among;
    for (let entry = this.#newest; entry !== null && left > 0; entry = entry.older, left -= 1) {
      if (suits === undefined || suits(entry.value)) return entry.value;
    }
    return undefined;
  }

  /** Returns a copy, the oldest first, so entries may be deleted while it is walked. */
  values(): V[] {
    const values: V[] = [];
    for (let entry = this.#oldest; entry !== null; entry = entry.newer) values.push(entry.value);
    return values;
  }

  #forgetOldest(): void {
    const oldest = this.#oldest;
    if (oldest === null) return;
    this.delete(oldest.key);
    this.#onForgotten?.(oldest.value, oldest.key);
  }

  #append(entry: Entry<K, V>): void {
    entry.older = this.#newest;
    if (this.#newest === null) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  /** Clears the links, so that a forgotten entry keeps no others from the garbage collector. */
  #unlink(entry: Entry<K, V>): void {
    const { older, newer } = entry;
    if (older === null) this.#oldest = newer;
    else older.newer = newer;
    if (newer === null) this.#newest = older;
    else newer.older = older;
    entry.older = null;
    entry.newer = null;
  }
}

/** The values of a key that has had several; most have one, which stands by itself. */
class Several<V> extends BoundedMap<V, V> {
  constructor(first: V) {
    super(Number.POSITIVE_INFINITY);
    this.set(first, first);
  }
}

/**
 * Several values a key, in the order in which they came; each once. Of more than `max` values in all, the oldest value of the
 * key that was added to longest ago is forgotten.
 */
export class BoundedLists<V> {
  readonly #max: number;
  readonly #rows = new BoundedMap<string, V | Several<V>>(Number.POSITIVE_INFINITY);
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(key: string, value: V): void {
    const held = this.#rows.use(key);
    if (held === value || (held instanceof Several && held.has(value))) return;
    if (held === undefined) this.#rows.set(key, value);
    else if (held instanceof Several) held.set(value, value);
    else {
      const several = new Several<V>(held as V);
      several.set(value, value);
      this.#rows.set(key, several);
    }
    this.#count += 1;
    if (this.#count > this.#max) this.#forgetOldest();
  }

  /** Returns the values of a key, the oldest first. */
  of(key: string): readonly V[] {
    const held = this.#rows.get(key);
    if (held === undefined) return [];
    return held instanceof Several ? held.values() : [held];
  }

  /** Returns the newest value of a key, or the newest that suits. */
  newest(key: string, suits?: (value: V) => boolean): V | undefined {
    const held = this.#rows.get(key);
    if (held instanceof Several) return held.newest(suits);
    return held !== undefined && (suits === undefined || suits(held)) ? held : undefined;
  }

  remove(key: string, value: V): void {
    const held = this.#rows.get(key);
    const isThere = held instanceof Several ? held.has(value) : held !== undefined && held === value;
    if (!isThere) return;
    this.#count -= 1;
    if (held instanceof Several) held.delete(value);
    if (!(held instanceof Several) || held.size === 0) this.#rows.delete(key);
  }

  #forgetOldest(): void {
    const key = this.#rows.oldestKey();
    if (key === undefined) return;
    const held = this.#rows.get(key);
    const oldest = held instanceof Several ? held.oldestKey() : held;
    if (oldest !== undefined) this.remove(key, oldest);
  }
}

export type MemoizeLimits = {
  /** Once so many results are held, all of them are dropped. */
  maxEntries?: number;
  /** In UTF-16 units. The results of longer texts are computed each time. */
  maxLength?: number;
};

/** Computes the result for a text once: the same texts come again and again, as headers do. `compute` must be pure. */
export function memoize<T>(
  compute: (text: string) => T,
  { maxEntries = 64, maxLength = 1024 }: MemoizeLimits = {},
): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    const before = results.get(text);
    if (before !== undefined) return before;
    const result = compute(text);
    if (text.length > maxLength) return result;
    if (results.size >= maxEntries) results.clear();
    results.set(text, result);
    return result;
  };
}
