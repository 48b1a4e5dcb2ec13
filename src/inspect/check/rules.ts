/** The rules of the check: what a rule is, what is found against one, and every rule by its id. */
import type { Place } from '../../protocol/message/correlate.ts';
import { PROVIDER_RULES } from './beyond/provider-rules.ts';

/** `error`: against a MUST of the specification. `warning`: against a SHOULD, or sure to hurt someone. `note`: worth a look. */
export const SEVERITIES = ['note', 'warning', 'error'] as const;

export type Severity = (typeof SEVERITIES)[number];

/** Whose fault it is. */
export type Side = 'client' | 'server';

/** The revisions of the specification, the oldest first. */
export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const;

export type Revision = (typeof REVISIONS)[number];

export type Rule = {
  severity: Severity;
  /** The rule in a sentence. */
  text: string;
  /** Where it stands in the specification (or in JSON-RPC's own). */
  url: string;
  /** The first and the last revision that has it; null where there is no bound. */
  since: Revision | null;
  until: Revision | null;
  /** Whose rule it is, where it is none of the protocol's: one of a provider of models, or of a client. */
  provider?: string;
};

const SPECIFICATION = 'https://modelcontextprotocol.io/specification';

const JSON_RPC = 'https://www.jsonrpc.org/specification';

/** SEP-2640. */
const SKILLS = 'https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx';

type Bounds = { since?: Revision; until?: Revision };

/** A rule of the specification. `page` begins with the revision whose text is the clearest, mostly the last that has it. */
function mcp(severity: Severity, page: string, text: string, { since, until }: Bounds = {}): Rule {
  return { severity, text, url: `${SPECIFICATION}/${page}`, since: since ?? null, until: until ?? null };
}

/** A rule of JSON-RPC 2.0, for every revision. */
function jsonRpc(severity: Severity, section: string, text: string): Rule {
  return { severity, text, url: `${JSON_RPC}#${section}`, since: null, until: null };
}

/** A rule of the skills extension, for every revision. */
function skill(severity: Severity, section: string, text: string): Rule {
  return { severity, text, url: `${SKILLS}#${section}`, since: null, until: null };
}

/** Whether a revision has the rule. Where the revision is unknown, only rules that every revision has apply. */
export function applies({ since, until }: Rule, revision: string | null): boolean {
  if (revision === null) return since === null && until === null;
  // Dates compare as text; a revision of another form is newer than all that are known.
  const known = /^\d{4}-\d\d-\d\d$/.test(revision) ? revision : '9999-99-99';
  return (since === null || known >= since) && (until === null || known <= until);
}

const BASIC = '2026-07-28/basic';

const MESSAGES = `${BASIC}#messages`;

const RESPONSES = `${BASIC}#responses`;

const STDIO = '2026-07-28/basic/transports/stdio';

/** The rules of the envelope, ids, lifecycle, answers, error codes and `_meta`. */

const LEGACY = { until: '2025-11-25' } as const;

const REQUESTS = `${BASIC}#requests`;

const LIFECYCLE = '2025-11-25/basic/lifecycle';

const SCHEMA = '2026-07-28/schema';

const MODERN = { since: '2026-07-28' } as const;

const CODES = `${BASIC}#error-codes`;

const META = `${BASIC}#_meta`;

const STREAMABLE = '2026-07-28/basic/transports/streamable-http';

