/**
 * One listener for each thing that ends, however many wait for it: a client may have one signal for all of its calls, and a
 * connection brings many requests. Node warns of more than ten. `listen` puts the only one on it. The function that is
 * returned takes who waits, and gives how to wait no more.
 */
export function createOneListener<T extends object>(
  listen: (thing: T, onEnd: () => void) => void,
): (thing: T, listener: () => void) => () => void {
  const waiting = new WeakMap<T, Set<() => void>>();
  return (thing, listener) => {
    const listeners = waiting.get(thing) ?? new Set();
    if (!waiting.has(thing)) {
      waiting.set(thing, listeners);
      listen(thing, () => {
        for (const one of [...listeners]) one();
      });
    }
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
}
