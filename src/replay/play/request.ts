/** Carries a request of a live client through the mock: what was asked, where the answer goes, and who watches. */

import type { Place } from '../../protocol/message/correlate.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import type { Notice } from '../match/compare.ts';
import type { ReplayRefusal } from '../match/refusal.ts';
import type { Step } from '../recording/script.ts';
import { ownAnswer } from './translate.ts';

/** Sends one message of the server. `isAnswer`: nothing more comes for the request. `step`: null for one of our own. */
export type Send = (json: Buffer, step: Step | null, isAnswer: boolean) => void;

/** The part of a transport that brought a request: takes what is sent for it. */
export type Asker = {
  send: Send;
  /**
   * How many milliseconds an answer waits after progress. Clients that read both as one piece of input may take the answer
   * first, and drop the progress. Missing where they never come as one.
   */
  pauseMs?: number;
  /** The client has taken a request back: it gets no answer. */
  withdraw?: () => void;
};

/** Watches a mock. Each is called before the client can know of it, and changes nothing. */
export type ReplayEvents = {
  onRequest?: (request: RequestMessage, json: Buffer) => void;
  /** The request equals this recorded one. */
  onMatch?: (request: RequestMessage, recorded: Place) => void;
  /** Neither the recording nor a live server has an answer: the client gets an error. */
  onRefusal: (refusal: ReplayRefusal, request: RequestMessage) => void;
  onAnswer?: (request: RequestMessage, answer: Buffer) => void;
  /** The client took the request back, or left before its answer. */
  onCancel?: (request: RequestMessage) => void;
  /** Something else did not go as it was recorded: another answer to a server's question, malformed input. */
  onNotice: (notice: Notice) => void;
};

export class LiveRequest {
  readonly message: RequestMessage;
  /** The message's own text. */
  readonly json: Buffer;
  readonly asker: Asker;
  readonly #events: ReplayEvents;

  constructor(message: RequestMessage, json: Buffer, asker: Asker, events: ReplayEvents) {
    this.message = message;
    this.json = json;
    this.asker = asker;
    this.#events = events;
    events.onRequest?.(message, json);
  }

  /** Whether this is the request with this id that this part of a transport brought. */
  isFrom(key: string, asker: Asker): boolean {
    return this.message.id.key === key && this.asker === asker;
  }

  /** Sends something besides the answer. */
  tell(json: Buffer, step: Step | null): void {
    this.asker.send(json, step, false);
  }

  answer(json: Buffer, step: Step | null): void {
    this.#events.onAnswer?.(this.message, json);
    this.asker.send(json, step, true);
  }

  /** Answers in the server's place: the member `result` or `error`, as JSON text. */
  answerItself(member: 'result' | 'error', json: string): void {
    this.answer(ownAnswer(this.json, member, json), null);
  }

  refuse(refusal: ReplayRefusal): void {
    this.#events.onRefusal(refusal, this.message);
    this.answerItself('error', JSON.stringify(refusal.error));
  }

  /** The client has taken it back. */
  withdraw(): void {
    this.#events.onCancel?.(this.message);
    this.asker.withdraw?.();
  }

  /** Its transport has gone: nobody waits for it any more. */
  abandon(): void {
    this.#events.onCancel?.(this.message);
  }
}
