import { expect, test } from 'vitest';
import type { FramePart, LineEnd } from '../../src/protocol/frame.ts';
import { flagsOf, formOf } from '../../src/store/frame-flags.ts';

test('an ordinary line has no flags', () => {
  expect(flagsOf({ lineEnd: '\n', part: 'line', truncated: false })).toBeNull();
});

test('every form of a frame is told by its flags, and found again', () => {
  const lineEnds: LineEnd[] = ['', '\n', '\r\n'];
  const parts: FramePart[] = ['line', 'lsp-header', 'lsp-body'];
  const seen = new Set<string | null>();
  for (const lineEnd of lineEnds) {
    for (const part of parts) {
      for (const truncated of [true, false]) {
        const flags = flagsOf({ lineEnd, part, truncated });
        expect(formOf(flags)).toEqual({ lineEnd, part, truncated });
        seen.add(flags);
      }
    }
  }
  expect(seen.size).toBe(18);
});
