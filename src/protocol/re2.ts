/**
 * Expressions that people write, run in RE2's engine: its time grows with the text alone, whatever the expression is. It takes
 * long to load, and few need it: it is loaded with the first expression.
 */

import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';

/** What JavaScript's expressions have and RE2's do not, because they could take for ever. */
const UNSUPPORTED = [
  { what: 'a look-ahead', pattern: /\(\?[=!]/ },
  { what: 'a look-behind', pattern: /\(\?<[=!]/ },
  { what: 'a back-reference', pattern: /\\(?:[1-9]|k<)/ },
];

/** `source` and `flags` (of i, m, s and u) as in JavaScript. Throws `Error` with a reason where RE2 cannot read it. */
export function compileRe2(source: string, flags: string): RE2JS {
  const { RE2JS } = createRequire(import.meta.url)('re2js') as typeof import('re2js');
  const bits: Record<string, number> = { i: RE2JS.CASE_INSENSITIVE, m: RE2JS.MULTILINE, s: RE2JS.DOTALL };
  const sum = [...flags].reduce((all, letter) => all | (bits[letter] ?? 0), 0);
  return RE2JS.compile(RE2JS.translateRegExp(source), sum);
}

/** The first such thing in an expression, which is one in JavaScript; null where there is none. */
export function unsupportedByRe2(source: string): { what: string; at: number } | null {
  // Escaped characters and classes may look like one.
  const bare = source.replaceAll(/\\[^1-9k]|\[(?:\\.|[^\]])*\]/gs, (part) => '_'.repeat(part.length));
  const found = UNSUPPORTED.map(({ what, pattern }) => ({ what, at: bare.search(pattern) }));
  return found.filter(({ at }) => at >= 0).toSorted((a, b) => a.at - b.at)[0] ?? null;
}
