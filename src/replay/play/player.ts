/**
 * The recorded server, for one live client: takes the client's messages, and says what the recorded server said, with
 * the client's own ids and tokens (translate.ts); what the server asked is asked again (questions.ts). It owns no transport
 * and no clock: where messages go and when is given to it.
 *
 * A call that the recorded client took back has no answer: it gets what was said for it until then, and stays open until
 * the live client takes it back too, or leaves.
 */

import type { Place } from '../../protocol/message/correlate.ts';
import type { Id } from '../../protocol/message/details.ts';
import type { Message, RequestMessage } from '../../protocol/message/message.ts';
import { repeatedSteps } from '../match/repeat.ts';
import type { Script, Step } from '../recording/script.ts';
import { createQuestions, lackingForInput } from './questions.ts';
import {
  endsSubscription,
  isCancellation,
  isProgress,
  liveAnswer,
  liveNotification,
  liveProgress,
  ownAnswer,
  tokenOf,
} from './translate.ts';

/** What is to be done for a live request. */
export type Choice =
  /** Play this call of the script. `isRepeat`: not for the first time. */
  | { type: 'call'; call: number; isRepeat: boolean }
  /** Answer in the server's place: the member `result` or `error`, as JSON text. */
  | { type: 'answer'; member: 'result' | 'error'; json: string }
  /** Somebody else answers it. */
  | { type: 'elsewhere'; ask: (asker: Asker) => void };

/** Sends one message of the server. `isAnswer`: nothing more comes for the request. */
export type Send = (json: Buffer, step: Step | null, isAnswer: boolean) => void;

/** Whoever brought a request: takes what is said for it. */
export type Asker = {
  send: Send;
  /**
   * All that was recorded for a request, before anything of it is sent. `exchange`: the HTTP exchange that the recorded
   * call was asked on.
   */
  plan?: (steps: readonly Step[], exchange: number | null) => void;
  /** The client has taken a request back: it gets no answer. */
  withdraw?: () => void;
};

/** `first` and `next` of what is sent for a request; `unasked`: for none. */
export type Turn = 'first' | 'next' | 'unasked';

/** Does something so many microseconds (of recorded time) later. Gives what prevents it; null where it is done already. */
type Schedule = (micros: number, turn: Turn, action: () => void) => (() => void) | null;

type PlayerOptions = {
  script: Script;
  /** The message of the recording at this place: its own JSON text. */
  load: (place: Place) => Buffer;
  choose: (request: RequestMessage, json: Buffer) => Choice;
  /** The recorded server asked for something that the live client cannot do: gives the error to answer with, as JSON. */
  onIncapable: (request: RequestMessage, capability: string) => string;
  /** The client has answered the question that the recorded server asked at this place. */
  onSettled: (question: Place, answer: Message, json: Buffer) => void;
  /** Sends what belongs to no request. */
  sendUnasked: Send;
  schedule: Schedule;
};

export type Player = {
  /** `json` is the message's own text. Messages of other kinds than a request have no asker. */
  receive(message: Message, json: Buffer, asker?: Asker): void;
  /**
   * Nobody waits for this request any more: its transport was closed. Clients whose transports share a player may use
   * the same id at once, so it is the one that this asker brought.
   */
  abandon(id: Id, asker: Asker): void;
  /** Plays what the server said before it was asked anything. */
  begin(): void;
};

/** A request that is being answered. */
type Play = {
  request: RequestMessage;
  json: Buffer;
  asker: Asker;
  call: number;
  isRepeat: boolean;
  recordedToken: () => string | undefined;
  steps: readonly Step[];
  next: number;
  isOver: boolean;
  /** Prevents its next step. */
  cancel: () => void;
};

const INTERNAL_ERROR = -32603;

const NOBODY: Asker = { send() {} };

const nothing = () => {};

