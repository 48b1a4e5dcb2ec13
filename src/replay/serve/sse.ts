/**
 * Speaks legacy HTTP+SSE: one stream carries all that the server sends, and its first event names the URL to post to.
 * Specification: 2024-11-05, basic/transports, "HTTP with SSE".
 */

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { EVENTS_TYPE } from '../../protocol/http/headers.ts';
import { acceptedForms, answerHeaders } from '../http/headers.ts';
import { NO_STREAM_ACCEPTED, NOT_RPC, refuse, UNKNOWN_SESSION } from '../http/refusal.ts';
import type { Mock, MockClient } from '../mock.ts';
import type { Send } from '../play/request.ts';
import type { Recording } from '../recording/recording.ts';
import { createBatch } from './batch.ts';
import { type Post, receiveAll } from './post.ts';
import type { HttpProfile } from './profile.ts';
import { createSseStreams } from './stream.ts';

type SseMock = {
  /** The path that messages are posted to, without the query. */
  postPath: string;
  get(request: IncomingMessage, response: ServerResponse): void;
  post(post: Post): void;
  endStreams(): void;
};

type Connection = { player: MockClient; send: Send; end(): void };

const OK = 200;

const ACCEPTED = 202;

const SESSION_PARAMETER = /^session_?id$/i;

export function createSseMock(recording: Recording, mock: Mock, profile: HttpProfile): SseMock {
  const connections = new Map<string, Connection>();
  const target = targetOf(profile);
  const parameter =
    [...target.searchParams.keys()].find((name) => SESSION_PARAMETER.test(name)) ?? 'sessionId';

  function get(request: IncomingMessage, response: ServerResponse): void {
    if (!acceptedForms(request.headers).events) {
      refuse(response, NO_STREAM_ACCEPTED);
      return;
    }
    const id = randomUUID();
    response.writeHead(OK, answerHeaders(profile.stream, EVENTS_TYPE, null));
    response.write(`event: endpoint\ndata: ${endpointOf(id)}\n\n`);
    connections.set(id, connect(response));
    response.on('close', () => {
      connections.get(id)?.player.leave();
      connections.delete(id);
    });
    connections.get(id)?.player.begin();
  }

  function connect(response: ServerResponse): Connection {
    const stream = createSseStreams().open({ waits: false });
    stream.attach(response);
    const send: Send = (json, step) => stream.send(json, step !== null && recording.hadEventId(step.place));
    return { player: mock.createClient(send), send, end: stream.end.bind(stream) };
  }

  function endpointOf(id: string): string {
    const endpoint = new URL(target);
    endpoint.searchParams.set(parameter, id);
    return endpoint.pathname + endpoint.search;
  }

  function post({ request, response, body, messages, isBatch }: Post): void {
    const { searchParams } = new URL(request.url ?? '', 'http://host');
    const connection = connections.get(searchParams.get(parameter) ?? '');
    if (connection === undefined) refuse(response, UNKNOWN_SESSION);
    else if (messages.some(({ kind }) => kind === 'invalid')) refuse(response, NOT_RPC);
    else {
      const headers = answerHeaders(profile.accepted, '', null);
      response.writeHead(ACCEPTED, [...headers, 'Content-Length', '8']).end('Accepted');
      const requests = messages.filter(({ kind }) => kind === 'request').length;
      const { player, send } = connection;
      receiveAll(player, body, messages, isBatch ? createBatch(send, requests) : { send });
    }
  }

  return {
    postPath: target.pathname,
    get,
    post,
    endStreams() {
      for (const { end } of connections.values()) end();
    },
  };
}

function targetOf({ postTarget }: HttpProfile): URL {
  const base = 'http://host';
  return URL.canParse(postTarget, base) ? new URL(postTarget, base) : new URL('/messages', base);
}