// biome-ignore format: one rule a row, or two where it does not fit
export const BASE_RULES = {
  // The envelope
  'not-json': mcp('error', BASIC, 'Every message is JSON, encoded in UTF-8.'),
  'not-object': jsonRpc('error', 'request_object', 'A message is a JSON object, not another value.'),
  'jsonrpc-version': jsonRpc('error', 'request_object', 'Every message has `jsonrpc` with the value "2.0".'),
  'result-and-error': jsonRpc('error', 'response_object', 'An answer has either `result` or `error`, never both.'),
  'call-and-answer': jsonRpc('error', 'request_object', 'A message with a `method` has neither `result` nor `error`.'),
  'empty-envelope': jsonRpc('error', 'request_object', 'A message has a `method`, a `result` or an `error`.'),
  'method-type': jsonRpc('error', 'request_object', 'A `method` is a string.'),
  'params-type': mcp('error', MESSAGES, '`params` are an object; the arrays of JSON-RPC are not used.'),
  'result-type': mcp('error', RESPONSES, 'A `result` is an object.'),
  'error-shape': jsonRpc('error', 'error_object', 'An `error` has an integer `code` and a string `message`.'),
  'extra-member': mcp('warning', MESSAGES,
    'An envelope has no members of its own making: SDKs that read strictly drop such a message.'),
  'duplicate-member': mcp('warning', MESSAGES, 'A member stands once: readers differ in which of two they take.'),
  'encoding': mcp('error', STDIO, 'Messages are valid UTF-8.'),
  'byte-order-mark': mcp('warning', STDIO, 'Messages begin without a byte order mark.'),
  'batch': mcp('error', '2025-06-18/changelog', 'Messages come one by one: only revision 2025-03-26 knows batches.'),
  'batch-empty': jsonRpc('error', 'batch', 'A batch holds at least one message.'),
  'batch-initialize': mcp('error', '2025-03-26/basic/lifecycle', '`initialize` is not part of a batch.', LEGACY),

  // Ids
  'id-null': mcp('error', REQUESTS, 'An id is never null.'),
  'id-fractional': mcp('error', REQUESTS, 'A number that is an id is an integer.'),
  'id-scalar': mcp('error', REQUESTS, 'An id is a string or an integer.'),
  'id-in-use': mcp('error', REQUESTS, 'No two open requests of one sender have the same id.'),
  'id-reused': mcp('error', REQUESTS, 'A sender uses an id once in a session.', LEGACY),
  'id-changed-type': mcp('error', RESPONSES, 'An answer has the id of its request, of the same type.'),
  'answer-unknown': mcp('error', RESPONSES, 'An answer has the id of a request of the other side.'),
  'answer-twice': mcp('error', RESPONSES, 'A request is answered once.'),
  'answer-without-id': mcp('warning', RESPONSES,
    'An error has the id of its request, unless the request could not be read.'),
  'unanswered': mcp('warning', RESPONSES, 'Every request is answered, unless it was cancelled.'),

  // Lifecycle
  'initialize-missing': mcp('error', LIFECYCLE,
    'A session starts with `initialize`, unless every request says its protocol version.'),
  'initialize-twice': mcp('error', LIFECYCLE, 'A session is initialized once.', LEGACY),
  'initialized-missing': mcp('error', LIFECYCLE,
    'After the answer to `initialize` the client sends `notifications/initialized`.', LEGACY),
  'initialized-early': mcp('error', LIFECYCLE,
    '`notifications/initialized` comes after the answer to `initialize`.', LEGACY),
  'before-answer': mcp('warning', LIFECYCLE,
    'Before `initialize` is answered the client asks for nothing but `ping`.', LEGACY),
  'before-initialized': mcp('warning', LIFECYCLE,
    'Before `notifications/initialized` the server asks for nothing but `ping` and notifies of nothing but logs.', LEGACY),
  'initialize-cancelled': mcp('error', '2025-11-25/basic/utilities/cancellation', '`initialize` is not cancelled.', LEGACY),
  'version-format': mcp('warning', '2026-07-28/basic/versioning', 'A protocol version names a revision of the specification.'),
  'version-refused': mcp('warning', LIFECYCLE,
    'A client that does not know the version of the answer disconnects.', LEGACY),
  'handshake-slow': mcp('warning', LIFECYCLE, 'The handshake takes less than 10 s: clients give up on slower servers.'),

  // Methods
  'method-variant': mcp('error', MESSAGES, 'A method is written as the specification writes it.'),
  'method-direction': mcp('error', MESSAGES, 'A method is sent by the side that the specification gives it to.'),
  'method-revision': mcp('error', MESSAGES, 'A method belongs to the revision that the session speaks.'),
  'method-kind': mcp('error', MESSAGES, 'A request has an id, and a notification has none.'),
  'method-reserved': jsonRpc('warning', 'request_object', 'Methods that begin with `rpc.` belong to JSON-RPC itself.'),
  'params-shape': mcp('error', SCHEMA, '`params` have the members that their method requires.'),
  'result-shape': mcp('error', SCHEMA, 'A `result` has the members that its method requires.'),
  'empty-result': mcp('warning', SCHEMA,
    'An empty result has no members but `_meta`: SDKs that read strictly refuse others.', LEGACY),
  'log-level': mcp('error', '2025-11-25/server/utilities/logging', 'A log level is one of the eight of RFC 5424.'),
  'result-type-missing': mcp('error', BASIC, 'A result says its `resultType`.', MODERN),
  'result-type-unknown': mcp('error', BASIC,
    'A `resultType` is `complete`, `input_required`, or that of an extension.', MODERN),

  // Error codes
  'code-reserved': jsonRpc('warning', 'error_object',
    'Of the codes -32768 to -32100 only the five that JSON-RPC defines are used.'),
  'code-invented': mcp('error', CODES,
    'The codes -32020 to -32099 belong to the specification: nobody invents more of them.', MODERN),
  'code-legacy': mcp('note', CODES,
    'The codes -32000 to -32019 have no shared meaning: new ones lie outside -32768 to -32000.', MODERN),
  'code-revision': mcp('error', CODES, 'An error code belongs to the revision that the session speaks.'),

  // _meta
  'meta-type': mcp('error', META, '`_meta` is an object.'),
  'meta-key': mcp('error', META,
    'A key of `_meta` is a name, or a prefix of labels, a slash and a name.', { since: '2025-06-18' }),
  'meta-reserved': mcp('warning', META,
    'Prefixes of `_meta` that belong to MCP are used for keys of the specification only.', { since: '2025-06-18' }),
  'meta-missing': mcp('error', META,
    'A request says its protocol version and the client\'s capabilities in `_meta`.', MODERN),

  // The two transports
  'stdout-pollution': mcp('error', STDIO,
    'A server writes nothing to stdout but messages; logs go to stderr.'),
  'exit-late': mcp('warning', STDIO, 'A server exits promptly when its input ends.', MODERN),
  'framing': mcp('error', STDIO, 'Over stdio a message is one line, without headers.'),
  'content-type': mcp('error', STREAMABLE, 'Messages come as application/json or text/event-stream.'),
  'endpoint-first': mcp('error', '2024-11-05/basic/transports#http-with-sse',
    'A stream of the older HTTP+SSE transport begins with the `endpoint` event.'),
  'accept': mcp('error', STREAMABLE, 'A POST accepts application/json and text/event-stream.', { since: '2025-03-26' }),
  'session-header': mcp('error', '2025-11-25/basic/transports#session-management',
    'A client sends the session id that the server gave it.', { since: '2025-03-26', until: '2025-11-25' }),
  'version-header': mcp('error', STREAMABLE,
    '`MCP-Protocol-Version` names the version of the session, or of the message.', { since: '2025-06-18' }),
  'method-header': mcp('error', STREAMABLE, '`Mcp-Method` is the method of the body.', MODERN),
  'name-header': mcp('error', STREAMABLE, '`Mcp-Name` is the tool, prompt or resource of the body.', MODERN),
  'status-accepted': mcp('error', STREAMABLE,
    'A POST without a request that is taken gets status 202 and no body.', { since: '2025-03-26' }),
  'status-error': mcp('error', STREAMABLE, 'An error that has a status of its own comes with it.', MODERN),
  'http2-unread': mcp('note', STREAMABLE, 'A connection of HTTP/2 passes unread: what is in it is not judged.'),
};

