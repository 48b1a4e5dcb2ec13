/** Tools that are listed in another order. */
import { expect, test } from 'vitest';
import { list, tool } from '../cases-modern.ts';
import { note, type Step, server } from '../session.ts';
import { found, rulesOf } from './found.ts';

const changed = (what: string, params?: object) => server(note(`notifications/${what}`, params));

const [a, b, c] = ['a', 'b', 'c'].map((name) => tool({}, name)) as [object, object, object];
const ordered = (...lists: object[][]) => lists.flatMap((tools, i) => list(i + 1, { tools, ttlMs: 0 }));

test('the same tools in another order are told of, where they first differ', () => {
  const findings = found(ordered([a, b, c], [a, c, b], [a, c, b]));
  expect(findings).toMatchObject([
    { rule: 'tool-order', place: { seq: 4 }, expected: '"b" as tool 2, in the order of #2', seen: '"c"' },
  ]);
});

test.each<[string, Step[]]>([
  ['tools were added', ordered([a, b], [c, b, a])],
  ['a tool is another', ordered([a, b], [b, { ...a, title: 'A' }])],
  [
    'they were said to have changed',
    [...ordered([a, b]), changed('tools/list_changed'), ...list(2, { tools: [b, a], ttlMs: 0 })],
  ],
  [
    'pages end elsewhere',
    [
      ...[...ordered([a, b, c]), ...list(2, { tools: [a], nextCursor: 'x', ttlMs: 0 })],
      ...list(3, { tools: [b, c], ttlMs: 0 }, { cursor: 'x' }),
    ],
  ],
])('another order is none where %s', (_, steps) => {
  expect(rulesOf('tool-order', steps)).toEqual([]);
});

test('pages are compared one by one, and together', () => {
  const page = (id: number, tools: object[], cursor?: string, nextCursor?: string) =>
    list(id, { tools, ttlMs: 0, ...(nextCursor && { nextCursor }) }, cursor === undefined ? {} : { cursor });
  const pages = [...page(1, [a, b], undefined, 'x'), ...page(2, [c], 'x')];
  const moved = [...page(3, [a, c], undefined, 'x'), ...page(4, [b], 'x')];
  expect(rulesOf('tool-order', [...pages, ...moved])).toEqual(['tool-order']);
  expect(rulesOf('tool-order', [...pages, ...page(3, [b, a], undefined, 'x')])).toEqual(['tool-order']);
  const turned = [...page(3, [b, a], undefined, 'x'), ...page(4, [c], 'x')];
  expect(rulesOf('tool-order', [...pages, ...turned])).toEqual(['tool-order']);
});
