/**
 * One place of a value, as a JSON Schema has it: with references followed, `allOf` and what stands beside it joined into one set
 * of limits, and what is left to choose (`anyOf`, `oneOf`, `if`) as lists of alternatives. 2020-12 and draft-07.
 */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import { eachSubSchema } from './walk.ts';

/** No value can be made for this schema. The message says why, in words that go on after “because”. */
export class NoSample extends Error {}

export type Schema = JsonObject | boolean;

export const TYPES = ['object', 'array', 'string', 'integer', 'number', 'boolean', 'null'] as const;

export type SchemaType = (typeof TYPES)[number];

/** Every list holds parts that all apply. */
export type Flat = {
  /** Null: any. */
  types: ReadonlySet<SchemaType> | null;
  /** Of `enum` and `const`; null: any. */
  values: readonly unknown[] | null;
  /** Of `default` and `examples`. */
  examples: readonly unknown[];
  least: Limits;
  most: Limits;
  multipleOf: number[];
  patterns: string[];
  format: string | null;
  properties: Map<string, Schema[]>;
  patternProperties: [string, Schema][];
  additional: Schema[];
  names: Schema[];
  required: Set<string>;
  /** What else must be there where a property is. */
  dependent: Map<string, readonly string[]>;
  prefix: Schema[][];
  items: Schema[];
  contains: Schema[];
  isUnique: boolean;
  /** One of each list applies. */
  choices: Schema[][];
  /** The last reference that was followed. */
  reference: string | null;
};

type Limits = Record<Limit, number | undefined>;

type Limit = 'value' | 'beyond' | 'length' | 'items' | 'contains' | 'properties';

const LEAST: Record<string, Limit> = {
  minimum: 'value',
  exclusiveMinimum: 'beyond',
  minLength: 'length',
  minItems: 'items',
  minContains: 'contains',
  minProperties: 'properties',
};

const MOST: Record<string, Limit> = {
  maximum: 'value',
  exclusiveMaximum: 'beyond',
  maxLength: 'length',
  maxItems: 'items',
  maxContains: 'contains',
  maxProperties: 'properties',
};

const NO_LIMITS: Limits = {
  ...{ value: undefined, beyond: undefined, length: undefined },
  ...{ items: undefined, contains: undefined, properties: undefined },
};

/** Throws `NoSample`. `spend` is called with each schema that is looked at: one step, and more for a large one. */
export function flatten(schemas: readonly Schema[], follow: Follow, spend: (steps: number) => void): Flat {
  const flat: Flat = {
    ...{ types: null, values: null, examples: [], format: null, reference: null, isUnique: false },
    ...{ least: { ...NO_LIMITS }, most: { ...NO_LIMITS }, multipleOf: [], patterns: [] },
    ...{ properties: new Map(), patternProperties: [], additional: [], names: [], required: new Set() },
    ...{ dependent: new Map(), prefix: [], items: [], contains: [], choices: [] },
  };
  const seen = new Set<Schema>();
  const waiting = schemas.toReversed();
  for (let schema = waiting.pop(); schema !== undefined; schema = waiting.pop()) {
    if (schema === false) throw new NoSample('the schema `false` takes no value');
    // A reference that leads back to where it stands says nothing new.
    if (schema === true || seen.has(schema)) continue;
    seen.add(schema);
    spend(1 + Math.floor(sizeOf(schema) / SIZE_OF_STEP));
    for (const more of take(flat, schema, follow).toReversed()) waiting.push(more);
  }
  return flat;
}

/** So much of one schema is a step. */
const SIZE_OF_STEP = 100;

function sizeOf(schema: JsonObject): number {
  let size = 0;
  for (const value of Object.values(schema)) {
    if (Array.isArray(value)) size += value.length;
    else if (isObject(value)) size += Object.keys(value).length;
  }
  return size;
}

/** Joins what the schema itself says. Returns the schemas that apply besides. */
function take(flat: Flat, schema: JsonObject, follow: Follow): Schema[] {
  const more: Schema[] = [];
  // In draft-07 nothing beside a reference counts, but what stands there hardly ever contradicts it.
  for (const keyword of ['$ref', '$dynamicRef']) {
    const reference = schema[keyword];
    if (typeof reference !== 'string') continue;
    flat.reference = reference;
    more.push(follow(reference));
  }
  more.push(...schemasIn(schema['allOf']));
  takeType(flat, schema);
  takeValues(flat, schema);
  takeLimits(flat, schema);
  takeProperties(flat, schema);
  takeItems(flat, schema);
  for (const keyword of ['anyOf', 'oneOf']) {
    const branches = schemasIn(schema[keyword]);
    if (branches.length > 0) flat.choices.push(branches);
  }
  const { if: condition, then = true, else: otherwise = true } = schema;
  if (isSchema(condition) && isSchema(then) && isSchema(otherwise))
    flat.choices.push([{ allOf: [condition, then] }, otherwise]);
  for (const [name, dependent] of [
    ...entriesOf(schema['dependentSchemas']),
    ...entriesOf(schema['dependencies']),
  ])
    if (isSchema(dependent))
      flat.choices.push([{ required: [name], allOf: [dependent] }, { properties: { [name]: false } }]);
  return more;
}

