/**
 * The functions that a test gives its deck: over messages before they are stored, over what counts of a request, and in place
 * of an answer. They see messages as JSON has them. Where one changes nothing, the bytes stay as they are, so that no digit of
 * a large number is lost.
 */

import { TapedeckError } from '../errors.ts';
import type { RequestMessage } from '../protocol/message/message.ts';
import { targetParam } from '../protocol/message/methods.ts';
import { findParams } from '../replay/match/key.ts';
import type { MatchFunctions } from '../replay/match/recording-keys.ts';
import type { OwnAnswer } from '../replay/mock.ts';
import { isExpected } from './assertions.ts';
import type {
  CallName,
  DeckAnswer,
  DeckOptions,
  ExpectedParams,
  MatchedCall,
  StoredMessage,
} from './deck.ts';

/** `tell`: takes what is wrong with a function, in words. */
export function deckFunctions(
  { beforeStoring, matchBy }: Pick<DeckOptions, 'beforeStoring' | 'matchBy'>,
  tell: (what: string) => void,
): MatchFunctions & { edit?: (json: Buffer, from: 'client' | 'server') => Buffer } {
  function edit(json: Buffer, from: 'client' | 'server'): Buffer {
    const before = JSON.stringify(JSON.parse(json.toString()));
    const returned = beforeStoring?.(JSON.parse(before) as StoredMessage, { from });
    const after = JSON.stringify(returned);
    if (after === before) return json;
    const [old, own] = [JSON.parse(before), returned as unknown as Record<string, unknown>];
    if (after !== undefined && own['id'] === old.id && own['method'] === old.method)
      return Buffer.from(after);
    throw new TapedeckError(
      'usage',
      'Expected a message with the same `id` and `method` from `beforeStoring`, got another one.',
    );
  }

  function counted(asked: { method: string; target: string | null }, params: Buffer | null): Buffer | null {
    const call: MatchedCall = { ...asked, params: params === null ? {} : JSON.parse(params.toString()) };
    const counts = orTold('matchBy', () => matchBy?.(call));
    if (typeof counts !== 'object' || counts === null) return null;
    const name = targetParam(asked.method);
    // One tool never answers for another.
    const kept = name == null || asked.target === null ? counts : { ...counts, [name]: asked.target };
    return Buffer.from(JSON.stringify(kept));
  }

  function orTold<T>(name: string, act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      tell(`\`${name}\` has failed: ${(error as Error).message}`);
      return undefined;
    }
  }

  /** What cannot be edited is not stored. */
  function editOrRefuse(json: Buffer, from: 'client' | 'server'): Buffer {
    const edited = orTold('beforeStoring', () => edit(json, from));
    if (edited === undefined) throw new TapedeckError('usage', '`beforeStoring` has failed.');
    return edited;
  }

  const editOrLeave = (json: Buffer) => orTold('beforeStoring', () => edit(json, 'client')) ?? json;

  return {
    ...(beforeStoring === undefined ? {} : { edit: editOrRefuse, beforeMatching: editOrLeave }),
    ...(matchBy === undefined ? {} : { matchBy: counted }),
  };
}

export type Overrides = {
  add(call: CallName, answer: DeckAnswer, params: ExpectedParams | undefined, times: number): void;
  answerTo(request: RequestMessage, json: Buffer): OwnAnswer | null;
  /** Whether there was any. */
  isUsed(): boolean;
};

type Override = { call: CallName; answer: DeckAnswer; params: ExpectedParams | undefined; left: number };

/** The one that was added last counts. */
export function createOverrides(): Overrides {
  const overrides: Override[] = [];
  return {
    add(call, answer, params, times) {
      if (!(times > 0))
        throw new TapedeckError('usage', `Expected a number above 0 as \`times\`, got ${times}.`);
      overrides.unshift({ call, answer, params, left: times });
    },
    answerTo({ canonical: method, details: { target } }, json) {
      if (overrides.length === 0) return null;
      const span = findParams(json, 0);
      const params = span === null ? undefined : JSON.parse(json.toString('utf8', span.start, span.end));
      const call = { method, target, params };
      const one = overrides.find((other) => other.left > 0 && isExpected(call, [other.call, other.params]));
      const answer = typeof one?.answer === 'function' ? one.answer(call) : one?.answer;
      if (one === undefined || answer === undefined) return null;
      one.left -= 1;
      return 'error' in answer
        ? { member: 'error', json: JSON.stringify(answer.error) }
        : { member: 'result', json: JSON.stringify(answer.result) };
    },
    isUsed: () => overrides.length > 0,
  };
}
