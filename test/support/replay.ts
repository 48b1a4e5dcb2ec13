/** Requests and their keys. */
import fc from 'fast-check';
import { canonicalMethod, targetParam } from '../../src/protocol/message/methods.ts';
import type { IgnoreRules } from '../../src/replay/match/ignore.ts';
import { findParams, type RequestKey, requestKey } from '../../src/replay/match/key.ts';
import type { CallTable } from '../../src/replay/match/matcher.ts';
import { createTopics } from '../../src/replay/recording/topics.ts';

/** The key of a request whose params are given as JSON text, or as a value. */
export function keyOf(method: string, params?: unknown, rules?: IgnoreRules): RequestKey {
  const source = typeof params === 'string' ? params : JSON.stringify(params);
  const member = source === undefined ? '' : `,"params":${source}`;
  const payload = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"m"${member}}`);
  const canonical = canonicalMethod(method);
  const named = source === undefined ? undefined : JSON.parse(source)[targetParam(canonical) ?? ''];
  const target = typeof named === 'string' ? named : null;
  const key = requestKey({ method: canonical, target }, payload, findParams(payload, 0), rules);
  if (typeof key === 'string') throw new Error(`no key: ${key}`);
  return key;
}

export function call(tool: string, args: unknown, rules?: IgnoreRules): RequestKey {
  return keyOf('tools/call', { name: tool, arguments: args }, rules);
}

/** A recording of these requests, the one of number i in frame i. */
export function recordedCalls(keys: readonly RequestKey[]): CallTable {
  const topics = createTopics();
  const numbers = keys.map((key) => topics.add(key));
  return {
    size: keys.length,
    topics,
    topicOf: (call) => numbers[call] ?? -1,
    placeOf: (seq) => ({ seq, n: 0 }),
    digestOf: (call) => keys[call]?.digest ?? null,
  };
}

/** JSON with few names and values, so that two of them are often nearly equal. */
export const smallJson: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom(0, 1, '1', 'a', 'ab', true, null, '', 1.5),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c~/d', "it's", 'x-y'), tie('value'), { maxKeys: 3 }),
  ),
})).value;

export const smallArguments: fc.Arbitrary<Record<string, unknown>> = fc.dictionary(
  fc.constantFrom('a', 'b', 'id', 'x y'),
  smallJson,
  { maxKeys: 3 },
);
