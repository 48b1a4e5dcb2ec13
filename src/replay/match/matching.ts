/**
 * Decides what a live request gets: the part of a recorded call, an answer of our own, or a refusal. It never chooses what
 * was recorded for another request.
 */

import type { RequestMessage } from '../../protocol/message/message.ts';
import type { Recording } from '../recording/recording.ts';
import { COMMAND_LINE_WORDS, type HintWords } from './hints.ts';
import { createRecordingKeys } from './key.ts';
import { type CallCursor, createMatcher, type Hit } from './matcher.ts';
import { explainMiss, type MissContext, unreadableMiss } from './miss.ts';
import {
  ambiguousRefusal,
  doubtfulRefusal,
  missRefusal,
  type ReplayRefusal,
  unansweredRefusal,
  unreadableRefusal,
} from './refusal.ts';
import type { Repeat } from './repeat.ts';

/** `call`: the recorded call that the request equals; null where there is none, or none was looked for. */
type Decision =
  /** What the server sent for the call is sent again. `isRepeat`: the call has answered this client before. */
  | { kind: 'play'; call: number; isRepeat: boolean }
  /** Any server of the recording's era answers so. `json`: the text of the answer's member. */
  | { kind: 'answer'; call: number | null; member: 'result' | 'error'; json: string }
  /** `mayAskLive`: a live server could answer it, and its answer could be recorded. */
  | { kind: 'refuse'; call: number | null; refusal: ReplayRefusal; mayAskLive: boolean };

export type MatchingOptions = {
  repeat: Repeat;
  ignore: readonly string[];
  ignoreTool: readonly string[];
  /** How misses name options; by default as a command line. */
  words?: HintWords;
};

export type Matching = {
  /** A new client, which begins at the first of identical calls. */
  connect(): { decide(request: RequestMessage, json: Buffer): Decision };
  /** Calls that no client has asked for. */
  unplayed(): number[];
  /** Says of each path to ignore that met its tool and never led to anything so. */
  idlePaths(): readonly string[];
};

/** Requests without an effect that a recording could show: any client may send them. */
const HARMLESS = new Set(['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']);

/** Methods that 2026-07-28 no longer has. */
const REMOVED = new Set([...HARMLESS, 'initialize']);

/** Accepted also where a client had begun with a revision that the server then refused. */
const FIRST_MODERN_VERSION = '2026-07-28';

const UNSUPPORTED_VERSION = -32022;

const METHOD_NOT_FOUND = -32601;

/** Throws `TapedeckError` `usage` for a path that is none. */
export function createMatching(recording: Recording, options: MatchingOptions): Matching {
  const { script, session, originOf } = recording;
  const isModern = session.era === 'modern';
  const keys = createRecordingKeys(recording, options.ignore, options.ignoreTool);
  const matcher = createMatcher({ ...script, digestOf: keys.digestOf }, options.repeat);
  const words = options.words ?? COMMAND_LINE_WORDS;
  const context: MissContext = {
    ...{ methods: matcher.methods, keyAt: keys.keyAt, originOf, words, effort: { compared: 0 } },
    remarks: (asked) => keys.watch.remarks(words, asked),
    knownTargets(method) {
      const names = method === 'tools/call' ? [...recording.tools().keys()] : [];
      const isListed = names.length > 0;
      return { names: isListed ? names : script.topics.targetsOf(method), isListed };
    },
  };

  function decide(cursor: CallCursor, request: RequestMessage, json: Buffer): Decision {
    if (isModern && isForeignVersion(request)) return unsupportedVersion(request);
    const found = find(cursor, request, json);
    return found.kind === 'hit' ? decideCall(request, found) : (withoutRecording(request, null) ?? found);
  }

  function find(cursor: CallCursor, request: RequestMessage, json: Buffer): Hit | Decision {
    const key = keys.ofRequest(request, json);
    if (typeof key === 'string') {
      const { canonical: method, details } = request;
      // It equals no request, not even itself: to record an answer to it would be in vain.
      return refuse(missRefusal(unreadableMiss({ method, target: details.target }, key, words)), null, false);
    }
    if (keys.isAmbiguous(key)) return refuse(ambiguousRefusal(request), null);
    try {
      const found = cursor.next(key);
      return found.kind === 'hit'
        ? found
        : refuse(missRefusal(explainMiss(key, found, cursor, context)), null);
    } catch (error) {
      // Recorded calls are read when they are compared, and the store may have gone by then.
      return refuse(unreadableRefusal(request, error as Error), null);
    }
  }

  function decideCall(request: RequestMessage, { call, isRepeat }: Hit): Decision {
    const place = script.placeOf(call);
    if (script.isDoubtful(call)) return refuse(doubtfulRefusal(request, recording, place), call, false);
    // In this order, because `mayStayOpen` reads the store.
    if (script.isAnswered(call) || mayStayOpen(request, call)) return { kind: 'play', call, isRepeat };
    const refusal = () => refuse(unansweredRefusal(request, recording, place), call, false);
    return withoutRecording(request, call) ?? refusal();
  }

  /** A subscription may, and so may a call that its client took back. */
  function mayStayOpen({ canonical }: RequestMessage, call: number): boolean {
    return canonical === 'subscriptions/listen' || recording.wasCancelled(script.placeOf(call));
  }

  /** What any server of the recording's era answers, whether or not it was asked when it was recorded. */
  function withoutRecording({ canonical, details }: RequestMessage, call: number | null): Decision | null {
    if ((isModern || session.era === 'dual') && details.isModern)
      return REMOVED.has(canonical) ? methodNotFound(call) : null;
    if (HARMLESS.has(canonical)) return { kind: 'answer', call, member: 'result', json: '{}' };
    if (isModern) return unsupportedVersion({ details }, call);
    return canonical === 'server/discover' ? methodNotFound(call) : null;
  }

  /** A revision in which nobody asked the recorded server: its answers are not in it. */
  function isForeignVersion({ details: { isModern, protocolVersion } }: RequestMessage): boolean {
    return (
      isModern && protocolVersion !== session.protocolVersion && protocolVersion !== FIRST_MODERN_VERSION
    );
  }

  function unsupportedVersion(
    { details }: Pick<RequestMessage, 'details'>,
    call: number | null = null,
  ): Decision {
    const data = { supported: [session.protocolVersion], requested: details.protocolVersion };
    return errorAnswer({ code: UNSUPPORTED_VERSION, message: 'Unsupported protocol version', data }, call);
  }

  return {
    connect() {
      const cursor = matcher.connect();
      return { decide: (request, json) => decide(cursor, request, json) };
    },
    unplayed: () => [...matcher.unplayed()].map(({ call }) => call),
    idlePaths: () => keys.watch.remarks(words),
  };
}

function methodNotFound(call: number | null): Decision {
  return errorAnswer({ code: METHOD_NOT_FOUND, message: 'Method not found' }, call);
}

function errorAnswer(error: object, call: number | null): Decision {
  return { kind: 'answer', call, member: 'error', json: JSON.stringify(error) };
}

function refuse(refusal: ReplayRefusal, call: number | null, mayAskLive = true): Decision {
  return { kind: 'refuse', call, refusal, mayAskLive };
}
