import fc from 'fast-check';
import { expect, test } from 'vitest';
import { completionAt, termText } from '../../../src/inspect/filter/completion.ts';
import { FIELD_NAMES } from '../../../src/inspect/filter/fields.ts';
import { parseFilter } from '../../../src/inspect/filter/filter.ts';
import { scale } from '../../support/scale.ts';

/** The words at the place of `|`. */
function wordsAt(marked: string): string[] {
  const at = marked.indexOf('|');
  return completionAt(marked.replace('|', ''), at).words.map(({ text }) => text);
}

/** The filter with the first word, or this value, in it. */
function completed(marked: string, value?: string): string {
  const filter = marked.replace('|', '');
  const { from, to, words, value: place } = completionAt(filter, marked.indexOf('|'));
  const word = value === undefined ? (words[0]?.text ?? '') : (place?.spell(value) ?? '');
  return filter.slice(0, from) + word + filter.slice(to);
}

test.each([
  ['|', [...FIELD_NAMES]],
  ['st|', ['status']],
  ['tool=echo s|', ['status', 'size', 'since', 'session', 'server']],
  ['not (cl|)', ['client']],
  ['o|', ['or']],
  ['status|', ['=', '!=', '~', '!~']],
  ['dur|dur', ['dur']],
  ['dur|', ['>', '<', '>=', '<=', '=', '!=']],
  ['status=to|', ['tool-error']],
  ['status = to|', ['tool-error']],
  ['dir=|', ['client', 'server', 'client-to-server', 'server-to-client']],
  ['dir=cl| tool=echo', ['client', 'client-to-server']],
  ['dur>1|', ['100ms', '1s', '10s', '1m'].filter((text) => text.startsWith('1'))],
  ['since=to|', ['today']],
  ['text~/a|/', []],
  ['"not a fie|ld"', []],
  ['nonsense=|', []],
  ['tool=echo |', [...FIELD_NAMES]],
])('at %s fit %j', (marked, words) => {
  expect(wordsAt(marked)).toEqual(words);
});

test.each([
  ['me|', undefined, 'method'],
  ['tool=echo me|', undefined, 'tool=echo method'],
  ['me| tool=echo', undefined, 'method tool=echo'],
  ['tool=e|', 'echo', 'tool=echo'],
  ['tool = e| or kind=error', 'echo', 'tool = echo or kind=error'],
  ['(tool=e|)', 'echo', '(tool=echo)'],
  ['tool=e|', 'a tool', 'tool="a tool"'],
  ["tool='e|", "it's", "tool='it\\'s'"],
  ['tool~e|', '/a/', 'tool~"/a/"'],
  ['tool=|', '', 'tool=""'],
])('%s becomes, with the value %j, %s', (marked, value, filter) => {
  expect(completed(marked, value)).toBe(filter);
});

test('a term that was written for a value is read as that value', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('tool', 'name', 'label', 'server'),
      fc.string({ unit: 'binary' }),
      (field, value) => {
        fc.pre(value.length < 1000);
        const filter = parseFilter(termText(field as 'tool', '=', value), 0);
        expect(filter).toEqual({ type: 'term', field, isNegated: false, test: { type: 'equals', value } });
      },
    ),
    { numRuns: scale(30) },
  );
});

test('no place of any text is too much for it, and what it replaces holds the cursor', () => {
  const piece = fc.constantFrom(
    'tool',
    '=',
    '"',
    "'",
    ' ',
    '(',
    ')',
    '/',
    '~',
    'or',
    'dur',
    '>',
    '1s',
    '\\',
    'é',
    '💽',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.nat({ max: 30 }), (pieces, at) => {
      const filter = pieces.join('');
      const { from, to } = completionAt(filter, at);
      expect(from).toBeLessThanOrEqual(to);
      expect(from).toBeLessThanOrEqual(Math.min(at, filter.length));
      expect(to).toBeGreaterThanOrEqual(Math.min(at, filter.length));
    }),
  );
});
