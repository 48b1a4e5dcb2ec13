/** The contract of capabilities. Specification 2025-11-25, basic/lifecycle; 2026-07-28, basic and basic/patterns/mrtr. */

import type { Side } from './rule.ts';
import type { Report } from './rules.ts';
import { type Inspector, isObject, type Json, methodOf, resultOf, type Seen } from './seen.ts';

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
  const declared: Record<Side, Json | undefined> = { client: undefined, server: undefined };

  function message(seen: Seen): void {
    const method = methodOf(seen);
    if (method === 'initialize') declared.client = capabilitiesOf(seen.params);
    const result = resultOf(seen);
    if (result !== null && seen.asked?.method === 'initialize') declared.server = capabilitiesOf(result);
    if (result !== null && result['resultType'] === 'input_required') inputs(seen, result['inputRequests']);
    if (method !== null && !seen.message.details.isModern) call(seen, method);
  }

  function call(seen: Seen, method: string): void {
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
    seen: Seen,
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
  function inputs(seen: Seen, requests: unknown): void {
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

function capabilitiesOf(object: Json | null): Json | undefined {
  const capabilities = object?.['capabilities'];
  return isObject(capabilities) ? capabilities : undefined;
}

/** A capability is an object, one of its parts is true. */
function has(capabilities: Json, path: string): boolean {
  const [name = '', part] = path.split('.');
  const capability = capabilities[name];
  if (part === undefined) return capability !== undefined && capability !== false;
  return isObject(capability) && capability[part] === true;
}
