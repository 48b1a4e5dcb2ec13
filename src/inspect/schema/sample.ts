/**
 * Makes a value that a JSON Schema (2020-12 or draft-07) should take: the same one whenever the draws are the same, in a
 * bounded number of steps, whatever the schema. Nothing is validated here, and some keywords (`not`, `unevaluatedProperties`)
 * are not looked at: who needs to be sure asks schemas.ts about the value, and tries again with other draws.
 */

import {
  clippedJson,
  createFollow,
  type Flat,
  type Follow,
  flatten,
  isSchema,
  keyOf,
  NoSample,
  type Schema,
  type SchemaType,
  TYPES,
} from './flat-schema.ts';
import { type Draw, textOfFormat, textOfPattern } from './texts.ts';

type SampleOptions = {
  draw: Draw;
  /** Whether `default` and `examples` are taken where they are. They need not fit. */
  usesExamples: boolean;
  /** Whether there is no more than there has to be: no optional property, no further element, the smallest number. */
  isBare: boolean;
};

/** Steps for one value: parts of schemas that are looked at, and parts of values that are made. */
const MAX_STEPS = 5000;

const MAX_DEPTH = 200;

/** From this depth on nothing optional is made, and of several alternatives the simplest comes first. */
const SHALLOW = 3;

/** Characters of one text; more is not worth making. */
const MAX_TEXT = 20_000;

const MAX_CHARS = 500_000;

/** Elements that differ are looked for so often. */
const MAX_TRIES = 30;

/** The bounds were reached: no alternative would help. */
class Exhausted extends NoSample {}

/** Throws `NoSample` where the schema takes no value, or none that is found. `name`: what the value is called in texts. */
export function sampleOf(schema: unknown, name: string, options: SampleOptions): unknown {
  if (!isSchema(schema)) throw new NoSample(`it is no schema, but ${clippedJson(schema)}`);
  return new Sampler(schema, options).make([schema], name, 0);
}

class Sampler {
  readonly #follow: Follow;
  readonly #options: SampleOptions;
  #steps = 0;
  #chars = 0;

  constructor(root: Schema, options: SampleOptions) {
    this.#follow = createFollow(root);
    this.#options = options;
  }

  /** A value that takes all of these schemas, with their first choices made as `made` has them. */
  make(schemas: readonly Schema[], name: string, depth: number, made: readonly Schema[] = []): unknown {
    const flat = flatten([...schemas, ...made], this.#follow, (steps) => this.#spend(steps));
    if (depth > MAX_DEPTH) throw new NoSample(whyTooDeep(flat));
    // Those of what was chosen stand behind those of the schemas, so the ones that were made are always the first.
    const choice = flat.choices[made.length];
    if (choice === undefined) return this.#fill(flat, name, depth);
    return this.#first(this.#ordered(choice, depth), (one) =>
      this.make(schemas, name, depth, [...made, one]),
    );
  }

