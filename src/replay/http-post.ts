/** A POST with messages in it: read, checked, and given to the client's player. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Message, parseMessages } from '../protocol/message.ts';
import { acceptedForms, answerHeaders, JSON_TYPE, mediaTypeOf } from './http-headers.ts';
import type { HttpProfile } from './http-profile.ts';
import { NOT_ACCEPTABLE, NOT_JSON, type Refusal, TOO_LARGE, UNSUPPORTED_TYPE } from './http-refusal.ts';
import { Reply, type ReplyOptions } from './http-reply.ts';
import type { Asker, Player } from './player.ts';
import { messageText } from './recording.ts';

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

/** Why a POST is not read; null if it may be. */
export function findHeadProblem({ headers }: IncomingMessage, mayAcceptAnything: boolean): Refusal | null {
  const { json, events } = acceptedForms(headers);
  if (!json && !events && !mayAcceptAnything) return NOT_ACCEPTABLE;
  if (mediaTypeOf(headers['content-type']) !== JSON_TYPE) return UNSUPPORTED_TYPE;
  const coding = headers['content-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return UNSUPPORTED_TYPE;
  return Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES ? TOO_LARGE : null;
}

/** Never calls back where the client left in the middle. */
export function readPost(
  request: IncomingMessage,
  response: ServerResponse,
  onRead: (post: Post | Refusal) => void,
): void {
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
    const body = only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks, size);
    onRead(postOf(request, response, body));
  });
}

function postOf(request: IncomingMessage, response: ServerResponse, body: Buffer): Post | Refusal {
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

export type Answering = Pick<
  ReplyOptions,
  'recording' | 'sessionId' | 'streams' | 'sendUnasked' | 'statusOf'
> & { profile: HttpProfile };

/** Plays all messages of the POST. Gives the reply to its requests; null where it has none. */
export function playPost(
  { request, response, body, messages, isBatch }: Post,
  player: Player,
  answering: Answering,
): Reply | null {
  const requests = messages.filter(({ kind }) => kind === 'request').length;
  const { recording, profile, sessionId, streams, sendUnasked, statusOf } = answering;
  if (requests === 0) {
    response.writeHead(ACCEPTED, answerHeaders(profile.accepted, '', sessionId)).end();
    receiveAll(player, body, messages);
    return null;
  }
  const accepted = acceptedForms(request.headers);
  // Written out: to spread an object is slow, and this is done for every request.
  const answer = {
    recording,
    response,
    accepted,
    requests,
    isBatch,
    sessionId,
    streams,
    sendUnasked,
    statusOf,
  };
  const reply = new Reply(answer);
  receiveAll(player, body, messages, reply);
  reply.start();
  return reply;
}

export function receiveAll(player: Player, body: Buffer, messages: readonly Message[], asker?: Asker): void {
  for (const [n, message] of messages.entries()) {
    if (message.kind !== 'invalid') player.receive(message, messageText(body, n), asker);
  }
}
