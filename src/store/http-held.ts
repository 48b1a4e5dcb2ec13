/** HTTP exchanges that have not ended, and what of them is not whole yet: it is stored as far as it has come. */
import type { HttpChannel } from '../protocol/frame.ts';
import type { Message } from '../protocol/message.ts';
import { isIdentity } from './decode.ts';
import { type FirstSign, HeldBack } from './held-back.ts';
import type { BodyCollector } from './http-body.ts';
import { contentCodingOf, type HttpExchange } from './http-exchange.ts';
import type { EventStream } from './http-stream.ts';
import type { LiveSession } from './live-session.ts';

const HTTP_CHANNELS = ['request', 'response', 'sse'] as const satisfies readonly HttpChannel[];

/** An exchange that has not ended. */
export type OpenExchange = {
  id: number;
  row: HttpExchange;
  session: LiveSession | null;
  asked: readonly Message[];
  request: BodyCollector | null;
  response: BodyCollector | null;
  stream: EventStream | null;
  /** How many pieces of what is not whole are stored. */
  saved: Record<HttpChannel, number>;
  heldBack: ChannelsHeldBack;
};

/** What of the pieces may be stored before they are whole. */
export type ChannelsHeldBack = {
  released(channel: HttpChannel, pieces: readonly Buffer[], coding: string): readonly Buffer[];
  /** What the channel goes on with is something else. */
  forget(channel: HttpChannel): void;
};

export function createHeldBack(firstSign: FirstSign | null, isForeign: boolean): ChannelsHeldBack {
  const channels = new Map<HttpChannel, HeldBack>();
  return {
    released(channel, pieces, coding) {
      if (firstSign === null) return pieces;
      if (!isIdentity(coding)) return [];
      const known = channels.get(channel) ?? new HeldBack(firstSign, isForeign);
      channels.set(channel, known);
      return known.released(pieces);
    },
    forget: (channel) => void channels.delete(channel),
  };
}

/** A piece of a body or event that is not whole yet. `part` counts from 0 within it. */
export type HttpHeld = {
  session: LiveSession;
  exchange: number;
  channel: HttpChannel;
  part: number;
  at: number;
  bytes: Buffer;
};

/** Pieces that are not stored yet. */
export function heldOf(exchange: OpenExchange): HttpHeld[] {
  const { session, row, saved } = exchange;
  if (session === null) return [];
  return HTTP_CHANNELS.flatMap((channel) => {
    const fresh = releasedOf(exchange, channel).slice(saved[channel]);
    const at = row.responseAt ?? row.at;
    return fresh.map((bytes, i) => ({
      session,
      exchange: row.number,
      channel,
      part: saved[channel] + i,
      at,
      bytes,
    }));
  });
}

/** Says that all pieces so far are stored. */
export function confirmHeld(exchange: OpenExchange): void {
  for (const channel of HTTP_CHANNELS) exchange.saved[channel] = releasedOf(exchange, channel).length;
}

const NOTHING: readonly Buffer[] = [];

/** The pieces so far that may be stored. */
function releasedOf({ row, request, response, stream, heldBack }: OpenExchange, channel: HttpChannel) {
  switch (channel) {
    case 'request':
      if (request === null) return NOTHING;
      return heldBack.released(channel, request.held, contentCodingOf(row.requestHeaders));
    case 'response':
      if (response === null) return NOTHING;
      return heldBack.released(channel, response.held, contentCodingOf(row.responseHeaders));
    default:
      return stream === null ? NOTHING : heldBack.released(channel, stream.held(), '');
  }
}
