/**
 * Logs what the clients of a mock asked, and what became of it, for tests of clients. Everything known about a call is
 * logged before its answer is sent.
 */

import type { Place } from '../protocol/message/correlate.ts';
import { type Outcome, resultOutcome } from '../protocol/message/correlate.ts';
import { parseMessages, type RequestMessage } from '../protocol/message/message.ts';
import { formatIsoTime } from '../protocol/text.ts';
import { findParams } from './match/key.ts';
import type { ReplayEvents } from './play/request.ts';

/** Why the recording could not answer: in one word, in one line, and with every difference whole. */
export type CallMiss = { reason: string; line: string; report: string };

/** One fact about a call. Parts with the same `call` add up. */
export type CallPart = { call: string } & (
  | {
      /** Microseconds since the Unix epoch. */
      at: number;
      method: string;
      target: string | null;
      /** JSON text on one line; null where the request had none. */
      params: string | null;
    }
  /** The recorded request whose answer it gets. */
  | { recorded: Place }
  | { miss: CallMiss }
  /** Its answer, or that the client took it back. */
  | { outcome: Outcome }
);

/** For the events of a mock. */
export type CallLog = Required<Omit<ReplayEvents, 'onNotice'>>;

/** `name` sets its calls apart from those of other logs. `now`: microseconds since the Unix epoch. */
export function createCallLog(name: string, now: () => number, onPart: (part: CallPart) => void): CallLog {
  const calls = new WeakMap<RequestMessage, string>();
  let count = 0;
  let last = 0;

  function callOf(request: RequestMessage): string {
    return calls.get(request) ?? name;
  }

  return {
    onRequest(request, json) {
      count += 1;
      const call = `${name}.${count}`;
      calls.set(request, call);
      const { canonical: method, details } = request;
      // Tests set clocks back.
      last = Math.max(last, now());
      onPart({ call, at: last, method, target: details.target, params: paramsOf(json) });
    },
    onMatch: (request, recorded) => onPart({ call: callOf(request), recorded }),
    onRefusal: ({ error, line, text: report }, request) =>
      onPart({ call: callOf(request), miss: { reason: reasonOf(error.data), line, report } }),
    onAnswer(request, json) {
      const outcome = outcomeOf(request, json);
      if (outcome !== null) onPart({ call: callOf(request), outcome });
    },
    onCancel: (request) => onPart({ call: callOf(request), outcome: 'cancelled' }),
  };
}

/** Null where a client would not take it for the answer to its request. */
function outcomeOf(request: RequestMessage, json: Buffer): Outcome | null {
  const [answer] = parseMessages(json);
  if ((answer?.kind !== 'result' && answer?.kind !== 'error') || answer.id?.key !== request.id.key)
    return null;
  return answer.kind === 'error' ? 'error' : resultOutcome(answer.details);
}

/** The part as one line of JSON, without its end: `at` as ISO 8601, `params` as the client wrote them. */
export function callLine(part: CallPart): string {
  if (!('params' in part)) return JSON.stringify(part);
  const { at, params, ...asked } = part;
  const line = JSON.stringify({ ...asked, at: formatIsoTime(at) });
  return params === null ? line : `${line.slice(0, -1)},"params":${params}}`;
}

function reasonOf(data: unknown): string {
  return String((data as { reason?: unknown } | null)?.reason);
}

/** Line ends stand between the tokens of JSON only, so spaces can take their place. */
function paramsOf(json: Buffer): string | null {
  const span = findParams(json, 0);
  return span === null ? null : json.toString('utf8', span.start, span.end).replaceAll(/[\r\n]/g, ' ');
}
