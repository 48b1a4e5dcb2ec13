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
