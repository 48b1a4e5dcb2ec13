/**
 * Says what makes two requests the same request: the method, and the params in canonical form without what differs from
 * one run to the next though the request is the same.
 *
 * - Of `_meta`: `progressToken`, the trace context, and what 2026-07-28 clients say of themselves on every request.
 *   Keys of vendors count. A `_meta` with nothing else in it is none; no params are `{}`.
 * - Of `initialize` nothing but the method counts: who connects, and by which version, is not what it asks.
 * - `requestState` and `inputResponses` count: each round of a request is a request of its own.
 * - Variants of a method's name are one method (protocol/message/methods.ts).
 * - What the user ignores (ignore.ts) does not count.
 */

import { memoize } from '../../protocol/bounded.ts';
import {
  type CanonicalProblem,
  canonicalText,
  KEEP_ALL,
  type MemberFilter,
} from '../../protocol/json/canonical.ts';
import { findMember, type Span } from '../../protocol/json/read.ts';
import { targetParam } from '../../protocol/message/methods.ts';
import { messageSpan } from '../../protocol/message/payload.ts';
import { digestText } from '../recording/columns.ts';
import type { CallTopic } from '../recording/topics.ts';
import { argumentsFilter, IGNORE_NOTHING, type IgnoreRules, ignoring, placing } from './ignore.ts';

export type RequestKey = CallTopic & {
  /** Of method and params, a character for each byte. */
  digest: string;
  /** The canonical text of what counts of the params. */
  readonly params: Buffer;
};

const VOLATILE_META = new Set([
  'progressToken',
  'traceparent',
  'tracestate',
  'baggage',
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/clientCapabilities',
  'io.modelcontextprotocol/logLevel',
]);

export const NO_PARAMS = Buffer.from('{}');

const META: MemberFilter = {
  enter: (name) => (VOLATILE_META.has(String(name)) ? null : KEEP_ALL),
  dropsEmpty: true,
};

const PARAMS: MemberFilter = { enter: (name) => (name === '_meta' ? META : KEEP_ALL), dropsEmpty: false };

/** The key of a request whose params stand at `params` of `bytes`, or why it has none. */
export function requestKey(
  asked: CallTopic,
  bytes: Buffer,
  params: Span | null,
  rules: IgnoreRules = IGNORE_NOTHING,
): RequestKey | CanonicalProblem {
  const { method, target } = asked;
  const text =
    params === null || method === 'initialize'
      ? NO_PARAMS
      : canonicalText(bytes, params, paramsFilter(asked, rules));
  if (typeof text === 'string') return text;
  return { method, target, digest: digestOf(method, text), params: text };
}

/** The same key for another kind of caller: equal to none of those without it. */
export function keyFor(caller: string, key: RequestKey): RequestKey {
  return { ...key, digest: digestOf(caller, Buffer.from(key.digest, 'latin1')) };
}

function paramsFilter({ method, target }: CallTopic, rules: IgnoreRules): MemberFilter {
  if (rules === IGNORE_NOTHING) return PARAMS;
  const ignored = rules.isEveryParamIgnored ? NOTHING : ignoring(PARAMS, rules.params);
  const own = method === 'tools/call' ? argumentsFilter(rules, target) : KEEP_ALL;
  const targetName = targetParam(method);
  const counted: MemberFilter = {
    enter(name) {
      if (name === targetName) return KEEP_ALL;
      const filter = ignored.enter(name);
      return name === 'arguments' && filter !== null ? both(filter, own) : filter;
    },
    dropsEmpty: false,
  };
  const placed = placing(counted, rules, method === 'tools/call' ? target : null);
  return { ...placed, enter: (name) => (name === targetName ? KEEP_ALL : placed.enter(name)) };
}

const NOTHING: MemberFilter = { enter: () => null, dropsEmpty: false };

function both(a: MemberFilter, b: MemberFilter | null): MemberFilter | null {
  if (b === null || b === KEEP_ALL) return b === null ? null : a;
  if (a === KEEP_ALL) return b;
  return {
    enter(step) {
      const inA = a.enter(step);
      const inB = b.enter(step);
      return inA === null || inB === null ? null : both(inA, inB);
    },
    dropsEmpty: a.dropsEmpty || b.dropsEmpty,
  };
}

/** Not the bare method: half surrogate pairs have no bytes of their own. */
const nameOf = memoize((method) => `${JSON.stringify(method)}\0`);

/** As text: in Latin-1 every byte of the params is a character, and to join texts costs less than to join bytes. */
export function digestOf(method: string, params: Buffer): string {
  return digestText(nameOf(method) + params.toString('latin1'));
}

/** Where the params of a payload's `n`-th message stand; null where it has none. The payload must be readable. */
export function findParams(payload: Buffer, n: number): Span | null {
  const message = messageSpan(payload, n);
  return message?.type === 'object' ? (findMember(payload, message.start, 'params') ?? null) : null;
}
