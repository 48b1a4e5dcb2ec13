/**
 * What ran twice, or may have: the same tool called with the same arguments again before the fate of the first call was known. A
 * call that was cancelled, or whose client left, may have run all the same: its fate stays unknown. An answer settles it, an
 * error and `input_required` too, and so does an HTTP status that refuses it. A resumed stream (`Last-Event-ID`) sends no call
 * again, a progress token makes no other call, and the next round of a call has other params.
 * Specification 2026-07-28, server/tools, and schema, ToolAnnotations.
 */

import { createHash } from 'node:crypto';
import { BoundedLists, BoundedMap } from '../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import { jsonOf } from '../../protocol/message/conversation.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { canonicalMethod } from '../../protocol/message/methods.ts';
import { withoutByteOrderMark } from '../../protocol/text.ts';
import type { StoredFrame } from '../../store/read/frames.ts';

/** A call that was made again. `gap`: microseconds from the first. */
export type RepeatedCall = { first: Place; gap: number };

export type Repeats = {
  /** Takes the calls of a client in their order. `params`: parsed. Returns the latest equal call whose fate is unknown. */
  call(place: Place, at: number, params: JsonObject | null): RepeatedCall | null;
  /** The client knows what became of a call. */
  settle(place: Place): void;
};

/** So many calls are remembered, so that a session of any length takes constant memory. */
const MAX_OPEN = 65_536;

type OpenCall = { place: Place; at: number; key: string };

export function createRepeats(): Repeats {
  const open = new BoundedLists<OpenCall>(MAX_OPEN);
  const byPlace = new BoundedMap<string, OpenCall>(MAX_OPEN);
  return {
    call(place, at, params) {
      const key = params === null ? null : paramsKey(params);
      if (key === null) return null;
      const first = open.newest(key);
      const call = { place, at, key };
      open.add(key, call);
      byPlace.set(`${place.seq}.${place.n}`, call);
      return first === undefined ? null : { first: first.place, gap: at - first.at };
    },
    settle({ seq, n }) {
      const call = byPlace.get(`${seq}.${n}`);
      if (call === undefined) return;
      byPlace.delete(`${seq}.${n}`);
      open.remove(call.key, call);
    },
  };
}

/** Equal for equal params, but for `_meta`; null where that cannot be told, because a number has more digits than JavaScript keeps. */
export function paramsKey(params: JsonObject): string | null {
  let isExact = true;
  const { _meta, ...own } = params;
  const text = JSON.stringify(own, (_, value: unknown) => {
    if (typeof value === 'number' && !Number.isSafeInteger(value) && Number.isInteger(value)) isExact = false;
    return isObject(value) ? sorted(value) : value;
  });
  return isExact ? createHash('sha256').update(text).digest('base64') : null;
}

function sorted(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Larger payloads are not compared. */
const MAX_BYTES = 1024 * 1024;

/**
 * Takes all frames of a session in their order; returns which messages of each are such calls, by their number in it.
 * `statusOf`: of an HTTP exchange.
 */
export function createRepeatReader(
  statusOf: (httpExchange: number) => number | null,
): (frame: StoredFrame) => ReadonlyMap<number, RepeatedCall> {
  const repeats = createRepeats();
  const carriers = new BoundedMap<string, number>(MAX_OPEN);

  /** An error of HTTP is an answer. */
  function wasRefused({ seq, n }: Place): boolean {
    const carrier = carriers.get(`${seq}.${n}`);
    return carrier !== undefined && (statusOf(carrier) ?? 0) >= 400;
  }

  return (frame) => {
    const found = new Map<number, RepeatedCall>();
    for (const row of frame.messages) {
      const { seq, n, kind, method, relation, toSeq, toN } = row;
      if (relation === 'reply' && toSeq !== null) repeats.settle({ seq: toSeq, n: toN ?? 0 });
      if (kind !== 'request' || canonicalMethod(method ?? '') !== CALL) continue;
      const repeat = repeats.call({ seq, n }, frame.at, paramsOf(frame, n));
      if (frame.http !== null) carriers.set(`${seq}.${n}`, frame.http.exchange);
      if (repeat !== null && !wasRefused(repeat.first)) found.set(n, repeat);
    }
    return found;
  };
}

const CALL = 'tools/call';

function paramsOf(frame: StoredFrame, n: number): JsonObject | null {
  const json = jsonOf(frame);
  if (json.length > MAX_BYTES) return null;
  try {
    const value: unknown = JSON.parse(withoutByteOrderMark(json.toString('utf8')));
    const message: unknown = Array.isArray(value) ? value[n] : value;
    return isObject(message) && isObject(message['params']) ? message['params'] : null;
  } catch {
    return null;
  }
}
