/**
 * What is kept of an answer whose payload is not (`record --meta-for`), where its request is: which that is, and how the call ended.
 * It stands in the place of the payload as a JSON-RPC answer without content, so that the index of messages can be made from it anew.
 */

import type { Outcome } from './correlate.ts';
import type { Id } from './details.ts';

/** `outcome`: of the call, as its answer alone tells it. */
export type KeptAnswer = { id: Id; outcome: Outcome };

/** `digest` is the placeholder of the whole payload. A frame of one answer has one object, a batch has an array. */
export function writeAnswers(answers: readonly KeptAnswer[], digest: string, isBatch: boolean): Buffer {
  const texts = answers.map(({ id, outcome }) => {
    const written = id.type === 'string' ? `"${id.text}"` : id.text;
    return `{"jsonrpc":"2.0","id":${written},${memberOf(outcome, JSON.stringify(digest))}}`;
  });
  return Buffer.from(isBatch ? `[${texts.join(',')}]` : texts.join(''));
}

function memberOf(outcome: Outcome, digest: string): string {
  switch (outcome) {
    case 'error':
      return `"error":{"code":0,"message":${digest}}`;
    case 'tool-error':
      return `"result":{"isError":true,"payload":${digest}}`;
    case 'input-required':
      return `"result":{"resultType":"input_required","payload":${digest}}`;
    default:
      return `"result":{"payload":${digest}}`;
  }
}
