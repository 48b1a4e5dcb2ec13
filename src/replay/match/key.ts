/**
 * What makes two requests the same request: the method, and the params in canonical form without what differs from
 * one run to the next though the request is the same.
 *
 * - Of `_meta`: `progressToken`, the trace context, and what 2026-07-28 clients say of themselves on every request.
 *   Keys of vendors count. A `_meta` with nothing else in it is none; no params are `{}`.
 * - Of `initialize` nothing but the method counts: who connects, and by which version, is not what it asks.
 * - `requestState` and `inputResponses` count: each round of a request is a request of its own.
 * - Variants of a method's name are one method (protocol/methods.ts).
 * - What the user ignores (ignore.ts).
 */

import { hash } from 'node:crypto';
import { remembering } from '../../protocol/bounded.ts';
import {
  type CanonicalProblem,
  canonicalText,
  type Filter,
  KEEP_ALL,
} from '../../protocol/json/canonical.ts';
import { eachElement, findMember, type Span, skipSpace, typeAt } from '../../protocol/json/read.ts';
import { targetParam } from '../../protocol/message/methods.ts';
import { DIGEST_BYTES } from '../recording/columns.ts';
import type { CallTopic } from '../recording/topics.ts';
import { argumentsFilter, IGNORE_NOTHING, type IgnoreRules, ignoring } from './ignore.ts';

export type RequestKey = CallTopic & {
  /** Of method and params. */
  digest: Buffer;
  /** The canonical text of what counts of the params. */
  params: Buffer;
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

const NO_PARAMS = Buffer.from('{}');

const META: Filter = {
  enter: (name) => (VOLATILE_META.has(String(name)) ? null : KEEP_ALL),
  dropsEmpty: true,
};

const PARAMS: Filter = { enter: (name) => (name === '_meta' ? META : KEEP_ALL), dropsEmpty: false };

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
  return { ...key, digest: digestOf(caller, key.digest) };
}

function paramsFilter({ method, target }: CallTopic, rules: IgnoreRules): Filter {
  if (rules === IGNORE_NOTHING) return PARAMS;
  const ignored = rules.isEveryParamIgnored ? NOTHING : ignoring(PARAMS, rules.params);
  const own = method === 'tools/call' ? argumentsFilter(rules, target) : KEEP_ALL;
  const targetName = targetParam(method);
  return {
    enter(name) {
      if (name === targetName) return KEEP_ALL;
      const filter = ignored.enter(name);
      return name === 'arguments' && filter !== null ? both(filter, own) : filter;
    },
    dropsEmpty: false,
  };
}

const NOTHING: Filter = { enter: () => null, dropsEmpty: false };

function both(a: Filter, b: Filter | null): Filter | null {
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
const nameOf = remembering((method) => Buffer.from(`${JSON.stringify(method)}\0`));

function digestOf(method: string, params: Buffer): Buffer {
  const name = nameOf(method);
  return hash('sha256', Buffer.concat([name, params]), 'buffer').subarray(0, DIGEST_BYTES);
}

/** Where the params of a payload's `n`-th message stand; null where it has none. The payload must be readable. */
export function findParams(payload: Buffer, n: number): Span | null {
  const hasBom = payload[0] === 0xef && payload[1] === 0xbb && payload[2] === 0xbf;
  const start = skipSpace(payload, hasBom ? 3 : 0);
  const type = typeAt(payload, start);
  if (type === 'object') return n === 0 ? paramsAt(payload, start) : null;
  if (type !== 'array') return null;
  let found: Span | null = null;
  let i = 0;
  eachElement(payload, start, (element) => {
    if (i === n && element.type === 'object') found = paramsAt(payload, element.start);
    i += 1;
  });
  return found;
}

function paramsAt(payload: Buffer, start: number): Span | null {
  return findMember(payload, start, 'params') ?? null;
}