/** The rules of capabilities, progress, cancellation, tools, content, forms, prompts, lists, logs, updates, rounds, subscriptions and tasks. */

const CAPABILITIES = '2025-11-25/basic/lifecycle#capability-negotiation';

const PROGRESS = '2025-11-25/basic/utilities/progress';

const CANCELLATION = '2025-11-25/basic/utilities/cancellation';

const TOOLS = '2026-07-28/server/tools';

const ELICITATION = '2026-07-28/client/elicitation';

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
  'answer-dropped': mcp('warning', CANCELLATION,
    'A client takes the answer that it was handed: it does not cancel its request a second after that.'),
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

  'call-repeated': mcp('warning', `${SCHEMA}#toolannotations`,
    'A tool that may change something is not called again before the fate of the first call is known: it may run twice.'),
  'call-repeated-safe': mcp('note', `${SCHEMA}#toolannotations`,
    'The same of a tool that says that it only reads, or that calling it again changes nothing more.'),

  'definition-changed': mcp('note', TOOLS,
    'A tool is what it was in the list before, or in the last session of its server.'),
  'definition-loosened': mcp('warning', `${SCHEMA}#toolannotations`,
    'An annotation of a tool promises no less than in the list before, or in the last session of its server.'),

  // Content
  'content-block': mcp('error', SCHEMA,
    'A content block has a type that its revision knows, and what belongs to that type.'),
  'content-data': mcp('error', SCHEMA, 'Images and audio come in base64, with their `mimeType`.'),
  'resource-contents': mcp('error', '2026-07-28/server/resources',
    'The contents of a resource are `text`, or a `blob` in base64.'),

  // Forms
  'elicitation-schema': mcp('error', ELICITATION,
    'A form is a flat object of strings, numbers, booleans and choices.', { since: '2025-06-18' }),
  'elicitation-content': mcp('warning', ELICITATION,
    'Content that a user has accepted fits the form.', { since: '2025-06-18' }),

  // What was given before
  'prompt-argument': mcp('warning', '2026-07-28/server/prompts',
    'A client gives a prompt the arguments that it requires.'),
  'completion-size': mcp('error', '2026-07-28/server/utilities/completion', 'A completion has at most 100 values.'),
  'cursor-unknown': mcp('error', '2026-07-28/server/utilities/pagination',
    'A cursor is one that the server gave for this list.'),
  'log-below': mcp('warning', '2025-11-25/server/utilities/logging',
    'A server sends no logs below the level that the client has set.', LEGACY),
  'update-unasked': mcp('warning', '2025-11-25/server/resources',
    'A server tells of updates of the resources that the client has subscribed to.', LEGACY),

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

  // Skills
  'skill-undeclared': skill('error', 'capability-negotiation',
    'Skills are declared, beside `resources`, before a client asks for them, and directories before it reads them.'),
  'skill-shape': skill('error', 'skill-entries',
    'The entry of a skill has its URI, its frontmatter, and all its files with digest and size, or "dynamic".'),
  'skill-digest': skill('error', 'integrity-and-verification',
    'A file of a skill has the digest and the size that its entry says: hosts refuse another one.'),
  'skill-limits': skill('warning', 'limits', 'A skill has at most 512 files, and 16 MiB in all.'),
};

