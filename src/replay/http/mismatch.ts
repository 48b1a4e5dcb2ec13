/**
 * Compares the headers of a POST that repeat parts of its body with that body.
 * Specification: 2026-07-28, basic/transports/streamable-http.
 */

import type { IncomingHttpHeaders } from 'node:http';
import {
  decodedHeader,
  type ParamHeader,
  paramText,
  saysSame,
} from '../../protocol/http/mirrored-headers.ts';
import { sourceAt } from '../../protocol/json/edit.ts';
import type { NotificationMessage, RequestMessage } from '../../protocol/message/message.ts';
import { HEADER_MISMATCH, type HttpRefusal } from './refusal.ts';

export type ClientMessage = RequestMessage | NotificationMessage;

/** The member of the params that `Mcp-Name` repeats, by method. */
const NAMES: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** Which arguments of a tool its headers repeat. */
export type ParamHeadersOf = (tool: string) => readonly ParamHeader[];

/** Returns why a request of 2026-07-28 is refused: a header differs from the body. Null where none does. */
export function findMismatch(
  headers: IncomingHttpHeaders,
  message: ClientMessage,
  json: Buffer,
  paramHeadersOf: ParamHeadersOf,
): HttpRefusal | null {
  const { method, canonical, details } = message;
  const isRequest = message.kind === 'request';
  return (
    mismatch('MCP-Protocol-Version', headers, details.protocolVersion, isRequest) ??
    mismatch('Mcp-Method', headers, method, isRequest) ??
    mismatch('Mcp-Name', headers, nameOf(canonical, json), isRequest) ??
    (isRequest && canonical === 'tools/call'
      ? findParamMismatch(headers, json, paramHeadersOf(details.target ?? ''))
      : null)
  );
}

function nameOf(canonical: string, json: Buffer): string | null {
  const member = NAMES[canonical];
  const text = member === undefined ? undefined : sourceAt(json, ['params', member]);
  const name: unknown = text === undefined ? null : JSON.parse(text);
  return typeof name === 'string' ? name : null;
}

function findParamMismatch(
  headers: IncomingHttpHeaders,
  json: Buffer,
  repeated: readonly ParamHeader[],
): HttpRefusal | null {
  if (repeated.length === 0) return null;
  const args: unknown = JSON.parse(sourceAt(json, ['params', 'arguments']) ?? 'null');
  for (const one of repeated) {
    const refusal = mismatch(one.header, headers, paramText(args, one), true);
    if (refusal !== null) return refusal;
  }
  return null;
}

/** `said`: the body's value; null where it has nothing for a header to repeat. */
function mismatch(
  name: string,
  headers: IncomingHttpHeaders,
  said: string | null,
  isRequired: boolean,
): HttpRefusal | null {
  if (said === null) return null;
  const header = headers[name.toLowerCase()];
  if (header === undefined && !isRequired) return null;
  const isParam = name.startsWith('Mcp-Param-');
  if (typeof header === 'string' && (isParam ? saysSame(header, said) : decodedHeader(header) === said))
    return null;
  const found = header === undefined ? 'there is none' : `it is ${JSON.stringify(header)}`;
  const message = `Header mismatch: ${name} must be ${JSON.stringify(said)} as in the body, but ${found}`;
  return { status: 400, code: HEADER_MISMATCH, message };
}
