/** Features that will be removed, where they are used; to declare one is not to use it. Specification 2026-07-28, deprecated. */

import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import {
  type CheckedFrame,
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  methodOf,
  resultOf,
} from '../checked-message.ts';
import type { Report, Revision, Side } from '../rules.ts';

type Feature = { name: string; since: Revision; by: string; instead: string };

// biome-ignore format: a table
const FEATURES = {
  roots: { name: 'roots', since: '2026-07-28', by: 'SEP-2577', instead: 'folders in arguments, URIs of resources or configuration' },
  sampling: { name: 'sampling', since: '2026-07-28', by: 'SEP-2577', instead: 'the API of the provider of a model' },
  logging: { name: 'logging', since: '2026-07-28', by: 'SEP-2577', instead: 'stderr over stdio, or OpenTelemetry' },
  context: { name: '`includeContext` other than "none"', since: '2025-11-25', by: 'SEP-2596', instead: 'no `includeContext`' },
  transport: { name: 'the HTTP+SSE transport', since: '2025-03-26', by: 'SEP-2596', instead: 'Streamable HTTP' },
  registration: { name: 'dynamic client registration', since: '2026-07-28', by: 'PR 2858', instead: 'a client ID metadata document' },
} as const satisfies Record<string, Feature>;

type Name = keyof typeof FEATURES;

/** What asks for a feature: by method of a request, or of an input request. */
const BY_METHOD: ReadonlyMap<unknown, Name> = new Map<unknown, Name>([
  ['roots/list', 'roots'],
  ['sampling/createMessage', 'sampling'],
  ['notifications/message', 'logging'],
]);

/** Larger bodies register nobody. */
const MAX_REGISTRATION = 1024 * 1024;

export function inspectDeprecated(report: Report, { basis }: CheckedSession): Inspector {
  const told = new Set<Name>();
  /** Clients register before anybody says what revision is spoken. */
  let registration: CheckedFrame | null = null;

  function message(seen: CheckedMessage): void {
    const { side, params } = seen;
    const meta = params?.['_meta'];
    if (isObject(meta) && meta['io.modelcontextprotocol/logLevel'] !== undefined)
      used('logging', side, seen, '`logLevel`');
    const method = methodOf(seen);
    if (method !== null) asked(seen, method, params);
    const inputs = resultOf(seen)?.['inputRequests'];
    for (const input of isObject(inputs) ? Object.values(inputs) : [])
      if (isObject(input)) asked(seen, input['method'], input['params']);
    if (basis === 'sse-endpoint') used('transport', 'server', seen, null);
    if (registration !== null)
      used('registration', 'client', { ...registration, revision: seen.revision }, null);
  }

  function asked(seen: CheckedMessage, method: unknown, params: unknown): void {
    const feature = BY_METHOD.get(method);
    if (feature !== undefined) used(feature, seen.side, seen, `\`${method}\``);
    if (feature === 'sampling' && isObject(params) && isWide(params)) used('context', seen.side, seen, null);
  }

  function used(feature: Name, side: Side, at: Parameters<Report>[2], by: string | null): void {
    const { name, since, by: source, instead } = FEATURES[feature];
    const isDeprecated = at.revision !== null && at.revision >= since;
    if (!isDeprecated || told.has(feature)) return;
    told.add(feature);
    const what = by === null ? name : `${name} (${by})`;
    report('deprecated', side, at, instead, `${what}, deprecated in ${since} by ${source}`);
  }

  function frame(seen: CheckedFrame): void {
    if (registration === null && seen.channel === 'request' && isRegistration(seen.payload))
      registration = seen;
  }

  return { message, frame };
}

function isWide({ includeContext }: JsonObject): boolean {
  return includeContext === 'thisServer' || includeContext === 'allServers';
}

/** Whether a body is what a client registers with (RFC 7591, 2). */
function isRegistration(body: Buffer): boolean {
  if (body.length > MAX_REGISTRATION || !body.includes('"redirect_uris"')) return false;
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) && Array.isArray(value['redirect_uris']) && value['jsonrpc'] === undefined;
  } catch {
    return false;
  }
}