/** The rules that came with 2026-07-28: caching, headers that repeat the body, the order of tools, what is deprecated. */

const CACHING = '2026-07-28/server/utilities/caching';

const ANNOTATIONS = `${TOOLS}#x-mcp-header`;

const PARAM_HEADERS = `${STREAMABLE}#custom-headers-from-tool-parameters`;

// biome-ignore format: one rule a row, or two where it does not fit
export const MODERN_RULES = {
  // Caching
  'cache-hint': mcp('error', `${CACHING}#cacheable-results`,
    'Lists, resources that are read and `server/discover` are answered with `ttlMs` and `cacheScope`.', MODERN),
  'cache-hint-value': mcp('error', `${CACHING}#cacheable-model`,
    'A `ttlMs` is an integer from 0 on, and a `cacheScope` is `public` or `private`.', MODERN),
  'cache-hint-interim': mcp('warning', `${CACHING}#cacheable-results`,
    'A result that requires input cannot be kept, and has no `ttlMs` and no `cacheScope`.', MODERN),
  'cache-pages': mcp('error', `${CACHING}#interaction-with-pagination`,
    'All pages of a list have the same `cacheScope`.', MODERN),
  'fetched-again': mcp('note', `${CACHING}#freshness-calculation`,
    'A client does not ask again for what it has, as long as its `ttlMs` lasts and nothing tells of a change.', MODERN),

  // Headers that repeat the body
  'header-annotation': mcp('error', ANNOTATIONS,
    'An `x-mcp-header` is a name for a header, once in its tool, on a string, integer or boolean that `properties` lead to.', MODERN),
  'header-annotation-taken': mcp('error', ANNOTATIONS,
    'Over HTTP a client leaves out a tool whose `x-mcp-header` is not legal.', MODERN),
  'param-header': mcp('error', PARAM_HEADERS,
    'An argument with an `x-mcp-header` is repeated by its `Mcp-Param-` header, and one that is not there has none.', MODERN),
  'param-header-unknown': mcp('note', PARAM_HEADERS,
    'A `Mcp-Param-` header is one that the tool has an `x-mcp-header` for.', MODERN),
  'header-unchecked': mcp('error', `${STREAMABLE}#server-validation`,
    'A server refuses a request whose headers do not say what its body says.', MODERN),

  // Lists
  'tool-order': mcp('note', `${TOOLS}#capabilities`,
    'A server lists the same tools in the same order each time.', MODERN),

  // Features
  'deprecated': mcp('note', '2026-07-28/deprecated',
    'A session uses no features that are deprecated: a later revision may be without them.', { since: '2025-03-26' }),
};

/** What MCP allows, and a provider refuses. */
const OF_PROVIDERS = Object.fromEntries(
  Object.entries(PROVIDER_RULES).map(([id, { provider, text, source: url }]): [string, Rule] => [
    id,
    { severity: 'note', text, url, since: null, until: null, provider },
  ]),
) as Record<keyof typeof PROVIDER_RULES, Rule>;

const TABLE = { ...BASE_RULES, ...FEATURE_RULES, ...MODERN_RULES, ...OF_PROVIDERS };

export type RuleId = keyof typeof TABLE;

/** One thing against a rule. `expected` and `seen` continue the sentences "expected …" and "saw …". */
export type Finding = {
  rule: RuleId;
  /** Null where it is nobody's message alone. */
  side: Side;
  /** The message; null where the session as a whole is meant. */
  place: Place | null;
  /** Number of the HTTP exchange, where one is meant. */
  http: number | null;
  expected: string;
  seen: string;
};

/** Says that a rule is broken. */
export type Report = (
  rule: RuleId,
  side: Side,
  at: { place: Place | null; revision: string | null; http?: number | null },
  expected: string,
  seen: string,
) => void;

export const RULES: Readonly<Record<RuleId, Rule>> = TABLE;

export const RULE_IDS = Object.keys(TABLE) as RuleId[];

/** Whether the rule is a provider's: what is against it breaks no rule of the protocol, and decides over no exit code. */
export function isOfProvider(rule: RuleId): boolean {
  return RULES[rule].provider !== undefined;
}
