/** Params and results have what their method requires. Specification, schema. */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import { type CheckedMessage, type Inspector, methodOf, resultOf, shown } from './checked-message.ts';
import type { Report, RuleId } from './rules.ts';

/** Of a long list a finding names the first that is wrong. */
export function inspectShapes(report: Report): Inspector {
  function message(seen: CheckedMessage): void {
    // An object too large to be looked into says nothing.
    if (seen.value === null) return;
    const method = methodOf(seen);
    if (method !== null) call(seen, method);
    const result = resultOf(seen);
    if (result !== null && seen.asked !== null) answer(seen, seen.asked.method, result);
  }

  function call(seen: CheckedMessage, method: string): void {
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
  function cancelled(seen: CheckedMessage): void {
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

  function level(seen: CheckedMessage, name: unknown): void {
    if (typeof name === 'string' && !LOG_LEVELS.has(name))
      report('log-level', seen.side, seen, [...LOG_LEVELS].join(', '), shown(name));
  }

  function answer(seen: CheckedMessage, method: string, result: JsonObject): void {
    resultType(seen, result);
    const { resultType: type } = result;
    // A task or a request for input stands in the place of the answer.
    const isWhole = !seen.message.details.beginsTask && (type === undefined || type === 'complete');
    const shape = RESULTS.get(method);
    if (isWhole && shape !== undefined) members('result-shape', seen, `${method} result`, shape, result);
    if (isWhole && method === 'roots/list') roots(seen, result['roots']);
    if (isWhole && method === 'completion/complete') completion(seen, result['completion']);
    const own = Object.keys(result).filter((name) => name !== '_meta');
    if (EMPTY_RESULTS.has(method) && own.length > 0)
      report('empty-result', seen.side, seen, 'no members', own.map((name) => `\`${name}\``).join(', '));
  }

  function roots(seen: CheckedMessage, list: unknown): void {
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

  function completion(seen: CheckedMessage, value: unknown): void {
    const values = isObject(value) && Array.isArray(value['values']) ? value['values'] : [];
    if (values.length > MAX_COMPLETIONS)
      report('completion-size', seen.side, seen, `at most ${MAX_COMPLETIONS} values`, `${values.length}`);
  }

  function resultType(seen: CheckedMessage, { resultType: type }: JsonObject): void {
    if (type === undefined) report('result-type-missing', seen.side, seen, '`resultType`', 'none');
    else if (type !== 'complete' && type !== 'input_required' && type !== 'task')
      report('result-type-unknown', seen.side, seen, '"complete" or "input_required"', shown(type));
  }

  function members(
    rule: RuleId,
    seen: CheckedMessage,
    where: string,
    shape: Shape,
    object: JsonObject,
  ): void {
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

function faultOf(shape: Shape, object: JsonObject, at: string): Fault | null {
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

/**
 * What the params and results of each method must have. From the schemas of the specification, all revisions: a member
 * stands here only where no revision makes it optional.
 */

/** `id` is a string or an integer. `?` at the end: the member may be missing. */
type MemberType = 'string' | 'number' | 'object' | 'array' | 'any' | 'id' | 'boolean';

type Shape = Readonly<Record<string, MemberType | `${MemberType}?`>>;

const NAMED: Shape = { name: 'string' };

const URI: Shape = { uri: 'string' };

const TASK: Shape = { taskId: 'string' };

const PARAMS: ReadonlyMap<string, Shape> = new Map(
  Object.entries({
    initialize: { protocolVersion: 'string', capabilities: 'object', clientInfo: 'object' },
    'tools/call': { name: 'string', arguments: 'object?' },
    'resources/read': URI,
    'resources/subscribe': URI,
    'resources/unsubscribe': URI,
    'resources/directory/read': URI,
    'skills/get': URI,
    'prompts/get': { name: 'string', arguments: 'object?' },
    'completion/complete': { ref: 'object', argument: 'object' },
    'logging/setLevel': { level: 'string' },
    'sampling/createMessage': { messages: 'array', maxTokens: 'number' },
    'elicitation/create': { message: 'string' },
    'subscriptions/listen': { notifications: 'object' },
    'tasks/get': TASK,
    'tasks/result': TASK,
    'tasks/cancel': TASK,
    'tasks/update': TASK,
    'notifications/progress': {
      progressToken: 'id',
      progress: 'number',
      total: 'number?',
      message: 'string?',
    },
    'notifications/message': { level: 'string', data: 'any', logger: 'string?' },
    'notifications/cancelled': { requestId: 'id?', reason: 'string?' },
    'notifications/resources/updated': URI,
    'notifications/tasks': { taskId: 'string', status: 'string' },
    'notifications/tasks/status': { taskId: 'string', status: 'string' },
  }),
);

const RESULTS: ReadonlyMap<string, Shape> = new Map(
  Object.entries({
    initialize: {
      protocolVersion: 'string',
      capabilities: 'object',
      serverInfo: 'object',
      instructions: 'string?',
    },
    'server/discover': { supportedVersions: 'array', capabilities: 'object' },
    'tools/list': { tools: 'array', nextCursor: 'string?' },
    'tools/call': { content: 'array', structuredContent: 'any?', isError: 'boolean?' },
    'resources/list': { resources: 'array', nextCursor: 'string?' },
    'resources/templates/list': { resourceTemplates: 'array', nextCursor: 'string?' },
    'resources/read': { contents: 'array' },
    'resources/directory/read': { resources: 'array', nextCursor: 'string?' },
    'skills/list': { skills: 'array', nextCursor: 'string?' },
    'skills/get': { skill: 'object' },
    'prompts/list': { prompts: 'array', nextCursor: 'string?' },
    'prompts/get': { messages: 'array' },
    'completion/complete': { completion: 'object' },
    'sampling/createMessage': { role: 'string', content: 'any', model: 'string' },
    'roots/list': { roots: 'array' },
    'elicitation/create': { action: 'string' },
    'tasks/list': { tasks: 'array' },
  }),
);

/** Objects within params and results: by method, the member that holds them, or the list that it holds. */
const INNER: Readonly<Record<string, readonly (readonly [member: string, shape: Shape])[]>> = {
  'initialize params': [['clientInfo', { name: 'string', version: 'string' }]],
  'initialize result': [['serverInfo', { name: 'string', version: 'string' }]],
  'completion/complete params': [
    ['ref', { type: 'string' }],
    ['argument', { name: 'string', value: 'string' }],
  ],
  'completion/complete result': [['completion', { values: 'array' }]],
  'tools/list result': [['tools', { name: 'string', inputSchema: 'object', outputSchema: 'object?' }]],
  'resources/list result': [['resources', { uri: 'string', name: 'string' }]],
  'resources/templates/list result': [['resourceTemplates', { uriTemplate: 'string', name: 'string' }]],
  'resources/directory/read result': [['resources', { uri: 'string', name: 'string' }]],
  'prompts/list result': [['prompts', NAMED]],
  'resources/read result': [['contents', URI]],
  'prompts/get result': [['messages', { role: 'string', content: 'object' }]],
  'tools/call result': [['content', { type: 'string' }]],
  'roots/list result': [['roots', URI]],
  'sampling/createMessage params': [['messages', { role: 'string', content: 'any' }]],
};

/** Specification, server/utilities/completion. */
const MAX_COMPLETIONS = 100;

/** Methods whose result has no members of its own. */
const EMPTY_RESULTS: ReadonlySet<string> = new Set([
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/** RFC 5424, as server/utilities/logging lists them: the least severe first. */
export const LOG_LEVELS: ReadonlySet<unknown> = new Set([
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
]);
