/**
 * Follows each call that a live server is to answer, from its request to its answer or to the reason why there is none. The
 * server sees ids of our own. No two episodes share one, so an episode can stand anywhere in a recording.
 */
// Tests replace the globals by clocks of their own.

import { clearTimeout, setTimeout } from 'node:timers';
import { sourceAt, substitute } from '../../protocol/json/edit.ts';
import type { Message } from '../../protocol/message/message.ts';
import { createPendingCalls } from '../../talk/pending.ts';
import { liveRefusal, type ReplayRefusal } from '../match/refusal.ts';
import type { Asker, LiveRequest } from '../play/request.ts';
import { liveAnswer } from '../play/translate.ts';
import { type Episode, type EpisodeMessage, type Failure, outcomeOfAnswer } from './episode.ts';

export type LiveCall = {
  /** The id that the server knows; also the progress token. */
  id: string;
  request: LiveRequest;
  /** Why the recording has no answer; null where nothing is played. */
  missed: ReplayRefusal | null;
  messages: EpisodeMessage[];
  /** False while the server is being started. */
  isSent: boolean;
  place: EpisodeSlot | null;
};

export type LiveCallsOptions = {
  /** The recorded client that this one is. */
  client: () => number;
  /** How long an answer may take after the request, or after the latest progress. */
  timeoutMs: number;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  nextId: () => string;
  onEpisode: (episode: Episode) => void;
  /** The time limit has passed: the server need not answer any more. */
  onGivenUp: (call: LiveCall) => void;
};

type LiveCalls = {
  /** Returns the call, whose first message is what is to be sent. */
  begin(request: LiveRequest, missed: ReplayRefusal | null): LiveCall;
  /** The request leaves now. */
  sent(call: LiveCall): void;
  get(id: string): LiveCall | undefined;
  /** The open call that was asked last. Subscriptions do not count. */
  last(): LiveCall | null;
  /** The latest call with this id of the client. `asker` tells several transports apart. */
  find(clientKey: string, asker?: Asker): LiveCall | undefined;
  /** Starts the time limit anew. */
  refresh(call: LiveCall): void;
  answer(call: LiveCall, message: Message, json: Buffer, status: number | null): void;
  /** Answers the client with an error that is not recorded. */
  fail(call: LiveCall | undefined, why: string): void;
  /** Fails all calls, because the server has gone. */
  failAll(why: string): void;
  /** Ends the call without sending anything more. */
  leave(call: LiveCall, failure: Failure): void;
  /** Ends all calls without sending anything more, and reports all episodes. */
  leaveAll(failure: Failure): void;
  /** Adds messages outside of calls. */
  addAside(messages: EpisodeMessage[]): void;
  /** The server has shown that it is alive. */
  confirm(): void;
  count(): number;
  idle(): Promise<void>;
};

const TOKEN = ['params', '_meta', 'progressToken'];

export function createLiveCalls(options: LiveCallsOptions): LiveCalls {
  const { now, timeoutMs } = options;
  const order = createEpisodeOrder(options.onEpisode);
  const calls = createPendingCalls<LiveCall>(timeoutMs, (call) => {
    options.onGivenUp(call);
    fail(call, `nothing was heard of it for ${timeoutMs / 1000} s`);
  });
  let onIdle = () => {};
  const episodeOf = (call: LiveCall, outcome: Episode['outcome'], failure: Failure | null) =>
    createEpisode(options.client(), call, outcome, failure);

  function begin(request: LiveRequest, missed: ReplayRefusal | null): LiveCall {
    const id = options.nextId();
    const live = substitute(request.json, [
      { path: ['id'], text: id },
      { path: TOKEN, text: id },
    ]);
    const messages: EpisodeMessage[] = [{ from: 'client', kind: 'request', at: now(), json: live }];
    const place = isListen(request) ? null : order.take();
    const call: LiveCall = { id, request, missed, messages, isSent: false, place };
    // A subscription stays open for as long as its client wants.
    calls.add(id, call, !isListen(request));
    return call;
  }

  function answer(call: LiveCall, message: Message, json: Buffer, status: number | null): void {
    call.messages.push({ from: 'server', kind: message.kind, at: now(), json });
    calls.remove(call.id);
    call.request.answer(liveAnswer(call.request.message, json), null);
    const outcome = outcomeOfAnswer(message);
    const why = whyFailed(message, status);
    const failure: Failure | null = why === null ? null : { by: 'server', why };
    placeOf(call).fill(episodeOf(call, outcome, failure), outcome !== 'error');
    idleIfOver();
  }

  function fail(call: LiveCall | undefined, why: string): void {
    if (call === undefined) return;
    call.request.refuse(liveRefusal(call.request.message, why, call.missed));
    leave(call, { by: 'server', why });
  }

  function leave(call: LiveCall, failure: Failure): void {
    calls.remove(call.id);
    // A subscription that its client ends has no answer.
    const isOver = isListen(call.request) && call.messages.length > 1;
    placeOf(call).fill(episodeOf(call, 'unanswered', isOver ? null : failure), true);
    idleIfOver();
  }

  function placeOf({ place }: LiveCall): EpisodeSlot {
    return place ?? order.take();
  }

  function isIdle(): boolean {
    return calls.all().every(({ request }) => isListen(request));
  }

  function idleIfOver(): void {
    if (isIdle()) onIdle();
  }

  return {
    begin,
    sent(call) {
      const [request] = call.messages;
      if (request !== undefined) request.at = now();
      call.isSent = true;
    },
    get: calls.get,
    last: () => calls.all().findLast(({ request, isSent }) => isSent && !isListen(request)) ?? null,
    find: (clientKey, asker) =>
      calls
        .all()
        .findLast(
          ({ request }) =>
            request.message.id.key === clientKey && (asker === undefined || request.asker === asker),
        ),
    refresh: (call) => calls.restart(call.id),
    answer,
    fail,
    failAll(why) {
      order.doubt(why);
      for (const call of calls.all()) fail(call, why);
    },
    leave,
    leaveAll(failure) {
      for (const call of calls.all()) leave(call, failure);
      order.flush();
    },
    addAside(messages) {
      const aside = { topic: null, messages, outcome: 'ok', latencyMs: null, failure: null } as const;
      order.take().fill({ client: options.client(), ...aside }, true);
    },
    confirm: order.confirm,
    count: calls.count,
    async idle() {
      await new Promise<void>((resolve) => {
        onIdle = resolve;
        idleIfOver();
      });
      await order.sure();
    },
  };
}

