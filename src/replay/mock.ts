/**
 * The mock server without its transport: one recording, any number of clients, each with its own state. It decides what
 * each request is answered with, and never answers with what was recorded for another one.
 */
// Not the globals: tests replace these by clocks of their own, which would hold up every answer.

import { clearImmediate, clearTimeout, setImmediate, setTimeout } from 'node:timers';
import type { Place } from '../protocol/message/correlate.ts';
import type { Message, RequestMessage } from '../protocol/message/message.ts';
import type { LiveClient } from './live/client.ts';
import type { Live } from './live/live.ts';
import { type Answer, type Notice, tellOtherAnswer } from './match/compare.ts';
import type { Match, Matching, ReplayRefusal } from './match/matching.ts';
import { type Choice, createPlayer, type Player, type Send, type Turn } from './play/player.ts';
import { frameText, type Recording } from './recording/recording.ts';

/** Recorded time: none of it, or so many times as fast. */
export type Speed = 'fast' | number;

type MockOptions = {
  recording: Recording;
  matching: Matching;
  speed: Speed;
  /** Told of every request that a recorded call answers. */
  onMatch?: (request: RequestMessage, recorded: Place) => void;
  /** Told of every request that is refused. */
  onRefusal: (refusal: ReplayRefusal, request: RequestMessage) => void;
  /** Told of what else did not go as it was recorded: other answers to the server's questions, malformed input. */
  onNotice: (told: Notice) => void;
  /** Where requests go that the recording cannot answer; without it they are refused. */
  live?: Live | undefined;
};

/** `leave`: the client has gone for good. */
export type MockClient = Player & { leave(): void };

export type Mock = {
  /** `sendUnasked` gets what the recorded server said by itself. */
  createClient(sendUnasked: Send): MockClient;
  /** For what a transport finds. */
  notice(told: Notice): void;
  /** What a client sent as it may be told: without what the recording's rules redact. */
  redacted(bytes: Buffer): Buffer;
  /**
   * Settles when every call has got what could be sent for it by now. At recorded speed, what the server said by itself
   * is not waited for: servers go when their client does.
   */
  idle(): Promise<void>;
  /** Nothing that is still to come is sent: the recording may be closed, and nothing keeps the process alive. */
  end(): void;
};

/** Requests that change nothing which a recording would know of: a client that sends them gets its way. */
const HARMLESS = new Set(['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']);

/** Node takes a longer one for none. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** What 2026-07-28 has no more. */
const REMOVED = new Set([...HARMLESS, 'initialize']);

const UNSUPPORTED_VERSION = -32022;

const METHOD_NOT_FOUND = -32601;

/** Taken also where a client had begun with a revision that the server then refused. */
const FIRST_MODERN_VERSION = '2026-07-28';

