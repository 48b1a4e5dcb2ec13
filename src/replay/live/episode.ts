/** What a live server answered to one call: the unit that is added to a recording. */

import { type HttpExchange, newHttpExchange } from '../../protocol/http/exchange.ts';
import { EVENTS_TYPE, JSON_TYPE } from '../../protocol/http/headers.ts';
import type { Outcome } from '../../protocol/message/correlate.ts';
import type { Message } from '../../protocol/message/message.ts';
import { type Channel, FIRST_CLIENT, type Frame, type FramePart } from '../../protocol/wire/frame.ts';
import { oneLine } from '../../protocol/wire/lines.ts';
import type { Block } from '../../store/write/import.ts';
import type { CallTopic } from '../recording/topics.ts';

/** One message as it passed between us and the live server. `at` in microseconds since the Unix epoch. */
export type EpisodeMessage = { from: 'client' | 'server'; kind: Message['kind']; at: number; json: Buffer };

/** Who caused that the server gave no answer of its own, and why. */
export type Failure = { by: 'client' | 'server'; why: string };

export type Episode = {
  /** The recorded client that it belongs to. */
  client: number;
  /** Null for messages outside of all calls. */
  topic: CallTopic | null;
  /** In the order in which it passed, from the request to its answer. Its ids differ from those of all other episodes. */
  messages: readonly EpisodeMessage[];
  outcome: Outcome | 'unanswered';
  latencyMs: number | null;
  /** Why this must not count as the server's answer; null where it may. */
  failure: Failure | null;
};

export function outcomeOfAnswer(message: Message): Outcome {
  if (message.kind !== 'result') return 'error';
  if (message.details.resultType === 'input_required') return 'input-required';
  return message.details.isToolError ? 'tool-error' : 'ok';
}

/**
 * An episode as frames, in the form that its recording has: lines of stdio, or HTTP exchanges as a plain Streamable HTTP
 * server would have them (a POST for each thing that the client says; the answer as JSON, or as events where something
 * precedes it). So what is added does not depend on how the live server was reached.
 */

/** `path`: the request target that clients post to. */
export type BlockForm = { type: 'stdio' } | { type: 'http'; path: string };

const OK = { status: 200, statusText: 'OK' };

const ACCEPTED = { status: 202, statusText: 'Accepted' };

export function blockOf(episode: Episode, form: BlockForm): Block {
  const { frames, exchanges } =
    form.type === 'stdio' ? linesOf(episode) : httpExchangesOf(episode, form.path);
  const { client } = episode;
  return {
    frames: client === FIRST_CLIENT ? frames : frames.map((frame) => ({ ...frame, client })),
    exchanges,
  };
}

function linesOf({ messages }: Episode): Block {
  const frames = messages.map(({ from, at, json }) => {
    const channel = from === 'client' ? 'stdin' : 'stdout';
    return frameOf(channel, 'line', at, oneLine(json), null);
  });
  return { frames, exchanges: [] };
}

function httpExchangesOf(episode: Episode, path: string): Block {
  const { messages, outcome } = episode;
  const frames: Frame[] = [];
  const httpExchanges: HttpExchange[] = [];
  const isOneAnswer =
    outcome !== 'unanswered' && messages.filter(({ from }) => from === 'server').length === 1;
  /** The exchange that the server's messages come on. */
  let stream: HttpExchange | undefined;
  for (const [i, one] of messages.entries()) {
    const json = oneLine(one.json);
    if (one.from === 'client') {
      const httpExchange = begin(httpExchanges, 'POST', path, one);
      httpExchange.requestBytes = json.length;
      frames.push(frameOf('request', 'body', one.at, json, httpExchange.number));
      if (i === 0 && one.kind === 'request') stream = httpExchange;
      else end(respond(httpExchange, one.at, ACCEPTED, null), one.at, frames.length);
    } else {
      stream ??= begin(httpExchanges, 'GET', path, one);
      const isJson = isOneAnswer && stream.method === 'POST';
      if (stream.status === null) respond(stream, one.at, OK, isJson ? JSON_TYPE : EVENTS_TYPE);
      const payload = isJson ? json : Buffer.concat([EVENT, json, EVENT_END]);
      stream.responseBytes += payload.length;
      const [channel, part] = isJson ? (['response', 'body'] as const) : (['sse', 'event'] as const);
      frames.push(frameOf(channel, part, one.at, payload, stream.number));
    }
  }
  if (stream !== undefined) {
    end(stream, messages.at(-1)?.at ?? stream.at, frames.length);
    // A subscription's client ends it; else who did not answer did.
    stream.closedBy = outcome === 'unanswered' && episode.failure === null ? 'client' : 'server';
    stream.error = episode.failure?.why ?? null;
  }
  return { frames, exchanges: httpExchanges };
}

const EVENT = Buffer.from('event: message\ndata: ');

const EVENT_END = Buffer.from('\n\n');

function begin(
  httpExchanges: HttpExchange[],
  method: 'POST' | 'GET',
  path: string,
  { at }: EpisodeMessage,
): HttpExchange {
  const accept = ['Accept', method === 'GET' ? EVENTS_TYPE : `${JSON_TYPE}, ${EVENTS_TYPE}`];
  const httpExchange = newHttpExchange(httpExchanges.length + 1, at);
  httpExchange.method = method;
  httpExchange.path = path;
  httpExchange.version = '1.1';
  httpExchange.requestHeaders = method === 'GET' ? accept : ['Content-Type', JSON_TYPE, ...accept];
  httpExchange.requestEndedAt = at;
  httpExchanges.push(httpExchange);
  return httpExchange;
}

function respond(httpExchange: HttpExchange, at: number, how: typeof OK, type: string | null): HttpExchange {
  httpExchange.responseAt = at;
  httpExchange.responseHeaders = type === null ? [] : ['Content-Type', type];
  return Object.assign(httpExchange, how);
}

function end(httpExchange: HttpExchange, at: number, frames: number): void {
  httpExchange.endedAt = at;
  httpExchange.endedAfter = frames;
  httpExchange.closedBy = 'server';
}

function frameOf(
  channel: Channel,
  part: FramePart,
  at: number,
  payload: Buffer,
  httpExchange: number | null,
): Frame {
  const http =
    httpExchange === null ? null : { exchange: httpExchange, marks: [], original: null, sha256: null };
  const lineEnd = httpExchange === null ? '\n' : '';
  return { channel, at, payload, lineEnd, size: payload.length, truncated: false, part, http };
}
