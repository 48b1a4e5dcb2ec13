/**
 * Turns the recorded client's part into a list of acts: what it sent, in order, and which answers it had before it went on.
 * Requests that it sent at once are sent at once again. The list holds places, not messages.
 */

import type { Place } from '../../protocol/message/correlate.ts';
import { createPendingCalls } from '../../talk/pending.ts';
import type { Answer } from '../match/compare.ts';
import type { ScriptLine } from '../recording/script.ts';

type Act =
  | { act: 'ask'; call: number }
  | { act: 'notify'; place: Place; method: string; cancels: number | null }
  /** The next acts followed upon this call's answer. */
  | { act: 'await'; call: number }
  /** The next acts followed upon the client's answer to this question of the server. */
  | { act: 'be asked'; question: Place };

/** `answer` is null where none was recorded. */
export type PlannedCall = { place: Place; answer: Place | null };

/** A question of the server, and what the client answered; null where it did not. */
export type ServerQuestion = { place: Place; answer: Place | null };

type ClientPlan = { acts: Act[]; calls: PlannedCall[]; questions: ServerQuestion[] };

/** Progress of the client names a token of the recorded server, which the live one does not know. */
const NOT_PLAYED = new Set(['notifications/progress']);

export function planOf(lines: Iterable<ScriptLine>): ClientPlan {
  const plan: ClientPlan = { acts: [], calls: [], questions: [] };
  const calls = new Map<string, number>();
  const questions = new Map<string, ServerQuestion>();
  for (const { place, direction, kind, method, relation, to } of lines) {
    const isClients = direction === 'client-to-server';
    const named = to === null ? undefined : keyOf(to);
    if (kind === 'request' && isClients) {
      calls.set(keyOf(place), plan.calls.length);
      plan.acts.push({ act: 'ask', call: plan.calls.length });
      plan.calls.push({ place, answer: null });
    } else if (kind === 'request') {
      const question = { place, answer: null };
      questions.set(keyOf(place), question);
      plan.questions.push(question);
    } else if (kind === 'notification') {
      if (!isClients || method === null || NOT_PLAYED.has(method)) continue;
      const cancels = relation === 'cancel' && named !== undefined ? (calls.get(named) ?? null) : null;
      plan.acts.push({ act: 'notify', place, method, cancels });
    } else if (relation === 'reply' && named !== undefined && isClients) {
      const question = questions.get(named);
      if (question === undefined) continue;
      question.answer = place;
      plan.acts.push({ act: 'be asked', question: question.place });
    } else if (relation === 'reply' && named !== undefined) {
      const call = calls.get(named);
      const planned = call === undefined ? undefined : plan.calls[call];
      if (call === undefined || planned === undefined || planned.answer !== null) continue;
      planned.answer = place;
      plan.acts.push({ act: 'await', call });
    }
  }
  return plan;
}

function keyOf({ seq, n }: Place): string {
  return `${seq}.${n}`;
}

/** How a request ended: with an answer, or why without. */
export type CallEnd = { answer: Answer | null; why: string | null };

export type PendingRequest = {
  /** As it was sent. */
  id: string;
  method: string;
  /** By `performance.now()`. */
  startedAt: number;
  ended: Promise<CallEnd>;
};

type OpenRequests = {
  /** Adds a request with a new id, which ends when its time limit has passed. */
  begin(method: string): PendingRequest;
  end(id: string, how: CallEnd): void;
  endAll(why: string): void;
};

/** `onTimeout` is called with each that had no answer in time; `onEnd` with each, before `ended` settles. */
export function createOpenRequests(
  timeoutMs: number,
  onTimeout: (id: string) => void,
  onEnd: (method: string, how: CallEnd) => void,
): OpenRequests {
  const open = createPendingCalls<(how: CallEnd) => void>(timeoutMs, (end, id) => {
    end({ answer: null, why: `no answer within ${timeoutMs / 1000} s` });
    onTimeout(id);
  });
  let lastId = 0;
  return {
    begin(method) {
      lastId += 1;
      const id = String(lastId);
      const ended = new Promise<CallEnd>((resolve) => {
        open.add(id, (how) => {
          onEnd(method, how);
          resolve(how);
        });
      });
      return { id, method, startedAt: performance.now(), ended };
    },
    end: (id, how) => open.remove(id)?.(how),
    endAll(why) {
      for (const end of open.removeAll()) end({ answer: null, why });
    },
  };
}
