/**
 * What the clients of a mock asked, and what became of it. It only looks on: without it they would be answered the
 * same. What is known of a call by the time of its answer is told before that answer is sent.
 */

import { type Outcome, type Place, resultOutcome } from '../protocol/message/correlate.ts';
import { type Message, parseMessages, type RequestMessage } from '../protocol/message/message.ts';
import { formatIsoTime } from '../protocol/text.ts';
import { findParams } from './match/key.ts';
import type { ReplayRefusal } from './match/matching.ts';
import type { Mock, MockClient } from './mock.ts';
import type { Asker } from './play/player.ts';

/** Why the recording could not answer: in one word, in one line, and with every difference whole. */
export type CallMiss = { reason: string; line: string; report: string };

/** Something that has become known of a call: parts with the same `call` add to each other. */
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

export type CallLog = {
  /** For the mock's options of these names. */
  onMatch(request: RequestMessage, place: Place): void;
  onRefusal(refusal: ReplayRefusal, request: RequestMessage): void;
  /** The same mock; what its clients ask is told. */
  watch(mock: Mock): Mock;
};

type Asked = { call: string; key: string; asker: Asker | undefined };

/** `name` sets its calls apart from those of other logs. */
export function createCallLog(name: string, now: () => number, onPart: (part: CallPart) => void): CallLog {
  const calls = new WeakMap<RequestMessage, string>();
  let count = 0;
  let last = 0;

  function addCall(request: RequestMessage, json: Buffer): string {
    count += 1;
    const call = `${name}.${count}`;
    calls.set(request, call);
    const { canonical: method, details } = request;
    // Tests set clocks back.
    last = Math.max(last, now());
    onPart({ call, at: last, method, target: details.target, params: paramsOf(json) });
    return call;
  }

  function watchPlayer(player: MockClient): MockClient {
    const open = new Set<Asked>();
    /** A transport names its requests by their asker, so each has one of ours. */
    const askers = new WeakMap<Asker, Asker>();

    function watchAsker(asker: Asker): Asker {
      const known = askers.get(asker);
      if (known !== undefined) return known;
      const watched: Asker = {
        plan: (steps, exchange) => asker.plan?.(steps, exchange),
        withdraw: () => asker.withdraw?.(),
        send(json, step, isAnswer) {
          if (isAnswer) settle(parseMessages(json)[0], asker);
          asker.send(json, step, isAnswer);
        },
      };
      askers.set(asker, watched);
      return watched;
    }

    function settle(answer: Message | undefined, asker: Asker): void {
      if (answer?.kind !== 'result' && answer?.kind !== 'error') return;
      const outcome = answer.kind === 'error' ? 'error' : resultOutcome(answer.details);
      end((asked) => asked.key === answer.id?.key && asked.asker === asker, outcome);
    }

    function end(isMeant: (asked: Asked) => boolean, outcome: Outcome): void {
      for (const asked of open) {
        if (!isMeant(asked)) continue;
        open.delete(asked);
        onPart({ call: asked.call, outcome });
        return;
      }
    }

    return {
      ...player,
      receive(message, json, asker) {
        if (message.kind === 'request')
          open.add({ call: addCall(message, json), key: message.id.key, asker });
        const cancelled = message.kind === 'notification' ? message.details.cancels : null;
        if (cancelled !== null) end(({ key }) => key === cancelled, 'cancelled');
        player.receive(message, json, asker && watchAsker(asker));
      },
      abandon(id, asker) {
        end((asked) => asked.key === id.key && asked.asker === asker, 'cancelled');
        player.abandon(id, watchAsker(asker));
      },
    };
  }

  return {
    onMatch: (request, recorded) => tell(request, (call) => ({ call, recorded })),
    onRefusal: ({ error, line, text: report }, request) =>
      tell(request, (call) => ({ call, miss: { reason: reasonOf(error.data), line, report } })),
    watch: (mock) => ({ ...mock, createClient: (send) => watchPlayer(mock.createClient(send)) }),
  };

  function tell(request: RequestMessage, part: (call: string) => CallPart): void {
    const call = calls.get(request);
    if (call !== undefined) onPart(part(call));
  }
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
