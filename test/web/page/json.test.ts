import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  findPointer,
  type JsonNodes,
  keyText,
  pointerOf,
  readNodes,
} from '../../../src/web/page/json/nodes.ts';
import { treeRows } from '../../../src/web/page/json/tree-rows.ts';

const read = (text: string) => readNodes(text, new AbortController().signal);
const valueText = ({ text, start, end }: JsonNodes, i: number) => text.slice(start[i], end[i]);

test('every value of any JSON is found at its pointer, as it was written', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.constantFrom(0, 1, 4), async (value, indent) => {
      const nodes = await read(JSON.stringify(value, null, indent));
      expect(nodes.brokenAt).toBe(-1);
      for (let i = 0; i < nodes.count; i += 1) {
        const pointer = pointerOf(nodes, i);
        expect(findPointer(nodes, pointer)).toBe(i);
        expect(JSON.parse(valueText(nodes, i))).toEqual(at(JSON.parse(nodes.text), pointer));
      }
    }),
    { numRuns: 50 },
  );
});

function at(value: unknown, pointer: string): unknown {
  const steps = pointer.split('/').slice(1);
  return steps.reduce((inner: unknown, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    return (inner as Record<string, unknown>)[name];
  }, value);
}

test('numbers of any size, keys that stand twice and escapes stay as they are', async () => {
  const nodes = await read('{"a":1.0,"a":12345678901234567890123,"\\u0062":[-0e+1,"\\"x\\\\"]}');
  expect([1, 2, 4, 5].map((i) => valueText(nodes, i))).toEqual([
    '1.0',
    '12345678901234567890123',
    '-0e+1',
    '"\\"x\\\\"',
  ]);
  expect([1, 2, 3].map((i) => keyText(nodes, i))).toEqual(['"a"', '"a"', '"\\u0062"']);
  expect(pointerOf(nodes, 3)).toBe('/b');
});

test.each([
  ['{"a":[1,2', 9, 4],
  ['{"a":tru,"b":2}', 5, 1],
  ['{"a":"open', 5, 1],
  ['[1,2]]', 5, 3],
])('of %s what can be read is read', async (text, brokenAt, count) => {
  const nodes = await read(text);
  expect([nodes.brokenAt, nodes.count]).toEqual([brokenAt, count]);
  expect(nodes.next[0]).toBe(count);
});

test('the lines of a string that is opened are the string, whatever is in it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', minLength: 100, maxLength: 400 }), async (words) => {
      const nodes = await read(JSON.stringify([words]));
      const rows = treeRows(nodes, { turned: new Set(), whole: new Set([1]), width: 50 });
      const starts = rows.from.filter((from) => from >= 0);
      const inside = valueText(nodes, 1).slice(1, -1);
      const first = nodes.start[1] ?? 0;
      const lines = starts.map((from, i) =>
        nodes.text.slice(from, starts[i + 1] ?? first + 1 + inside.length),
      );
      expect(lines.join('')).toBe(inside);
    }),
    { numRuns: 50 },
  );
});
