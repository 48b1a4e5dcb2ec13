/**
 * Whether an HTTP body is meant to hold messages. People debug exactly the exchanges without MCP in them (OAuth, error
 * pages), so these bodies are recorded too, but nobody wants them reported as malformed messages.
 * Specification: basic/transports/streamable-http, "Sending Messages to the Server".
 */
import type { FramePart } from './frame.ts';
import type { Message } from './message.ts';
import type { InvalidReason } from './problems.ts';

/** What an invalid message is that has nothing of JSON-RPC in it. */
const FOREIGN: ReadonlySet<InvalidReason> = new Set<InvalidReason>([
  'not-json',
  'not-object',
  'empty-batch',
  'no-jsonrpc',
]);

export type RequestShape = { method: string; isMcpPath: boolean; mediaType: string };

/** A POST to the MCP server holds messages, whatever it looks like; elsewhere a body tells by its looks. */
export function partOfRequest({ method, isMcpPath }: RequestShape, messages: readonly Message[]): FramePart {
  return looksLikeMcp(messages) || (method === 'POST' && isMcpPath) ? 'body' : 'foreign-body';
}

/**
 * An answer of status 200 to a JSON-RPC request holds messages, whatever it looks like. With any other status it may
 * (an error), or be a sentence for people: only then is it read.
 */
export function partOfResponse(
  status: number,
  asked: readonly Message[],
  messages: () => readonly Message[],
): FramePart {
  const isAnswer = status === 200 && asked.some(({ kind }) => kind === 'request');
  return isAnswer || looksLikeMcp(messages()) ? 'body' : 'foreign-body';
}

/** JSON-RPC travels as `application/json` alone. */
export function isJsonType(mediaType: string): boolean {
  return mediaType === 'application/json';
}

export function looksLikeMcp(messages: readonly Message[]): boolean {
  return messages.some((message) => message.kind !== 'invalid' || !FOREIGN.has(message.reason));
}
