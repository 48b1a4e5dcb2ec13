/** What `tail` prints: a line per message, with its time, its session, and what is unusual about it. */

import { jsonOf, messagesOf } from '../../protocol/message/conversation.ts';
import { messageLabel } from '../../protocol/message/label.ts';
import { problemText } from '../../protocol/message/message.ts';
import { escapeText } from '../../protocol/text.ts';
import { directionOf } from '../../protocol/wire/frame.ts';
import type { Arrival, OpenCall } from '../../store/read/follow.ts';
import type { MessageRow } from '../../store/read/frames.ts';
import { isMetaOnly } from '../../store/read/meta-only.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { blockText, metaOnlyTitle } from './conversation.ts';
import { fitMessage } from './message-line.ts';
import { type Colors, clip, clipMiddle, formatDuration, pad, type TerminalStyle } from './text.ts';

const NAME_COLUMNS = 12;

const TIME_COLUMNS = 12;

/** Time, name, mark and the spaces between them. */
const HEAD = TIME_COLUMNS + NAME_COLUMNS + 7;

const MAX_BYTES = 4096;

export type TailViewOptions = TerminalStyle & { slowMs: number };

/** The lines of one frame; none for what says nothing, such as a comment that keeps a stream open. */
export function* arrivalLines({ session, frame }: Arrival, options: TailViewOptions): Generator<string> {
  const mark =
    directionOf(frame.channel) === 'client-to-server' ? options.colors.cyan('→') : options.colors.green('←');
  const messages = messagesOf(frame);
  const json = jsonOf(frame);
  for (const row of frame.messages) {
    const message = messages[row.n];
    if (message === undefined) continue;
    const paint = painterOf(options.colors, row, options.slowMs);
    const name = messageLabel(message, json, row.n, row.askedMethod);
    const fitted = fitMessage(row, name, statusOf(row, options.slowMs), options.width - HEAD);
    yield line(session, frame.at, mark, fitted, paint, options);
  }
  if (frame.messages.length > 0 || frame.part === 'block') return;
  if (isMetaOnly(frame)) {
    const label = clip(escapeText(metaOnlyTitle(frame)), options.width - HEAD);
    yield line(session, frame.at, mark, { label, status: '' }, options.colors.dim, options);
    return;
  }
  const text =
    frame.channel === 'sse' ? blockText(frame.payload) : frame.payload.toString('utf8', 0, MAX_BYTES);
  if (text.trim() === '') return;
  const label = clip(escapeText(text.trim()), options.width - HEAD);
  yield line(session, frame.at, '┊', { label, status: '' }, options.colors.dim, options);
}

/** A call that is still open, for the foot of a terminal. `now` in microseconds. */
export function openCallLine(call: OpenCall, now: number, options: TailViewOptions): string {
  const ms = Math.max(0, (now - call.at) / 1000);
  const paint = ms > options.slowMs ? options.colors.yellow : options.colors.dim;
  const status = `open for ${formatDuration(ms)}`;
  const label = clipMiddle(escapeText(callText(call)), options.width - HEAD - status.length - 2);
  return line(call.session, call.at, '…', { label, status }, paint, options);
}

function callText({ method, target }: OpenCall): string {
  return target === null ? method : `${method} ${target}`;
}

function line(
  session: SessionRow,
  at: number,
  mark: string,
  { label, status }: { label: string; status: string },
  paint: (text: string) => string,
  { colors }: TailViewOptions,
): string {
  const name = pad(clipMiddle(escapeText(session.name ?? session.id), NAME_COLUMNS), NAME_COLUMNS);
  return `${colors.dim(timeOf(at))}  ${colors.bold(name)}  ${mark}  ${paint(label)}${status === '' ? '' : `  ${paint(status)}`}`;
}

/** Local time of day, to the millisecond. */
function timeOf(at: number): string {
  const date = new Date(at / 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  const ms = String(date.getMilliseconds()).padStart(3, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** In words too, for people who see no colour. */
function statusOf(row: MessageRow, slowMs: number): string[] {
  const parts: string[] = [];
  if (row.relation === 'reply') {
    const isSlow = isSlowReply(row, slowMs);
    if (row.latency !== null) parts.push(`${isSlow ? 'SLOW ' : ''}${formatDuration(row.latency / 1000)}`);
    if (row.outcome !== null && row.outcome !== 'ok') parts.push(row.outcome);
  }
  if (row.kind !== 'invalid' && row.problem !== null)
    parts.push(...row.problem.split(',').map((code) => `! ${problemText(code)}`));
  return parts;
}

function isSlowReply({ relation, latency, askedMethod }: MessageRow, slowMs: number): boolean {
  return relation === 'reply' && askedMethod !== 'subscriptions/listen' && (latency ?? 0) / 1000 > slowMs;
}

function painterOf(colors: Colors, row: MessageRow, slowMs: number): (text: string) => string {
  if (row.kind === 'invalid' || row.outcome === 'error' || row.outcome === 'tool-error') return colors.red;
  if (isSlowReply(row, slowMs) || row.problem !== null) return colors.yellow;
  return (text) => text;
}
