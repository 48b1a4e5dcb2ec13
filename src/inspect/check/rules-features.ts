/** The rules of capabilities, progress, cancellation, tools, rounds, subscriptions and tasks. */
import { mcp } from './rule.ts';

const LEGACY = { until: '2025-11-25' } as const;
const MODERN = { since: '2026-07-28' } as const;
const CAPABILITIES = '2025-11-25/basic/lifecycle#capability-negotiation';
const PROGRESS = '2025-11-25/basic/utilities/progress';
const CANCELLATION = '2025-11-25/basic/utilities/cancellation';
const TOOLS = '2026-07-28/server/tools';
const ROUNDS = '2026-07-28/basic/patterns/mrtr';
const SUBSCRIPTIONS = '2026-07-28/basic/patterns/subscriptions';

// biome-ignore format: one rule a row, or two where it does not fit
export const FEATURE_RULES = {
  // The contract of capabilities
  'capability-server': mcp('error', CAPABILITIES, 'A client asks only for what the server declared.', LEGACY),
  'capability-client': mcp('error', CAPABILITIES, 'A server asks only for what the client declared.'),
  'capability-notification': mcp('error', CAPABILITIES,
    'A notification that belongs to a capability comes only from who declared it.', LEGACY),

  // Progress
  'progress-unknown': mcp('error', PROGRESS, 'Progress names the token of an open request.'),
  'progress-order': mcp('error', PROGRESS, 'Progress increases with each notification.'),
  'progress-after-end': mcp('error', PROGRESS, 'Progress stops when its request is answered.'),
  'progress-token-in-use': mcp('error', PROGRESS, 'No two open requests of one sender have the same progress token.'),

  // Cancellation
  'cancel-unknown': mcp('note', CANCELLATION, 'A cancellation names an open request of its own sender.'),
  'cancel-foreign': mcp('error', CANCELLATION, 'Nobody cancels a request of the other side.', LEGACY),
  'answer-cancelled': mcp('note', CANCELLATION, 'A cancelled request is not answered.', LEGACY),

  // Tools
  'tool-unknown': mcp('warning', TOOLS, 'A client calls the tools that the server listed.'),
  'tool-arguments': mcp('warning', TOOLS, 'Arguments fit the tool\'s `inputSchema`.'),
  'tool-structured-missing': mcp('error', TOOLS,
    'A tool with an `outputSchema` gives `structuredContent`.', { since: '2025-06-18' }),
  'tool-structured': mcp('error', TOOLS,
    '`structuredContent` fits the tool\'s `outputSchema`.', { since: '2025-06-18' }),
  'tool-schema': mcp('error', TOOLS, 'The schemas of a tool are valid JSON Schema, of type object.'),
  'tool-schema-unchecked': mcp('note', TOOLS,
    'A schema stands by itself and can be checked in bounded time; remote references are not followed.'),
  'tool-twice': mcp('warning', TOOLS, 'The name of a tool is unique on its server.'),
  'tool-name': mcp('warning', TOOLS,
    'The name of a tool has 1 to 128 characters of A-Z, a-z, 0-9, `_`, `-`, `.`.', { since: '2025-11-25' }),

  // Several rounds
  'round-method': mcp('error', ROUNDS,
    'Only `tools/call`, `prompts/get` and `resources/read` take several rounds.', MODERN),
  'round-empty': mcp('error', ROUNDS,
    'A result that requires input has `inputRequests` or `requestState`.', MODERN),
  'round-input': mcp('error', ROUNDS,
    'An input request is for sampling, elicitation or roots.', MODERN),
  'round-id': mcp('error', ROUNDS, 'The next round has an id of its own.', MODERN),
  'round-unknown': mcp('warning', ROUNDS,
    'The next round repeats the params and the exact `requestState` of the one before, and answers its requests.', MODERN),

  // Subscriptions
  'subscription-first': mcp('error', SUBSCRIPTIONS,
    'The first message of a subscription is its acknowledgement.', MODERN),
  'subscription-unknown': mcp('error', SUBSCRIPTIONS,
    'The notifications of a subscription carry the id of its open request.', MODERN),
  'subscription-type': mcp('error', SUBSCRIPTIONS,
    'A subscription brings only what its client asked for.', MODERN),
  'log-unasked': mcp('error', '2026-07-28/server/utilities/logging',
    'A server logs to a client only where a request set a `logLevel`.', MODERN),

  // Tasks
  'task-status': mcp('error', '2025-11-25/basic/utilities/tasks',
    'A task is working, input_required, completed, failed or cancelled.', { since: '2025-11-25' }),
  'task-after-end': mcp('error', '2025-11-25/basic/utilities/tasks',
    'A task that is completed, failed or cancelled stays so.', { since: '2025-11-25' }),
  'task-unknown': mcp('note', '2025-11-25/basic/utilities/tasks',
    'A task id was given by an answer.', { since: '2025-11-25' }),
};
