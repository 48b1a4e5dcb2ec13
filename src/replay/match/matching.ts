/**
 * Decides what a live request gets: the part of a recorded call, an answer of our own, or a refusal. It never chooses what
 * was recorded for another request.
 */

import type { CanonicalProblem } from '../../protocol/json/canonical.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import type { Recording } from '../recording/recording.ts';
import { type BoundClient, createClients } from './clients.ts';
import { readRefusals } from './faults.ts';
import { COMMAND_LINE_WORDS, type HintWords } from './hints.ts';
import type { MatchPaths } from './ignore.ts';
import type { RequestKey } from './key.ts';
import type { Hit, NoHit } from './matcher.ts';
import { explainMiss, type MissContext, type MissExplanation, unreadableMiss } from './miss.ts';
import { createRecordingKeys, type KeepCall, type MatchFunctions } from './recording-keys.ts';
import {
  ambiguousRefusal,
  doubtfulRefusal,
  missRefusal,
  type ReplayRefusal,
  strangerRefusal,
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

export type MatchingOptions = MatchPaths &
  MatchFunctions & {
    repeat: Repeat;
    /** How misses name options; by default as a command line. */
    words?: HintWords;
    /** Whether a live client may be a recorded one that another live one is or was (default true). */
    sharesClients?: boolean;
  };

/** A live client. */
type MatchedClient = Omit<BoundClient, 'meet' | 'next' | 'candidates' | 'askedBy'> & {
  decide(request: RequestMessage, json: Buffer): Decision;
};

export type Matching = {
  /** A new client. Which recorded client it is shows in what it asks first (clients.ts). */
  connect(): MatchedClient;
  /** Calls that no client has asked for. Refusals of what a request says of its client do not count. */
  unasked(): number[];
  /** How many calls there are to ask for. */
  size: number;
  /**
   * Reads so many recorded calls at most before the first client comes, within so many milliseconds: what is read then is found
   * by how it is written. Those that are left are read when somebody asks for them, or for one behind them. Where paths are ignored, all are:
   * what is said of a path is about calls that somebody asked for.
   */
  readAhead(most: { calls: number; ms: number }, keep?: KeepCall | null): void;
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
  const keys = createRecordingKeys(recording, options, options);
  const refusals = readRefusals(recording, keys);
  const { repeat, sharesClients = true, words = COMMAND_LINE_WORDS, ignore, ignoreTool = [] } = options;
  const ignoresPaths = ignore.length + ignoreTool.length > 0;
  const clients = createClients(recording, {
    repeat,
    digestOf: keys.digestOf,
    leftOut: refusals.calls,
    areShared: sharesClients,
  });
  const context: MissContext = {
    ...{ methods: script.topics.methods, keyAt: keys.keyAt, originOf, words, effort: { compared: 0 } },
    remarks: (asked) => keys.watch.remarks(words, asked),
    knownTargets(method) {
      const names = method === 'tools/call' ? [...recording.tools().keys()] : [];
      const isListed = names.length > 0;
      return { names: isListed ? names : script.topics.targetsOf(method), isListed };
    },
  };

  function decide(client: BoundClient, request: RequestMessage, json: Buffer): Decision {
    const key = keys.ofRequest(request, json, client.boundTo());
    const refused = typeof key === 'string' ? null : refusals.find(request, json, key);
    if (refused !== null) return { kind: 'play', call: refused, isRepeat: true };
    const foreign = refuseVersion(request);
    if (foreign !== null) return foreign;
    const isKnown = client.meet(request, json);
    const found = isKnown ? find(client, request, json, key) : refuse(strangerRefusal(request), null);
    return found.kind === 'hit' ? decideCall(request, found) : (withoutRecording(request, null) ?? found);
  }

  function find(
    client: BoundClient,
    request: RequestMessage,
    json: Buffer,
    key: RequestKey | CanonicalProblem,
  ): Hit | Decision {
    const found = findKey(client, request, key);
    if (found.kind === 'hit') return found;
    // What is redacted only now was recorded before in the clear, or later not.
    const keyNow = keys.ofRequestNow(request, json);
    return keyNow === null ? found : findKey(client, request, keyNow);
  }

  function findKey(
    client: BoundClient,
    request: RequestMessage,
    key: RequestKey | CanonicalProblem,
  ): Hit | Decision {
    if (typeof key === 'string') {
      const { canonical: method, details } = request;
      // It equals no request, not even itself: to record an answer to it would be in vain.
      return refuse(missRefusal(unreadableMiss({ method, target: details.target }, key, words)), null, false);
    }
    if (keys.isAmbiguous(key)) return refuse(ambiguousRefusal(request), null);
    try {
      const found = client.next(key);
      if (found.kind !== 'hit') return refuse(missRefusal(explained(client, key, found)), null);
      if (found.isRepeat) keys.expectAgain(key);
      return found;
    } catch (error) {
      // Recorded calls are read when they are compared, and the store may have gone by then.
      return refuse(unreadableRefusal(request, error as Error), null);
    }
  }

  function explained(client: BoundClient, key: RequestKey, found: NoHit): MissExplanation {
    const miss = explainMiss(key, found, client, context);
    const other = client.askedBy(key);
    if (other === null) return miss;
    const who = `client ${other} of the recording asked this, and this client is client ${client.boundTo()}`;
    return { ...miss, remarks: [...miss.remarks, who] };
  }

  function decideCall(request: RequestMessage, { call, isRepeat }: Hit): Decision {
    if (script.isDoubtful(call))
      return refuse(doubtfulRefusal(request, recording, script.placeOf(call)), call, false);
    // In this order, because `mayStayOpen` reads the store.
    if (script.isAnswered(call) || mayStayOpen(request, call)) return { kind: 'play', call, isRepeat };
    const refusal = () => refuse(unansweredRefusal(request, recording, script.placeOf(call)), call, false);
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
    if (isModern || (canonical === 'initialize' && refusals.supported !== null))
      return unsupportedVersion({ details }, call);
    return canonical === 'server/discover' ? methodNotFound(call) : null;
  }

  /** For a revision that the recorded server refused, or in which nobody asked it: its answers are not in the recording. */
  function refuseVersion({ details }: RequestMessage): Decision | null {
    const { protocolVersion } = details;
    if (!details.isModern || protocolVersion === null) return null;
    const json = refusals.versionError(protocolVersion);
    if (json !== null) return { kind: 'answer', call: null, member: 'error', json };
    const isSpoken = protocolVersion === FIRST_MODERN_VERSION || supported().includes(protocolVersion);
    return isModern && !isSpoken ? unsupportedVersion({ details }) : null;
  }

  function supported(): readonly unknown[] {
    return refusals.supported ?? [session.protocolVersion];
  }

  function unsupportedVersion(
    { details }: Pick<RequestMessage, 'details'>,
    call: number | null = null,
  ): Decision {
    const data = { supported: supported(), requested: details.protocolVersion };
    return errorAnswer({ code: UNSUPPORTED_VERSION, message: 'Unsupported protocol version', data }, call);
  }

  return {
    connect() {
      const client = clients.connect();
      const matched = {
        ...client,
        decide: (request: RequestMessage, json: Buffer) => decide(client, request, json),
      };
      // What is said of a path that is ignored is about all calls.
      return ignoresPaths ? { ...matched, nextInStep: () => -1 } : matched;
    },
    unasked: clients.unasked,
    size: clients.size,
    readAhead(most, keep = null) {
      if (ignoresPaths) return;
      const end = performance.now() + most.ms;
      let { calls } = most;
      const isTime = () => {
        calls -= 1;
        return calls >= 0 && performance.now() < end;
      };
      try {
        keys.expecting(keep, () => clients.readAhead(isTime));
      } catch {
        // Whoever asks for what cannot be read is told why.
      }
    },
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
