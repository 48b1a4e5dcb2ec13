/**
 * Plays the recorded server for one live client: sends what the server sent, with the client's own ids and tokens
 * (translate.ts), when it is due (timetable.ts), and asks the client what the server asked (questions.ts). It owns no
 * transport.
 *
 * A call that the recorded client took back has no answer. It gets what was sent for it until then, and stays open until
 * the live client takes it back, too, or leaves.
 */

import type { Id } from '../../protocol/message/details.ts';
import type { Message, RequestMessage } from '../../protocol/message/message.ts';
import { incapableRefusal, unreadableRefusal } from '../match/refusal.ts';
import { mayAlwaysRepeat, repeatedSteps } from '../match/repeat.ts';
import type { Recording } from '../recording/recording.ts';
import type { Step } from '../recording/script.ts';
import { createQuestions, isSamePlace, lackingForInput } from './questions.ts';
import type { Asker, LiveRequest, ReplayEvents, Send } from './request.ts';
import type { Timetable } from './timetable.ts';
import {
  endsSubscription,
  isCancellation,
  isProgress,
  liveAnswer,
  liveNotification,
  liveProgress,
  tokenOf,
} from './translate.ts';

export type PlayerOptions = {
  recording: Recording;
  timetable: Pick<Timetable, 'schedule'>;
  /** Takes what belongs to no request. */
  sendUnasked: Send;
  events: ReplayEvents;
};

/** All that was recorded for a request. `httpExchange`: the one that the recorded request came on; null for stdio. */
export type RecordedReply = { steps: readonly Step[]; httpExchange: number | null };

export type Player = {
  /** Reads what a request says about its client, even if something else answers it. */
  learn(request: RequestMessage, json: Buffer): void;
  /** Plays what was recorded for a call of the script. `isRepeat`: not for the first time. */
  play(request: LiveRequest, call: number, isRepeat: boolean): RecordedReply;
  /** Takes the client's answer to a question. */
  settle(answer: Message, json: Buffer): void;
  /** The client takes the latest request with this id back. */
  cancel(key: string): void;
  /** The transport of this request was closed. Several transports may use one id at once. */
  abandon(id: Id, asker: Asker): void;
  /** Plays what the server said to this recorded client before it was asked anything. */
  begin(client: number): void;
};

/** A request that is being answered. */
type Play = {
  request: LiveRequest;
  call: number;
  isRepeat: boolean;
  /** The progress token of the recorded request, as it was written; null before anybody has asked for it. */
  recordedToken: { text: string | undefined } | null;
  steps: readonly Step[];
  next: number;
  isOver: boolean;
  /** The client was told how far it has come. */
  hasToldProgress: boolean;
  /** Prevents its next step. */
  cancel: () => void;
};

/** Clients answer by themselves what their roots are, and a call that needs them then goes on at once. */
const PROMPT_MICROS = 100_000;

const nothing = () => {};

