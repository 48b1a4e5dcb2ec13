import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NoSample } from '../../../src/inspect/schema/flat-schema.ts';
import { sampleOf } from '../../../src/inspect/schema/sample.ts';
import { textOfPattern } from '../../../src/inspect/schema/texts.ts';
import { inFull, scale } from '../../support/scale.ts';

/** Draws that are the same for the same seed. */
function drawsOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const OPTIONS = { strict: false, logger: false, validateSchema: false } as const;

const DIALECTS = [new Ajv2020(OPTIONS), new Ajv(OPTIONS)] as const;

for (const dialect of DIALECTS) (addFormats as unknown as (validator: unknown) => void)(dialect);

function isValid(schema: object, value: unknown): boolean {
  const [newer, older] = DIALECTS;
  const dialect = '$schema' in schema ? older : newer;
  try {
    return dialect.validate(schema, value) === true;
  } finally {
    dialect.removeSchema();
  }
}

function sample(schema: object, seed = 1, isBare = false): unknown {
  return sampleOf(schema, 'it', { draw: drawsOf(seed), usesExamples: true, isBare });
}

/** Whether any of a few samples fits; a text where the schema is said to take no value. */
function outcome(schema: object): true | 'none fits' | string {
  for (let seed = 1; seed <= 8; seed += 1) {
    try {
      if (isValid(schema, sample(schema, seed, seed % 3 === 0))) return true;
    } catch (error) {
      if (!(error instanceof NoSample)) throw error;
      return error.message;
    }
  }
  return 'none fits';
}

const object = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  ...more,
});

function nested(depth: number): object {
  return depth === 0 ? { type: 'string' } : object({ a: nested(depth - 1) });
}

const CONDITION: object = JSON.parse(
  `{"type":"object","properties":{"k":{"enum":["a","b"]}},"required":["k","x"],"if":{"properties":{"k":{"const":"a"}}},
    "then":{"properties":{"x":{"type":"string"}}},"else":{"properties":{"x":{"type":"integer"}}}}`,
);

test.each<[what: string, schema: object]>([
  ['numbers within limits', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.5 }],
  ['multiples', { type: 'number', multipleOf: 0.01, minimum: 0.5, maximum: 0.52 }],
  ['multiples of several', { allOf: [{ multipleOf: 6 }, { multipleOf: 10 }], type: 'integer', minimum: 31 }],
  ['huge numbers', { type: 'integer', minimum: 1e300 }],
  ['lengths', { type: 'string', minLength: 300, maxLength: 301 }],
  ['lengths in characters', { type: 'string', maxLength: 1 }],
  ['patterns', { type: 'string', pattern: '^[A-Z]{3}-\\d{4}(?:-(x|y)+)?$' }],
  [
    'patterns with a length',
    { type: 'string', pattern: '^(?<y>\\d{4})-\\k<y>[^a-z]{2,}$', minLength: 80, maxLength: 90 },
  ],
  ['patterns that take forever to match', { type: 'string', pattern: '^(a+)+$', minLength: 40 }],
  ['Unicode in patterns', { type: 'string', pattern: '^\\p{Lu}\\u00e9\\u{1F600}[\\w-]{2}$' }],
  ['enums', object({ a: { enum: [{ b: 1 }, [2], null] }, c: { const: 3 } })],
  ['an enum of many', { enum: Array.from({ length: 100_000 }, (_, i) => `v${i}`) }],
  ['enums that have one value in common', { allOf: [{ enum: [1, 2, 3] }, { enum: [3, 4] }] }],
  ['elements that differ', { type: 'array', items: { enum: [1, 2, 3] }, uniqueItems: true, minItems: 3 }],
  [
    'tuples',
    { type: 'array', prefixItems: [{ type: 'string' }, { type: 'null' }], items: false, minItems: 2 },
  ],
  [
    'tuples of draft-07',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'array',
      items: [{ type: 'null' }],
      additionalItems: { type: 'integer' },
      minItems: 3,
    },
  ],
  [
    'what an array contains',
    { type: 'array', items: { type: 'integer' }, contains: { minimum: 100 }, minContains: 2 },
  ],
  [
    'arrays in arrays',
    { type: 'array', minItems: 1, items: { type: 'array', minItems: 2, items: nested(2) } },
  ],
  [
    'unions that exclude each other',
    {
      oneOf: [
        object({ k: { const: 'a' } }, { additionalProperties: false }),
        object({ k: { const: 'b' }, y: { type: 'integer' } }),
      ],
    },
  ],
  [
    'unions of which one only may fit',
    {
      oneOf: [
        { type: 'integer', multipleOf: 3 },
        { type: 'integer', multipleOf: 5 },
      ],
    },
  ],
  ['conditions', CONDITION],
  [
    'dependencies',
    {
      ...object({ a: true }),
      dependentRequired: { a: ['b'] },
      dependentSchemas: { b: { properties: { b: { minimum: 5, type: 'integer' } } } },
    },
  ],
  [
    'names of properties',
    {
      type: 'object',
      minProperties: 4,
      propertyNames: { pattern: '^[a-z]{4}$' },
      additionalProperties: { type: 'integer' },
    },
  ],
  [
    'properties by pattern',
    {
      type: 'object',
      minProperties: 2,
      patternProperties: { '^x-': { type: 'boolean' } },
      additionalProperties: false,
    },
  ],
  [
    'a property with the name of a prototype',
    JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}'),
  ],
  [
    'references',
    {
      $defs: {
        'a/b': { type: 'integer' },
        c: { $anchor: 'here', type: 'null' },
        d: { $id: 'urn:d', type: 'array' },
      },
      ...object({ a: { $ref: '#/$defs/a~1b' }, b: { $ref: '#here' }, c: { $ref: 'urn:d' } }),
    },
  ],
  ['trees', object({ value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#' } } })],
  ['lists that end', object({ next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } })],
  ['what is deep', nested(150)],
  ['what must not be', { type: 'string', not: { pattern: '^a' } }],
  ['no type', { minLength: 3 }],
  ['several types', { type: ['null', 'object'], properties: { a: { type: 'string' } } }],
  ['nothing asked', {}],
  [
    'formats',
    object(
      Object.fromEntries(
        [
          'date-time',
          'date',
          'time',
          'duration',
          'email',
          'hostname',
          'ipv4',
          'ipv6',
          'uri',
          'uri-reference',
          'uri-template',
          'uuid',
          'json-pointer',
          'relative-json-pointer',
          'regex',
          'byte',
        ].map((format) => [format, { type: 'string', format }]),
      ),
    ),
  ],
])('what is asked of %s', (_, schema) => {
  expect(outcome(schema)).toBe(true);
});

