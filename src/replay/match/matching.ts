/** Which recorded call answers a live request, and what is said where none does. */

import type { Place } from '../../protocol/message/correlate.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import { frameText, type Recording } from '../recording/recording.ts';
import { type IgnoreRules, readIgnoreRules } from './ignore.ts';
import { findParams, keyFor, type RequestKey, requestKey } from './key.ts';
import { type CallCursor, createMatcher } from './matcher.ts';
import {
  explainMiss,
  type MissExplanation,
  missError,
  missLine,
  missReport,
  NO_RECORDED_ANSWER,
  reasonText,
  unreadableMiss,
} from './miss.ts';
import type { Repeat } from './repeat.ts';

/** What a request gets that the recording cannot answer. */
export type ReplayRefusal = {
  /** The member `error` of the answer. */
  error: { code: number; message: string; data: unknown };
  /** It equals no request, not even itself: to record an answer to it would be in vain. */
  isUnreadable: boolean;
  /** What was asked, and why it has no answer. Recorded text in it is not escaped. */
  explanation: string;
  /** For stderr. Recorded text in it is not escaped. */
  line: string;
  /** For the report: everything, in several lines. */
  text: string;
};

/** `isRepeat`: this client was given the call before. */
export type Match = { call: number; isRepeat: boolean };

export type MatchingOptions = { repeat: Repeat; ignore: readonly string[]; ignoreTool: readonly string[] };

export type Matching = {
  /** One client's own progress through the recording. */
  createState(): { next(request: RequestMessage, json: Buffer): Match | ReplayRefusal };
  /** The call was recorded, but nobody answered it. */
  refuseUnanswered(request: RequestMessage, call: number): ReplayRefusal;
  /** The call was recorded, but what was its answer is not certain. */
  refuseDoubtful(request: RequestMessage, call: number): ReplayRefusal;
  /** The recorded server asked the client for something that the live one has not declared. */
  refuseIncapable(request: RequestMessage, capability: string): ReplayRefusal;
  /** Calls that no client has asked for. */
  unplayed(): number[];
};

/** Throws `TapedeckError` `usage` for a path that is none. */
export function createMatching(recording: Recording, options: MatchingOptions): Matching {
  const { script } = recording;
  const rules = readIgnoreRules(options.ignore, options.ignoreTool);
  const keys = createKeys(recording, rules);
  const keyAt = (place: Place) => recordedKey(recording, place, keys);
  const digestOf = (call: number) => recordedDigest(recording, call, keys);
  const hidden = findHidden(recording, keys);
  const matcher = createMatcher({ ...script, digestOf }, options.repeat);
  const { originOf } = recording;
  const recorded = { methods: matcher.methods, keyAt, originOf, effort: { compared: 0 } };

  function next(client: CallCursor, request: RequestMessage, json: Buffer): Match | ReplayRefusal {
    const asked = alike(recording, json);
    const message = asked === json ? request : recording.read(asked);
    const key = message?.kind === 'request' ? keys.of(message, asked) : 'not-json';
    if (typeof key === 'string') return refusalOf(unreadableMiss(askedBy(request), key));
    if (hidden.isAmbiguous(key)) return refuseAmbiguous(request);
    try {
      const found = client.next(key);
      if (found.kind === 'hit') return found;
      return refusalOf(explainMiss(key, found, client, recorded));
    } catch (error) {
      // Recorded calls are read when they are compared, and the store may have gone by then.
      const why = `the recording cannot be read: ${(error as Error).message}`;
      return refusal(request, 'recording-unreadable', why, {});
    }
  }

  function refuseAmbiguous(request: RequestMessage): ReplayRefusal {
    const why =
      'several calls were recorded that differ only in what was redacted, by a key that is not here, so which of them this is cannot be told; replay it where it was recorded, or ignore the redacted argument';
    return refusal(request, 'redacted-alike', why, {});
  }

  return {
    createState() {
      const client = matcher.connect();
      return { next: (request, json) => next(client, request, json) };
    },
    refuseUnanswered(request, call) {
      const origin = recording.originOf(script.placeOf(call));
      const why = `it was recorded (${frameText(origin)}), but never answered`;
      return refusal(request, 'never-answered', why, origin);
    },
    refuseDoubtful(request, call) {
      const origin = recording.originOf(script.placeOf(call));
      const why = `it was recorded (${frameText(origin)}), but another call had the same id at the same time, so which answer is its own is unknown`;
      return refusal(request, 'answer-unknown', why, origin);
    },
    refuseIncapable(request, capability) {
      const why = `the recorded server asked its client for ${capability}, which this client has not declared`;
      return refusal(request, 'client-incapable', why, { capability });
    },
    unplayed: () => [...matcher.unplayed()].map(({ call }) => call),
  };
}

/**
 * The keys of all calls of a recording that can be read, in their order. Throws `TapedeckError` `usage` for a path that
 * is none.
 */
export function* recordedKeys(
  recording: Recording,
  { ignore, ignoreTool }: Pick<MatchingOptions, 'ignore' | 'ignoreTool'>,
): Generator<RequestKey> {
  const keys = createKeys(recording, readIgnoreRules(ignore, ignoreTool));
  for (let call = 0; call < recording.script.size; call += 1) {
    const key = recordedKey(recording, recording.script.placeOf(call), keys);
    if (key !== null) yield key;
  }
}

