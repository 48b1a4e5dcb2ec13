/**
 * Where the messages of a payload stand. A payload is one message, or a batch (an array of them, JSON-RPC 2.0, section 6); a
 * byte order mark and space may stand around it. The payload must be JSON: `parseMessages` says whether it is.
 */

import { eachElement, type Span, skipSpace, typeAt } from '../json/read.ts';
import { byteOrderMarkLength } from '../text.ts';

/** The place of the first byte that is JSON; the payload's length where there is none. */
export function payloadStart(payload: Buffer): number {
  return skipSpace(payload, byteOrderMarkLength(payload));
}

export function isBatch(payload: Buffer): boolean {
  return typeAt(payload, payloadStart(payload)) === 'array';
}

/** Message `n` of a payload, counted from 0; a payload that is no batch is one message, whatever `n` is. */
export function messageSpan(payload: Buffer, n: number): Span | undefined {
  const start = payloadStart(payload);
  const type = typeAt(payload, start);
  if (type === 'array') return elementsOf(payload, start)[n];
  let end = payload.length;
  while (end > start && skipSpace(payload, end - 1) > end - 1) end -= 1;
  return { start, end, type };
}

/** The bytes of message `n`. Throws a RangeError where a batch has fewer messages. */
export function messageText(payload: Buffer, n: number): Buffer {
  const span = messageSpan(payload, n);
  if (span === undefined) throw new RangeError(`the batch has no message ${n}`);
  const { start, end } = span;
  return end - start === payload.length ? payload : payload.subarray(start, end);
}

/** The messages of a batch are asked for in turn: walking it anew for each would take the square of the time. */
const batches = new WeakMap<Buffer, readonly Span[]>();

function elementsOf(payload: Buffer, start: number): readonly Span[] {
  const known = batches.get(payload);
  if (known !== undefined) return known;
  const elements: Span[] = [];
  eachElement(payload, start, (element) => elements.push(element));
  batches.set(payload, elements);
  return elements;
}
