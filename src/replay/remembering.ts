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
