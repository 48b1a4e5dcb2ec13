/** Reads and checks a POST with messages in it, passes them to the client's mock, and answers as recorded. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { EVENTS_TYPE, JSON_TYPE, mediaType } from '../../protocol/http/headers.ts';
import { sourceAt } from '../../protocol/json/edit.ts';
import { type Message, parseMessages } from '../../protocol/message/message.ts';
import { messageText } from '../../protocol/message/payload.ts';
import type { HttpHead } from '../../store/read/http.ts';
import { type AcceptedForms, acceptedForms, answerHeaders } from '../http/headers.ts';
import { type HttpRefusal, NOT_ACCEPTABLE, NOT_JSON, TOO_LARGE, UNSUPPORTED_TYPE } from '../http/refusal.ts';
import type { MockClient } from '../mock.ts';
import type { RecordedReply } from '../play/player.ts';
import type { ReadyAnswer } from '../play/ready.ts';
import type { Asker, Send } from '../play/request.ts';
import type { Recording } from '../recording/recording.ts';
import type { Step } from '../recording/script.ts';
import { arrayOf } from './batch.ts';
import { cameAsStream, cameUnasked, type HttpProfile } from './profile.ts';
import type { SseStream, SseStreams } from './stream.ts';

export type Post = {
  request: IncomingMessage;
  response: ServerResponse;
  body: Buffer;
  messages: readonly Message[];
  isBatch: boolean;
};

const MAX_BODY_BYTES = 256 * 1024 * 1024;

const OPEN_ARRAY = 0x5b;

const ACCEPTED = 202;

/** Returns why a POST is not read; null if it may be. `isAnswered`: its answers come with it, not on another stream. */
export function findHeadProblem({ headers }: IncomingMessage, isAnswered: boolean): HttpRefusal | null {
  const { json, events } = acceptedForms(headers);
  if (isAnswered && !json && !events) return NOT_ACCEPTABLE;
  if (mediaType(headers['content-type']) !== JSON_TYPE) return UNSUPPORTED_TYPE;
  const coding = headers['content-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return UNSUPPORTED_TYPE;
  return Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES ? TOO_LARGE : null;
}

/** Calls back at the body's end, or once it is too large; never where the client left before. */
export function readBody(request: IncomingMessage, onRead: (body: Buffer | HttpRefusal) => void): void {
  let chunks: Buffer[] = [];
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    const wasTooLarge = size > MAX_BODY_BYTES;
    size += chunk.length;
    if (size <= MAX_BODY_BYTES) chunks.push(chunk);
    else if (!wasTooLarge) {
      chunks = [];
      onRead(TOO_LARGE);
    }
  });
  request.on('end', () => {
    if (size > MAX_BODY_BYTES) return;
    const [only] = chunks;
    onRead(only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks, size));
  });
}

export function readPost(
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
): Post | HttpRefusal {
  const messages = parseMessages(body);
  const isJson = messages.length > 0 && !messages.some(isNotJson);
  return isJson ? { request, response, body, messages, isBatch: startsWithArray(body) } : NOT_JSON;
}

function isNotJson(message: Message): boolean {
  return message.kind === 'invalid' && message.reason === 'not-json';
}

function startsWithArray(body: Buffer): boolean {
  // The byte-order mark that may precede it is no ASCII.
  for (const byte of body) if (byte > 0x20 && byte < 0x80) return byte === OPEN_ARRAY;
  return false;
}

type Answering = Pick<HttpReplyOptions, 'recording' | 'sessionId' | 'streams' | 'sendUnasked' | 'statusOf'>;

/** Plays all messages of the POST. Returns the reply to its requests; null where it has none. */
export function playPost(
  { request, response, body, messages, isBatch }: Post,
  client: MockClient,
  answering: Answering & { profile: HttpProfile },
): HttpReply | null {
  const requests = messages.filter(({ kind }) => kind === 'request').length;
  if (requests === 0) {
    const { profile, sessionId } = answering;
    response.writeHead(ACCEPTED, answerHeaders(profile.accepted, '', sessionId)).end();
    receiveAll(client, body, messages);
    return null;
  }
  const reply = createReply(request, response, { requests, isBatch }, answering);
  reply.start(receiveAll(client, body, messages, reply));
  return reply;
}

/** Answers a POST that needed no reading. */
export function playUnread(
  request: IncomingMessage,
  response: ServerResponse,
  { json, step, httpExchange }: ReadyAnswer,
  answering: Answering,
): void {
  const reply = createReply(request, response, ONE_REQUEST, answering);
  reply.send(json, step, true);
  reply.start([{ steps: [step], httpExchange }]);
}