const LOOP = { $ref: '#/$defs/a', $defs: { a: object({ n: { $ref: '#/$defs/a' } }) } };

test.each<[what: string, schema: object, why: RegExp]>([
  ['limits that cross', { type: 'integer', minimum: 5, maximum: 3 }, /at least 5, and at most 3/],
  ['lengths that cross', { type: 'string', minLength: 5, maxLength: 3 }, /5 characters, and at most 3/],
  ['no type that is left', { allOf: [{ type: 'string' }, { type: 'object' }] }, /no type is left/],
  ['no value that is left', { allOf: [{ enum: [1] }, { enum: [2] }] }, /no value is left/],
  [
    'what is required and forbidden',
    { type: 'object', required: ['a'], additionalProperties: false },
    /a property "a"/,
  ],
  [
    'too few that differ',
    { type: 'array', items: { type: 'boolean' }, uniqueItems: true, minItems: 3 },
    /more elements that differ/,
  ],
  ['a value that never ends', LOOP, /would never end: "#\/\$defs\/a" needs itself again/],
  [
    'one that never ends in many ways',
    object({ n: { anyOf: [object({ m: { $ref: '#' } }), { $ref: '#' }] } }),
    /within 5000 steps/,
  ],
  ['one that is too deep', nested(1000), /more than 200 deep/],
  [
    'a great many elements',
    { type: 'array', items: { type: 'string' }, minItems: 1e9 },
    /1000000000 elements/,
  ],
  ['very long texts', { type: 'string', minLength: 1e9 }, /1000000000 characters/],
  ['a reference to nowhere', { $ref: '#/$defs/none' }, /leads nowhere/],
  ['a reference to elsewhere', { $ref: 'https://example.com/s.json' }, /leads nowhere/],
  ['a pattern that is not understood', { type: 'string', pattern: '(?i:x)' }, /not understood/],
])('%s: said to take no value', (_, schema, why) => {
  expect(() => sample(schema)).toThrow(NoSample);
  expect(() => sample(schema)).toThrow(why);
});

const NAMES = Array.from({ length: 50_000 }, (_, i) => `n${i}`);

