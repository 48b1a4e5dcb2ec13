/** Forms that a server asks its user to fill in. Specification, client/elicitation. */

import { BoundedMap } from '../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import type { Schemas } from '../schema/schemas.ts';
import {
  type CheckedMessage,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  resultOf,
  shown,
} from './checked-message.ts';
import type { Report } from './rules.ts';

const METHOD = 'elicitation/create';

const PRIMITIVES = new Set<unknown>(['string', 'number', 'integer', 'boolean']);

const NESTED = ['properties', 'items', '$ref', 'allOf', 'anyOf'];

export function inspectElicitation(report: Report, schemas: Schemas): Inspector {
  /** What results of the 2026-07-28 era asked for, by the place of their request. */
  const inputs = new BoundedMap<string, JsonObject>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    const method = methodOf(seen);
    if (method === METHOD) asked(seen, seen.params);
    const result = resultOf(seen);
    if (result !== null && seen.asked?.method === METHOD) answered(seen, seen.asked.params, result);
    if (result !== null && isObject(result['inputRequests'])) required(seen, result['inputRequests']);
    const { relation, to } = seen.correlation;
    if (relation === 'round' && to !== null) given(seen, inputs.get(`${to.seq}.${to.n}`) ?? {});
  }

  function required(seen: CheckedMessage, requests: JsonObject): void {
    if (seen.asked !== null) inputs.set(`${seen.asked.place.seq}.${seen.asked.place.n}`, requests);
    for (const params of formsOf(requests).values()) asked(seen, params);
  }

  function given(seen: CheckedMessage, requests: JsonObject): void {
    const responses = seen.params?.['inputResponses'];
    if (!isObject(responses)) return;
    for (const [key, params] of formsOf(requests)) {
      const response = Object.hasOwn(responses, key) ? responses[key] : undefined;
      if (isObject(response)) answered(seen, params, response);
    }
  }

  function asked(seen: CheckedMessage, params: JsonObject | null): void {
    if (params === null || isByUrl(params)) return;
    const fault = faultOf(params['requestedSchema'], seen.revision ?? '');
    if (fault !== null) report('elicitation-schema', seen.side, seen, fault.expected, fault.seen);
  }

  function answered(seen: CheckedMessage, params: JsonObject | null, result: JsonObject): void {
    const schema = params?.['requestedSchema'];
    if (result['action'] !== 'accept' || params === null || isByUrl(params) || !isObject(schema)) return;
    const verdict = schemas.validate(JSON.stringify(schema), result['content'] ?? {});
    if (verdict.kind === 'broken')
      report(
        'elicitation-content',
        seen.side,
        seen,
        '`content` that fits the `requestedSchema`',
        verdict.why,
      );
  }

  return { message };
}

/** The forms among the requests for input, by their keys. */
function formsOf(requests: JsonObject): Map<string, JsonObject> {
  const forms = new Map<string, JsonObject>();
  for (const [key, input] of Object.entries(requests))
    if (isObject(input) && input['method'] === METHOD && isObject(input['params']))
      forms.set(key, input['params']);
  return forms;
}

function isByUrl({ mode }: JsonObject): boolean {
  return mode === 'url';
}

type Fault = { expected: string; seen: string };

/** A flat object of primitive values, and since 2025-11-25 of lists of choices. */
function faultOf(schema: unknown, revision: string): Fault | null {
  if (!isObject(schema) || schema['type'] !== 'object' || !isObject(schema['properties']))
    return {
      expected: 'a schema of type object with `properties` as `requestedSchema`',
      seen: shown(schema),
    };
  const takesLists = revision >= '2025-11-25';
  for (const [name, property] of Object.entries(schema['properties'])) {
    if (isPrimitive(property) || (takesLists && isListOfChoices(property))) continue;
    const what = takesLists ? ' or a list of choices' : '';
    return { expected: `a string, a number, a boolean${what} as ${shown(name)}`, seen: shown(property) };
  }
  return null;
}

function isPrimitive(property: unknown): boolean {
  return (
    isObject(property) &&
    PRIMITIVES.has(property['type']) &&
    NESTED.every((keyword) => property[keyword] === undefined)
  );
}

function isListOfChoices(property: unknown): boolean {
  if (!isObject(property) || property['type'] !== 'array' || !isObject(property['items'])) return false;
  const { enum: names, anyOf, oneOf } = property['items'];
  return [names, anyOf, oneOf].some((choices) => Array.isArray(choices));
}
