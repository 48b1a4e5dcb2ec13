/**
 * Methods: written right, sent by the right side, as the right kind, in a revision that has them, and only where the other
 * side has declared the capability (specification 2025-11-25, basic/lifecycle; 2026-07-28, basic and basic/patterns/mrtr).
 */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import { type CheckedMessage, type Inspector, methodOf, resultOf } from './checked-message.ts';
import { REVISIONS, type Report, type Revision, type Side } from './rules.ts';

export function inspectMethods(report: Report): Inspector {
  function message(seen: CheckedMessage): void {
    const { message, side } = seen;
    if (message.kind !== 'request' && message.kind !== 'notification') return;
    const { method, canonical, kind } = message;
    if (method !== canonical) report('method-variant', side, seen, canonical, method);
    if (method.startsWith('rpc.')) report('method-reserved', side, seen, 'another name', method);
    const facts = METHODS.get(canonical);
    if (facts === undefined) return;
    if (facts.kind !== kind)
      report(
        'method-kind',
        side,
        seen,
        `a ${facts.kind}`,
        `${canonical} ${kind === 'request' ? 'with' : 'without'} an id`,
      );
    if (facts.sender !== 'both' && facts.sender !== side)
      report('method-direction', side, seen, `${canonical} from the ${facts.sender}`, `it from the ${side}`);
    else revision(seen, canonical);
  }

  function revision(seen: CheckedMessage, canonical: string): void {
    const facts = METHODS.get(canonical);
    if (facts === undefined || seen.revision === null) return;
    // Revisions before the first are as good as the first.
    const isEarly =
      seen.revision < facts.since && facts.since !== REVISIONS[0] && canonical !== 'server/discover';
    const isLate = facts.until !== null && seen.revision > facts.until && canonical !== 'initialize';
    if (!isEarly && !isLate) return;
    const range = facts.until === null ? `${facts.since} and later` : `${facts.since} to ${facts.until}`;
    report(
      'method-revision',
      seen.side,
      seen,
      `a method of ${seen.revision}`,
      `${canonical}, which belongs to ${range}`,
    );
  }

  return { message };
}

/**
 * The methods of the specification: who sends each, as what, and which revisions have it. From the `ClientRequest`,
 * `ServerRequest`, `ClientNotification` and `ServerNotification` unions of each revision's schema.
 */

type Sender = 'client' | 'server' | 'both';

type MethodFacts = {
  kind: 'request' | 'notification';
  sender: Sender;
  since: Revision;
  until: Revision | null;
};

type Row = readonly [method: string, sender: Sender, since: Revision, until: Revision | null];

// biome-ignore format: a table
const REQUESTS: readonly Row[] = [
  ['initialize', 'client', '2024-11-05', '2025-11-25'],
  ['ping', 'both', '2024-11-05', '2025-11-25'],
  ['server/discover', 'client', '2026-07-28', null],
  ['tools/list', 'client', '2024-11-05', null],
  ['tools/call', 'client', '2024-11-05', null],
  ['resources/list', 'client', '2024-11-05', null],
  ['resources/templates/list', 'client', '2024-11-05', null],
  ['resources/read', 'client', '2024-11-05', null],
  ['resources/subscribe', 'client', '2024-11-05', '2025-11-25'],
  ['resources/unsubscribe', 'client', '2024-11-05', '2025-11-25'],
  ['prompts/list', 'client', '2024-11-05', null],
  ['prompts/get', 'client', '2024-11-05', null],
  ['completion/complete', 'client', '2024-11-05', null],
  ['logging/setLevel', 'client', '2024-11-05', '2025-11-25'],
  ['subscriptions/listen', 'client', '2026-07-28', null],
  ['tasks/get', 'both', '2025-11-25', null],
  ['tasks/result', 'both', '2025-11-25', '2025-11-25'],
  ['tasks/list', 'both', '2025-11-25', '2025-11-25'],
  ['tasks/cancel', 'both', '2025-11-25', null],
  ['tasks/update', 'client', '2026-07-28', null],
  ['sampling/createMessage', 'server', '2024-11-05', '2025-11-25'],
  ['roots/list', 'server', '2024-11-05', '2025-11-25'],
  ['elicitation/create', 'server', '2025-06-18', '2025-11-25'],
  // Of the skills extension (SEP-2640), which is negotiated by itself.
  ['skills/list', 'client', '2024-11-05', null],
  ['skills/get', 'client', '2024-11-05', null],
  ['resources/directory/read', 'client', '2024-11-05', null],
];

// biome-ignore format: a table
const NOTIFICATIONS: readonly Row[] = [
  ['notifications/initialized', 'client', '2024-11-05', '2025-11-25'],
  ['notifications/cancelled', 'both', '2024-11-05', null],
  ['notifications/progress', 'both', '2024-11-05', null],
  ['notifications/roots/list_changed', 'client', '2024-11-05', '2025-11-25'],
  ['notifications/message', 'server', '2024-11-05', null],
  ['notifications/tools/list_changed', 'server', '2024-11-05', null],
  ['notifications/prompts/list_changed', 'server', '2024-11-05', null],
  ['notifications/resources/list_changed', 'server', '2024-11-05', null],
  ['notifications/resources/updated', 'server', '2024-11-05', null],
  ['notifications/elicitation/complete', 'server', '2025-11-25', '2025-11-25'],
  ['notifications/tasks/status', 'both', '2025-11-25', '2025-11-25'],
  ['notifications/subscriptions/acknowledged', 'server', '2026-07-28', null],
  ['notifications/tasks', 'server', '2026-07-28', null],
];

