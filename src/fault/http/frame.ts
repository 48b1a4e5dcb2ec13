/** The frames that are asked about, as a recorder makes them. */

import { looksLikeMcp } from '../../protocol/http/exchange.ts';
import { parseMessages } from '../../protocol/message/message.ts';
import type { Channel, Frame, FramePart } from '../../protocol/wire/frame.ts';

/** A body without its content coding. One without MCP in it (OAuth, an error page) holds no messages, and gets no fault. */
export function bodyFrame(
  channel: 'request' | 'response',
  json: Buffer,
  exchange: number,
  at: number,
): Frame | null {
  return looksLikeMcp(parseMessages(json)) ? frameOf(channel, 'body', json, exchange, at) : null;
}

/** An event of a stream, with the empty line that ends it. */
export function eventFrame(block: Buffer, exchange: number, at: number): Frame {
  return frameOf('sse', 'event', block, exchange, at);
}

function frameOf(channel: Channel, part: FramePart, payload: Buffer, exchange: number, at: number): Frame {
  const http = { exchange, marks: [], original: null, sha256: null };
  return { channel, at, payload, lineEnd: '', size: payload.length, truncated: false, part, http };
}
