/**
 * Speaks Streamable HTTP of the revision 2026-07-28: POST only, no session ids, and closing the connection cancels its
 * requests. Name and credentials tell clients apart; `server/discover` begins a new one, unless that only negotiates.
 * Specification: 2026-07-28, basic/transports/streamable-http.
 */

import type { IncomingHttpHeaders } from 'node:http';
import { BoundedMap } from '../../protocol/bounded.ts';
import { sourceAt } from '../../protocol/json/edit.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import { messageText } from '../../protocol/message/payload.ts';
import { answerHeaders } from '../http/headers.ts';
import { type ClientMessage, findMismatch, type ParamHeadersOf } from '../http/mismatch.ts';
import { type HttpRefusal, INVALID_PARAMS, INVALID_REQUEST, NOT_RPC, refuse } from '../http/refusal.ts';
import { MAX_CLIENTS, type Mock, type MockClient } from '../mock.ts';
import type { Recording } from '../recording/recording.ts';
import { LEGACY_VERSIONS } from './legacy.ts';
import { type Post, playPost } from './post.ts';
import type { HttpProfile } from './profile.ts';
import { createSseStreams, type SseStreams } from './stream.ts';

type ModernMock = {
  /** Whether the POST is of this era: its body says so, or else its header. */
  isOwn(post: Post): boolean;
  post(post: Post): void;
  endStreams(): void;
};

/** `isNew`: it has asked for nothing but the revisions that the server speaks. */
type Client = { player: MockClient; streams: SseStreams; isNew: boolean };

const ACCEPTED = 202;

const OK = 200;

/** Errors that have an HTTP status of their own. */
const STATUSES: Readonly<Record<string, number>> = {
  '-32601': 404,
  '-32020': 400,
  '-32021': 400,
  '-32022': 400,
};

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

export function createModernMock(recording: Recording, mock: Mock, profile: HttpProfile): ModernMock {
  /** By name, version and credentials. */
  const clients = new BoundedMap<string, Client>(MAX_CLIENTS, ({ streams, player }) => {
    streams.endAll();
    player.leave();
  });

  function post(post: Post): void {
    const [message] = post.messages;
    const refusal = findProblem(post, message, recording.paramHeadersOf);
    if (refusal !== null) {
      const json = message?.kind === 'request' ? messageText(post.body, 0) : undefined;
      refuse(post.response, refusal, json === undefined ? 'null' : sourceAt(json, ['id']));
    } else if (message?.kind === 'request') play(post, message);
    else post.response.writeHead(ACCEPTED, answerHeaders(profile.accepted, '', null)).end();
  }

  function play(post: Post, message: RequestMessage): void {
    const { player, streams } = clientOf(post, message);
    // In this era a server sends nothing without a request.
    const sendUnasked = () => {};
    const reply = playPost(post, player, {
      recording,
      profile,
      sessionId: null,
      streams,
      sendUnasked,
      statusOf,
    });
    if (reply === null) return;
    const { response } = post;
    const onClose = () => {
      if (response.writableFinished) return;
      player.abandon(message.id, reply);
      reply.end();
    };
    if (response.destroyed) onClose();
    else response.on('close', onClose);
  }

  function clientOf({ request }: Post, { canonical, details: { peer } }: RequestMessage): Client {
    const key = JSON.stringify([peer?.name, peer?.version, request.headers.authorization]);
    const isProbe = canonical === 'server/discover';
    const known = clients.use(key);
    if (known !== undefined && (!isProbe || known.isNew)) {
      known.isNew &&= isProbe;
      return known;
    }
    const client = { player: mock.createClient(() => {}), streams: createSseStreams(), isNew: isProbe };
    // The one before it under this key is still being answered, and stays.
    clients.delete(key);
    clients.set(key, client);
    return client;
  }

  return {
    isOwn({ request, messages }) {
      return messages.some(({ details }) => details.isModern) || namesModern(request.headers);
    },
    post,
    endStreams() {
      for (const { streams } of clients.values()) streams.endAll();
    },
  };
}

function findProblem(
  { request: { headers }, isBatch, body }: Post,
  message: Post['messages'][number] | undefined,
  paramHeadersOf: ParamHeadersOf,
) {
  if (isBatch) return invalidRequest('Bad Request: JSON-RPC batches are not supported by this endpoint');
  if (message === undefined || message.kind === 'invalid') return { ...NOT_RPC, code: INVALID_REQUEST };
  if (message.kind === 'result' || message.kind === 'error')
    return invalidRequest('Bad Request: JSON-RPC responses cannot be posted to this endpoint');
  if (!message.details.isModern) return findMissingMeta(headers, message);
  return findMismatch(headers, message, messageText(body, 0), paramHeadersOf);
}

/** Null for a client of another era: the answer itself names the revisions that there are. */
function findMissingMeta(headers: IncomingHttpHeaders, { kind }: ClientMessage): HttpRefusal | null {
  if (kind === 'notification' || !namesModern(headers)) return null;
  const message = `Invalid params: the request names a protocol version in its header, but not in _meta["${VERSION_KEY}"]`;
  return { status: 400, code: INVALID_PARAMS, message };
}

function namesModern(headers: IncomingHttpHeaders): boolean {
  const version = headers['mcp-protocol-version'];
  return typeof version === 'string' && /^\d{4}-\d\d-\d\d$/.test(version) && !LEGACY_VERSIONS.has(version);
}

function invalidRequest(message: string): HttpRefusal {
  return { status: 400, code: INVALID_REQUEST, message };
}

function statusOf(answer: Buffer): number {
  return STATUSES[sourceAt(answer, ['error', 'code']) ?? ''] ?? OK;
}
