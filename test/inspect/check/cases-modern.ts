/** For each rule that came with 2026-07-28 a session that breaks it, and one that keeps it. */
import type { MODERN_RULES } from '../../../src/inspect/check/rules.ts';
import type { Case } from './cases-base.ts';
import {
  ask,
  cacheable,
  client,
  fail,
  give,
  HTTP,
  modern,
  note,
  post,
  type Script,
  type Step,
  server,
} from './session.ts';

const steps = (...all: (Step | Step[])[]): Script => ({ steps: all.flat() });
const http = (...all: (Step | Step[])[]): Script => ({ steps: all.flat(), facts: HTTP });

/** A request of the 2026-07-28 era. */
export const asked = (id: unknown, method: string, params: object = {}) =>
  ask(id, method, { ...params, _meta: modern({ elicitation: {}, sampling: {} }) });

/** The same with its answer. */
export const got = (id: unknown, method: string, params: object, result: object, afterMs = 1): Step[] => [
  client(asked(id, method, params), afterMs),
  server(give(id, result)),
];

export const list = (id: unknown, result: object = {}, params: object = {}, afterMs = 1) =>
  got(id, 'tools/list', params, cacheable({ tools: [], ...result }), afterMs);

const call = (id: unknown, result: object) =>
  got(id, 'tools/call', { name: 'a' }, { resultType: 'complete', content: [], ...result });

/** A tool with the schema of its argument `a`. */
export const tool = (a: object, name = 'query') => ({
  name,
  inputSchema: { type: 'object', properties: { a } },
});

export const region = tool({ type: 'string', 'x-mcp-header': 'Region' });

/** The headers that a POST must have. */
export const headersFor = (method: string, more: Record<string, string> = {}) => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...more,
});

export const listed = (...tools: object[]) =>
  post(1, asked(1, 'tools/list'), [give(1, cacheable({ tools }))], { request: headersFor('tools/list') });

/** A call of `query` over HTTP. */
export function queried(args: object, headers: Record<string, string>, { status = 200 } = {}): Step[] {
  const answer =
    status === 200 ? give(2, { resultType: 'complete', content: [] }) : fail(2, -32020, 'Header mismatch');
  return post(2, asked(2, 'tools/call', { name: 'query', arguments: args }), [answer], {
    status,
    request: headersFor('tools/call', { 'mcp-name': 'query', ...headers }),
  });
}

const sampled = (params: object) => ({
  resultType: 'input_required',
  inputRequests: {
    q: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1, ...params } },
  },
});
const pageOf = (cacheScope: string, nextCursor?: string) => ({
  cacheScope,
  ...(nextCursor && { nextCursor }),
});
const [one, two] = [tool({}, 'one'), tool({}, 'two')];

export const MODERN_CASES: Record<keyof typeof MODERN_RULES, Case> = {
  'cache-hint': {
    breaks: steps(got(1, 'tools/list', {}, { resultType: 'complete', tools: [], ttlMs: 0 })),
    keeps: steps(list(1)),
  },
  'cache-hint-value': { breaks: steps(list(1, { ttlMs: -1 })), keeps: steps(list(1, { ttlMs: 0 })) },
  'cache-hint-interim': {
    breaks: steps(call(1, { resultType: 'input_required', requestState: 's', ttlMs: 1 })),
    keeps: steps(call(1, { resultType: 'input_required', requestState: 's' })),
  },
  'cache-pages': {
    breaks: steps(list(1, pageOf('private', 'x')), list(2, pageOf('public'), { cursor: 'x' })),
    keeps: steps(list(1, pageOf('public', 'x')), list(2, pageOf('public'), { cursor: 'x' })),
  },
  'fetched-again': {
    breaks: steps(list(1), list(2, {}, {}, 1000)),
    keeps: steps(list(1), server(note('notifications/tools/list_changed')), list(2, {}, {}, 1000)),
  },

  'header-annotation': {
    breaks: http(listed(tool({ type: 'number', 'x-mcp-header': 'A' }))),
    keeps: http(listed(region)),
  },
  'header-annotation-taken': {
    breaks: http(listed(tool({ type: 'number', 'x-mcp-header': 'A' })), queried({ a: 1 }, {})),
    keeps: http(listed(region), queried({ a: 'x' }, { 'mcp-param-region': 'x' })),
  },
  'param-header': {
    breaks: http(listed(region), queried({ a: 'x' }, {}, { status: 400 })),
    keeps: http(listed(region), queried({ a: 'x' }, { 'mcp-param-region': 'x' })),
  },
  'param-header-unknown': {
    breaks: http(listed(region), queried({}, { 'mcp-param-zone': 'x' })),
    keeps: http(listed(region), queried({}, {})),
  },
  'header-unchecked': {
    breaks: http(listed(region), queried({ a: 'x' }, { 'mcp-param-region': 'y' })),
    keeps: http(listed(region), queried({ a: 'x' }, { 'mcp-param-region': 'x' })),
  },

  'tool-order': {
    breaks: steps(list(1, { tools: [one, two] }), list(2, { tools: [two, one] })),
    keeps: steps(list(1, { tools: [one, two] }), list(2, { tools: [one, two] })),
  },

  deprecated: {
    breaks: steps(call(1, sampled({}))),
    keeps: steps(call(1, {})),
  },
};
