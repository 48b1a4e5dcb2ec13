/** What a live server answered in place of a recording: the unit that is added to it. */
import type { Outcome } from '../protocol/correlate.ts';
import type { Message } from '../protocol/message.ts';
import type { Asked } from './key.ts';

/** One message as it passed between us and the live server. `at` in microseconds since the Unix epoch. */
export type Said = { from: 'client' | 'server'; kind: Message['kind']; at: number; json: Buffer };

/** Who or what was the cause that there is no answer of the server's own, and why. */
export type Failure = { by: 'client' | 'server'; why: string };

export type Episode = {
  /** Null for what was said outside of all calls. */
  asked: Asked | null;
  /** In the order in which it passed, from the request to its answer. Its ids differ from those of all other episodes. */
  said: readonly Said[];
  outcome: Outcome | 'unanswered';
  latencyMs: number | null;
  /** Why it must not be taken for what the server answers; null where it may. */
  failure: Failure | null;
};

export function outcomeOfAnswer(message: Message): Outcome {
  if (message.kind !== 'result') return 'error';
  if (message.details.resultType === 'input_required') return 'input-required';
  return message.details.isToolError ? 'tool-error' : 'ok';
}
