/**
 * What the params and results of each method must have. From the schemas of the specification, all revisions: a member
 * stands here only where no revision makes it optional.
 */

/** `id` is a string or an integer. `?` at the end: the member may be missing. */
export type MemberType = 'string' | 'number' | 'object' | 'array' | 'any' | 'id' | 'boolean';
export type Shape = Readonly<Record<string, MemberType | `${MemberType}?`>>;

const NAMED: Shape = { name: 'string' };
const URI: Shape = { uri: 'string' };
const TASK: Shape = { taskId: 'string' };

export const PARAMS: ReadonlyMap<string, Shape> = new Map(
  Object.entries({
    initialize: { protocolVersion: 'string', capabilities: 'object', clientInfo: 'object' },
    'tools/call': { name: 'string', arguments: 'object?' },
    'resources/read': URI,
    'resources/subscribe': URI,
    'resources/unsubscribe': URI,
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

export const RESULTS: ReadonlyMap<string, Shape> = new Map(
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
export const INNER: Readonly<Record<string, readonly (readonly [member: string, shape: Shape])[]>> = {
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
  'prompts/list result': [['prompts', NAMED]],
  'resources/read result': [['contents', URI]],
  'prompts/get result': [['messages', { role: 'string', content: 'object' }]],
  'tools/call result': [['content', { type: 'string' }]],
  'roots/list result': [['roots', URI]],
  'sampling/createMessage params': [['messages', { role: 'string', content: 'any' }]],
};

/** Methods whose result has no members of its own. */
export const EMPTY_RESULTS: ReadonlySet<string> = new Set([
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/** RFC 5424, as server/utilities/logging lists them. */
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
