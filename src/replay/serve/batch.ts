/**
 * Collects the answers to a batch, which leave together as one array (JSON-RPC 2.0, section 6). MCP has batches in
 * 2025-03-26 only, but servers of other revisions of that era accept them. Other messages leave alone, at once.
 */

import type { Asker, Send } from '../play/request.ts';
import type { Step } from '../recording/script.ts';

/** `requests`: how many of the batch's messages get an answer. */
export function createBatch(send: Send, requests: number): Asker {
  const answers: Buffer[] = [];
  let open = requests;

  function settle(step: Step | null): void {
    open -= 1;
    if (open === 0 && answers.length > 0) send(arrayOf(answers), step, true);
  }

  return {
    send(json, step, isAnswer) {
      if (!isAnswer) return send(json, step, false);
      answers.push(json);
      settle(step);
    },
    withdraw: () => settle(null),
  };
}

export function arrayOf(elements: readonly Buffer[]): Buffer {
  const pieces = elements.flatMap((element, i) => (i === 0 ? [element] : [COMMA, element]));
  return Buffer.concat([OPEN, ...pieces, CLOSE]);
}

const OPEN = Buffer.from('[');

const COMMA = Buffer.from(',');

const CLOSE = Buffer.from(']');
