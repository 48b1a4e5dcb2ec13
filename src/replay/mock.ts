/**
 * The mock server without its transport: one recording, any number of clients, each with its own state. A message goes
 * through it top-down: `receive` sorts it by its kind, match/matching.ts decides what a request gets, and play/player.ts
 * sends that, or live/client.ts asks a live server.
 */

import type { Id } from '../protocol/message/details.ts';
import type { Message, NotificationMessage, RequestMessage } from '../protocol/message/message.ts';
import { FIRST_CLIENT } from '../protocol/wire/frame.ts';
import type { Live } from './live/live.ts';
import type { Matching } from './match/matching.ts';
import { createPlayer, type RecordedReply } from './play/player.ts';
import type { ReadyAnswer, ReadyAnswers } from './play/ready.ts';
import { type Asker, LiveRequest, type ReplayEvents, type Send } from './play/request.ts';
import { createTimetable, type Speed } from './play/timetable.ts';
import type { Recording } from './recording/recording.ts';

type MockOptions = {
  recording: Recording;
  matching: Matching;
  speed: Speed;
  /** Answers to calls that need not be read; of use only where `needsNoReading`. */
  ready?: ReadyAnswers | null;
  events: ReplayEvents;
  /** Where requests go that the recording cannot answer; without it they are refused. */
  live?: Live | undefined;
  /** An answer in place of the recorded one and of the live server's; null for none. */
  override?: ((request: RequestMessage, json: Buffer) => OwnAnswer | null) | undefined;
};

/** `json`: the text of the answer's member. `notification`: a message after which the request stays open. */
export type OwnAnswer = { member: 'result' | 'error'; json: string } | { notification: string };

/** Clients of HTTP leave without a word: of more than these, the one that was quiet for longest is dropped. */
export const MAX_CLIENTS = 10_000;

export type MockClient = {
  /**
   * Takes a message of the client; `json` is its own text. Messages of other kinds than a request have no asker. Returns
   * what was recorded for a request, some of which may have been sent by then; null where nothing recorded is played.
   */
  receive(message: Message, json: Buffer, asker?: Asker): RecordedReply | null;
  /** The answer to a text that needs no reading: nothing else is to be done. Null where it has to be read, and received. */
  answerUnread(json: Buffer): ReadyAnswer | null;
  /** The transport of this request was closed: nobody waits for its answer. */
  abandon(id: Id, asker: Asker): void;
  /** Plays what the server said before it was asked anything. */
  begin(): void;
  /** The client has gone for good. */
  leave(): void;
};

export type Mock = {
  /** `sendUnasked` takes messages that belong to no request. */
  createClient(sendUnasked: Send): MockClient;
  /** A client sent something that is no message. `payload` is at least its beginning, `size` all of its bytes. */
  noticeMalformed(payload: Buffer, size: number, problem: string): void;
  /**
   * Settles when every call has got what could be sent for it by now. At recorded speed, what the server said by itself
   * is not waited for.
   */
  idle(): Promise<void>;
  /** Nothing that is still to come is sent: the recording may be closed, and nothing keeps the process alive. */
  end(): void;
};

/** Whether nothing but the recording answers, at once, and nobody watches. */
export function needsNoReading({
  speed,
  live,
  override,
  events,
}: Pick<MockOptions, 'speed' | 'live' | 'override' | 'events'>): boolean {
  const { onRequest, onMatch, onAnswer } = events;
  const isWatched = onRequest !== undefined || onMatch !== undefined || onAnswer !== undefined;
  return speed === 'fast' && live === undefined && override === undefined && !isWatched;
}

const NOBODY: Asker = { send() {} };

export function createMock(options: MockOptions): Mock {
  const { recording, matching, speed, events, live, override } = options;
  const ready = needsNoReading(options) ? options.ready : null;
  const { script } = recording;
  const timetable = createTimetable(speed);

  function createClient(sendUnasked: Send): MockClient {
    const matched = matching.connect();
    const player = createPlayer({ recording, timetable, sendUnasked, events });
    const server = live?.createClient(sendUnasked, matched.number) ?? null;
    /** What the server said first is still to be played: it depends on who the client is. */
    let isAwaiting = false;

    function receive(message: Message, json: Buffer, asker = NOBODY): RecordedReply | null {
      server?.learn(message, json);
      if (message.kind === 'request') return answer(new LiveRequest(message, json, asker, events));
      if (message.kind === 'notification') takeNotification(message, json);
      else if (!server?.settle(message, json)) player.settle(message, json);
      return null;
    }

    function answer(request: LiveRequest): RecordedReply | null {
      const { message, json } = request;
      player.learn(message, json);
      const own = override?.(message, json) ?? null;
      if (own !== null) {
        if ('notification' in own) request.tell(Buffer.from(own.notification), null);
        else request.answerItself(own.member, own.json);
        return null;
      }
      if (server !== null && live?.takesAll) {
        server.ask(request, null);
        return null;
      }
      const decision = matched.decide(message, json);
      if (isAwaiting) begin();
      if (decision.call !== null) events.onMatch?.(message, script.placeOf(decision.call));
      if (server !== null && decision.kind === 'refuse' && decision.mayAskLive) {
        server.ask(request, decision.refusal);
        return null;
      }
      let reply: RecordedReply | null = null;
      if (decision.kind === 'play') reply = player.play(request, decision.call, decision.isRepeat);
      else if (decision.kind === 'answer') request.answerItself(decision.member, decision.json);
      else request.refuse(decision.refusal);
      server?.passSetting(message, json);
      return reply;
    }

    function takeNotification(message: NotificationMessage, json: Buffer): void {
      const { cancels } = message.details;
      if (cancels !== null && server?.cancel(cancels)) return;
      server?.pass(message, json);
      if (cancels !== null) player.cancel(cancels);
    }

    function begin(): void {
      const client = script.clients.length > 1 ? matched.boundTo() : (script.clients[0] ?? FIRST_CLIENT);
      isAwaiting = client === null;
      if (client !== null) player.begin(client);
    }

    return {
      receive,
      answerUnread(json) {
        if (ready == null) return null;
        const known = ready.find(json);
        const hit = known < 0 ? null : matched.nextLike(known);
        const call = hit?.call ?? matched.nextInStep();
        if (call < 0 || (hit === null && !ready.isTextOf(call, json))) return null;
        const answer = ready.answer(call, json);
        if (answer === null) return null;
        if (hit === null) matched.takeInStep();
        else matched.takeLike(hit);
        return answer;
      },
      abandon(id, asker) {
        if (!server?.cancel(id.key, asker)) player.abandon(id, asker);
      },
      begin,
      leave() {
        matched.leave();
        void server?.close();
      },
    };
  }

  return {
    createClient,
    noticeMalformed(payload, size, problem) {
      const beginning = recording.redactedNow(payload.subarray(0, MAX_REDACTED_BYTES));
      const shown = beginning.toString('utf8', 0, MAX_SHOWN_BYTES);
      const line = `malformed input: what the client sent ${problem}: ${shown}${size > MAX_SHOWN_BYTES ? '…' : ''}`;
      events.onNotice({ line, text: `${line}\n` });
    },
    async idle() {
      await live?.idle();
      await timetable.idle();
    },
    end: timetable.end,
  };
}

const MAX_SHOWN_BYTES = 60;

/** No secret that begins in what is shown is longer. */
const MAX_REDACTED_BYTES = 16 * 1024;