  #fill(flat: Flat, name: string, depth: number): unknown {
    const { values, types } = flat;
    if (values !== null) return this.#among(values, flat);
    const examples = this.#options.usesExamples ? flat.examples.filter((one) => isOf(types, one)) : [];
    if (examples.length > 0) return this.#among(examples, flat);
    return this.#first(typesFor(flat), (type) => this.#ofType(type, flat, name, depth));
  }

  #among(values: readonly unknown[], { types }: Flat): unknown {
    const fitting = types === null ? values : values.filter((one) => isOf(types, one));
    if (fitting.length === 0) throw new NoSample('no value is left of its `enum` or `const`');
    return fitting[this.#options.draw(fitting.length)];
  }

  #ofType(type: SchemaType, flat: Flat, name: string, depth: number): unknown {
    this.#spend();
    switch (type) {
      case 'object':
        return this.#object(flat, depth);
      case 'array':
        return this.#array(flat, name, depth);
      case 'string':
        return this.#string(flat, name);
      case 'integer':
      case 'number':
        return this.#number(flat, type === 'integer');
      case 'boolean':
        return this.#options.draw(2) === 1;
      case 'null':
        return null;
    }
  }

  #object(flat: Flat, depth: number): unknown {
    const { least, most, properties, required } = flat;
    const [atLeast = 0, atMost = Number.POSITIVE_INFINITY] = [least.properties, most.properties];
    const needed = withDependents(required, flat);
    if (Math.max(atLeast, needed.size) > atMost)
      throw new NoSample(`it wants ${Math.max(atLeast, needed.size)} properties, and at most ${atMost}`);
    if (atLeast > MAX_STEPS) throw new Exhausted(`it wants ${atLeast} properties`);
    // A name may be `__proto__`.
    const object = Object.create(null) as Record<string, unknown>;
    for (const name of needed) object[name] = this.make(this.#schemasOf(flat, name), name, depth + 1);
    const wanted = this.#isWide(depth) ? atMost : Math.min(atLeast, atMost);
    let size = needed.size;
    for (const name of withDependents(properties.keys(), flat)) {
      if (size >= wanted || name in object) continue;
      size += this.#tryProperty(object, flat, name, depth) ? 1 : 0;
    }
    for (let tries = 0; size < atLeast; tries += 1) {
      if (tries > atLeast + MAX_TRIES)
        throw new NoSample(`it wants ${atLeast} properties, and only ${size} are found`);
      const name = this.#newName(flat, size);
      if (!(name in object)) size += this.#tryProperty(object, flat, name, depth) ? 1 : 0;
    }
    return object;
  }

  /** Whether a property was made that may be missing. */
  #tryProperty(object: Record<string, unknown>, flat: Flat, name: string, depth: number): boolean {
    try {
      object[name] = this.make(this.#schemasOf(flat, name), name, depth + 1);
      return true;
    } catch (error) {
      if (!(error instanceof NoSample) || error instanceof Exhausted) throw error;
      return false;
    }
  }

  #schemasOf({ properties, patternProperties, additional }: Flat, name: string): readonly Schema[] {
    const own = properties.get(name);
    if (own !== undefined) return own;
    const [pattern] = patternProperties;
    if (pattern !== undefined) return [pattern[1]];
    if (additional.includes(false))
      throw new NoSample(`it wants a property ${clippedJson(name)}, and takes none of that name`);
    return additional;
  }

  #newName({ patternProperties, names }: Flat, size: number): string {
    const [pattern] = patternProperties;
    const text = pattern === undefined ? null : textOfPattern(pattern[0], this.#options.draw);
    // Where a pattern says nothing of the end, there is room for a number.
    if (text !== null) return this.#options.draw(2) === 0 ? text : `${text}${size}`;
    const name = names.length === 0 ? null : this.make([{ type: 'string' }, ...names], 'name', MAX_DEPTH);
    return typeof name === 'string' ? name : `invented${size}`;
  }

  #array(flat: Flat, name: string, depth: number): unknown[] {
    const { least, most, prefix, contains, items, isUnique } = flat;
    const special = contains.length === 0 ? 0 : (least.contains ?? 1);
    const atLeast = Math.max(least.items ?? 0, special);
    const atMost = most.items ?? Number.POSITIVE_INFINITY;
    if (atLeast > atMost) throw new NoSample(`it wants ${atLeast} elements, and at most ${atMost}`);
    if (atLeast > MAX_STEPS) throw new Exhausted(`it wants ${atLeast} elements`);
    const liked = this.#isWide(depth) ? Math.max(prefix.length, 1 + this.#options.draw(2)) : 0;
    const behindPrefix = special === 0 ? 0 : prefix.length + special;
    const wanted = Math.min(atMost, Math.max(atLeast, liked, behindPrefix));
    const elements: unknown[] = [];
    const known = new Set<string>();
    for (let i = 0; i < wanted; i += 1) {
      const isSpecial = i >= prefix.length && i < prefix.length + special;
      const schemas = [...(prefix[i] ?? items), ...(isSpecial ? contains : [])];
      const element = this.#element(schemas, name, depth, isUnique ? known : null, i >= atLeast);
      if (element === undefined) break;
      elements.push(element);
    }
    return elements;
  }

  /** `known`: those that it has to differ from. Undefined where none is found and none has to be. */
  #element(
    schemas: Schema[],
    name: string,
    depth: number,
    known: Set<string> | null,
    mayLack: boolean,
  ): unknown {
    try {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const element = this.make(schemas, name, depth + 1);
        const key = known === null ? '' : keyOf(element);
        if (known?.has(key) === true) continue;
        known?.add(key);
        return element;
      }
      throw new NoSample('it wants more elements that differ than are found');
    } catch (error) {
      if (mayLack && error instanceof NoSample && !(error instanceof Exhausted)) return undefined;
      throw error;
    }
  }

  #string({ least, most, patterns, format }: Flat, name: string): string {
    const { draw } = this.#options;
    const [atLeast = 0, atMost = Number.POSITIVE_INFINITY] = [least.length, most.length];
    if (atLeast > atMost) throw new NoSample(`it wants ${atLeast} characters, and at most ${atMost}`);
    if (atLeast > MAX_TEXT) throw new NoSample(`it wants a text of ${atLeast} characters`);
    const isLong = (text: string) => lengthOf(text) >= atLeast && lengthOf(text) <= atMost;
    const pattern = patterns[draw(Math.max(patterns.length, 1))];
    if (pattern !== undefined) return this.#byPattern(pattern, atLeast, atMost);
    const formatted = format === null ? null : textOfFormat(format, draw);
    if (formatted !== null && isLong(formatted)) return this.#counted(formatted);
    const plain = `invented ${[...name].slice(0, MAX_NAME).join('')} ${draw(1000)}`;
    const missing = ' invented'.repeat(
      Math.ceil(Math.max(0, atLeast - lengthOf(plain)) / ' invented'.length),
    );
    // Its end tells it from others.
    const cut = [...plain, ...missing].slice(0, Math.max(atLeast, lengthOf(plain)));
    return this.#counted(cut.slice(Math.max(0, cut.length - atMost)).join(''));
  }

  /** Tries longer texts of the pattern, and less long ones where it went too far. */
  #byPattern(pattern: string, atLeast: number, atMost: number): string {
    let [more, part] = [0, 1];
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const text = textOfPattern(pattern, this.#options.draw, more);
      this.#charge(pattern.length + (text ?? pattern).length);
      if (text === null && more === 0)
        throw new NoSample(`its pattern ${clippedJson(pattern)} is not understood here`);
      const length = text === null ? Number.POSITIVE_INFINITY : lengthOf(text);
      if (text !== null && length >= atLeast && length <= atMost) return text;
      if (length < atLeast) more += Math.max(1, Math.ceil((atLeast - length) / part));
      else {
        more = Math.floor(more / 2);
        part *= 2;
      }
    }
    throw new NoSample(`no text of its length is found that its pattern ${clippedJson(pattern)} takes`);
  }

  #counted(text: string): string {
    this.#charge(text.length);
    return text;
  }

  #charge(chars: number): void {
    this.#chars += chars;
    if (this.#chars > MAX_CHARS) throw new Exhausted(`it wants more than ${MAX_CHARS} characters of text`);
  }

  #number({ least, most, multipleOf }: Flat, isInteger: boolean): number {
    const low = Math.max(least.value ?? Number.NEGATIVE_INFINITY, least.beyond ?? Number.NEGATIVE_INFINITY);
    const high = Math.min(most.value ?? Number.POSITIVE_INFINITY, most.beyond ?? Number.POSITIVE_INFINITY);
    const isWithin = (value: number) =>
      value >= low && value <= high && value !== least.beyond && value !== most.beyond;
    if (low > high) throw new NoSample(`it wants a number of at least ${low}, and at most ${high}`);
    const steps = isInteger ? [1, ...multipleOf] : multipleOf;
    const candidates = steps.length === 0 ? this.#between(low, high) : this.#multiples(low, high, steps);
    const number = candidates.find(isWithin);
    if (number === undefined)
      throw new NoSample(`no number is found from ${low} to ${high} that its limits leave`);
    return number;
  }

  #multiples(low: number, high: number, steps: readonly number[]): number[] {
    const step = steps.reduce(commonMultiple);
    const [first, last] = [Math.ceil(low / step), Math.floor(high / step)];
    const from = Number.isFinite(first) ? first : Number.isFinite(last) ? last - SPAN : 0;
    const to = Number.isFinite(last) ? last : from + SPAN;
    const drawn = from + this.#options.draw(Math.max(1, Math.min(to - from, SPAN) + 1));
    const counts = this.#options.isBare ? [from, from + 1, to] : [drawn, drawn + 1, from, from + 1, to];
    // Binary fractions: 3 * 0.1 is to be 0.3.
    return counts.map((count) => Number((count * step).toPrecision(15)) + 0);
  }

  #between(low: number, high: number): number[] {
    const from = Number.isFinite(low) ? low : Number.isFinite(high) ? high - SPAN : 0;
    const to = Number.isFinite(high) ? high : from + SPAN;
    const middle = from / 2 + to / 2;
    const drawn = from + (to - from) * ((1 + this.#options.draw(SPAN)) / (SPAN + 2));
    return [Math.round(drawn * 100) / 100, drawn, middle, from, to];
  }

  #isWide(depth: number): boolean {
    return !this.#options.isBare && depth < SHALLOW;
  }

  /** What the first of the alternatives gives that gives anything. */
  #first<T>(alternatives: readonly T[], make: (alternative: T) => unknown): unknown {
    let why: NoSample | null = null;
    for (const alternative of alternatives) {
      try {
        return make(alternative);
      } catch (error) {
        if (!(error instanceof NoSample) || error instanceof Exhausted) throw error;
        why ??= error;
      }
    }
    throw why ?? new NoSample('it leaves no alternative');
  }

  /** In depth the simplest first, else any, but nothing last. */
  #ordered(choice: readonly Schema[], depth: number): readonly Schema[] {
    if (!this.#isWide(depth)) return choice.toSorted((a, b) => Number(isComplex(a)) - Number(isComplex(b)));
    const from = this.#options.draw(choice.length);
    const turned = [...choice.slice(from), ...choice.slice(0, from)];
    return turned.toSorted((a, b) => Number(isNull(a)) - Number(isNull(b)));
  }

  #spend(steps = 1): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) throw new Exhausted(`no value of it is found within ${MAX_STEPS} steps`);
  }
}

