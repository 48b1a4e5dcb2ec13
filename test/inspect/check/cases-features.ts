/** For each rule of a feature a session that breaks it, and one that keeps it. */
import { createHash } from 'node:crypto';
import type { FEATURE_RULES } from '../../../src/inspect/check/rules.ts';
import type { Case } from './cases-base.ts';
import { ask, client, fail, give, hello, LISTEN_ID, modern, note, type Script, server } from './session.ts';

const steps = (...all: (Script['steps'][number] | Script['steps'])[]): Script => ({ steps: all.flat() });

const call = (id: unknown, params: object = {}) =>
  ask(id, 'tools/call', { name: 'add', arguments: { a: 1 }, ...params });
const text = { content: [{ type: 'text', text: 'x' }] };
const withToken = (id: unknown, progressToken: unknown) => call(id, { _meta: { progressToken } });
const progress = (progressToken: unknown, amount: number) =>
  server(note('notifications/progress', { progressToken, progress: amount }));

const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] };
const list = (id: unknown, ...tools: object[]) => [
  client(ask(id, 'tools/list')),
  server(give(id, { tools })),
];
const add = { name: 'add', inputSchema: schema };
const sum = {
  ...add,
  outputSchema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
};

const modernCall = (
  id: unknown,
  params: object = {},
  clientCan: Record<string, unknown> = { elicitation: {} },
) => call(id, { _meta: modern(clientCan), ...params });
const required = (id: unknown, more: object) => server(give(id, { resultType: 'input_required', ...more }));
const complete = (id: unknown) => server(give(id, { resultType: 'complete', ...text }));
const form = (properties: object) => ({
  message: '?',
  requestedSchema: { type: 'object', properties, required: Object.keys(properties) },
});
const question = {
  inputRequests: { q: { method: 'elicitation/create', params: form({}) } },
  requestState: 's',
};
const reply = { inputResponses: { q: { action: 'accept' } }, requestState: 's' };

const listen = (notifications: object) =>
  client(ask(1, 'subscriptions/listen', { notifications, _meta: modern() }));
const pushed = (method: string, params: object = {}, id: unknown = 1) =>
  server(note(method, { ...params, _meta: { [LISTEN_ID]: id } }));
const acknowledged = pushed('notifications/subscriptions/acknowledged', { notifications: {} });
const toolsChanged = 'notifications/tools/list_changed';

const WITH_SKILLS = { resources: {}, extensions: { 'io.modelcontextprotocol/skills': {} } };
const SKILL_MD = 'skill://acme/refunds/SKILL.md';
const skillFile = {
  uri: SKILL_MD,
  digest: `sha256:${createHash('sha256').update('# Ünd\n').digest('hex')}`,
  size: 7,
};
const refunds = {
  uri: SKILL_MD,
  frontmatter: { name: 'refunds', description: 'How' },
  resources: [skillFile],
};
const listing = (...skills: object[]): Script =>
  steps(hello(undefined, {}, WITH_SKILLS), client(ask(8, 'skills/list')), server(give(8, { skills })));
const reading = (text: string): Script['steps'] => [
  client(ask(9, 'resources/read', { uri: SKILL_MD })),
  server(give(9, { contents: [{ uri: SKILL_MD, text }] })),
];

/** The same with another id. */
function renumbered(step: Script['steps'][number], id: number): Script['steps'][number] {
  return 'text' in step ? { ...step, text: String(step.text).replace('"q"', `"q${id}"`) } : step;
}

const answered = (method: string, params: object, result: object): Script['steps'] => [
  client(ask('q', method, params)),
  server(give('q', result)),
];
const gave = (...content: unknown[]) => answered('tools/call', { name: 'add' }, { content });
const png = { type: 'image', data: 'iVBORw0=', mimeType: 'image/png' };
const contents = (one: object) =>
  answered('resources/read', { uri: 'a:b' }, { contents: [{ uri: 'a:b', ...one }] });
const completed = (count: number) =>
  answered(
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
    { completion: { values: Array(count).fill('v') } },
  );

const canElicit = hello('2025-11-25', { elicitation: {} });
const filled = (properties: object, content: object) => [
  server(ask('f', 'elicitation/create', form(properties))),
  client(give('f', { action: 'accept', content })),
];

const prompt = { name: 'p', arguments: [{ name: 'a', required: true }, { name: 'b' }] };
const prompted = (args: object) =>
  [
    answered('prompts/list', {}, { prompts: [prompt] }),
    answered('prompts/get', { name: 'p', arguments: args }, { messages: [] }),
  ]
    .flat()
    .map((step, i) => renumbered(step, i >> 1));