export function createPlayer({ recording, timetable, sendUnasked, events }: PlayerOptions): Player {
  const { script, load } = recording;
  const { schedule } = timetable;
  /** What is being answered; of several requests with one id, `plays` has the latest. */
  const open = new Set<Play>();
  const plays = new Map<string, Play>();
  const questions = createQuestions<Play>(recording, events.onNotice);

  function play(request: LiveRequest, call: number, isRepeat: boolean): RecordedReply {
    const all = script.stepsOf(call);
    const steps = isRepeat ? repeatedSteps(request.message.canonical, all) : all;
    // Written out, because spreading an object is slow, and this runs for every request.
    const begun: Play = {
      request,
      call,
      isRepeat,
      recordedToken: null,
      steps,
      next: 0,
      isOver: false,
      hasToldProgress: false,
      cancel: nothing,
    };
    // By far the most calls get their answer at once, and are never open.
    const isPromised = steps[0]?.isAnswer === true;
    if (!isPromised) enlist(begun);
    advance(begun);
    if (isPromised && !begun.isOver) enlist(begun);
    return { steps, httpExchange: script.httpExchangeOf(call) };
  }

  function enlist(play: Play): void {
    plays.set(play.request.message.id.key, play);
    open.add(play);
  }

  function recordedToken(play: Play): string | undefined {
    play.recordedToken ??= { text: tokenOf(load(script.placeOf(play.call))) };
    return play.recordedToken.text;
  }

  /** Sends what is due, up to the next step that has to wait. */
  function advance(play: Play): void {
    const step = play.steps[play.next];
    if (step === undefined || play.isOver || questions.isOpen(step.waitsFor, play)) return;
    const before = play.steps[play.next - 1];
    const order = before === undefined ? 'first' : 'next';
    const pauseMs = play.hasToldProgress && step.isAnswer ? play.request.asker.pauseMs : 0;
    const act = () => {
      if (play.isOver || play.steps[play.next] !== step || questions.isOpen(step.waitsFor, play)) return;
      play.next += 1;
      tryPerform(play, step);
      advance(play);
    };
    const cancel = schedule(step.after - (before?.after ?? 0), order, act, pauseMs);
    // What was done at once may have set the one of a later step.
    if (cancel !== null) play.cancel = cancel;
  }

  /** A recording that cannot be read is an error for its request, not the end of all clients. */
  function tryPerform(play: Play, step: Step): void {
    try {
      perform(play, step);
    } catch (error) {
      // Its answer was sent already; what failed came after it.
      if (play.isOver) return;
      finish(play);
      play.request.refuse(unreadableRefusal(play.request.message, error as Error));
    }
  }

  function perform(play: Play, step: Step): void {
    const recorded = load(step.place);
    if (step.isAnswer) answer(play, step, recorded);
    else if (step.kind === 'request') askBack(play, step, recorded);
    else {
      const live = notificationFor(play, recorded);
      if (live === null) return;
      play.hasToldProgress ||= isProgress(recorded);
      play.request.tell(live, step);
    }
  }

  function answer(play: Play, step: Step, recorded: Buffer): void {
    const { message, json } = play.request;
    const capability = message.details.isModern ? lackingForInput(recorded, json) : null;
    if (capability !== null) {
      refuseIncapable(play, capability);
      return;
    }
    finish(play);
    play.request.answer(liveAnswer(message, recorded), step);
    // News once only: a client that lists anew because the list has changed would never come to an end.
    if (!play.isRepeat) for (const unasked of script.aftermathOf(play.call)) sendLater(unasked, play);
  }

  function askBack(play: Play, step: Step, recorded: Buffer): void {
    const capability = questions.lacking(recorded);
    if (capability === null) play.request.tell(questions.ask(recorded, step.place, play), step);
    else if (!isAside(play, step, capability)) refuseIncapable(play, capability);
  }

  /** Whether the server asked this for itself while the call happened to be open, so that the call goes on without it. */
  function isAside({ request, call, steps }: Play, question: Step, capability: string): boolean {
    const next = steps.find(({ waitsFor }) => waitsFor.some((place) => isSamePlace(place, question.place)));
    if (next === undefined) return true;
    const { httpExchange } = question;
    if (httpExchange !== null && httpExchange === script.httpExchangeOf(call)) return false;
    if (mayAlwaysRepeat(request.message.canonical)) return true;
    return capability === 'roots' && next.after - question.after > PROMPT_MICROS;
  }

  function refuseIncapable(play: Play, capability: string): void {
    finish(play);
    play.request.refuse(incapableRefusal(play.request.message, capability));
  }

  function finish(play: Play): void {
    const { key } = play.request.message.id;
    play.isOver = true;
    play.cancel();
    open.delete(play);
    if (plays.get(key) === play) plays.delete(key);
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
        ? after && liveProgress(after.request, () => recordedToken(after), recorded)
        : questions.takeBack(recorded);
      if (live !== null) sendUnasked(live, step, false);
    }
    // No call depends on it, so a client that cannot be asked is not.
    else if (step.kind === 'request' && questions.lacking(recorded) === null)
      sendUnasked(questions.ask(recorded, step.place, null), step, false);
  }

  function notificationFor(play: Play, recorded: Buffer): Buffer | null {
    const { request } = play;
    if (isProgress(recorded)) return liveProgress(request, () => recordedToken(play), recorded);
    if (isCancellation(recorded) && !endsSubscription(request, recorded)) return questions.takeBack(recorded);
    return liveNotification(request, recorded);
  }

  return {
    learn: questions.learn,
    play,
    settle(message, json) {
      const asked = questions.settle(message, json);
      if (asked !== null) advance(asked);
    },
    cancel(key) {
      const cancelled = plays.get(key);
      if (cancelled === undefined) return;
      finish(cancelled);
      cancelled.request.withdraw();
    },
    abandon(id, asker) {
      for (const play of open) {
        if (!play.request.isFrom(id.key, asker)) continue;
        finish(play);
        play.request.abandon();
      }
    },
    begin(client) {
      for (const step of script.prologue(client)) sendLater(step, null);
    },
  };
}