export function createMock(options: MockOptions): Mock {
  const { recording, matching, speed, onMatch, onRefusal, onNotice, live } = options;
  const { script, session, load, read } = recording;
  const isModern = session.era === 'modern';
  /** Actions that are still to come: what prevents each. */
  const waiting = new Set<() => void>();
  /** How many of them `idle` waits for. */
  let pending = 0;
  let onIdle = () => {};
  let isEnded = false;

  function createClient(sendUnasked: Send): MockClient {
    const state = matching.createState();
    const liveClient = live?.createClient(sendUnasked);

    function choose(request: RequestMessage, json: Buffer): Choice {
      if (liveClient !== undefined && live?.takesAll) return askLive(liveClient, request, json, null);
      if (isModern && isForeignVersion(request)) return unsupported(request.details.protocolVersion);
      const found = state.next(request, json);
      if ('call' in found) return chooseCall(request, found);
      const own = withoutRecording(request);
      if (own !== null) return own;
      if (liveClient === undefined || found.isUnreadable) return refuse(found, request);
      return askLive(liveClient, request, json, found);
    }

    function chooseCall(request: RequestMessage, { call, isRepeat }: Match): Choice {
      onMatch?.(request, script.placeOf(call));
      if (script.isDoubtful(call)) return refuse(matching.refuseDoubtful(request, call), request);
      // In this order: who took a call back stands in the store.
      if (script.isAnswered(call) || mayStayOpen(request, call)) return { type: 'call', call, isRepeat };
      return withoutRecording(request) ?? refuse(matching.refuseUnanswered(request, call), request);
    }

    function refuse(refusal: ReplayRefusal, request: RequestMessage): Choice {
      onRefusal(refusal, request);
      return { type: 'answer', member: 'error', json: JSON.stringify(refusal.error) };
    }

    const player = createPlayer({
      script,
      load,
      choose,
      sendUnasked,
      schedule,
      onSettled: compareAnswer,
      onIncapable(request, capability) {
        const refusal = matching.refuseIncapable(request, capability);
        onRefusal(refusal, request);
        return JSON.stringify(refusal.error);
      },
    });
    return liveClient === undefined ? { ...player, leave() {} } : liveClient.beside(player);
  }

  function askLive(
    client: LiveClient,
    request: RequestMessage,
    json: Buffer,
    missed: ReplayRefusal | null,
  ): Choice {
    return { type: 'elsewhere', ask: (asker) => client.ask(request, json, missed, asker) };
  }

  /** A subscription does, and a call that its client took back. */
  function mayStayOpen({ canonical }: RequestMessage, call: number): boolean {
    return canonical === 'subscriptions/listen' || recording.wasCancelled(script.placeOf(call));
  }

  /** `question`: where the recorded server asked what the client has answered now. */
  function compareAnswer(question: Place, message: Message, json: Buffer): void {
    const at = recording.answerTo(question);
    const [asked, recorded] = [question, at].map((place) => (place === null ? null : messageAt(place)));
    if (!asked || !recorded || asked.message.kind !== 'request') return;
    const frame = frameText(recording.originOf(question));
    // What was redacted then does not count as another answer now, nor is it told.
    const alike = (answer: Answer) => ({
      ...answer,
      json: recording.comparable(recording.redacted(answer.json)),
    });
    const { canonical } = asked.message;
    const told = tellOtherAnswer(canonical, frame, alike(recorded), alike({ json, message }));
    if (told !== null) onNotice(told);
  }

  /** Null where it cannot be read any more. */
  function messageAt(place: Place): Answer | null {
    try {
      const json = load(place);
      const message = read(json);
      return message === undefined ? null : { json, message };
    } catch {
      return null;
    }
  }

  /** What any server of the recording's era answers, whether or not it was asked when it was recorded. */
  function withoutRecording({ canonical, details }: RequestMessage): Choice | null {
    if ((isModern || session.era === 'dual') && details.isModern)
      return REMOVED.has(canonical) ? methodNotFound() : null;
    if (HARMLESS.has(canonical)) return { type: 'answer', member: 'result', json: '{}' };
    if (isModern) return unsupported(details.protocolVersion);
    return canonical === 'server/discover' ? methodNotFound() : null;
  }

  function methodNotFound(): Choice {
    const error = { code: METHOD_NOT_FOUND, message: 'Method not found' };
    return { type: 'answer', member: 'error', json: JSON.stringify(error) };
  }

  /** A revision that the recorded server was not spoken to in: its answers would not be in it. */
  function isForeignVersion({ details: { isModern, protocolVersion } }: RequestMessage): boolean {
    return (
      isModern && protocolVersion !== session.protocolVersion && protocolVersion !== FIRST_MODERN_VERSION
    );
  }

  function unsupported(requested: string | null): Choice {
    const data = { supported: [session.protocolVersion], requested };
    const error = { code: UNSUPPORTED_VERSION, message: 'Unsupported protocol version', data };
    return { type: 'answer', member: 'error', json: JSON.stringify(error) };
  }

  /**
   * Fast, each message but the first gets a turn of its own: clients that find progress and answer in one piece of input
   * may take the answer first, and drop the progress (the official SDK does).
   */
  function schedule(micros: number, turn: Turn, action: () => void): (() => void) | null {
    if (turn === 'first' && (speed === 'fast' || micros <= 0)) {
      action();
      return null;
    }
    const isAwaited = speed === 'fast' || turn !== 'unasked';
    const settle = (act: () => void) => {
      if (!waiting.delete(cancel)) return;
      if (isAwaited) pending -= 1;
      if (!isEnded) act();
      if (pending === 0) onIdle();
    };
    const stop = after(micros, speed, () => settle(action));
    const cancel = () => {
      stop();
      settle(() => {});
    };
    waiting.add(cancel);
    if (isAwaited) pending += 1;
    return cancel;
  }

  return {
    createClient,
    notice: onNotice,
    redacted: recording.redacted,
    async idle() {
      await live?.idle();
      await new Promise<void>((resolve) => {
        onIdle = resolve;
        if (pending === 0) resolve();
      });
    },
    end() {
      isEnded = true;
      for (const cancel of waiting) cancel();
    },
  };
}

/** Gives what prevents it. */
function after(micros: number, speed: Speed, action: () => void): () => void {
  if (speed === 'fast') {
    const immediate = setImmediate(action);
    return () => clearImmediate(immediate);
  }
  const timer = setTimeout(action, Math.min(micros / 1000 / speed, MAX_TIMEOUT_MS));
  return () => clearTimeout(timer);
}
