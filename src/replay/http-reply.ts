/**
 * The answer to one POST with requests in it, in the form in which its recorded counterpart came: JSON or an event stream.
 * A stream also where something precedes the answer; the other form where the client takes no other.
 */
import type { ServerResponse } from 'node:http';
import type { HttpExchangeRow } from '../store/http-reader.ts';
import { arrayOf } from './batch.ts';
import type { EventStream, EventStreams } from './event-stream.ts';
import { type Accepted, answerHeaders, EVENTS_TYPE, JSON_TYPE } from './http-headers.ts';
import { cameUnasked, isEventStream } from './http-profile.ts';
import type { Asker, Send } from './player.ts';
import type { Recording } from './recording.ts';
import type { Step } from './script.ts';
import { sourceAt } from './substitute.ts';

export type Reply = Required<Asker> & {
  /** All its messages have been taken: chooses the form, and sends what is there. */
  start(): void;
  /** Nobody waits for it any more. */
  end(): void;
};

export type ReplyOptions = {
  recording: Recording;
  response: ServerResponse;
  accepted: Accepted;
  /** How many requests it is to answer. */
  requests: number;
  isBatch: boolean;
  /** To be sent as a header. */
  sessionId: string | null;
  streams: EventStreams;
  /** Takes what cannot go before the answer, or did not when it was recorded. */
  sendUnasked: Send;
  /** The status of an error that was never recorded over HTTP. */
  statusOf: (answer: Buffer) => number;
};

type Sent = { json: Buffer; step: Step | null; isAnswer: boolean };

const OK = 200;
const FIRST_ERROR_STATUS = 400;
const LAST_STATUS = 999;
/** Answers of these have no body. */
const BODILESS = new Set([204, 205, 304]);

export function createReply(options: ReplyOptions): Reply {
  const { recording, response, accepted, isBatch, sessionId, streams, sendUnasked, statusOf } = options;
  const planned: Step[] = [];
  /** The exchanges that the recorded calls were asked on. */
  const asked = new Set<number>();
  const queue: Sent[] = [];
  const answers: Sent[] = [];
  let open = options.requests;
  let isStarted = false;
  let isPaused = false;
  let stream: EventStream | null = null;

  function start(): void {
    isStarted = true;
    if (isStreamed()) openStream();
    for (const sent of queue.splice(0)) pass(sent);
  }

  function isStreamed(): boolean {
    if (!accepted.events || isRefusal()) return false;
    if (!accepted.json) return true;
    const isWhole = queue.filter(({ isAnswer }) => isAnswer).length === open;
    const isEmpty = planned.length === 0 && !isWhole;
    return isEmpty || planned.some(isForStream) || queue.some(({ isAnswer }) => !isAnswer);
  }

  /** An error that has an HTTP status of its own is no stream. */
  function isRefusal(): boolean {
    const [first] = queue;
    return !isBatch && first !== undefined && first.isAnswer && statusFor(first) >= FIRST_ERROR_STATUS;
  }

  function isForStream(step: Step): boolean {
    return !step.isAnswer || (step.exchange !== null && wasStreamed(step.exchange));
  }

  function openStream(): void {
    const first = planned.find(({ exchange }) => exchange !== null);
    const [exchange = first?.exchange ?? null] = [...asked].filter(wasStreamed);
    const row = exchange === null ? undefined : recording.exchange(exchange);
    response.writeHead(OK, answerHeaders(row, EVENTS_TYPE, sessionId));
    response.flushHeaders();
    stream = streams.open({ waits: false });
    stream.attach(response);
    const priming = first === undefined ? null : recording.primingBefore({ ...first, exchange });
    if (priming !== null) stream.prime(priming.retry);
  }

  function pass(sent: Sent): void {
    const { json, step, isAnswer } = sent;
    if (stream !== null && !isPaused && step !== null && cameOnResumed(step)) {
      stream.pause();
      isPaused = true;
    }
    if (stream !== null) stream.send(json, step !== null && recording.hadEventId(step.place));
    else if (isAnswer) answers.push(sent);
    else sendUnasked(json, step, false);
    if (isAnswer) settle();
  }

  function settle(): void {
    open -= 1;
    if (open > 0) return;
    if (stream === null) sendJson();
    else stream.end();
  }

  /** Whether the server had ended the call's own stream before: its client was to come back for the rest. */
  function cameOnResumed({ exchange, place }: Step): boolean {
    if (exchange === null || asked.has(exchange) || !recording.hadEventId(place)) return false;
    return [...asked].some(
      (number) => wasStreamed(number) && recording.exchange(number)?.closedBy === 'server',
    );
  }

  function wasStreamed(exchange: number): boolean {
    return isEventStream(recording.exchange(exchange));
  }

  function sendJson(): void {
    const [first] = answers;
    if (first === undefined) return;
    const row = rowOf(first.step);
    const texts = answers.map(asRecorded);
    const body = isBatch ? arrayOf(texts) : (texts[0] ?? first.json);
    const headers = answerHeaders(row, JSON_TYPE, sessionId);
    headers.push('Content-Length', String(body.length));
    response.writeHead(isBatch ? OK : statusFor(first), headers).end(body);
  }

  /** A refusal names no request where the recorded one named none. */
  function asRecorded({ json, step }: Sent): Buffer {
    if (step === null || step.exchange === null || step.kind !== 'error') return json;
    const recorded = recording.load(step.place);
    return sourceAt(recorded, ['id']) === 'null' ? recorded : json;
  }

  function statusFor({ json, step }: Sent): number {
    const row = rowOf(step);
    if (row === undefined) return statusOf(json);
    return row.method === 'POST' && canCarry(row.status) ? row.status : OK;
  }

  /** Answers of legacy HTTP+SSE came on a stream that was opened for all of them. */
  function rowOf(step: Step | null): HttpExchangeRow | undefined {
    return step === null || step.exchange === null ? undefined : recording.exchange(step.exchange);
  }

  return {
    plan(steps, exchange) {
      if (exchange !== null) asked.add(exchange);
      for (const step of steps) if (!cameUnasked(recording, step)) planned.push(step);
    },
    send(json, step, isAnswer) {
      if (step !== null && cameUnasked(recording, step)) sendUnasked(json, step, isAnswer);
      else if (isStarted) pass({ json, step, isAnswer });
      else queue.push({ json, step, isAnswer });
    },
    /**
     * A stream that had nothing but this stays open, as the official servers leave it: at its end a client would come back
     * for the answer.
     */
    withdraw() {
      if (options.requests > 1) settle();
    },
    start,
    end: () => stream?.end(),
  };
}

/** Whether an answer can have this status. A recording may have been edited by hand. */
function canCarry(status: number | null): status is number {
  return status !== null && status >= OK && status <= LAST_STATUS && !BODILESS.has(status);
}