const ONE_REQUEST = { requests: 1, isBatch: false };

function createReply(
  request: IncomingMessage,
  response: ServerResponse,
  { requests, isBatch }: Pick<HttpReplyOptions, 'requests' | 'isBatch'>,
  { recording, sessionId, streams, sendUnasked, statusOf }: Answering,
): HttpReply {
  const accepted = acceptedForms(request.headers);
  // Written out, because spreading an object is slow, and this runs for every request.
  return new HttpReply({
    recording,
    response,
    accepted,
    requests,
    isBatch,
    sessionId,
    streams,
    sendUnasked,
    statusOf,
  });
}

/** Passes all messages of a body to the client. Returns what was recorded for the requests among them. */
export function receiveAll(
  client: MockClient,
  body: Buffer,
  messages: readonly Message[],
  asker?: Asker,
): RecordedReply[] {
  const replies: RecordedReply[] = [];
  for (const [n, message] of messages.entries()) {
    if (message.kind === 'invalid') continue;
    const reply = client.receive(message, messageText(body, n), asker);
    if (reply !== null) replies.push(reply);
  }
  return replies;
}

/**
 * Answers one POST with requests in it, in the form of its recorded counterpart: JSON or an event stream. It is a stream
 * also where something precedes the answer. A client that accepts one form only gets that one.
 */

type HttpReplyOptions = {
  recording: Recording;
  response: ServerResponse;
  accepted: AcceptedForms;
  /** How many requests it answers. */
  requests: number;
  isBatch: boolean;
  /** Sent as a header. */
  sessionId: string | null;
  streams: SseStreams;
  /** Takes messages that cannot come before the answer, or did not when they were recorded. */
  sendUnasked: Send;
  /** The status of an error that was never recorded over HTTP. */
  statusOf: (answer: Buffer) => number;
};

type ReplyMessage = { json: Buffer; step: Step | null; isAnswer: boolean };

const OK = 200;

const FIRST_ERROR_STATUS = 400;

const LAST_STATUS = 999;

/** Answers of these have no body. */
const BODILESS = new Set([204, 205, 304]);

/** Up to here a body is copied to go out together with its head, which costs less than to write both. */
const MAX_TOGETHER_BYTES = 64 * 1024;

class HttpReply implements Required<Omit<Asker, 'pauseMs'>> {
  readonly #options: HttpReplyOptions;
  readonly #planned: Step[] = [];
  /** The HTTP exchanges that the recorded requests came on. */
  readonly #asked: number[] = [];
  readonly #answers: ReplyMessage[] = [];
  #queue: ReplyMessage[] = [];
  #open: number;
  #isStarted = false;
  #isPaused = false;
  #stream: SseStream | null = null;

  constructor(options: HttpReplyOptions) {
    this.#options = options;
    this.#open = options.requests;
  }

