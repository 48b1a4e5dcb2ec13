/**
 * The recorded client's answers to what a server asks (sampling, elicitation, roots), given to a live server that asks:
 * the same question gets the same answer, the k-th time the k-th. A question with other params than any recorded gets the
 * next answer of its method, so that the call can go on, and is told as different.
 */
import { canonicalMethod } from '../protocol/methods.ts';
import { type Difference, diffOf } from './diff.ts';
import type { IgnoreRules } from './ignore.ts';
import { findParams, type RequestKey, requestKey } from './key.ts';
import type { Recording } from './recording.ts';
import { hasPlaceholder } from './redaction.ts';
import type { Place } from './script.ts';
import { sourceAt, substitute } from './substitute.ts';
import type { Question } from './verify-plan.ts';

export type Reply = {
  /** Null where the recorded client never answered. */
  json: Buffer | null;
  /** The recorded question; null where there is none. */
  place: Place | null;
  differences: Difference[];
  /** The client's answer was redacted, so the server gets an error in its place. */
  isRedacted: boolean;
};

export type Answers = {
  reply(question: Buffer, method: string, idText: string): Reply;
  isAsked(place: Place): boolean;
  /** Places of questions that were not asked. */
  unasked(): { place: Place; method: string }[];
};

type Known = Question & { method: string; key: RequestKey | null; isUsed: boolean };

/** Whoever asks these again gets the same again. */
const REPEATABLE = new Set(['roots/list', 'ping']);
const NO_SUCH = -32_601;
const NO_PARAMS = Buffer.from('{}');

export function createAnswers(
  recording: Recording,
  questions: readonly Question[],
  ignore: IgnoreRules,
): Answers {
  const alike = (json: Buffer) => recording.comparable(recording.redacted(json));
  const known = questions.map((question): Known => {
    const json = recording.load(question.place);
    const method = methodOf(json);
    return { ...question, method, key: keyOf(method, alike(json), ignore), isUsed: false };
  });

  function find(method: string, key: RequestKey | null): Known | undefined {
    const same = known.filter((one) => key !== null && one.key?.digest.equals(key.digest));
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