const pages = (cursor: string) =>
  [
    answered('tools/list', {}, { tools: [], nextCursor: 'two' }),
    answered('tools/list', { cursor }, { tools: [] }),
  ]
    .flat()
    .map((step, i) => renumbered(step, i >> 1));
const logged = (set: string, level: string) =>
  [
    answered('logging/setLevel', { level: set }, {}),
    server(note('notifications/message', { level, data: 1 })),
  ].flat();
const updated = (uri: string) => server(note('notifications/resources/updated', { uri }));

const task = (status: string) => ({ taskId: 't', status });
const began = [client(call(1, { task: {} })), server(give(1, { task: task('working') }))];
const polled = (id: unknown, status: string) => [
  client(ask(id, 'tasks/get', { taskId: 't' })),
  server(give(id, task(status))),
];

export const FEATURE_CASES: Record<keyof typeof FEATURE_RULES, Case> = {
  'capability-server': {
    breaks: steps(hello('2025-11-25', {}, {}), client(ask(1, 'tools/list')), server(give(1, { tools: [] }))),
    keeps: steps(hello(), list(1)),
  },
  'capability-client': {
    breaks: steps(hello(), server(ask(1, 'roots/list')), client(fail(1, -32601))),
    keeps: steps(
      hello('2025-11-25', { roots: {} }),
      server(ask(1, 'roots/list')),
      client(give(1, { roots: [] })),
    ),
  },
  'capability-notification': {
    breaks: steps(hello(), server(note(toolsChanged))),
    keeps: steps(hello('2025-11-25', {}, { tools: { listChanged: true } }), server(note(toolsChanged))),
  },

  'progress-unknown': {
    breaks: steps(hello(), progress('t', 1)),
    keeps: steps(hello(), client(withToken(1, 't')), progress('t', 1), server(give(1, text))),
  },
  'progress-order': {
    breaks: steps(
      hello(),
      client(withToken(1, 't')),
      progress('t', 2),
      progress('t', 2),
      server(give(1, text)),
    ),
    keeps: steps(
      hello(),
      client(withToken(1, 't')),
      progress('t', 2),
      progress('t', 2.5),
      server(give(1, text)),
    ),
  },
  'progress-after-end': {
    breaks: steps(hello(), client(withToken(1, 't')), server(give(1, text)), progress('t', 2)),
    // A task goes on after the answer that begins it.
    keeps: steps(
      hello(),
      client(call(1, { task: {}, _meta: { progressToken: 't' } })),
      server(give(1, { task: task('working') })),
      progress('t', 2),
    ),
  },
  'progress-token-in-use': {
    breaks: steps(
      hello(),
      client(withToken(1, 't')),
      client(withToken(2, 't')),
      server(give(1, text)),
      server(give(2, text)),
    ),
    keeps: steps(
      hello(),
      client(withToken(1, 't')),
      server(give(1, text)),
      client(withToken(2, 't')),
      server(give(2, text)),
    ),
  },

  'cancel-unknown': {
    breaks: steps(hello(), client(note('notifications/cancelled', { requestId: 9 }))),
    keeps: steps(hello(), client(call(1)), client(note('notifications/cancelled', { requestId: 1 }))),
  },
  'answer-dropped': {
    breaks: steps(
      hello(),
      client(call(1)),
      server(give(1, text)),
      client(note('notifications/cancelled', { requestId: 1 }), 1000),
    ),
    keeps: steps(hello(), client(call(1)), client(note('notifications/cancelled', { requestId: 1 }), 1000)),
  },
  'cancel-foreign': {
    breaks: steps(
      hello(),
      client(call(1)),
      server(note('notifications/cancelled', { requestId: 1 })),
      server(give(1, text)),
    ),
    keeps: steps(hello(), client(call(1)), client(note('notifications/cancelled', { requestId: 1 }))),
  },
  'answer-cancelled': {
    breaks: steps(
      hello(),
      client(call(1)),
      client(note('notifications/cancelled', { requestId: 1 })),
      server(give(1, text)),
    ),
    keeps: steps(hello(), client(call(1)), client(note('notifications/cancelled', { requestId: 1 }))),
  },

  'tool-unknown': {
    breaks: steps(hello(), list(1, { ...add, name: 'sub' }), client(call(2)), server(fail(2, -32602))),
    keeps: steps(hello(), list(1, add), client(call(2)), server(give(2, text))),
  },
  'tool-arguments': {
    breaks: steps(
      hello(),
      list(1, add),
      client(ask(2, 'tools/call', { name: 'add', arguments: { a: 'x' } })),
      server(fail(2, -32602)),
    ),
    keeps: steps(hello(), list(1, add), client(call(2)), server(give(2, text))),
  },
  'tool-structured-missing': {
    breaks: steps(hello(), list(1, sum), client(call(2)), server(give(2, text))),
    // A tool that failed has none to give.
    keeps: steps(hello(), list(1, sum), client(call(2)), server(give(2, { ...text, isError: true }))),
  },
  'tool-structured': {
    breaks: steps(
      hello(),
      list(1, sum),
      client(call(2)),
      server(give(2, { ...text, structuredContent: { sum: '1' } })),
    ),
    keeps: steps(
      hello(),
      list(1, sum),
      client(call(2)),
      server(give(2, { ...text, structuredContent: { sum: 1 } })),
    ),
  },
  'tool-schema': {
    breaks: steps(hello(), list(1, { ...add, inputSchema: { type: 'object', required: 'a' } })),
    keeps: steps(
      hello(),
      list(1, { ...add, inputSchema: { ...schema, $schema: 'http://json-schema.org/draft-07/schema#' } }),
    ),
  },
  'tool-schema-unchecked': {
    breaks: steps(
      hello(),
      list(1, { ...add, inputSchema: { type: 'object', $ref: 'https://example.com/s.json' } }),
    ),
    keeps: steps(
      hello(),
      list(1, { ...add, inputSchema: { ...schema, $ref: '#/$defs/a', $defs: { a: {} } } }),
    ),
  },
  'tool-twice': {
    breaks: steps(hello(), list(1, add, add)),
    keeps: steps(hello(), list(1, add), list(2, add)),
  },
  'tool-name': {
    breaks: steps(hello(), list(1, { ...add, name: 'add numbers' })),
    keeps: steps(hello(), list(1, { ...add, name: 'math.add_numbers-2' })),
  },

  'call-repeated': {
    breaks: steps(hello(), client(call(1)), client(call(2)), server(give(1, text)), server(give(2, text))),
    keeps: steps(hello(), client(call(1)), server(give(1, text)), client(call(2)), server(give(2, text))),
  },
  'call-repeated-safe': {
    breaks: steps(
      hello(),
      list(9, { ...add, annotations: { readOnlyHint: true } }),
      client(call(1)),
      client(call(2)),
      server(give(1, text)),
      server(give(2, text)),
    ),
    keeps: steps(
      hello(),
      list(9, { ...add, annotations: { readOnlyHint: true } }),
      client(call(1)),
      server(give(1, text)),
      client(call(2)),
      server(give(2, text)),
    ),
  },
  'definition-changed': {
    breaks: steps(hello(), list(1, add), list(2, { ...add, description: 'Adds.' })),
    keeps: steps(hello(), list(1, add), list(2, add)),
  },
  'definition-loosened': {
    breaks: steps(hello(), list(1, { ...add, annotations: { readOnlyHint: true } }), list(2, add)),
    keeps: steps(hello(), list(1, add), list(2, add)),
  },
  'content-block': {
    breaks: steps(hello(), gave({ type: 'video', url: 'x' })),
    keeps: steps(
      hello(),
      gave(
        { type: 'text', text: '' },
        png,
        { type: 'resource_link', uri: 'a:b', name: 'b' },
        { type: 'resource', resource: { uri: 'a:b', text: '' } },
      ),
    ),
  },
  'content-data': {
    breaks: steps(hello(), gave({ ...png, data: 'data:image/png;base64,iVBORw0=' })),
    keeps: steps(hello(), gave(png, { ...png, type: 'audio', data: '' })),
  },
  'resource-contents': {
    breaks: steps(hello(), contents({ mimeType: 'text/plain' })),
    keeps: steps(hello(), contents({ text: '' })),
  },

  'elicitation-schema': {
    breaks: steps(canElicit, filled({ a: { type: 'object', properties: {} } }, { a: {} })),
    keeps: steps(
      canElicit,
      filled(
        {
          a: { type: 'string', oneOf: [{ const: 'x', title: 'X' }] },
          b: { type: 'array', items: { enum: ['y'] } },
        },
        { a: 'x', b: ['y'] },
      ),
    ),
  },
  'elicitation-content': {
    breaks: steps(canElicit, filled({ a: { type: 'number' } }, { a: 'one' })),
    keeps: steps(canElicit, filled({ a: { type: 'number' } }, { a: 1 })),
  },

  'prompt-argument': {
    breaks: steps(hello(), prompted({ b: 'x' })),
    keeps: steps(hello(), prompted({ a: '' })),
  },
  'completion-size': {
    breaks: steps(hello('2025-11-25', {}, { completions: {} }), completed(101)),
    keeps: steps(hello('2025-11-25', {}, { completions: {} }), completed(100)),
  },
  'cursor-unknown': {
    breaks: steps(hello(), pages('three')),
    keeps: steps(hello(), pages('two')),
  },
  'log-below': {
    breaks: steps(hello(), logged('warning', 'info')),
    keeps: steps(hello(), logged('warning', 'warning')),
  },
  'update-unasked': {
    breaks: steps(hello(), answered('resources/subscribe', { uri: 'a:b' }, {}), updated('a:c')),
    keeps: steps(hello(), answered('resources/subscribe', { uri: 'a:b' }, {}), updated('a:b/part')),
  },

  'round-method': {
    breaks: steps(
      client(ask(1, 'tools/list', { _meta: modern({ elicitation: {} }) })),
      required(1, question),
    ),
    keeps: steps(client(modernCall(1)), required(1, question), client(modernCall(2, reply)), complete(2)),
  },
  'round-empty': {
    breaks: steps(client(modernCall(1)), required(1, {})),
    keeps: steps(
      client(modernCall(1)),
      required(1, { requestState: 's' }),
      client(modernCall(2, { requestState: 's' })),
      complete(2),
    ),
  },
  'round-input': {
    breaks: steps(client(modernCall(1)), required(1, { inputRequests: { q: { method: 'tools/call' } } })),
    keeps: steps(client(modernCall(1)), required(1, question)),
  },
  'round-id': {
    breaks: steps(client(modernCall(1)), required(1, question), client(modernCall(1, reply)), complete(1)),
    keeps: steps(client(modernCall(1)), required(1, question), client(modernCall(2, reply)), complete(2)),
  },
  'round-unknown': {
    breaks: steps(
      client(modernCall(1)),
      required(1, question),
      client(modernCall(2, { ...reply, requestState: 'other' })),
      complete(2),
    ),
    keeps: steps(client(modernCall(1)), required(1, question), client(modernCall(2, reply)), complete(2)),
  },

  'subscription-first': {
    breaks: steps(listen({ toolsListChanged: true }), pushed(toolsChanged)),
    keeps: steps(listen({ toolsListChanged: true }), acknowledged, pushed(toolsChanged)),
  },
  'subscription-unknown': {
    breaks: steps(listen({ toolsListChanged: true }), acknowledged, pushed(toolsChanged, {}, '1')),
    keeps: steps(listen({ toolsListChanged: true }), acknowledged, pushed(toolsChanged)),
  },
  'subscription-type': {
    breaks: steps(listen({ promptsListChanged: true }), acknowledged, pushed(toolsChanged)),
    keeps: steps(
      listen({ resourceSubscriptions: ['x'] }),
      acknowledged,
      pushed('notifications/resources/updated', { uri: 'x' }),
    ),
  },
  'log-unasked': {
    breaks: steps(
      client(modernCall(1)),
      server(note('notifications/message', { level: 'info', data: 1 })),
      complete(1),
    ),
    keeps: steps(
      client(call(1, { _meta: modern({}, { 'io.modelcontextprotocol/logLevel': 'info' }) })),
      server(note('notifications/message', { level: 'info', data: 1 })),
      complete(1),
    ),
  },

  'task-status': {
    breaks: steps(hello(), began, polled(2, 'done')),
    keeps: steps(hello(), began, polled(2, 'completed')),
  },
  'task-after-end': {
    breaks: steps(hello(), began, polled(2, 'completed'), polled(3, 'working')),
    keeps: steps(hello(), began, polled(2, 'working'), polled(3, 'completed'), polled(4, 'completed')),
  },
  'task-unknown': {
    breaks: steps(hello(), polled(1, 'working')),
    keeps: steps(hello(), began, polled(2, 'working')),
  },

  'skill-undeclared': {
    breaks: steps(
      hello(undefined, {}, { resources: {} }),
      client(ask(1, 'skills/list')),
      server(give(1, { skills: [] })),
    ),
    keeps: steps(
      hello(undefined, {}, WITH_SKILLS),
      client(ask(1, 'skills/list')),
      server(give(1, { skills: [] })),
    ),
  },
  'skill-shape': {
    breaks: listing({ ...refunds, resources: [] }),
    keeps: listing(refunds, { ...refunds, resources: 'dynamic' }),
  },
  'skill-digest': {
    breaks: steps(listing(refunds).steps, reading('# Another\n')),
    keeps: steps(listing(refunds).steps, reading('# Ünd\n')),
  },
  'skill-limits': {
    breaks: listing({ ...refunds, resources: [{ ...skillFile, size: 16 * 1024 * 1024 + 1 }] }),
    keeps: listing({ ...refunds, resources: [{ ...skillFile, size: 16 * 1024 * 1024 }] }),
  },
};
