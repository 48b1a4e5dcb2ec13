/** Frames from HTTP bodies and events, with what is odd about them. */
import type { Frame, FramePart, HttpMark } from '../protocol/frame.ts';
import { isJsonType } from '../protocol/http-shape.ts';
import { isMessageEvent, type SseFields } from '../protocol/sse.ts';
import type { CollectedBody } from './http-body.ts';
import { type HttpExchange, headerOf } from './http-exchange.ts';
import type { StreamBlock } from './http-stream.ts';
import type { LiveSession } from './live-session.ts';

export type BodyFacts = { at: number; isComplete: boolean; mediaType: string };

export function bodyFrame(
  channel: 'request' | 'response',
  row: HttpExchange,
  { payload, size, truncated, sha256, isDecoded, original }: CollectedBody,
  part: FramePart,
  { at, isComplete, mediaType }: BodyFacts,
): Frame {
  const marks: HttpMark[] = [];
  if (!isDecoded) marks.push('undecoded');
  if (part === 'body' && !isJsonType(mediaType)) marks.push('wrong-type');
  if (!isComplete) marks.push('incomplete');
  const http = { exchange: row.number, marks, original, sha256 };
  return { channel, at, payload, lineEnd: '', size, truncated, part, http };
}

export function eventFrame(
  row: HttpExchange,
  session: LiveSession,
  { at, payload, size, truncated, isComplete, isDecoded, original, sha256 }: StreamBlock,
  fields: SseFields | null,
): Frame {
  const marks: HttpMark[] = [];
  if (!isDecoded) marks.push('undecoded');
  if (!isComplete) marks.push('incomplete');
  if (fields?.id != null && fields.data !== null && fields.data.length > 0) {
    const isResumed = headerOf(row.requestHeaders, 'last-event-id') !== '';
    if (session.hasSeen(fields.id, fields.data) && isResumed) marks.push('replayed');
  }
  const part = fields === null || isMessageEvent(fields) ? 'event' : 'block';
  const http = { exchange: row.number, marks, original, sha256 };
  return { channel: 'sse', at, payload, lineEnd: '', size, truncated, part, http };
}