export function isListen({ message }: LiveRequest): boolean {
  return message.canonical === 'subscriptions/listen';
}

/** The source text of the client's own id. */
export function clientId({ request }: LiveCall): string {
  return sourceAt(request.json, ['id']) ?? 'null';
}

function createEpisode(
  client: number,
  { request, messages }: LiveCall,
  outcome: Episode['outcome'],
  failure: Failure | null,
): Episode {
  const { canonical: method, details } = request.message;
  const latencyMs =
    outcome === 'unanswered' ? null : ((messages.at(-1)?.at ?? 0) - (messages[0]?.at ?? 0)) / 1000;
  return { client, topic: { method, target: details.target }, messages, outcome, latencyMs, failure };
}

/** No credentials, too slow, too many: troubles of the moment, like every status from 500 on. */
const PASSING_STATUSES = new Set([401, 403, 404, 408, 429]);

const FIRST_SERVER_ERROR = 500;

const METHOD_NOT_FOUND = -32601;

/** Why an answer is about the way to the server or its state, not about the request; null where it answers the request. */
function whyFailed(message: Message, status: number | null): string | null {
  // 2026-07-28 answers an unknown method with 404 (basic/transports/streamable-http).
  const isOwn = message.kind !== 'error' || (status === 404 && message.code === METHOD_NOT_FOUND);
  if (isOwn || status === null) return null;
  return PASSING_STATUSES.has(status) || status >= FIRST_SERVER_ERROR
    ? `its answer was HTTP ${status}`
    : null;
}

/**
 * Reports episodes in the order in which their calls were asked, as a recorder would have seen them: of identical calls,
 * each gets its own answer. An error waits for a moment: a server that dies may send one first, and that is no answer.
 */

type EpisodeSlot = {
  /** The episode is over. Where `isSure` is false, it waits for `confirm`, for `doubt`, or for a moment. */
  fill(episode: Episode, isSure: boolean): void;
};

type EpisodeOrder = {
  /** Reserves the place after all earlier ones. */
  take(): EpisodeSlot;
  /** The server has sent something more, so it lives. */
  confirm(): void;
  /** The server has gone: answers that were not sure belong to its end. */
  doubt(why: string): void;
  /** Reports every finished episode, and drops places without one. */
  flush(): void;
  /** Settles when no error waits any more. */
  sure(): Promise<void>;
};

type Slot = { episode: Episode | null; isSure: boolean };

const SURE_AFTER_MS = 250;

function createEpisodeOrder(onEpisode: (episode: Episode) => void): EpisodeOrder {
  let slots: Slot[] = [];
  let timer: NodeJS.Timeout | undefined;
  let onSure = () => {};

  function giveOut(): void {
    while (slots[0]?.episode != null && slots[0].isSure) {
      const [slot] = slots.splice(0, 1);
      if (slot?.episode != null) onEpisode(slot.episode);
    }
    if (!hasUnsure()) onSure();
  }

  function hasUnsure(): boolean {
    return slots.some(({ episode, isSure }) => episode !== null && !isSure);
  }

  function confirm(): void {
    clearTimeout(timer);
    for (const slot of slots) slot.isSure ||= slot.episode !== null;
    giveOut();
  }

  return {
    take() {
      const slot: Slot = { episode: null, isSure: false };
      slots.push(slot);
      return {
        fill(episode, isSure) {
          slot.episode = episode;
          slot.isSure = isSure;
          if (!isSure) {
            clearTimeout(timer);
            timer = setTimeout(confirm, SURE_AFTER_MS);
          }
          giveOut();
        },
      };
    },
    confirm,
    doubt(why) {
      clearTimeout(timer);
      const failure = { by: 'server', why: `its answer was an error, and then ${why}` } as const;
      for (const slot of slots) {
        if (slot.episode === null || slot.isSure) continue;
        slot.episode = { ...slot.episode, failure };
        slot.isSure = true;
      }
      giveOut();
    },
    flush() {
      slots = slots.filter(({ episode }) => episode !== null);
      confirm();
    },
    sure: () =>
      new Promise((resolve) => {
        onSure = resolve;
        if (!hasUnsure()) resolve();
      }),
  };
}