const MAX_NAME = 40;

const SPAN = 999;

function whyTooDeep({ reference }: Flat): string {
  if (reference === null) return `its values are nested more than ${MAX_DEPTH} deep`;
  return `its values would never end: ${clippedJson(reference)} needs itself again`;
}

/** The types to try, the likeliest first: those that the other keywords are about. */
function typesFor(flat: Flat): SchemaType[] {
  const { types, least, most } = flat;
  const meant: Partial<Record<SchemaType, boolean>> = {
    object:
      flat.properties.size + flat.required.size + flat.patternProperties.length > 0 ||
      least.properties !== undefined,
    array: flat.prefix.length + flat.items.length + flat.contains.length > 0 || least.items !== undefined,
    string: flat.patterns.length > 0 || flat.format !== null || (least.length ?? most.length) !== undefined,
    number:
      flat.multipleOf.length > 0 ||
      [least, most].some(({ value, beyond }) => (value ?? beyond) !== undefined),
  };
  const named = types ?? new Set<SchemaType>(['string', ...TYPES]);
  const able = TYPES.filter((type) => named.has(type) && !(type === 'integer' && named.has('number')));
  const usual = types === null ? 'string' : null;
  const rank = (type: SchemaType) => (meant[type] === true ? 0 : type === usual ? 1 : 2);
  return able.toSorted((a, b) => rank(a) - rank(b));
}

