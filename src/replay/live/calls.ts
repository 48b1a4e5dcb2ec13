/**
 * The calls of one client that a live server is to answer: from the request to its answer, or to why there is none.
 * Between us and the server stand ids of our own, which no other episode has, so that each can stand anywhere in a
 * recording.
 */
// Tests replace the globals by clocks of their own.

import { clearTimeout, setTimeout } from 'node:timers';
import { sourceAt, substitute } from '../../protocol/json/edit.ts';
import type { Message, RequestMessage } from '../../protocol/message/message.ts';
import { createPendingCalls } from '../../talk/pending.ts';
import type { ReplayRefusal } from '../match/matching.ts';
import { NO_RECORDED_ANSWER } from '../match/miss.ts';
import type { Asker } from '../play/player.ts';
import { liveAnswer, ownAnswer } from '../play/translate.ts';
import { type Episode, type EpisodeMessage, type Failure, outcomeOfAnswer } from './episode.ts';

export type LiveCall = {
  /** By which the server knows it; its progress token, too. */
  id: string;
  request: RequestMessage;
  /** As the client sent it. */
  json: Buffer;
  /** Why the recording has no answer to it; null where it was not asked. */
  missed: ReplayRefusal | null;
  asker: Asker;
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
  /** A client was told that nothing answers it. */
  onRefusal: (refusal: ReplayRefusal, request: RequestMessage) => void;
  /** The server need not answer it any more. */
  onGivenUp: (call: LiveCall) => void;
};

type LiveCalls = {
  /** Gives the call, whose first `said` is what is to be sent. */
  begin(request: RequestMessage, json: Buffer, missed: ReplayRefusal | null, asker: Asker): LiveCall;
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

  function begin(
    request: RequestMessage,
    json: Buffer,
    missed: ReplayRefusal | null,
    asker: Asker,
  ): LiveCall {
    const id = options.nextId();
    const live = substitute(json, [
      { path: ['id'], text: id },
      { path: TOKEN, text: id },
    ]);
    const messages: EpisodeMessage[] = [{ from: 'client', kind: 'request', at: now(), json: live }];
    const place = isListen(request) ? null : order.take();
    const call: LiveCall = { id, request, json, missed, asker, messages, isSent: false, place };
    // A subscription is open for as long as its client wants.
    calls.add(id, call, !isListen(request));
    return call;
  }

  function answer(call: LiveCall, message: Message, json: Buffer, status: number | null): void {
    call.messages.push({ from: 'server', kind: message.kind, at: now(), json });
    calls.remove(call.id);
    call.asker.send(liveAnswer(call, json), null, true);
    const outcome = outcomeOfAnswer(message);
    const why = whyFailed(message, status);
    const failure: Failure | null = why === null ? null : { by: 'server', why };
    placeOf(call).fill(episodeOf(call, outcome, failure), outcome !== 'error');
    idleIfOver();
  }

  function fail(call: LiveCall | undefined, why: string): void {
    if (call === undefined) return;
    const refusal = liveRefusal(call.request, why, call.missed);
    options.onRefusal(refusal, call.request);
    call.asker.send(ownAnswer(call.json, 'error', JSON.stringify(refusal.error)), null, true);
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
          ({ request, asker: own }) => request.id.key === clientKey && (asker === undefined || own === asker),
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

export function isListen({ canonical }: RequestMessage): boolean {
  return canonical === 'subscriptions/listen';
}

/** The source text of the id by which the client knows it. */
export function clientId({ json }: LiveCall): string {
  return sourceAt(json, ['id']) ?? 'null';
}

function episodeOf(
  { request, messages }: LiveCall,
  outcome: Episode['outcome'],
  failure: Failure | null,
): Episode {
  const { canonical: method, details } = request;
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

/** `missed`: why the recording has no answer either; null where nothing was played. */
function liveRefusal(request: RequestMessage, why: string, missed: ReplayRefusal | null): ReplayRefusal {
  const { canonical: method, details } = request;
  const live = `no answer from the live server: ${why}`;
  const call = details.target === null ? method : `${method} ${JSON.stringify(details.target)}`;
  const explanation = missed === null ? `${call}: ${live}` : `${missed.explanation}; ${live}`;
  const known = missed === null ? { method, target: details.target } : (missed.error.data as object);
  const data = { reason: 'live-failed', ...known, explanation, live: why, options: [] };
  const message = `tapedeck: ${missed === null ? '' : 'no recorded answer to '}${explanation}`;
  const error = { code: NO_RECORDED_ANSWER, message, data };
  // Which options would change it has been tried: a server was asked.
  return { error, isUnreadable: false, explanation, line: explanation, text: `${explanation}\n` };
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