  /** Bound: it is passed on without its object. */
  readonly send: Send = (json, step, isAnswer) => {
    const { recording, sendUnasked } = this.#options;
    if (step !== null && cameUnasked(recording, step)) sendUnasked(json, step, isAnswer);
    else if (this.#isStarted) this.#pass({ json, step, isAnswer });
    else this.#queue.push({ json, step, isAnswer });
  };

  /**
   * The stream of a single request stays open, as the official servers leave it: at its end a client would come back for
   * the answer.
   */
  withdraw(): void {
    if (this.#options.requests > 1) this.#settle();
  }

  /** All messages of the POST have been taken: chooses the form by what was recorded for them, and sends what is there. */
  start(recorded: readonly RecordedReply[]): void {
    this.#isStarted = true;
    for (const { steps, httpExchange } of recorded) {
      if (httpExchange !== null && !this.#asked.includes(httpExchange)) this.#asked.push(httpExchange);
      for (const step of steps) if (!cameUnasked(this.#options.recording, step)) this.#planned.push(step);
    }
    if (this.#isStreamed()) this.#openStream();
    const queue = this.#queue;
    this.#queue = [];
    for (const sent of queue) this.#pass(sent);
  }

  /** Ends the reply, because nobody waits for it any more. */
  end(): void {
    this.#stream?.end();
  }

  #isStreamed(): boolean {
    const { accepted } = this.#options;
    if (!accepted.events || this.#isRefusal()) return false;
    if (!accepted.json || this.#planned.some((step) => this.#isForStream(step))) return true;
    const answers = this.#queue.filter(({ isAnswer }) => isAnswer).length;
    const isEmpty = this.#planned.length === 0 && answers !== this.#open;
    return isEmpty || answers < this.#queue.length;
  }

  /** An error that has an HTTP status of its own is no stream. */
  #isRefusal(): boolean {
    const [first] = this.#queue;
    const isAlone = !this.#options.isBatch && first !== undefined && first.isAnswer;
    return isAlone && this.#statusFor(first) >= FIRST_ERROR_STATUS;
  }

  #isForStream(step: Step): boolean {
    return !step.isAnswer || (step.httpExchange !== null && this.#wasStreamed(step.httpExchange));
  }

  #openStream(): void {
    const { recording, response, sessionId, streams } = this.#options;
    const first = this.#planned.find(({ httpExchange }) => httpExchange !== null);
    const streamed = this.#asked.find((httpExchange) => this.#wasStreamed(httpExchange));
    const httpExchange = streamed ?? first?.httpExchange ?? null;
    const row = httpExchange === null ? undefined : recording.httpExchange(httpExchange);
    response.writeHead(OK, answerHeaders(row, EVENTS_TYPE, sessionId));
    response.flushHeaders();
    this.#stream = streams.open({ waits: false });
    this.#stream.attach(response);
    const priming = first === undefined ? null : recording.primingBefore({ ...first, httpExchange });
    if (priming !== null) this.#stream.prime(priming.retry);
  }

  #pass(sent: ReplyMessage): void {
    const { json, step, isAnswer } = sent;
    if (this.#stream !== null) this.#passTo(this.#stream, json, step);
    else if (isAnswer) this.#answers.push(sent);
    else this.#options.sendUnasked(json, step, false);
    if (isAnswer) this.#settle();
  }

  #passTo(stream: SseStream, json: Buffer, step: Step | null): void {
    if (!this.#isPaused && step !== null && this.#cameOnResumed(step)) {
      stream.pause();
      this.#isPaused = true;
    }
    stream.send(json, step !== null && this.#options.recording.hadEventId(step.place));
  }

  #settle(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    if (this.#stream === null) this.#sendJson();
    else this.#stream.end();
  }

  /** Whether the server had ended the call's own stream before, so that its client came back for the rest. */
  #cameOnResumed({ httpExchange, place }: Step): boolean {
    const { recording } = this.#options;
    if (httpExchange === null || this.#asked.includes(httpExchange) || !recording.hadEventId(place))
      return false;
    return this.#asked.some(
      (number) => this.#wasStreamed(number) && recording.httpExchange(number)?.closedBy === 'server',
    );
  }

  #wasStreamed(httpExchange: number): boolean {
    return cameAsStream(this.#options.recording.httpExchange(httpExchange));
  }

  #sendJson(): void {
    const [first] = this.#answers;
    if (first === undefined) return;
    const { isBatch, response, sessionId } = this.#options;
    const headers = answerHeaders(this.#rowOf(first.step), JSON_TYPE, sessionId);
    const body = isBatch
      ? arrayOf(this.#answers.map((answer) => this.#asRecorded(answer)))
      : this.#asRecorded(first);
    headers.push('Content-Length', String(body.length));
    response.writeHead(isBatch ? OK : this.#statusFor(first), headers);
    // Node writes a text together with the head. In Latin-1 every byte is a character and stays that byte.
    if (body.length > MAX_TOGETHER_BYTES) response.end(body);
    else response.end(body.toString('latin1'), 'latin1');
  }

  /** An error names no request where the recorded one named none. */
  #asRecorded({ json, step }: ReplyMessage): Buffer {
    if (step === null || step.httpExchange === null || step.kind !== 'error') return json;
    const recorded = this.#options.recording.load(step.place);
    return sourceAt(recorded, ['id']) === 'null' ? recorded : json;
  }

  #statusFor({ json, step }: ReplyMessage): number {
    const row = this.#rowOf(step);
    if (row === undefined) return this.#options.statusOf(json);
    return row.method === 'POST' && canCarry(row.status) ? row.status : OK;
  }

  /** Answers of legacy HTTP+SSE came on a stream that was opened for all of them. */
  #rowOf(step: Step | null): HttpHead | undefined {
    return step === null || step.httpExchange === null
      ? undefined
      : this.#options.recording.httpExchange(step.httpExchange);
  }
}

/** Whether an answer can have this status. A recording may have been edited by hand. */
function canCarry(status: number | null): status is number {
  return status !== null && status >= OK && status <= LAST_STATUS && !BODILESS.has(status);
}
