import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  clip,
  clipApart,
  clipMiddle,
  clipStart,
  fold,
  pad,
  widthOf,
} from '../../../src/inspect/view/text.ts';
import { escapeText } from '../../../src/protocol/text.ts';

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const anyText = fc.string({ unit: 'binary', maxLength: 200 });

test('nothing unsafe is left in escaped text, and plain text stays as it is', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(escapeText(text)).not.toMatch(UNSAFE);
    }),
  );
  expect(escapeText('plain é 日本 🎉')).toBe('plain é 日本 🎉');
  expect(escapeText('\u001b[31m\n\t\u0000\u202e\ud800')).toBe('\\x1b[31m\\n\\t\\x00\\u{202e}\\u{d800}');
});

test('clipped text is never wider than asked, and whole where it fits', () => {
  fc.assert(
    fc.property(anyText.map(escapeText), fc.integer({ min: 2, max: 60 }), (text, width) => {
      const clipped = clip(text, width);
      expect(widthOf(clipped)).toBeLessThanOrEqual(width);
      if (widthOf(text) <= width) expect(clipped).toBe(text);
      else expect(clipped.endsWith('…')).toBe(true);
    }),
  );
});

test('text that keeps its end, or both, is never wider than asked, nor slow however long it is', () => {
  fc.assert(
    fc.property(anyText.map(escapeText), fc.integer({ min: 2, max: 60 }), (text, width) => {
      for (const cut of [clipStart, clipMiddle]) {
        expect(widthOf(cut(text, width))).toBeLessThanOrEqual(width);
        expect(cut(text, width)).not.toMatch(/\p{Cs}/u);
        if (widthOf(text) <= width) expect(cut(text, width)).toBe(text);
      }
    }),
  );
  expect(clipMiddle('abcdefghijkl', 6)).toBe('ab…jkl');
  const long = '日本🎉'.repeat(300_000);
  expect(widthOf(clipMiddle(long, 80))).toBeLessThanOrEqual(80);
});

test('different texts that are cut together stay different', () => {
  const word = fc.stringMatching(/^[a-c]{0,12}$/);
  const texts = fc.uniqueArray(
    fc.tuple(word, fc.constant('middle_of_a_long_name'), word).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(texts, fc.integer({ min: 20, max: 40 }), (all, width) => {
      const cut = clipApart(all, width);
      for (const text of cut) expect(widthOf(text)).toBeLessThanOrEqual(width);
      expect(new Set(cut).size).toBe(all.length);
    }),
  );
  const methods = ['tools', 'prompts', 'resources'].map((what) => `notifications/${what}/list_changed`);
  expect(new Set(clipApart(methods, 13)).size).toBe(3);
});

test('folded text is all there, in lines no wider than asked', () => {
  fc.assert(
    fc.property(
      anyText.map(escapeText),
      fc.integer({ min: 2, max: 60 }),
      fc.integer({ min: 1, max: 9 }),
      (text, width, most) => {
        const { lines, rest } = fold(text, width, most);
        expect(lines.join('') + rest).toBe(text);
        expect(lines.length).toBeLessThanOrEqual(most);
        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
      },
    ),
  );
});

test('wide characters are padded by their width', () => {
  expect(pad('日本', 6)).toBe('日本  ');
  expect(pad('too long', 3)).toBe('too long');
});

/** How often texts are taken apart into characters, which is what takes long of measuring and folding. */
function countSegmenting(work: () => void): number {
  const segment = vi.spyOn(Intl.Segmenter.prototype, 'segment');
  onTestFinished(() => segment.mockRestore());
  work();
  const { length } = segment.mock.calls;
  segment.mockRestore();
  return length;
}

test.each([
  ['ASCII', 'abcdefgh'],
  ['an accent now and then', `${'a'.repeat(1000)}é`],
  ['wide characters', '日本語テスト'],
  ['joined emoji', '👩‍👩‍👧'],
  ['combining marks', 'e\u0301x\u0300'],
])('folding a long line of %s measures each different character once, and plain ones never', (_, unit) => {
  const text = unit.repeat(Math.ceil(60_000 / unit.length));
  let lines = 0;
  const segmented = countSegmenting(() => {
    lines = fold(text, 100, Number.POSITIVE_INFINITY).lines.length;
  });
  expect(lines).toBeGreaterThan(50);
  expect(segmented).toBeLessThanOrEqual(lines + new Set(unit).size);
  if (unit.length > 1000) expect(segmented).toBeLessThan(lines / 3);
});
