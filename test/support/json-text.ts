/** JSON texts as other programs may write them. */
import fc from 'fast-check';

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 });

/** Arbitrary JSON text with random white space between its tokens, and around it. */
export const spacedJson: fc.Arbitrary<string> = fc
  .tuple(fc.json({ maxDepth: 4 }), fc.infiniteStream(space))
  .map(([text, spaces]) => {
    const next = () => String(spaces.next().value ?? '');
    return (text.match(TOKEN) ?? []).reduce((whole, token) => whole + token + next(), next());
  });

/** Text that is often nearly JSON: JSON with some characters replaced, removed or put in. */
export const brokenJson: fc.Arbitrary<string> = fc
  .tuple(
    spacedJson,
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat({ max: 1 }),
        fc.constantFrom(...'{}[]",:\\u0eE+-.1tfn \u0000\u00a0\ufeff', ''),
      ),
      {
        minLength: 1,
        maxLength: 3,
      },
    ),
  )
  .map(([text, edits]) =>
    edits.reduce((broken, [place, removed, added]) => {
      const at = place % (broken.length + 1);
      return broken.slice(0, at) + added + broken.slice(at + removed);
    }, text),
  );

/** The text that a simple model of RFC 8785 gives, right for whatever JSON.parse reads without loss. */
export function sortedText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedText).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sortedText(member)}`).join()}}`;
}

/** The value as another program might write it: other order, white space, escapes and forms of numbers. */
export function respelled(value: unknown, chance: fc.Stream<number>): string {
  const next = () => Number(chance.next().value ?? 0);
  const space = () => [' ', '', '\n', '\t '][next() % 4] ?? '';
  const text = (string: string) =>
    `"${[...string].map((c) => (next() % 3 === 0 ? escaped(c) : JSON.stringify(c).slice(1, -1))).join('')}"`;
  const write = (inner: unknown): string => {
    if (typeof inner === 'string') return text(inner);
    if (typeof inner === 'number') return [String(inner), inner.toExponential()][next() % 2] ?? '';
    if (Array.isArray(inner)) return `[${inner.map((one) => space() + write(one) + space()).join()}]`;
    if (typeof inner !== 'object' || inner === null) return JSON.stringify(inner);
    const members = Object.entries(inner);
    const turned = next() % 2 === 0 ? members : members.reverse();
    return `{${turned.map(([k, v]) => `${space()}${text(k)}${space()}:${space()}${write(v)}`).join()}${space()}}`;
  };
  return write(value);
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
