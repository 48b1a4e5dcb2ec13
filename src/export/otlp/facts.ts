/**
 * What a request or a notification was, by the attributes of the semantic conventions for MCP (open-telemetry/semantic-conventions-genai,
 * `docs/gen-ai/mcp.md`, state "Development"). Names with `tapedeck.` are ours: the conventions have none for them.
 */

import type { ExchangeRow, NotificationRow } from '../../store/read/exchanges.ts';
import type { SessionRow } from '../../store/read/sessions.ts';

export const SCHEMA_URL = 'https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev';

const RESOURCE_METHODS = new Set([
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'notifications/resources/updated',
]);

/** Who sent: the service that the conventions' client span is of. */
export function resourceFacts(session: SessionRow, asker: ExchangeRow['askedBy']): AttributeValues {
  const { clientName, clientVersion, serverName, serverVersion } = session;
  const [name, version] = asker === 'client' ? [clientName, clientVersion] : [serverName, serverVersion];
  return {
    // What the specification of resources asks for where the name is not known.
    'service.name': name ?? 'unknown_service',
    'service.version': version,
    'host.name': session.host,
    'tapedeck.session.id': session.id,
    'tapedeck.session.name': session.name,
  };
}

/** How it went over the network, with what spans and metrics have in common. */
export function networkFacts(session: SessionRow, httpVersion: string | null): AttributeValues {
  const isPipe = session.transport === 'stdio';
  return {
    'mcp.protocol.version': session.protocolVersion,
    'network.transport': isPipe ? 'pipe' : 'tcp',
    'network.protocol.name': isPipe ? null : 'http',
    'network.protocol.version': httpVersion,
  };
}

/** The server behind tapedeck. Only the client's side has it. */
export function serverFacts(session: SessionRow): AttributeValues {
  if (session.transport === 'stdio') return {};
  const { hostname, port, protocol } = new URL(session.target);
  return {
    'server.address': hostname,
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  };
}

/** What was asked and how it ended, without what differs from call to call. */
export function operationFacts({ method, target, outcome, errorCode }: ExchangeRow): AttributeValues {
  const isCall = method === 'tools/call';
  const code = outcome === 'error' && errorCode !== null ? String(errorCode) : null;
  return {
    'mcp.method.name': method,
    'gen_ai.operation.name': isCall ? 'execute_tool' : null,
    'gen_ai.tool.name': isCall ? target : null,
    'gen_ai.prompt.name': method === 'prompts/get' ? target : null,
    'error.type': errorType(outcome, code),
    'rpc.response.status_code': code,
  };
}

/** A notification fails only where the HTTP status refuses it; the conventions name errors by what there is. */
export function notificationFacts({ method }: NotificationRow, status: number | null): AttributeValues {
  return {
    'mcp.method.name': method,
    'error.type': status === null || status < 400 ? null : String(status),
  };
}

export function resourceUri({ method, target }: Pick<ExchangeRow, 'method' | 'target'>): string | null {
  return RESOURCE_METHODS.has(method) ? target : null;
}

function errorType(outcome: ExchangeRow['outcome'], code: string | null): string | null {
  switch (outcome) {
    case 'ok':
    case 'input-required':
      return null;
    case 'error':
      return code ?? '_OTHER';
    case 'tool-error':
      return 'tool_error';
    default:
      return outcome;
  }
}

/** The conventions' name of a span. A resource's URI is no part of it: there may be any number of them. */
export function spanName(row: ExchangeRow): string {
  const hasTarget = row.method === 'tools/call' || row.method === 'prompts/get';
  return hasTarget && row.target !== null ? `${row.method} ${row.target}` : row.method;
}

/** Values as OTLP's JSON writes them: opentelemetry-proto, `common.proto` and the specification's "JSON Protobuf Encoding". */

type Value = { stringValue: string } | { intValue: number };

export type Attribute = { key: string; value: Value };

/** An attribute without a value is left out: nothing is invented. */
export type AttributeValues = Readonly<Record<string, string | number | null | undefined>>;

export function attributesOf(facts: AttributeValues): Attribute[] {
  return Object.entries(facts).flatMap(([key, fact]) =>
    fact === null || fact === undefined
      ? []
      : [{ key, value: typeof fact === 'number' ? { intValue: fact } : { stringValue: fact } }],
  );
}

/** Whole nanoseconds since the Unix epoch, of microseconds: 64 bits stand as text. */
export function nanoseconds(microseconds: number): string {
  return String(BigInt(Math.round(microseconds)) * 1000n);
}