function takeType(flat: Flat, { type }: JsonObject): void {
  if (type === undefined) return;
  const named = new Set(Array.isArray(type) ? type : [type]);
  const taken = TYPES.filter((one) => named.has(one) || (one === 'integer' && named.has('number')));
  const { types: before } = flat;
  const types = new Set(taken.filter((one) => before === null || before.has(one)));
  if (types.size === 0) throw new NoSample(`no type is left of ${clippedJson(type)}`);
  flat.types = types;
}

function takeValues(flat: Flat, schema: JsonObject): void {
  const { enum: choices, examples, default: usual } = schema;
  const lists = [Array.isArray(choices) ? choices : null, 'const' in schema ? [schema['const']] : null];
  for (const list of lists) {
    if (list === null) continue;
    const own = flat.values === null ? null : new Set(flat.values.map(keyOf));
    flat.values = own === null ? list : list.filter((value) => own.has(keyOf(value)));
  }
  if (Array.isArray(examples)) flat.examples = [...flat.examples, ...examples];
  if (usual !== undefined) flat.examples = [...flat.examples, usual];
}

function takeLimits(flat: Flat, schema: JsonObject): void {
  for (const [keyword, limit] of Object.entries(LEAST)) {
    const value = schema[keyword];
    if (typeof value === 'number') flat.least[limit] = Math.max(value, flat.least[limit] ?? value);
  }
  for (const [keyword, limit] of Object.entries(MOST)) {
    const value = schema[keyword];
    if (typeof value === 'number') flat.most[limit] = Math.min(value, flat.most[limit] ?? value);
  }
  const { multipleOf, pattern, format } = schema;
  if (typeof multipleOf === 'number' && multipleOf > 0) flat.multipleOf.push(multipleOf);
  if (typeof pattern === 'string') flat.patterns.push(pattern);
  if (typeof format === 'string') flat.format ??= format;
}

function takeProperties(flat: Flat, schema: JsonObject): void {
  const { required, patternProperties, additionalProperties, propertyNames } = schema;
  for (const [name, one] of entriesOf(schema['properties']))
    if (isSchema(one)) flat.properties.set(name, [...(flat.properties.get(name) ?? []), one]);
  for (const [pattern, one] of entriesOf(patternProperties))
    if (isSchema(one)) flat.patternProperties.push([pattern, one]);
  if (isSchema(additionalProperties)) flat.additional.push(additionalProperties);
  if (isSchema(propertyNames)) flat.names.push(propertyNames);
  for (const name of stringsIn(required)) flat.required.add(name);
  for (const [name, names] of [
    ...entriesOf(schema['dependentRequired']),
    ...entriesOf(schema['dependencies']),
  ])
    if (Array.isArray(names))
      flat.dependent.set(name, [...(flat.dependent.get(name) ?? []), ...stringsIn(names)]);
}

/** In draft-07 `items` may be what `prefixItems` is now, and `additionalItems` what `items` is. */
function takeItems(flat: Flat, schema: JsonObject): void {
  const { items, prefixItems, additionalItems, contains, uniqueItems } = schema;
  const prefix = schemasIn(Array.isArray(items) ? items : prefixItems);
  for (const [i, one] of prefix.entries()) flat.prefix[i] = [...(flat.prefix[i] ?? []), one];
  const rest = Array.isArray(items) ? additionalItems : items;
  if (isSchema(rest)) flat.items.push(rest);
  if (isSchema(contains)) flat.contains.push(contains);
  if (uniqueItems === true) flat.isUnique = true;
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'boolean' || isObject(value);
}

function schemasIn(value: unknown): Schema[] {
  return Array.isArray(value) ? value.filter(isSchema) : [];
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}

/** Equal for values that JSON Schema holds for equal. */
export function keyOf(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1))) : one,
  );
}

const MAX_SHOWN = 60;

/** A value of the schema for people, shortened. */
export function clippedJson(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** Gives the schema that a reference names. Throws `NoSample` where there is none. */
export type Follow = (reference: string) => Schema;

/** Follows references within `root`: by pointer, by anchor, by the `$id` of a part. */
export function createFollow(root: Schema): Follow {
  let named: Map<string, Schema> | undefined;
  return (reference) => {
    const hash = reference.indexOf('#');
    const [base, fragment] =
      hash < 0 ? [reference, ''] : [reference.slice(0, hash), reference.slice(hash + 1)];
    const isPointer = fragment === '' || fragment.startsWith('/');
    if (!(base === '' && isPointer)) named ??= namesIn(root);
    const document = base === '' ? root : named?.get(base);
    const found = isPointer ? atPointer(document, fragment) : (named?.get(`#${fragment}`) ?? undefined);
    if (isSchema(found)) return found;
    throw new NoSample(
      `its reference ${clippedJson(reference)} leads nowhere in it, and is followed nowhere else`,
    );
  };
}

function atPointer(document: Schema | undefined, pointer: string): unknown {
  let value: unknown = document;
  for (const step of pointer.split('/').slice(1)) {
    const name = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
    value = isThere ? (value as JsonObject)[name] : undefined;
  }
  return value;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function namesIn(root: Schema): Map<string, Schema> {
  const names = new Map<string, Schema>();
  for (const { schema } of isObject(root) ? eachSubSchema(root) : []) {
    const { $id, $anchor, $dynamicAnchor } = schema;
    if (typeof $id === 'string') names.set($id.startsWith('#') ? $id : $id.replace(/#$/, ''), schema);
    for (const anchor of [$anchor, $dynamicAnchor])
      if (typeof anchor === 'string') names.set(`#${anchor}`, schema);
  }
  return names;
}