export function createPlayer(options: PlayerOptions): Player {
  const { script, load, choose, sendUnasked, schedule } = options;
  /** What is being answered; of several requests with one id, `plays` has the latest. */
  const open = new Set<Play>();
  const plays = new Map<string, Play>();
  const questions = createQuestions<Play>();

  function receive(message: Message, json: Buffer, asker = NOBODY): void {
    if (message.kind === 'request') ask(message, json, asker);
    else if (message.kind !== 'notification') settle(message, json);
    else if (message.details.cancels !== null) stop(message.details.cancels);
  }

  function ask(request: RequestMessage, json: Buffer, asker: Asker): void {
    questions.learn(request, json);
    const choice = choose(request, json);
    if (choice.type === 'elsewhere') choice.ask(asker);
    if (choice.type === 'answer') asker.send(ownAnswer(json, choice.member, choice.json), null, true);
    if (choice.type !== 'call') return;
    const { call, isRepeat } = choice;
    const all = script.stepsOf(call);
    const steps = isRepeat ? repeatedSteps(request.canonical, all) : all;
    const recordedToken = once(() => tokenOf(load(script.placeOf(call))));
    const cancel = nothing;
    const play = {
      request,
      json,
      asker,
      call,
      isRepeat,
      recordedToken,
      steps,
      next: 0,
      isOver: false,
      cancel,
    };
    plays.set(request.id.key, play);
    open.add(play);
    asker.plan?.(steps, script.httpExchangeOf(call));
    advance(play);
  }

  /** Sends what is due, up to the next step that has to wait. */
  function advance(play: Play): void {
    const step = play.steps[play.next];
    if (step === undefined || play.isOver || questions.isOpen(step.waitsFor, play)) return;
    const before = play.steps[play.next - 1];
    const turn = before === undefined ? 'first' : 'next';
    const cancel = schedule(step.after - (before?.after ?? 0), turn, () => {
      if (play.isOver || play.steps[play.next] !== step || questions.isOpen(step.waitsFor, play)) return;
      play.next += 1;
      tryPerform(play, step);
      advance(play);
    });
    // What was done at once may have set the one of a later step.
    if (cancel !== null) play.cancel = cancel;
  }

  /** A recording that cannot be read is the caller's trouble, not the end of all clients. */
  function tryPerform(play: Play, step: Step): void {
    try {
      perform(play, step);
    } catch (error) {
      // Its answer has gone already; what failed came behind it.
      if (play.isOver) return;
      const message = `tapedeck: the recording cannot be read: ${(error as Error).message}`;
      refuse(play, JSON.stringify({ code: INTERNAL_ERROR, message }));
    }
  }

  function perform(play: Play, step: Step): void {
    const recorded = load(step.place);
    if (step.isAnswer) answer(play, step, recorded);
    else if (step.kind === 'request') askBack(play, step, recorded);
    else {
      const live = notificationFor(play, recorded);
      if (live !== null) play.asker.send(live, step, false);
    }
  }

  function answer(play: Play, step: Step, recorded: Buffer): void {
    const capability = play.request.details.isModern ? lackingForInput(recorded, play.json) : null;
    if (capability !== null) {
      refuse(play, options.onIncapable(play.request, capability));
      return;
    }
    finish(play);
    play.asker.send(liveAnswer(play, recorded), step, true);
    // News once only: a client that lists anew because the list has changed would never come to an end.
    if (!play.isRepeat) for (const unasked of script.aftermathOf(play.call)) sendLater(unasked, play);
  }

  function askBack(play: Play, step: Step, recorded: Buffer): void {
    const capability = questions.lacking(recorded);
    if (capability !== null) refuse(play, options.onIncapable(play.request, capability));
    else play.asker.send(questions.ask(recorded, step.place, play), step, false);
  }

  function refuse(play: Play, error: string): void {
    finish(play);
    play.asker.send(ownAnswer(play.json, 'error', error), null, true);
  }

  function finish(play: Play): void {
    play.isOver = true;
    play.cancel();
    open.delete(play);
    if (plays.get(play.request.id.key) === play) plays.delete(play.request.id.key);
  }

  function settle(message: Message, json: Buffer): void {
    const settled = questions.settle(message);
    if (settled === undefined) return;
    options.onSettled(settled.place, message, json);
    if (settled.asked !== null) advance(settled.asked);
  }

  function stop(key: string): void {
    const play = plays.get(key);
    if (play === undefined) return;
    finish(play);
    play.asker.withdraw?.();
  }

  function sendLater(step: Step, after: Play | null): void {
    schedule(step.after, 'unasked', () => {
      try {
        sendUnaskedLive(step, load(step.place), after);
      } catch {
        // It cannot be read, and nobody waits for it.
      }
    });
  }

  function sendUnaskedLive(step: Step, recorded: Buffer, after: Play | null): void {
    if (step.kind === 'notification') {
      const live = isProgress(recorded)
        ? after && liveProgress(after, recorded)
        : questions.takeBack(recorded);
      if (live !== null) sendUnasked(live, step, false);
    }
    // No call depends on it, so a client that cannot be asked is not.
    else if (step.kind === 'request' && questions.lacking(recorded) === null)
      sendUnasked(questions.ask(recorded, step.place, null), step, false);
  }

  function notificationFor(play: Play, recorded: Buffer): Buffer | null {
    if (isProgress(recorded)) return liveProgress(play, recorded);
    if (isCancellation(recorded) && !endsSubscription(play, recorded)) return questions.takeBack(recorded);
    return liveNotification(play, recorded);
  }

  return {
    receive,
    abandon(id, asker) {
      for (const play of open) if (play.request.id.key === id.key && play.asker === asker) finish(play);
    },
    begin() {
      for (const step of script.prologue()) sendLater(step, null);
    },
  };
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
