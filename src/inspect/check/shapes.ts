/** Params and results have what their method requires. Specification, schema. */
import type { Report, RuleId } from './rules.ts';
import { type Inspector, isObject, type Json, methodOf, resultOf, type Seen, shown } from './seen.ts';
import {
  EMPTY_RESULTS,
  INNER,
  LOG_LEVELS,
  type MemberType,
  PARAMS,
  RESULTS,
  type Shape,
} from './shapes-table.ts';

/** Of a long list a finding names the first that is wrong. */
export function inspectShapes(report: Report): Inspector {
  function message(seen: Seen): void {
    // An object too large to be looked into says nothing.
    if (seen.value === null) return;
    const method = methodOf(seen);
    if (method !== null) call(seen, method);
    const result = resultOf(seen);
    if (result !== null && seen.asked !== null) answer(seen, seen.asked.method, result);
  }

  function call(seen: Seen, method: string): void {
    const shape = PARAMS.get(method);
    if (shape !== undefined) members('params-shape', seen, `${method} params`, shape, seen.params ?? {});
    if (method === 'notifications/message' || method === 'logging/setLevel')
      level(seen, seen.params?.['level']);
    if (method === 'notifications/cancelled') cancelled(seen);
    if (isObject(seen.params?.['_meta']))
      level(seen, seen.params['_meta']['io.modelcontextprotocol/logLevel']);
    if (method === 'subscriptions/listen') return;
    const token = isObject(seen.params?.['_meta']) ? seen.params['_meta']['progressToken'] : undefined;
    if (token !== undefined && !isOfType(token, 'id'))
      report('params-shape', seen.side, seen, '`_meta.progressToken`: a string or an integer', shown(token));
  }

  /** From 2025-11-25 on it may be missing, but not stand there under another name. */
  function cancelled(seen: Seen): void {
    const { requestId, id } = seen.params ?? {};
    const isRequired = seen.revision !== null && seen.revision < '2025-11-25';
    if (requestId === undefined && (isRequired || id !== undefined))
      report(
        'params-shape',
        seen.side,
        seen,
        'notifications/cancelled params: a string or an integer as `requestId`',
        id === undefined ? 'nothing' : '`id`',
      );
  }

  function level(seen: Seen, name: unknown): void {
    if (typeof name === 'string' && !LOG_LEVELS.has(name))
      report('log-level', seen.side, seen, [...LOG_LEVELS].join(', '), shown(name));
  }

  function answer(seen: Seen, method: string, result: Json): void {
    resultType(seen, result);
    const { resultType: type } = result;
    // A task or a request for input stands in the place of the answer.
    const isWhole = !seen.message.details.beginsTask && (type === undefined || type === 'complete');
    const shape = RESULTS.get(method);
    if (isWhole && shape !== undefined) members('result-shape', seen, `${method} result`, shape, result);
    if (isWhole && method === 'roots/list') roots(seen, result['roots']);
    const own = Object.keys(result).filter((name) => name !== '_meta');
    if (EMPTY_RESULTS.has(method) && own.length > 0)
      report('empty-result', seen.side, seen, 'no members', own.map((name) => `\`${name}\``).join(', '));
  }

  function roots(seen: Seen, list: unknown): void {
    if (!Array.isArray(list)) return;
    const odd = list.find(
      (root) => isObject(root) && typeof root['uri'] === 'string' && !root['uri'].startsWith('file://'),
    );
    if (odd !== undefined)
      report(
        'result-shape',
        seen.side,
        seen,
        '`uri` of a root: one that begins with file://',
        shown(odd['uri']),
      );
  }

  function resultType(seen: Seen, { resultType: type }: Json): void {
    if (type === undefined) report('result-type-missing', seen.side, seen, '`resultType`', 'none');
    else if (type !== 'complete' && type !== 'input_required' && type !== 'task')
      report('result-type-unknown', seen.side, seen, '"complete" or "input_required"', shown(type));
  }

  function members(rule: RuleId, seen: Seen, where: string, shape: Shape, object: Json): void {
    const fault = faultOf(shape, object, '');
    if (fault !== null) {
      report(rule, seen.side, seen, `${where}: ${fault.expected}`, fault.seen);
      return;
    }
    for (const [member, inner] of INNER[where] ?? []) {
      const found = innerFault(object[member], inner, member);
      if (found !== null) {
        report(rule, seen.side, seen, `${where}: ${found.expected}`, found.seen);
        return;
      }
    }
  }

  return { message };
}

type Fault = { expected: string; seen: string };

function innerFault(value: unknown, shape: Shape, at: string): Fault | null {
  if (!Array.isArray(value)) return isObject(value) ? faultOf(shape, value, `${at}.`) : null;
  for (const [i, element] of value.entries()) {
    if (!isObject(element)) return { expected: `an object as \`${at}[${i}]\``, seen: shown(element) };
    const fault = faultOf(shape, element, `${at}[${i}].`);
    if (fault !== null) return fault;
  }
  return null;
}

const IN_WORDS: Record<MemberType, string> = {
  string: 'a string',
  number: 'a number',
  object: 'an object',
  array: 'an array',
  any: 'any value',
  id: 'a string or an integer',
  boolean: 'true or false',
};

function faultOf(shape: Shape, object: Json, at: string): Fault | null {
  for (const [name, wanted] of Object.entries(shape)) {
    const value = object[name];
    const type = wanted.replace('?', '') as MemberType;
    if (value === undefined ? wanted.endsWith('?') : isOfType(value, type)) continue;
    return { expected: `${IN_WORDS[type]} as \`${at}${name}\``, seen: shown(value) };
  }
  return null;
}

function isOfType(value: unknown, type: MemberType): boolean {
  switch (type) {
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'id':
      return typeof value === 'string' || Number.isInteger(value);
    case 'any':
      return true;
    default:
      return typeof value === type;
  }
}
