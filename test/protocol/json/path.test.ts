import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  followInto,
  jsonPathText,
  type PathProgress,
  parseJsonPath,
} from '../../../src/protocol/json/path.ts';
import { readIgnoreRules } from '../../../src/replay/match/ignore.ts';
import { scale } from '../../support/scale.ts';

/** Whether the path ends at these steps, or before. */
function leadsTo(path: string, steps: readonly (string | number)[]): boolean {
  const { start, isWhole } = parseJsonPath(path);
  let paths: PathProgress | null = start;
  for (const step of steps) paths = paths === null ? null : followInto(paths, step);
  return isWhole || paths === null;
}

test.each([
  ['$', [], true],
  ['$.a.b', ['a', 'b'], true],
  ['$.a.b', ['a'], false],
  ['$.a.b', ['a', 'c'], false],
  ['$[\'a\']["b c"]', ['a', 'b c'], true],
  ["$['it\\'s \"x\"']", ['it\'s "x"'], true],
  ["$['\\u00e4']", ['ä'], true],
  ['$.ä_1', ['ä_1'], true],
  ['$.a[0]', ['a', 0], true],
  ['$.a[0]', ['a', 1], false],
  ['$.a[0]', ['a', '0'], false],
  ['$.a[*].id', ['a', 17, 'id'], true],
  ['$.*.id', ['b', 'id'], true],
  ['$..id', ['id'], true],
  ['$..id', ['a', 3, 'b', 'id'], true],
  ['$..id', ['a', 'idle'], false],
  ['$..a..b', ['a', 'x', 'a', 'b'], true],
  ['$..a.b', ['a', 'x', 'b'], false],
  ['$..[0].x', ['q', 0, 'x'], true],
  ["$..['a b']", ['q', 'a b'], true],
  ['$..*', ['q'], true],
] as [string, (string | number)[], boolean][])('%s and the steps %j: %s', (path, steps, expected) => {
  expect(leadsTo(path, steps)).toBe(expected);
});

test.each([
  ['a.b', 'expected `$`, the value from which the path starts at character 1, got "a.b"'],
  ['', 'at character 1, got the end'],
  ['$a', 'expected `.`, `..` or `[` at character 2, got "a"'],
  ['$.', "expected a name (others are written ['like this']) or `*` at character 3, got the end"],
  ['$.a-b', 'expected `.`, `..` or `[` at character 4, got "-b"'],
  ['$.a[-1]', 'expected a name in quotes, an index from 0 on, or `*` at character 5, got "-1]"'],
  ['$.a[1:2]', 'expected `]` at character 6, got ":2]"'],
  ['$.a[?(@.x)]', 'at character 5, got "?(@.x)]"'],
  ["$['a", 'at character 3'],
  ['$.a[01]', 'expected `]` at character 6'],
  ['$...a', 'at character 4, got ".a"'],
  ['$.a ', 'at character 4, got " "'],
])('%s is refused with the place and what was expected there', (path, message) => {
  expect(() => parseJsonPath(path)).toThrow(message);
});

test('every path that is written for steps leads to them and to nothing beside them', () => {
  const step = fc.oneof(fc.nat(99), fc.string({ unit: 'binary' }), fc.string());
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), step, (steps, other) => {
      const path = jsonPathText(steps);
      expect(leadsTo(path, steps)).toBe(true);
      expect(leadsTo(path, steps.slice(0, -1))).toBe(false);
      expect(leadsTo(path, [...steps.slice(0, -1), other])).toBe(other === steps.at(-1));
    }),
    { numRuns: scale(500) },
  );
});

test('a path for a tool names the tool before the path', () => {
  expect(() => readIgnoreRules([], ['now'])).toThrow('expected <tool name>:<json-path>');
  expect(() => readIgnoreRules([], ['now:a'])).toThrow('got no `$` after the colon');
  expect(() => readIgnoreRules([], ['now:$.'])).toThrow('--ignore-tool now: $.: expected a name');
  expect([...readIgnoreRules([], ['a:b:$.x', 'a:b:$.y']).tools.keys()]).toEqual(['a:b']);
});
