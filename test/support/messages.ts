/** Messages and frames for tests, made from the bytes that they would have on the wire. */
import { expect } from 'vitest';
import { type Message, parseMessages } from '../../src/protocol/message/message.ts';
import type { Channel, Frame, FramePart, HttpChannel, HttpMark } from '../../src/protocol/wire/frame.ts';

/** The only message of a payload; a value is written as JSON first. */
export function parseOne(payload: string | Uint8Array | object): Message {
  const messages = parseMessages(bytesOf(payload));
  expect(messages).toHaveLength(1);
  const [message] = messages;
  if (message === undefined) throw new TypeError('the payload holds no message');
  return message;
}

export function bytesOf(payload: string | Uint8Array | object): Buffer {
  if (payload instanceof Uint8Array) return Buffer.from(payload);
  return Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload));
}

export function frameOf(
  channel: Channel,
  payload: string | Uint8Array | object,
  { at = 0, part = 'line' as FramePart, truncated = false } = {},
): Frame {
  const bytes = bytesOf(payload);
  return { channel, at, payload: bytes, lineEnd: '\n', size: bytes.length, truncated, part, http: null };
}

/** A frame that came by HTTP, on the exchange of this number. */
export function httpFrameOf(
  channel: HttpChannel,
  payload: string | Uint8Array | object,
  { at = 0, exchange = 1, part = partOf(channel), truncated = false, marks = [] as readonly HttpMark[] } = {},
): Frame {
  const http = { exchange, marks, original: null, sha256: null };
  return { ...frameOf(channel, payload, { at, part, truncated }), lineEnd: '', http };
}

function partOf(channel: HttpChannel): FramePart {
  return channel === 'sse' ? 'event' : 'body';
}

/** An error of which no part can be wrong. */
export const ERROR = { code: -32601, message: 'Method not found' };

/** The `_meta` of a request of the 2026-07-28 era. */
export function modernMeta(more: object = {}): Record<string, unknown> {
  return {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    ...more,
  };
}
