import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withoutMembers, withoutSpace } from '../../../src/protocol/json/edit.ts';

const object = fc.dictionary(fc.constantFrom('a', 'b', '_meta', 'c d'), fc.jsonValue(), { maxKeys: 4 });
const indent = fc.constantFrom(0, 2, '\t');

test('an object without some of its members is what parsing, deleting and writing would give', () => {
  fc.assert(
    fc.property(object, indent, fc.subarray(['a', 'b', '_meta']), (value, space, names) => {
      const edited = withoutMembers(Buffer.from(JSON.stringify(value, null, space)), names);
      const kept = Object.entries(value).filter(([name]) => !names.includes(name));
      expect(withoutSpace(edited).toString()).toBe(JSON.stringify(Object.fromEntries(kept)));
    }),
  );
});

test.each([
  ['{"_meta":1}', '{}'],
  ['{ "_meta" : 1 }', '{ }'],
  ['{"_meta":1,"a":1.0}', '{"a":1.0}'],
  ['{"a":12345678901234567890, "_meta":{"_meta":1}}', '{"a":12345678901234567890}'],
  ['{"a":1,"_meta":1,"b":2,"_meta":2}', '{"a":1,"b":2}'],
  ['{"\\u005fmeta":1,"b":2}', '{"b":2}'],
])('%s loses its `_meta` and nothing else: %s', (json, expected) => {
  expect(withoutMembers(Buffer.from(json), ['_meta']).toString()).toBe(expected);
});

test('space in strings stays', () => {
  const json = '{ "a \\" b" : [ 1 ,\r\n "\\\\ " , " " ] }';
  expect(withoutSpace(Buffer.from(json)).toString()).toBe('{"a \\" b":[1,"\\\\ "," "]}');
});