function recordedDigest(recording: Recording, call: number, keys: Keys): Buffer | null {
  const { topics, topicOf, placeOf } = recording.script;
  const json = loadAlike(recording, placeOf(call));
  if (json === null) return null;
  const known = keys.known(topics.methodOf(topicOf(call)), json);
  return (known ?? recordedKey(recording, placeOf(call), keys))?.digest ?? null;
}

function recordedKey(recording: Recording, place: Place, keys: Keys): RequestKey | null {
  const json = loadAlike(recording, place);
  if (json === null) return null;
  const message = recording.read(json);
  if (message?.kind !== 'request') return null;
  const key = keys.of(message, json);
  return typeof key === 'string' ? null : key;
}

/** Recorded calls that nobody can tell apart any more; only where their key is not at hand are there some. */
function findHidden(recording: Recording, keys: Keys): Hidden {
  const hidden = createHidden();
  const { script, read, isExact, comparable } = recording;
  for (let call = 0; !isExact && call < script.size; call += 1) {
    const exact = loadIfThere(recording, script.placeOf(call));
    const [one, other] = [exact, exact && comparable(exact)].map((json) => {
      const message = json === null ? undefined : read(json);
      return json !== null && message?.kind === 'request' ? keys.of(message, json) : null;
    });
    if (typeof one === 'object' && typeof other === 'object' && one && other) hidden.add(other, one);
  }
  return hidden;
}

/** As it would have been recorded, as far as it can be compared. */
function alike({ redacted, comparable }: Recording, json: Buffer): Buffer {
  return comparable(redacted(json));
}

function loadAlike(recording: Recording, place: Place): Buffer | null {
  const json = loadIfThere(recording, place);
  return json && alike(recording, json);
}

function loadIfThere({ load }: Recording, place: Place): Buffer | null {
  try {
    return load(place);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

type Keys = {
  of(request: RequestMessage, json: Buffer): ReturnType<typeof requestKey>;
  /** The key of a request of this method, if one with the same text was seen lately. */
  known(method: string, json: Buffer): RequestKey | undefined;
};

const MAX_KNOWN = 256;

const MAX_KNOWN_BYTES = 2048;

/** A live request and the recorded one that it equals mostly have the same text, and many requests come again. */
function createKeys({ session }: Recording, rules: IgnoreRules): Keys {
  const lately = new Map<string, RequestKey>();
  return {
    of(request, json) {
      const asked = askedBy(request);
      const { params } = request;
      const text = textOf(asked.method, json, params);
      const before = text === null ? undefined : lately.get(text);
      if (before !== undefined) return before;
      const own = requestKey(asked, json, params, rules);
      // A server of both eras answers each in its own way.
      const hasTwin = session.era === 'dual' && request.details.isModern && typeof own !== 'string';
      const key = hasTwin ? keyFor('modern', own) : own;
      if (typeof key === 'string' || text === null) return key;
      if (lately.size === MAX_KNOWN) lately.clear();
      lately.set(text, key);
      return key;
    },
    known(method, json) {
      const text = textOf(method, json, findParams(json, 0));
      return text === null ? undefined : lately.get(text);
    },
  };
}

/** Null for one that is too long to be remembered. */
function textOf(method: string, json: Buffer, params: ReturnType<typeof findParams>): string | null {
  if (params === null) return method;
  if (params.end - params.start > MAX_KNOWN_BYTES) return null;
  return `${method}\0${json.toString('latin1', params.start, params.end)}`;
}

function askedBy({ canonical: method, details: { target } }: RequestMessage) {
  return { method, target };
}

function refusalOf(miss: MissExplanation): ReplayRefusal {
  const explanation = reasonText(miss);
  const isUnreadable = miss.reason === 'unreadable';
  return { error: missError(miss), isUnreadable, explanation, line: missLine(miss), text: missReport(miss) };
}

function refusal(request: RequestMessage, reason: string, why: string, facts: object): ReplayRefusal {
  const { method, target } = askedBy(request);
  const explanation = `${target === null ? method : `${method} ${JSON.stringify(target)}`}: ${why}`;
  const data = { reason, explanation, method, target, ...facts };
  const message = `tapedeck: no recorded answer to ${explanation}`;
  const error = { code: NO_RECORDED_ANSWER, message, data };
  return { error, isUnreadable: false, explanation, line: explanation, text: `${explanation}\n` };
}

/** Recorded calls that look the same because what tells them apart was redacted. None of them answers anybody. */

type Hidden = {
  /** `exact` tells redacted values apart, `key` does not. */
  add(key: RequestKey, exact: RequestKey): void;
  isAmbiguous(key: RequestKey): boolean;
};

function createHidden(): Hidden {
  const exactOf = new Map<string, string>();
  const ambiguous = new Set<string>();
  return {
    add({ digest }, exact) {
      const name = digest.toString('latin1');
      const own = exact.digest.toString('latin1');
      if ((exactOf.get(name) ?? own) !== own) ambiguous.add(name);
      exactOf.set(name, own);
    },
    isAmbiguous: ({ digest }) => ambiguous.size > 0 && ambiguous.has(digest.toString('latin1')),
  };
}
