/** The result of checking one request: the unit of every report. */

import type { Difference } from '../../protocol/json/diff.ts';
import { sourceAt } from '../../protocol/json/edit.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import type { Answer, AnswerKind } from '../match/compare.ts';
import type { CallTopic } from '../recording/topics.ts';
import type { ListChange } from './offers.ts';

type CheckVerdict = 'equal' | 'drift' | 'skipped' | 'not compared';

/** A request of either side, checked. */
export type RequestCheck = CallTopic & {
  /** Where the request stands in the recording; null where it is not there. */
  place: Place | null;
  askedBy: 'client' | 'server';
  verdict: CheckVerdict;
  /** What is wrong, or why the request was left out: a sentence without its full stop. */
  why: string | null;
  recorded: AnswerKind;
  live: AnswerKind;
  differences: Difference[];
  more: number;
  milliseconds: number | null;
};

export function emptyCheck(
  asked: CallTopic,
  place: Place | null,
  askedBy: RequestCheck['askedBy'],
): RequestCheck {
  const nothing = { recorded: 'no answer', live: 'no answer' } as const;
  return {
    method: asked.method,
    target: asked.target,
    place,
    askedBy,
    verdict: 'not compared',
    why: null,
    ...nothing,
    differences: [],
    more: 0,
    milliseconds: null,
  };
}

export function whyOf(
  { recorded, live, differences, more }: Pick<RequestCheck, 'recorded' | 'live' | 'differences' | 'more'>,
  problem: string | null,
  answer: Answer,
): string {
  if (problem !== null) return problem;
  if (recorded !== live) return `recorded ${recorded}, live ${live}${errorText(answer)}`;
  const count = differences.length + more;
  return `the ${live} differs in ${count} ${count === 1 ? 'place' : 'places'}`;
}

function errorText({ json }: Answer): string {
  const message: unknown = JSON.parse(sourceAt(json, ['error', 'message']) ?? 'null');
  return typeof message === 'string' ? `: ${message.slice(0, 200)}` : '';
}

/** `2 tools and 1 prompt changed (1 breaking)`. */
export function changesText(changes: readonly ListChange[]): string {
  const kinds = [...new Set(changes.map(({ kind }) => kind))];
  const counts = kinds.map((kind) => {
    const count = changes.filter((change) => change.kind === kind).length;
    return `${count} ${kind}${count === 1 ? '' : 's'}`;
  });
  const breaking = changes.filter((change) => change.breaking.length > 0).length;
  return `${counts.join(', ')} changed (${breaking} breaking)`;
}
