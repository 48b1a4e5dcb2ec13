/** Speaks Streamable HTTP of the revisions 2025-03-26 to 2025-11-25, as the official SDKs' servers do. */

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BoundedMap } from '../../protocol/bounded.ts';
import { EVENTS_TYPE } from '../../protocol/http/headers.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import { acceptedForms, answerHeaders } from '../http/headers.ts';
import {
  type HttpRefusal,
  INVALID_REQUEST,
  methodNotAllowed,
  NO_SESSION_ID,
  NO_STREAM_ACCEPTED,
  NOT_RPC,
  REFUSED,
  refuse,
  UNKNOWN_SESSION,
} from '../http/refusal.ts';
import { MAX_CLIENTS, type Mock, type MockClient } from '../mock.ts';
import type { Send } from '../play/request.ts';
import type { Recording } from '../recording/recording.ts';
import { type Post, playPost, playUnread } from './post.ts';
import type { HttpProfile } from './profile.ts';
import { createSseStreams, type SseStream, type SseStreams } from './stream.ts';

type LegacyMock = {
  post(post: Post): void;
  /** Answers a POST whose body needs no reading. False where it has to be read. */
  postUnread(request: IncomingMessage, response: ServerResponse, body: Buffer): boolean;
  get(request: IncomingMessage, response: ServerResponse): void;
  delete(request: IncomingMessage, response: ServerResponse): void;
  /** Ends the streams that would stay open otherwise. */
  endStreams(): void;
};

type Session = {
  id: string | null;
  player: MockClient;
  streams: SseStreams;
  /** Carries what belongs to no call. */
  unasked: SseStream;
  sendUnasked: Send;
};

const OK = 200;

/** A legacy JSON-RPC error has it, too. */
const statusOf = () => OK;

const NOT_ALLOWED = 405;

const CONFLICT = 409;

export const LEGACY_VERSIONS: ReadonlySet<string> = new Set([
  '2024-10-07',
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
]);

