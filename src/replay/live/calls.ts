/**
 * The calls of one client that a live server is to answer: from the request to its answer, or to why there is none.
 * Between us and the server stand ids of our own, which no other episode has, so that each can stand anywhere in a
 * recording.
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
  /** By which the server knows it; its progress token, too. */
  id: string;
  request: LiveRequest;
  /** Why the recording has no answer to it; null where it was not asked. */
  missed: ReplayRefusal | null;
  messages: EpisodeMessage[];
  /** False while the server is being started. */
  isSent: boolean;
  place: EpisodeSlot | null;
};

export type LiveCallsOptions = {
  /** How long an answer may take since the call was asked, or its progress was last heard of. */
  timeoutMs: number;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  nextId: () => string;
  onEpisode: (episode: Episode) => void;
  /** The server need not answer it any more. */
  onGivenUp: (call: LiveCall) => void;
};

type LiveCalls = {
  /** Returns the call, whose first message is what is to be sent. */
  begin(request: LiveRequest, missed: ReplayRefusal | null): LiveCall;
  /** It is on its way now. */
  sent(call: LiveCall): void;
  get(id: string): LiveCall | undefined;
  /** The one that was asked last and is still open. A subscription is nobody's but its own. */
  last(): LiveCall | null;
  /** The latest with this id of the client's; `asker` tells those of several transports apart. */
  find(clientKey: string, asker?: Asker): LiveCall | undefined;
  /** It has been heard of, and may take its time anew. */
  refresh(call: LiveCall): void;
  answer(call: LiveCall, message: Message, json: Buffer, status: number | null): void;
  /** The client gets an error, and the recording nothing that looks like an answer. */
  fail(call: LiveCall | undefined, why: string): void;
  /** All of them: the server has gone. */
  failAll(why: string): void;
  /** Nothing more is sent for it. */
  leave(call: LiveCall, failure: Failure): void;
  /** Nothing more is sent for any, and all episodes are told. */
  leaveAll(failure: Failure): void;
  /** What was said outside of calls. */
  addAside(messages: EpisodeMessage[]): void;
  /** The server is alive. */
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

  function begin(request: LiveRequest, missed: ReplayRefusal | null): LiveCall {
    const id = options.nextId();
    const live = substitute(request.json, [
      { path: ['id'], text: id },
      { path: TOKEN, text: id },
    ]);
    const messages: EpisodeMessage[] = [{ from: 'client', kind: 'request', at: now(), json: live }];
    const place = isListen(request) ? null : order.take();
    const call: LiveCall = { id, request, missed, messages, isSent: false, place };
    // A subscription is open for as long as its client wants.
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
    // A subscription ends without an answer wherever its client ends it.
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
      order.take().fill({ topic: null, messages, outcome: 'ok', latencyMs: null, failure: null }, true);
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

/** The source text of the id by which the client knows it. */
export function clientId({ request }: LiveCall): string {
  return sourceAt(request.json, ['id']) ?? 'null';
}

function episodeOf(
  { request, messages }: LiveCall,
  outcome: Episode['outcome'],
  failure: Failure | null,
): Episode {
  const { canonical: method, details } = request.message;
  const latencyMs =
    outcome === 'unanswered' ? null : ((messages.at(-1)?.at ?? 0) - (messages[0]?.at ?? 0)) / 1000;
  return { topic: { method, target: details.target }, messages, outcome, latencyMs, failure };
}

/** What is said where a live server does not answer, and which of its answers are no answers of its own. */

/** No credentials, too slow, too many: they are about the moment and not about the request. So is everything from 500 on. */
const PASSING_STATUSES = new Set([401, 403, 404, 408, 429]);

const FIRST_SERVER_ERROR = 500;

const METHOD_NOT_FOUND = -32601;

/** Why an answer tells of the way to the server, or of its state, rather than of what was asked; null where it does not. */
function whyFailed(message: Message, status: number | null): string | null {
  // 2026-07-28 answers an unknown method with 404 (basic/transports/streamable-http).
  const isOwn = message.kind !== 'error' || (status === 404 && message.code === METHOD_NOT_FOUND);
  if (isOwn || status === null) return null;
  return PASSING_STATUSES.has(status) || status >= FIRST_SERVER_ERROR
    ? `its answer was HTTP ${status}`
    : null;
}

/**
 * Gives episodes out in the order in which their calls were asked, as a recorder would have seen them: the k-th identical
 * call is to get the k-th answer. An answer that is an error is kept back for a moment: a server that dies may say one
 * before, and that is the death's and not the server's answer.
 */
// Tests replace the globals by clocks of their own.

type EpisodeSlot = {
  /** The episode is over. `isSure` false: it waits for `confirm`, a moment, or `doubt`. */
  fill(episode: Episode, isSure: boolean): void;
};

type EpisodeOrder = {
  /** A place behind all that were taken before. */
  take(): EpisodeSlot;
  /** The server has said something more, so it lives. */
  confirm(): void;
  /** The server has gone: what is not sure was its end. */
  doubt(why: string): void;
  /** Gives out what is there, and leaves a gap where nothing is yet. */
  flush(): void;
  /** Settles when nothing waits for a moment to pass. */
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
