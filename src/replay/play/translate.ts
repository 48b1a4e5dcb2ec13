/**
 * Puts live values into recorded messages wherever they depend on the run (MCP specification, basic/index;
 * basic/utilities/progress; 2026-07-28 basic/patterns/subscriptions):
 *
 * - the id of an answer: the id of the live request, as it was written;
 * - `progressToken`: the live request's. Progress for another token than the recorded request's is left out, and so is
 *   all progress where the live request has no token: it could be taken for another call's;
 * - `subscriptionId`, and the `requestId` by which a server ends a subscription: the live id of `subscriptions/listen`.
 *
 * Everything else stays byte for byte what was recorded.
 */

import { type Substitution, sourceAt, substitute, substituteOne } from '../../protocol/json/edit.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';

type Request = { message: RequestMessage; json: Buffer };

const META = ['params', '_meta'] as const;

const ID = ['id'];

const TOKEN = ['params', 'progressToken'];

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

const LISTEN = 'subscriptions/listen';

export function liveAnswer(request: RequestMessage, recorded: Buffer): Buffer {
  const { id } = request;
  const text = id.type === 'string' ? `"${id.text}"` : id.text;
  if (request.canonical !== LISTEN) return substituteOne(recorded, ID, text);
  return substitute(recorded, [
    { path: ID, text },
    { path: ['result', '_meta', SUBSCRIPTION], text },
  ]);
}

/** An answer that came from no server: the member `result` or `error`, as JSON text. */
export function ownAnswer(json: Buffer, member: 'result' | 'error', value: string): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","id":${sourceAt(json, ['id']) ?? 'null'},"${member}":${value}}`);
}

/** The token that a request wants progress for, as it was written. */
export function tokenOf(request: Buffer): string | undefined {
  return sourceAt(request, [...META, 'progressToken']);
}

export function isProgress(recorded: Buffer): boolean {
  return sourceAt(recorded, TOKEN) !== undefined;
}

/**
 * Null where it has no place in the live run. `recordedToken`: the progress token of the recorded request, as it was
 * written.
 */
export function liveProgress(
  { json }: Request,
  recordedToken: () => string | undefined,
  recorded: Buffer,
): Buffer | null {
  const token = tokenOf(json);
  return token === undefined || recordedToken() !== sourceAt(recorded, TOKEN)
    ? null
    : substitute(recorded, [{ path: TOKEN, text: token }]);
}

/** A client or server that takes a request back. */
export function isCancellation(json: Buffer): boolean {
  return sourceAt(json, ['method']) === '"notifications/cancelled"';
}

/** Whether this is how a server ends the subscription that the request opened. */
export function endsSubscription({ message }: Request, recorded: Buffer): boolean {
  return message.canonical === LISTEN && isCancellation(recorded);
}

export function liveNotification(request: Request, recorded: Buffer): Buffer {
  const text = sourceAt(request.json, ['id']) ?? 'null';
  const substitutions: Substitution[] = [{ path: [...META, SUBSCRIPTION], text }];
  if (endsSubscription(request, recorded)) substitutions.push({ path: ['params', 'requestId'], text });
  return substitute(recorded, substitutions);
}