function isOf(types: Flat['types'], value: unknown): boolean {
  if (types === null) return true;
  if (value === null) return types.has('null');
  if (Array.isArray(value)) return types.has('array');
  if (typeof value === 'number')
    return types.has('number') || (types.has('integer') && Number.isInteger(value));
  return types.has(typeof value as SchemaType);
}

/** With all that these properties bring along. */
function withDependents(names: Iterable<string>, { dependent }: Flat): Set<string> {
  const all = new Set(names);
  // A set is walked to the end also where it grows on the way.
  for (const name of all) for (const other of dependent.get(name) ?? []) all.add(other);
  return all;
}

/** In characters, as JSON Schema counts. */
function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

function commonMultiple(a: number, b: number): number {
  for (let count = 1; count <= MAX_COUNT; count += 1) {
    const multiple = Number((a * count).toPrecision(15));
    if (Number.isInteger(Number((multiple / b).toPrecision(15)))) return multiple;
  }
  throw new NoSample(`no common multiple of ${a} and ${b} is found`);
}

const MAX_COUNT = 10_000;

function isComplex(schema: Schema): boolean {
  if (typeof schema === 'boolean') return false;
  return ['$ref', '$dynamicRef', 'properties', 'items', 'allOf', 'anyOf', 'oneOf'].some(
    (keyword) => keyword in schema,
  );
}

function isNull(schema: Schema): boolean {
  return typeof schema !== 'boolean' && (schema['type'] === 'null' || schema['const'] === null);
}
