/**
 * Answers a live server's questions (sampling, elicitation, roots) as the recorded client did: each time the same question
 * comes, it gets the next answer that was recorded for it. A question with new params gets the next answer of its method,
 * so that the call can go on, and is reported as different.
 */

import { type Difference, diffOf } from '../../protocol/json/diff.ts';
import { sourceAt, substitute } from '../../protocol/json/edit.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { canonicalMethod } from '../../protocol/message/methods.ts';
import type { IgnoreRules } from '../match/ignore.ts';
import { findParams, type RequestKey, requestKey } from '../match/key.ts';
import type { Recording } from '../recording/recording.ts';
import { hasPlaceholder } from '../recording/secrets.ts';
import type { ServerQuestion } from './plan.ts';

type QuestionReply = {
  /** Null where the recorded client never answered. */
  json: Buffer | null;
  /** The recorded question; null where there is none. */
  place: Place | null;
  differences: Difference[];
  /** The client's answer was redacted, so the server gets an error in its place. */
  isRedacted: boolean;
};

export type Answers = {
  reply(question: Buffer, method: string, idText: string): QuestionReply;
  isAsked(place: Place): boolean;
  /** Places of questions that were not asked. */
  unasked(): { place: Place; method: string }[];
};

type RecordedQuestion = ServerQuestion & { method: string; key: RequestKey | null; isUsed: boolean };

/** These get their last answer again. */
const REPEATABLE = new Set(['roots/list', 'ping']);

const NO_SUCH = -32_601;

const NO_PARAMS = Buffer.from('{}');

export function createAnswers(
  recording: Recording,
  questions: readonly ServerQuestion[],
  ignore: IgnoreRules,
): Answers {
  const alike = (json: Buffer) => recording.alike(recording.redacted(json));
  const known = questions.map((question): RecordedQuestion => {
    const json = recording.load(question.place);
    const method = methodOf(json);
    return { ...question, method, key: keyOf(method, alike(json), ignore), isUsed: false };
  });

  function find(method: string, key: RequestKey | null): RecordedQuestion | undefined {
    const same = known.filter((one) => key !== null && one.key?.digest === key.digest);
    const unused = same.find(({ isUsed }) => !isUsed);
    if (unused !== undefined) return unused;
    if (REPEATABLE.has(method)) return same.at(-1);
    return known.find((one) => !one.isUsed && one.method === method);
  }

  return {
    reply(question, method, idText) {
      const canonical = canonicalMethod(method);
      const key = keyOf(canonical, alike(question), ignore);
      const found = find(canonical, key);
      if (found === undefined) {
        const json = canonical === 'ping' ? pong(idText) : refusal(idText, method);
        return { json, place: null, differences: [], isRedacted: false };
      }
      found.isUsed = true;
      const { place, answer } = found;
      const recorded = answer === null ? null : recording.load(answer);
      const isRedacted = recorded !== null && hasPlaceholder(recorded);
      const own = recorded && substitute(recorded, [{ path: ['id'], text: idText }]);
      return {
        json: isRedacted ? refusal(idText, method) : own,
        isRedacted,
        place,
        differences: diffOf(found.key?.params ?? NO_PARAMS, key?.params ?? NO_PARAMS).differences,
      };
    },
    isAsked: ({ seq, n }) => known.some(({ place, isUsed }) => isUsed && place.seq === seq && place.n === n),
    unasked: () =>
      known
        .filter(({ isUsed, method }) => !isUsed && method !== 'ping')
        .map(({ place, method }) => ({ place, method })),
  };
}

function methodOf(json: Buffer): string {
  return canonicalMethod(String(JSON.parse(sourceAt(json, ['method']) ?? '""')));
}

/** Null where the params cannot be compared. */
function keyOf(method: string, json: Buffer, ignore: IgnoreRules): RequestKey | null {
  const key = requestKey({ method, target: null }, json, findParams(json, 0), ignore);
  return typeof key === 'string' ? null : key;
}

function pong(idText: string): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"result":{}}`);
}

function refusal(idText: string, method: string): Buffer {
  const message = JSON.stringify(`The recorded client was never asked ${method} like this`);
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"error":{"code":${NO_SUCH},"message":${message}}}`);
}
