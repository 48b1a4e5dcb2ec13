import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clip, fold, pad, widthOf } from '../../../src/inspect/view/text.ts';
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