inFull.each<[what: string, schema: object]>([
  [
    'many names that depend on many',
    {
      required: NAMES,
      dependentRequired: Object.fromEntries(NAMES.map((name) => [name, NAMES.slice(0, 2)])),
    },
  ],
  [
    'many patterns without a text of their length',
    {
      type: 'object',
      properties: Object.fromEntries(NAMES.map((name) => [name, { pattern: 'a{19999}', maxLength: 5 }])),
    },
  ],
  [
    'many elements of a large schema',
    {
      type: 'array',
      minItems: 4000,
      items: { properties: Object.fromEntries(NAMES.map((name) => [name, {}])) },
    },
  ],
])('%s: given up soon', (_, schema) => {
  const before = performance.now();
  expect(() => sample(schema)).toThrow(NoSample);
  // On an idle machine less than a second.
  expect(performance.now() - before).toBeLessThan(30_000);
});

test('the same draws make the same value, and others another one', () => {
  const schema = object({ a: { type: 'string' }, b: { type: 'number' }, c: { type: 'array' } });
  expect(sample(schema, 5)).toEqual(sample(schema, 5));
  expect(sample(schema, 5)).not.toEqual(sample(schema, 6));
});

test('a text of a pattern is one that the pattern matches', () => {
  const part = fc.constantFrom('a', '\\d', '[b-f_]', '[^a-z]', '(x|yz)', '\\.', '\\w', '(?:\\s|-)', 'é');
  const times = fc.constantFrom('', '*', '+', '?', '{2}', '{1,3}', '{2,}', '+?');
  const pattern = fc.array(fc.tuple(part, times), { maxLength: 6 });
  fc.assert(
    fc.property(pattern, fc.nat(), (parts, seed) => {
      const source = `^${parts.map((one) => one.join('')).join('')}$`;
      expect(textOfPattern(source, drawsOf(seed))).toMatch(new RegExp(source, 'u'));
    }),
    { numRuns: scale(2000, 300) },
  );
});

/** Schemas that take a value: nothing in them contradicts. */
const satisfiable: fc.Arbitrary<object> = fc.letrec<{ schema: object }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<object>(
      { type: 'boolean' },
      { type: 'null' },
      {},
      { const: { a: [1] } },
      { enum: ['a', 1, null] },
    ),
    fc
      .tuple(fc.integer(), fc.nat(1e6))
      .map(([from, span]) => ({ type: 'integer', minimum: from, maximum: from + span })),
    fc
      .tuple(fc.nat(60), fc.nat(9))
      .map(([from, span]) => ({ type: 'string', minLength: from, maxLength: from + span })),
    fc
      .double({ min: 0.001, max: 1000, noNaN: true })
      .map((low) => ({ type: 'number', exclusiveMinimum: low })),
    fc.tuple(tie('schema'), fc.nat(3)).map(([items, minItems]) => ({ type: 'array', items, minItems })),
    fc
      .tuple(fc.dictionary(fc.string({ maxLength: 3 }), tie('schema'), { maxKeys: 4 }), fc.boolean())
      .map(([properties, isRequired]) => ({
        ...object(properties),
        ...(isRequired ? {} : { required: [] }),
        additionalProperties: false,
      })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    tie('schema').map((one) => ({ allOf: [one, {}] })),
  ),
})).schema;

test('a schema without a contradiction gets a value that fits', () => {
  fc.assert(
    fc.property(satisfiable, (schema) => {
      expect(outcome(schema), JSON.stringify(schema)).toBe(true);
    }),
    { numRuns: scale(1000, 100) },
  );
});

test('any schema, however odd, gets a value or a reason within bounds', () => {
  const word = fc.constantFrom(
    'type',
    'enum',
    'const',
    'anyOf',
    'oneOf',
    'allOf',
    'not',
    '$ref',
    'items',
    'properties',
    'required',
    'pattern',
    'minimum',
    'maximum',
    'minItems',
    'minLength',
    'if',
    'then',
    'else',
    'prefixItems',
    'contains',
    'dependencies',
    'multipleOf',
    'uniqueItems',
    'minProperties',
    'propertyNames',
  );
  const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(
        'object',
        'array',
        'string',
        'integer',
        '#',
        '#/items',
        '^a',
        '(',
        'a',
        0,
        3,
        -1,
        1e308,
        true,
        false,
        null,
      ),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(word, fc.constantFrom('a', '__proto__')), tie('value'), { maxKeys: 5 }),
    ),
  })).value;
  fc.assert(
    fc.property(value, fc.nat(), fc.boolean(), (schema, seed, isBare) => {
      try {
        const made = sampleOf(schema, 'it', { draw: drawsOf(seed), usesExamples: true, isBare });
        expect(JSON.stringify(made)).toBeTypeOf('string');
      } catch (error) {
        expect(error).toBeInstanceOf(NoSample);
      }
    }),
    { numRuns: scale(3000, 300) },
  );
});
