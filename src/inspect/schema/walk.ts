/** The schemas inside a JSON Schema, each with its place. Recorded schemas are hostile: nothing recurses, and there is a bound. */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';

/** `path`: from the root, as a JSON Pointer has it. */
export type SubSchema = { path: readonly (string | number)[]; schema: JsonObject };

/** What is beyond this is not looked at. */
const MAX_SCHEMAS = 20_000;

/** Keywords that hold one schema. `items` held a list of them before 2020-12. */
const SINGLE = [
  'items',
  'additionalItems',
  'additionalProperties',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contains',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
];

const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items'];

/** Their keys are names of somebody's choice, and no keywords. */
const MAPS = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/**
 * All schemas of `root`, itself first, in the order of their depth. References are not followed, so no circle of them matters:
 * what a local one names stands in `root` too, and is met there.
 */
export function* eachSubSchema(root: JsonObject): Generator<SubSchema> {
  const waiting: SubSchema[] = [{ path: [], schema: root }];
  for (let next = 0; next < waiting.length; next += 1) {
    const { path, schema } = waiting[next] as SubSchema;
    yield { path, schema };
    const add = (value: unknown, ...steps: (string | number)[]) => {
      if (isObject(value) && waiting.length < MAX_SCHEMAS)
        waiting.push({ path: [...path, ...steps], schema: value });
    };
    for (const keyword of SINGLE) add(schema[keyword], keyword);
    for (const keyword of LISTS) {
      const list = schema[keyword];
      if (Array.isArray(list)) for (const [i, one] of list.entries()) add(one, keyword, i);
    }
    for (const keyword of MAPS) {
      const map = schema[keyword];
      if (isObject(map)) for (const [name, one] of Object.entries(map)) add(one, keyword, name);
    }
  }
}
