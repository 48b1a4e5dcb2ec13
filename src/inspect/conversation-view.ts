/** `show` for people: a session as a conversation, one block a message. */

import { messagesOf } from '../protocol/conversation.ts';
import { directionOf } from '../protocol/frame.ts';
import { bodyText, labelOf } from '../protocol/label.ts';
import type { Message } from '../protocol/message.ts';
import { problemText } from '../protocol/problems.ts';
import type { MessageRow, SessionRow, StoredFrame } from '../store/reader.ts';
import { formatDuration, formatSize, formatTime } from './figures.ts';
import type { Colors, Look } from './look.ts';
import { endOf, summaryOf } from './session-table.ts';
import { clip, escapeText, fold, widthOf } from './text.ts';

export type ViewOptions = {
  look: Look;
  /** Lines of payload shown of each message. */
  payloadLines: number;
  /** Places (`seq.n`) of requests without an answer. */
  unanswered: ReadonlySet<string>;
};

/** Columns before a label: the time and the arrow. */
const INDENT = 14;
/** Payload text beyond this is never escaped or measured, however many lines are wanted. */
const MAX_LINES = 1_000_000;

export function* sessionHeader(session: SessionRow, { colors, width }: Look): Generator<string> {
  const name = session.name === null ? '' : `  ${session.name}`;
  const lines: [title: string, text: string][] = [
    ['session', `${session.id}${name}`],
    ['command', session.target],
    ['client', who(session.clientName, session.clientVersion, session.clientProgram, session.clientPid)],
    ['server', who(session.serverName, session.serverVersion, null, null)],
    ['protocol', session.protocolVersion ?? 'unknown'],
    ['started', `${formatTime(session.startedAt)} on ${session.host}`],
    ['ended', endText(session)],
    ['recorded', `${summaryOf(session)}, ${session.frames} frames, ${formatSize(session.bytes)}`],
  ];
  for (const [title, text] of lines) {
    yield `${colors.dim(title.padEnd(10))}${clip(escapeText(text), width - 10)}`;
  }
  yield '';
}

function who(
  name: string | null,
  version: string | null,
  program: string | null,
  pid: number | null,
): string {
  const self = [name, version].filter((word) => word !== null).join(' ');
  const process = program === null ? '' : `${program}, pid ${pid}`;
  if (self === '') return process || 'unknown';
  return process === '' ? self : `${self} (${process})`;
}

function endText(session: SessionRow): string {
  const lasted =
    session.endedAt === null ? '' : `, after ${formatDuration((session.endedAt - session.startedAt) / 1000)}`;
  const why = session.endReason === 'client-closed' ? ', the client closed first' : '';
  return `${endOf(session)}${lasted}${why}`;
}

/** The lines of one frame. Everything that was recorded is escaped; no line is wider than the look allows. */
export function* frameBlock(
  session: SessionRow,
  frame: StoredFrame,
  options: ViewOptions,
): Generator<string> {
  const { colors, width } = options.look;
  const time = colors.dim(((frame.at - session.startedAt) / 1_000_000).toFixed(3).padStart(9));
  const messages = messagesOf(frame);
  if (frame.messages.length === 0) {
    const note = frame.isUnfinished ? ' (unfinished line)' : '';
    const text = clip(escapeText(frame.payload.toString('utf8', 0, width * 4)), width - INDENT);
    if (text !== '' || note !== '') yield `${time}  ${colors.dim(`┊  ${text}${note}`)}`;
    return;
  }
  for (const row of frame.messages) {
    const message = messages[row.n];
    if (message !== undefined) yield* messageBlock(time, frame, row, message, options);
  }
}

function* messageBlock(
  time: string,
  frame: StoredFrame,
  row: MessageRow,
  message: Message,
  { look, payloadLines, unanswered }: ViewOptions,
): Generator<string> {
  const { colors, width } = look;
  const isFromClient = directionOf(frame.channel) === 'client-to-server';
  const arrow = isFromClient ? colors.cyan('→') : colors.green('←');
  const status = clip(statusOf(row, unanswered), Math.floor((width - INDENT) / 2));
  const room = width - INDENT - (status === '' ? 0 : widthOf(status) + 2);
  const label = clip(escapeText(labelOf(message, frame.payload, row.n, row.askedMethod)), room);
  const paint = painterOf(colors, row, status);
  yield `${time}  ${arrow}  ${paint(label)}${status === '' ? '' : `  ${paintStatus(colors, status)}`}`;

  const indent = ' '.repeat(INDENT);
  for (const note of notesOf(row)) yield `${indent}${colors.yellow(clip(`! ${note}`, width - INDENT))}`;
  for (const line of payloadBlock(bodyText(message, frame.payload, row.n), width - INDENT, payloadLines)) {
    yield `${indent}${colors.dim(line)}`;
  }
}

function* payloadBlock(text: string, width: number, maxLines: number): Generator<string> {
  if (text === '' || text === '{}' || maxLines === 0) return;
  const shown = text.slice(0, Math.min(maxLines, MAX_LINES) * width);
  const { lines, rest } = fold(escapeText(shown), width, maxLines);
  const missing = text.length - shown.length + rest.length;
  if (missing > 0) {
    const more = ` ${formatSize(missing)} more`;
    lines.push(clip(`${lines.pop() ?? ''}…`, width - more.length) + more);
  }
  yield* lines;
}

/** What stands behind a label: what an answer answers and how long it took, or that none came. */
function statusOf(row: MessageRow, unanswered: ReadonlySet<string>): string {
  if (row.relation === 'reply') {
    const asked = [row.askedMethod, row.askedTarget].filter((word) => word !== null).join(' ');
    const latency = row.latency === null ? '' : formatDuration(row.latency / 1000);
    return [latency, row.outcome, asked]
      .filter(Boolean)
      .map((part) => escapeText(part ?? ''))
      .join('  ');
  }
  return unanswered.has(`${row.seq}.${row.n}`) ? 'unanswered' : '';
}

function notesOf(row: MessageRow): string[] {
  return row.kind === 'invalid' || row.problem === null
    ? []
    : row.problem.split(',').map((code) => `this message ${problemText(code)}`);
}

function painterOf(colors: Colors, row: MessageRow, status: string): (text: string) => string {
  if (row.kind === 'invalid' || row.outcome === 'error' || row.outcome === 'tool-error') return colors.red;
  if (status === 'unanswered') return colors.yellow;
  return row.kind === 'request' ? colors.bold : (text) => text;
}

function paintStatus(colors: Colors, status: string): string {
  return status === 'unanswered' ? colors.yellow(status) : colors.dim(status);
}
