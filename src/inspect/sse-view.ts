/** Blocks of an event stream that hold no message, in a few words each. */
import { readSse } from '../protocol/sse.ts';

/** More of a block than this is not read: its words go into one line. */
const MAX_BYTES = 4096;
const LINE_END = /\r\n|\r|\n/;

/** `comment keepalive`, `event stream: id 5, retry 1000`, `endpoint /messages?…`. The text is not escaped. */
export function blockText(payload: Buffer): string {
  const { event, id, retry, data, hasComment } = readSse(payload);
  const content = data?.toString('utf8', 0, MAX_BYTES) ?? '';
  if (event === 'endpoint') return `endpoint ${content}`;
  const fields: string[] = [];
  if (event !== null) fields.push(`event ${event}`);
  if (id !== null) fields.push(`id ${id === '' ? '(empty)' : id}`);
  if (retry !== null) fields.push(`retry ${retry}`);
  if (content !== '') fields.push(`data ${content}`);
  const comment = hasComment ? `comment ${commentOf(payload)}`.trimEnd() : '';
  if (fields.length === 0) return comment === '' ? 'event stream: nothing' : comment;
  return `event stream: ${[...fields, comment].filter(Boolean).join(', ')}`;
}

function commentOf(payload: Buffer): string {
  const lines = payload.toString('utf8', 0, MAX_BYTES).split(LINE_END);
  return lines
    .filter((line) => line.startsWith(':'))
    .map((line) => line.slice(1).trim())
    .join(' ');
}
