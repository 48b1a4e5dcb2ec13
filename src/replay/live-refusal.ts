/** What is said where a live server does not answer, and which of its answers are no answers of its own. */
import type { Message, RequestMessage } from '../protocol/message.ts';
import type { Refusal } from './matching.ts';
import { NO_RECORDED_ANSWER } from './miss-text.ts';

/** No credentials, too slow, too many: they are about the moment and not about the request. So is everything from 500 on. */
const PASSING_STATUSES = new Set([401, 403, 404, 408, 429]);
const FIRST_SERVER_ERROR = 500;
const METHOD_NOT_FOUND = -32601;

/** Why an answer tells of the way to the server, or of its state, rather than of what was asked; null where it does not. */
export function whyFailed(message: Message, status: number | null): string | null {
  // 2026-07-28 answers an unknown method with 404 (basic/transports/streamable-http).
  const isOwn = message.kind !== 'error' || (status === 404 && message.code === METHOD_NOT_FOUND);
  if (isOwn || status === null) return null;
  return PASSING_STATUSES.has(status) || status >= FIRST_SERVER_ERROR
    ? `its answer was HTTP ${status}`
    : null;
}

/** `missed`: why the recording has no answer either; null where nothing was played. */
export function liveRefusal(request: RequestMessage, why: string, missed: Refusal | null): Refusal {
  const { canonical: method, details } = request;
  const live = `no answer from the live server: ${why}`;
  const call = details.target === null ? method : `${method} ${JSON.stringify(details.target)}`;
  const explanation = missed === null ? `${call}: ${live}` : `${missed.explanation}; ${live}`;
  const known = missed === null ? { method, target: details.target } : (missed.error.data as object);
  const data = { reason: 'live-failed', ...known, explanation, live: why, options: [] };
  const message = `tapedeck: ${missed === null ? '' : 'no recorded answer to '}${explanation}`;
  const error = { code: NO_RECORDED_ANSWER, message, data };
  // Which options would change it has been tried: a server was asked.
  return { error, isUnreadable: false, explanation, line: explanation, text: `${explanation}\n` };
}