export function createLegacyMock(recording: Recording, mock: Mock, profile: HttpProfile): LegacyMock {
  const { hasSessions } = profile;
  const sessions = new BoundedMap<string, Session>(MAX_CLIENTS, leave);

  function leave({ streams, player }: Session): void {
    streams.endAll();
    player.leave();
  }

  function post(post: Post): void {
    const session = sessionOf(post);
    if ('status' in session) {
      refuse(post.response, session);
      return;
    }
    const isNew = post.messages.some(isInitialize);
    playPost(post, session.player, answering(session));
    if (isNew) session.player.begin();
  }

  function postUnread(request: IncomingMessage, response: ServerResponse, body: Buffer): boolean {
    const session = knownSession(request);
    if (session === null || 'status' in session) return false;
    const answer = session.player.answerUnread(body);
    if (answer !== null) playUnread(request, response, answer, answering(session));
    return answer !== null;
  }

  function answering({ id: sessionId, streams, sendUnasked }: Session) {
    return { recording, profile, sessionId, streams, sendUnasked, statusOf };
  }

  function sessionOf({ request, messages }: Post): Session | HttpRefusal {
    if (messages.some(({ kind }) => kind === 'invalid')) return NOT_RPC;
    if (!messages.some(isInitialize)) return findSession(request);
    if (messages.length > 1)
      return invalidRequest('Invalid Request: Only one initialization request is allowed');
    if (!hasSessions) return open(callerOf(request));
    if (request.headers['mcp-session-id'] === undefined) return open(randomUUID());
    const known = findSession(request);
    return 'status' in known ? known : invalidRequest('Invalid Request: Server already initialized');
  }

  function findSession(request: IncomingMessage): Session | HttpRefusal {
    return knownSession(request) ?? open(callerOf(request));
  }

  /** Null where it is the first request of a caller without a session id. */
  function knownSession(request: IncomingMessage): Session | HttpRefusal | null {
    const { 'mcp-session-id': id, 'mcp-protocol-version': version } = request.headers;
    if (hasSessions && id === undefined) return NO_SESSION_ID;
    const session = sessions.use(hasSessions ? String(id) : callerOf(request));
    if (session === undefined && hasSessions) return UNKNOWN_SESSION;
    if (typeof version === 'string' && !isKnown(version)) return unsupportedVersion(version);
    return session ?? null;
  }

  function isKnown(version: string): boolean {
    return LEGACY_VERSIONS.has(version) || version === recording.session.protocolVersion;
  }

  function open(key: string): Session {
    const streams = createSseStreams();
    const unasked = streams.open({ waits: true });
    const sendUnasked: Send = (json, step) =>
      unasked.send(json, step !== null && recording.hadEventId(step.place));
    const player = mock.createClient(sendUnasked);
    const session = { id: hasSessions ? key : null, player, streams, unasked, sendUnasked };
    // Without session ids there may be one under this key that is still being answered.
    sessions.delete(key);
    sessions.set(key, session);
    return session;
  }

  function get(request: IncomingMessage, response: ServerResponse): void {
    const session = streamingSession(request);
    if ('status' in session) {
      refuse(response, session);
      return;
    }
    const { id, streams, unasked } = session;
    const lastEventId = request.headers['last-event-id'];
    const resumed = typeof lastEventId === 'string' ? streams.resumeAt(lastEventId) : unasked;
    if (resumed === undefined) refuse(response, { status: 400, code: REFUSED, message: UNKNOWN_EVENT });
    else if (resumed === unasked && unasked.isAttached() && hasSessions) refuse(response, SECOND_STREAM);
    else {
      response.writeHead(OK, answerHeaders(profile.stream, EVENTS_TYPE, id));
      response.flushHeaders();
      resumed.attach(response);
    }
  }

  function streamingSession(request: IncomingMessage): Session | HttpRefusal {
    const { streamRefusal: status } = profile;
    if (status === NOT_ALLOWED) return methodNotAllowed(hasSessions ? 'POST, DELETE' : 'POST');
    if (status !== null)
      return { status, code: REFUSED, message: 'the recorded server refused every stream' };
    return acceptedForms(request.headers).events ? findSession(request) : NO_STREAM_ACCEPTED;
  }

  function deleteSession(request: IncomingMessage, response: ServerResponse): void {
    const session = hasSessions ? findSession(request) : methodNotAllowed('GET, POST');
    if ('status' in session) {
      refuse(response, session);
      return;
    }
    sessions.delete(session.id ?? '');
    leave(session);
    response.writeHead(OK, [...answerHeaders(profile.deleted, '', null), 'Content-Length', '0']).end();
  }

  return {
    post,
    postUnread,
    get,
    delete: deleteSession,
    endStreams() {
      for (const { unasked } of sessions.values()) unasked.end();
    },
  };
}

const UNKNOWN_EVENT = 'Bad Request: nothing is known of the event in Last-Event-ID';

const SECOND_STREAM: HttpRefusal = {
  status: CONFLICT,
  code: REFUSED,
  message: 'Conflict: Only one SSE stream is allowed per session',
};

function isInitialize(message: Post['messages'][number]): message is RequestMessage {
  return message.kind === 'request' && message.canonical === 'initialize';
}

/** Stands for a missing header: no header can hold it. */
const NONE = '\n';

/** Names the client of a server without session ids, as well as its headers can. */
function callerOf({ headers }: IncomingMessage): string {
  return `${headers.authorization ?? NONE}\n${headers['user-agent'] ?? NONE}`;
}

function invalidRequest(message: string): HttpRefusal {
  return { status: 400, code: INVALID_REQUEST, message };
}

function unsupportedVersion(version: string): HttpRefusal {
  const supported = [...LEGACY_VERSIONS].join(', ');
  const message = `Bad Request: Unsupported protocol version: ${version} (supported versions: ${supported})`;
  return { status: 400, code: REFUSED, message };
}