/** By canonical method. Other methods are legal: extensions and vendors have their own. */
const METHODS: ReadonlyMap<string, MethodFacts> = new Map([
  ...REQUESTS.map((row) => factsOf('request', row)),
  ...NOTIFICATIONS.map((row) => factsOf('notification', row)),
]);

function factsOf(kind: MethodFacts['kind'], [method, sender, since, until]: Row): [string, MethodFacts] {
  return [method, { kind, sender, since, until }];
}

/** The contract of capabilities. */

/** What a client may ask for only if the server declared it: by method, the capability as a path. */
const OF_SERVER: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'tools/list': 'tools',
    'tools/call': 'tools',
    'resources/list': 'resources',
    'resources/templates/list': 'resources',
    'resources/read': 'resources',
    'resources/subscribe': 'resources.subscribe',
    'resources/unsubscribe': 'resources.subscribe',
    'prompts/list': 'prompts',
    'prompts/get': 'prompts',
    'logging/setLevel': 'logging',
    'completion/complete': 'completions',
  }),
);

const OF_CLIENT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'sampling/createMessage': 'sampling',
    'roots/list': 'roots',
    'elicitation/create': 'elicitation',
  }),
);

/** Notifications of which the sender must have declared the capability. */
const OF_SENDER: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'notifications/message': 'logging',
    'notifications/tools/list_changed': 'tools.listChanged',
    'notifications/prompts/list_changed': 'prompts.listChanged',
    'notifications/resources/list_changed': 'resources.listChanged',
    'notifications/resources/updated': 'resources.subscribe',
    'notifications/roots/list_changed': 'roots.listChanged',
  }),
);

/** Capabilities that came later than what they stand for. */
const SINCE: Readonly<Record<string, string>> = { completions: '2025-03-26' };

export function inspectCapabilities(report: Report): Inspector {
  /** Of the handshake; undefined before it. */
  const declared: Record<Side, JsonObject | undefined> = { client: undefined, server: undefined };

  function message(seen: CheckedMessage): void {
    const method = methodOf(seen);
    if (method === 'initialize') declared.client = capabilitiesOf(seen.params);
    const result = resultOf(seen);
    if (result !== null && seen.asked?.method === 'initialize') declared.server = capabilitiesOf(result);
    if (result !== null && result['resultType'] === 'input_required') inputs(seen, result['inputRequests']);
    if (method !== null && !seen.message.details.isModern) call(seen, method);
  }

  function call(seen: CheckedMessage, method: string): void {
    const isRequest = seen.message.kind === 'request';
    if (isRequest && seen.side === 'client')
      need('capability-server', seen, 'server', OF_SERVER.get(method), method);
    if (isRequest && seen.side === 'server')
      need('capability-client', seen, 'client', OF_CLIENT.get(method), method);
    if (!isRequest && seen.message.details.subscription === null)
      need('capability-notification', seen, seen.side, OF_SENDER.get(method), method);
  }

  function need(
    rule: 'capability-server' | 'capability-client' | 'capability-notification',
    seen: CheckedMessage,
    owner: Side,
    capability: string | undefined,
    method: string,
  ): void {
    const capabilities = declared[owner];
    if (capability === undefined || capabilities === undefined) return;
    if ((seen.revision ?? '') < (SINCE[capability] ?? '')) return;
    if (!has(capabilities, capability))
      report(
        rule,
        seen.side,
        seen,
        `the ${owner} to have declared \`${capability}\``,
        `${method} without it`,
      );
  }

  /** In the 2026-07-28 era the request itself says what its client can do. */
  function inputs(seen: CheckedMessage, requests: unknown): void {
    const meta = seen.asked?.params?.['_meta'];
    const capabilities = isObject(meta) ? meta['io.modelcontextprotocol/clientCapabilities'] : undefined;
    if (!isObject(capabilities) || !isObject(requests)) return;
    for (const input of Object.values(requests)) {
      const method = isObject(input) && typeof input['method'] === 'string' ? input['method'] : '';
      const capability = OF_CLIENT.get(method);
      if (capability !== undefined && !has(capabilities, capability))
        report(
          'capability-client',
          'server',
          seen,
          `the client to have declared \`${capability}\``,
          `${method} without it`,
        );
    }
  }

  return { message };
}

function capabilitiesOf(object: JsonObject | null): JsonObject | undefined {
  const capabilities = object?.['capabilities'];
  return isObject(capabilities) ? capabilities : undefined;
}

/** A capability is an object, one of its parts is true. */
function has(capabilities: JsonObject, path: string): boolean {
  const [name = '', part] = path.split('.');
  const capability = capabilities[name];
  if (part === undefined) return capability !== undefined && capability !== false;
  return isObject(capability) && capability[part] === true;
}
