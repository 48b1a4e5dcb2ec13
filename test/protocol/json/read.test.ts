import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  eachElement,
  eachMember,
  findMember,
  membersOf,
  type Span,
  skipSpace,
  skipValue,
  sourceText,
  stringText,
  typeAt,
} from '../../../src/protocol/json/read.ts';
import { brokenJson, spacedJson } from '../../support/json-text.ts';
import { scale } from '../../support/scale.ts';

function spanOf(bytes: Buffer, start = 0): Span {
  return { start, end: skipValue(bytes, start), type: typeAt(bytes, start) };
}

/** Whether the text is one JSON value and nothing else but space around it. */
function isWholeValue(text: string): boolean {
  const bytes = Buffer.from(text);
  const end = skipValue(bytes, skipSpace(bytes, 0));
  return end >= 0 && skipSpace(bytes, end) === bytes.length;
}

function isParsed(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The position of the first wrong byte, or null where there is none. */
function wrongAt(text: string): number | null {
  const end = skipValue(Buffer.from(text), 0);
  return end < 0 ? ~end : null;
}

/** Builds the value through the functions under test, as a reader of every part of it would. */
function builtFrom(bytes: Buffer, { start, end, type }: Span): unknown {
  if (type === 'object') {
    const entries: [string, unknown][] = [];
    expect(eachMember(bytes, start, (key, value) => entries.push([key, builtFrom(bytes, value)]))).toBe(end);
    return Object.fromEntries(entries);
  }
  if (type === 'array') {
    const values: unknown[] = [];
    expect(eachElement(bytes, start, (value) => values.push(builtFrom(bytes, value)))).toBe(end);
    return values;
  }
  return type === 'string'
    ? stringText(bytes, { start, end, type })
    : JSON.parse(sourceText(bytes, { start, end, type }));
}

test('a value is skipped to exactly its end, whatever follows it', () => {
  const follower = fc.constantFrom('', ' ', ',', '}', ']', '\n', '"', '\u0000', '{');
  fc.assert(
    fc.property(spacedJson, follower, (text, rest) => {
      const bytes = Buffer.from(text);
      const start = skipSpace(bytes, 0);
      const end = start + Buffer.byteLength(text.trim());
      expect(skipValue(Buffer.from(text + rest), start)).toBe(end);
    }),
    { numRuns: scale(300) },
  );
});

test('the visitors see the value that JSON.parse builds', () => {
  fc.assert(
    fc.property(spacedJson, (text) => {
      const bytes = Buffer.from(text);
      expect(builtFrom(bytes, spanOf(bytes, skipSpace(bytes, 0)))).toEqual(JSON.parse(text));
    }),
    { numRuns: scale(300) },
  );
});

test('text that is nearly JSON is accepted exactly where JSON.parse accepts it', () => {
  fc.assert(
    fc.property(brokenJson, (text) => {
      expect(isWholeValue(text)).toBe(isParsed(text));
    }),
    { numRuns: scale(2000) },
  );
});

test('any text is accepted exactly where JSON.parse accepts it', () => {
  const jsonish = fc.string({
    unit: fc.constantFrom(...'{}[]",:\\/u0159eE+-.truefalsn \n\t\u0001é😀'),
    maxLength: 8,
  });
  fc.assert(
    fc.property(fc.oneof(jsonish, fc.string({ unit: 'binary' })), (text) => {
      expect(isWholeValue(text)).toBe(isParsed(text));
    }),
    { numRuns: scale(3000) },
  );
});

test('each number is accepted exactly where JSON.parse accepts it', () => {
  const texts = [
    '0',
    '-0',
    '00',
    '01',
    '-',
    '-01',
    '1.',
    '.1',
    '1.0',
    '1e',
    '1e+',
    '1E-5',
    '1e05',
    '+1',
    '1.e1',
  ];
  for (const text of [...texts, '0x1', 'NaN', 'Infinity', '-Infinity', '1_000', '1e400', '0.0e-0']) {
    expect([text, isWholeValue(text)]).toEqual([text, isParsed(text)]);
  }
});

test('each escape is accepted exactly where JSON.parse accepts it', () => {
  for (let code = 0; code < 0x80; code += 1) {
    for (const text of [`"\\${String.fromCharCode(code)}"`, `"${String.fromCharCode(code)}"`]) {
      expect([text, isWholeValue(text)]).toEqual([text, isParsed(text)]);
    }
  }
  for (const text of ['"\\u00e9"', '"\\u00E9"', '"\\u00g0"', '"\\u00"', '"\\ud800"', '"\\u', '"\\', '"']) {
    expect([text, isWholeValue(text)]).toEqual([text, isParsed(text)]);
  }
});

test('a negative return value names the first wrong byte', () => {
  const cases: [text: string, at: number | null][] = [
    ['', 0],
    ['x', 0],
    ['{', 1],
    ['{"a"', 4],
    ['{"a" 1}', 5],
    ['{"a":}', 5],
    ['{"a":1,}', 7],
    ['{"a":1]', 6],
    ['{a:1}', 1],
    ['[1,]', 3],
    ['[1 2]', 3],
    ['[1}', 2],
    ['[[[1,tru]]]', 8],
    ['trUe', 2],
    ['nul', 3],
    ['-x', 1],
    ['1.x', 2],
    ['1e+', 3],
    ['"ab', 3],
    ['"a\nb"', 2],
    ['"\\x"', 2],
    ['"\\u12g4"', 5],
    ['01', null],
    ['{} x', null],
  ];
  for (const [text, at] of cases) expect([text, wrongAt(text)]).toEqual([text, at]);
});

test('the visitors name the first wrong byte too', () => {
  const none = () => {};
  expect(eachMember(Buffer.from('{"a":1,"b":tru}'), 0, none)).toBe(~14);
  expect(eachMember(Buffer.from('{"a":1 "b":2}'), 0, none)).toBe(~7);
  expect(eachMember(Buffer.from('{"a":1,}'), 0, none)).toBe(~7);
  expect(eachMember(Buffer.from('{"a":1'), 0, none)).toBe(~6);
  expect(eachElement(Buffer.from('[1,2'), 0, none)).toBe(~4);
  expect(eachElement(Buffer.from('[1,]'), 0, none)).toBe(~3);
  expect(eachElement(Buffer.from('[1;2]'), 0, none)).toBe(~2);
});

test('a million nested containers do not overflow the stack', () => {
  const depth = 1_000_000;
  const arrays = Buffer.from('['.repeat(depth) + ']'.repeat(depth));
  expect(skipValue(arrays, 0)).toBe(2 * depth);
  const objects = Buffer.from(`${'{"":'.repeat(depth)}1${'}'.repeat(depth)}`);
  expect(skipValue(objects, 0)).toBe(5 * depth + 1);
  expect(skipValue(arrays.subarray(0, -1), 0)).toBe(~(2 * depth - 1));
  expect(eachElement(arrays, 0, () => {})).toBe(2 * depth);
});

test('keys are given decoded, in their order, duplicates included', () => {
  const bytes = Buffer.from('{"a\\u0062":1,"é":2, "\\"\\n" : 3,"ab":4,"":5,"__proto__":6}');
  const seen: [string, string][] = [];
  eachMember(bytes, 0, (key, value) => seen.push([key, sourceText(bytes, value)]));
  expect(seen).toEqual([
    ['ab', '1'],
    ['é', '2'],
    ['"\n', '3'],
    ['ab', '4'],
    ['', '5'],
    ['__proto__', '6'],
  ]);
});

test('each of very many keys is its own, however often it comes and however it is spelled', () => {
  const plain = Array.from({ length: 5000 }, (_, i) => `key${i}`);
  const odd = ['', 'a"b', 'a\\\\b', '\\u0041', 'A', '\u00e9', '\u00c3\u00a9', '\ufffd', 'x'.repeat(40)];
  const keys = [...plain, ...odd];
  const json = Buffer.from(
    `{${keys.map((key) => `${JSON.stringify(key)}:0`).join(',')},"\\u0041":0,"k\\u0065y7":0}`,
  );
  for (let round = 0; round < 2; round += 1) {
    const seen: string[] = [];
    eachMember(json, 0, (key) => seen.push(key));
    expect(seen).toEqual([...keys, 'A', 'key7']);
  }
});

test('of a duplicate key the last member counts', () => {
  const bytes = Buffer.from('{"a":1,"\\u0061":[2],"b":3}');
  const members = membersOf(bytes, spanOf(bytes));
  expect([...members].map(([key, span]) => [key, span.type, sourceText(bytes, span)])).toEqual([
    ['a', 'array', '[2]'],
    ['b', 'number', '3'],
  ]);
});

test('empty containers have nothing to visit', () => {
  const none = () => expect.fail('nothing should be visited');
  expect(eachMember(Buffer.from('{ \n}'), 0, none)).toBe(4);
  expect(eachElement(Buffer.from('[\t]'), 0, none)).toBe(3);
});

test('source text keeps what JavaScript numbers would lose', () => {
  const bytes = Buffer.from('[12345678901234567890, 1.0 ,1E3,-0]');
  const texts: string[] = [];
  eachElement(bytes, 0, (value) => texts.push(sourceText(bytes, value)));
  expect(texts).toEqual(['12345678901234567890', '1.0', '1E3', '-0']);
});

test('bytes that are not valid UTF-8 are accepted inside strings only', () => {
  expect(skipValue(Buffer.from([0x22, 0xff, 0xc3, 0x22]), 0)).toBe(4);
  expect(skipValue(Buffer.from([0x5b, 0xff, 0x5d]), 0)).toBe(~1);
});

test('the type of a value is told by its first byte', () => {
  const types = ['{}', '[]', '""', '-1', '7', 'true', 'false', 'null'].map((text) =>
    typeAt(Buffer.from(text), 0),
  );
  expect(types).toEqual(['object', 'array', 'string', 'number', 'number', 'boolean', 'boolean', 'null']);
});

test('a member that is looked for alone is the one among all members, however its name is written', () => {
  const names = ['id', 'idx', 'i', '', '_meta', 'method'];
  const written = fc.constantFrom(
    'id',
    'idx',
    'i',
    '',
    '_meta',
    'm\\u0065thod',
    '\\u0069d',
    'id\\u0078',
    'ïd',
    'i\\"d',
  );
  const member = fc.tuple(written, spacedJson).map(([name, json]) => `"${name}" : ${json}`);
  fc.assert(
    fc.property(fc.array(member, { maxLength: 6 }), (members) => {
      const bytes = Buffer.from(`{ ${members.join(' , ')} }`);
      const all = membersOf(bytes, spanOf(bytes));
      for (const name of names) expect(findMember(bytes, 0, name)).toEqual(all.get(name));
    }),
  );
});
