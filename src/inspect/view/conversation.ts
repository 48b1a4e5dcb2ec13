/** `show` for people: a session as a conversation, one block a message. */

import { jsonOf, messagesOf } from '../../protocol/message/conversation.ts';
import { bodyText, type Labelled, labelledBy, messageLabel } from '../../protocol/message/label.ts';
import { type Message, parseMessages, problemText } from '../../protocol/message/message.ts';
import { escapeText } from '../../protocol/text.ts';
import { directionOf, type FrameFault } from '../../protocol/wire/frame.ts';
import { readSse } from '../../protocol/wire/sse.ts';
import type { BareFrame, MessageRow, StoredFrame } from '../../store/read/frames.ts';
import { isMetaOnly } from '../../store/read/meta-only.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import type { Fate } from '../verdict/fate.ts';
import type { RepeatedCall } from '../verdict/repeats.ts';
import { dimBlock, INDENT, margin, noteLine, secondsSince, tagOf } from './block.ts';
import { fateText } from './fate.ts';
import { type HttpViewOptions, httpExchangeBlock, httpExchangeEnd, isProbablyMcp } from './http.ts';
import { fitMessage } from './message-line.ts';
import { type Colors, clip, formatDuration, formatSize } from './text.ts';
import type { Happening } from './timeline.ts';

export type ViewOptions = HttpViewOptions & {
  /** Nothing is left out: all headers, and each of many equal comments. */
  isFull: boolean;
  /** Places (`seq.n`) of requests without an answer. */
  unanswered: ReadonlySet<string>;
  /** What the sender had sent in place of an edited frame, by its `seq`. */
  originalOf: (seq: number) => Buffer | null;
  /** What became of a request that its asker has no answer to, by its row. */
  fateOf: (row: MessageRow) => Fate | null;
  /** The messages of a frame that call again what may still run, by their number; it is called with each frame. */
  repeatsOf?: (frame: StoredFrame) => ReadonlyMap<number, RepeatedCall>;
};

/**
 * The lines of a conversation, whatever happens in it. Everything that was recorded is escaped; no line is wider than
 * the style allows.
 */
export function* conversationLines(
  session: SessionRow,
  happenings: Iterable<Happening>,
  options: ViewOptions,
): Generator<string> {
  const { isFull } = options;
  const mcpPath = URL.canParse(session.target) ? new URL(session.target).pathname : '';
  /** Of the open HTTP exchanges those where the last that came was an answer. */
  const concluded = new Set<number>();
  const repeats = createRepeats(session, options);

  for (const happening of happenings) {
    if (happening.type === 'frame') {
      const { frame } = happening;
      if (frame.http !== null) noteConclusion(concluded, frame, frame.http.exchange);
      if (!isFull && repeats.isOneMore(frame)) continue;
      yield* repeats.flush();
      repeats.begin(frame);
      yield* frameBlock(session, frame, options);
      continue;
    }
    const { httpExchange } = happening;
    const isConcluded = concluded.delete(httpExchange.number);
    const headers = isFull ? 'all' : isProbablyMcp(httpExchange, mcpPath) ? 'none' : 'telling';
    const lines =
      happening.type === 'begin'
        ? httpExchangeBlock(session, httpExchange, headers, options)
        : httpExchangeEnd(session, httpExchange, isConcluded, options);
    for (const line of lines) {
      yield* repeats.flush();
      yield line;
    }
  }
  yield* repeats.flush();
}

function noteConclusion(concluded: Set<number>, { messages }: StoredFrame, exchange: number): void {
  if (messages.length === 0) return;
  if (messages.some(({ relation }) => relation === 'reply')) concluded.add(exchange);
  else concluded.delete(exchange);
}

type Repeats = {
  begin(frame: StoredFrame): void;
  isOneMore(frame: StoredFrame): boolean;
  flush(): Generator<string>;
};

/** A server may send the same comment every few seconds for hours: only the first is shown, the others are counted. */
function createRepeats(session: SessionRow, { style }: ViewOptions): Repeats {
  let first: StoredFrame | null = null;
  let count = 0;
  let lastAt = 0;

  return {
    begin(frame) {
      first = frame.part === 'block' && frame.size === frame.payload.length && !frame.isEdited ? frame : null;
    },
    isOneMore(frame) {
      if (first === null || frame.part !== 'block' || frame.isEdited) return false;
      if (frame.http?.exchange !== first.http?.exchange || !frame.payload.equals(first.payload)) return false;
      count += 1;
      lastAt = frame.at;
      return true;
    },
    *flush() {
      const tag = tagOf(first?.http?.exchange);
      if (count > 0) {
        const text = `${tag}and ${count} more of these, the last at ${secondsSince(session.startedAt, lastAt)}`;
        yield ' '.repeat(INDENT) + style.colors.dim(clip(text, style.width - INDENT));
      }
      first = null;
      count = 0;
    },
  };
}

/** A frame alone: each of its messages, or its text. */
export function* frameBlock(
  session: SessionRow,
  frame: StoredFrame,
  options: ViewOptions,
): Generator<string> {
  if (frame.messages.length > 0) yield* messageBlocks(session, frame, options);
  else if (isMetaOnly(frame)) yield* strayLine(session, frame, options);
  else if (frame.part === 'foreign-body') yield* foreignBlock(session, frame, options);
  else yield* strayLine(session, frame, options);
  if (frame.fault !== undefined) {
    yield* faultNotes(frame, frame.fault, options);
    return;
  }
  const original = frame.isEdited ? options.originalOf(frame.seq) : null;
  if (original !== null) {
    const text = original.toString('utf8', 0, options.style.width * 4);
    yield noteLine(`edited, was ${text.trim()}`, options.style);
  }
}

/** What was done on purpose, and what went on in place of what was said. */
function* faultNotes(
  { payload, channel }: StoredFrame,
  { number, action, original }: FrameFault,
  { style }: ViewOptions,
): Generator<string> {
  yield noteLine(`fault ${number}: ${action}`, style);
  if (original === null) return;
  const text = payload.toString('utf8', 0, style.width * 4).trim();
  const receiver = directionOf(channel) === 'client-to-server' ? 'server' : 'client';
  yield noteLine(text === '' ? `the ${receiver} got nothing` : `the ${receiver} got ${text}`, style);
}

/** A text that is no message: a line of stderr, an error page, a comment of an event stream, what a kill left over. */
function* strayLine(session: SessionRow, frame: StoredFrame, { style }: ViewOptions): Generator<string> {
  const { colors, width } = style;
  const tag = tagOf(frame.http?.exchange);
  if (isMetaOnly(frame)) {
    const label = clip(escapeText(metaOnlyTitle(frame)), width - INDENT - tag.length);
    yield `${margin(style, session, frame.at, arrowOf(frame, colors))}${colors.dim(`${tag}${label}`)}`;
    return;
  }
  const note = frame.isUnfinished ? ` (unfinished ${UNFINISHED[frame.channel] ?? 'line'})` : '';
  const text =
    frame.part === 'block' ? blockText(frame.payload) : frame.payload.toString('utf8', 0, width * 4);
  const shown = clip(escapeText(text), width - INDENT - tag.length - note.length);
  if (shown === '' && note === '') return;
  yield `${margin(style, session, frame.at, colors.dim('┊'))}${colors.dim(`${tag}${shown}${note}`)}`;
}

const UNFINISHED: Record<string, string> = { request: 'body', response: 'body', sse: 'event' };

/** An HTTP body without MCP in it. */
function* foreignBlock(session: SessionRow, frame: StoredFrame, options: ViewOptions): Generator<string> {
  const { style, payloadLines } = options;
  const { size, payload, truncated, http } = frame;
  const label = `body, ${formatSize(size)}${truncated ? ', cut' : ''}`;
  yield `${margin(style, session, frame.at, arrowOf(frame, style.colors))}${style.colors.dim(tagOf(http?.exchange))}${label}`;
  for (const mark of http?.marks ?? []) yield noteLine(`this body ${problemText(mark)}`, style);
  yield* dimBlock(payload.toString('utf8'), style, payloadLines);
}

function* messageBlocks(session: SessionRow, frame: StoredFrame, options: ViewOptions): Generator<string> {
  const json = jsonOf(frame);
  const repeats = options.repeatsOf?.(frame);
  // A batch may have thousands that the index does not tell enough of.
  let parsed: readonly Message[] | undefined;
  for (const row of frame.messages) {
    const indexed = labelledBy(row);
    parsed ??= indexed === null ? messagesOf(frame) : undefined;
    const message = indexed ?? parsed?.[row.n];
    const repeat = repeats?.get(row.n);
    if (message !== undefined) yield* messageBlock(session, frame, row, { message, json, repeat }, options);
  }
}

function* messageBlock(
  session: SessionRow,
  frame: StoredFrame,
  row: MessageRow,
  { message, json, repeat }: { message: Labelled; json: Buffer; repeat: RepeatedCall | undefined },
  { style, payloadLines, unanswered, fateOf }: ViewOptions,
): Generator<string> {
  const { colors, width } = style;
  const tag = tagOf(frame.http?.exchange);
  const parts = statusOf(row, unanswered);
  const name = messageLabel(message, json, row.n, row.askedMethod);
  const { label, status } = fitMessage(row, name, parts, width - INDENT - tag.length);
  const paint = painterOf(colors, row, status);
  const start = `${margin(style, session, frame.at, arrowOf(frame, colors))}${colors.dim(tag)}`;
  yield `${start}${paint(label)}${status === '' ? '' : `  ${paintStatus(colors, status)}`}`;

  for (const note of [...notesOf(row), ...fateNotes(fateOf(row)), ...repeatNotes(repeat)])
    yield noteLine(note, style);
  const text = bodyText(message, json, row.n);
  if (text !== '{}') yield* dimBlock(text, style, payloadLines);
}

function arrowOf({ channel }: StoredFrame, colors: Colors): string {
  return directionOf(channel) === 'client-to-server' ? colors.cyan('→') : colors.green('←');
}

/** What stands behind a label: how long an answer took and how it ended, or that none came. */
function statusOf(row: MessageRow, unanswered: ReadonlySet<string>): string[] {
  if (row.relation === 'reply') {
    const latency = row.latency === null ? [] : [formatDuration(row.latency / 1000)];
    return row.outcome === null ? latency : [...latency, row.outcome];
  }
  if (row.kind === 'request' && row.outcome !== null) return [ENDED_BY_HTTP[row.outcome] ?? row.outcome];
  return unanswered.has(`${row.seq}.${row.n}`) ? ['unanswered'] : [];
}

/** How the end of its HTTP exchange ended a request. */
const ENDED_BY_HTTP: Record<string, string> = { cancelled: 'cancelled', error: 'refused' };

const WITHOUT_ANSWER: ReadonlySet<string> = new Set(['unanswered', 'cancelled', 'refused']);

function notesOf(row: MessageRow): string[] {
  return row.kind === 'invalid' || row.problem === null
    ? []
    : row.problem.split(',').map((code) => `this message ${problemText(code)}`);
}

/** That it was refused stands in its line. */
function fateNotes(fate: Fate | null): string[] {
  const text = fate === null || fate.verdict === 'refused' ? '' : fateText(fate);
  return text === '' ? [] : [text];
}

function repeatNotes(repeat: RepeatedCall | undefined): string[] {
  if (repeat === undefined) return [];
  const { first, gap } = repeat;
  return [`the call of #${first.seq} again, ${formatDuration(gap / 1000)} later, before its fate was known`];
}

function painterOf(colors: Colors, row: MessageRow, status: string): (text: string) => string {
  if (row.kind === 'invalid' || row.outcome === 'error' || row.outcome === 'tool-error') return colors.red;
  if (WITHOUT_ANSWER.has(status)) return colors.yellow;
  return row.kind === 'request' ? colors.bold : (text) => text;
}

function paintStatus(colors: Colors, status: string): string {
  return WITHOUT_ANSWER.has(status) ? colors.yellow(status) : colors.dim(status);
}

/** Blocks of an event stream that hold no message, in a few words each. */

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

/** A frame without its payload: how large that was, the hash that it has in place of it, and which requests it answers. */
export function metaOnlyTitle({ size, payload }: Pick<BareFrame, 'size' | 'payload'>): string {
  const text = payload.toString('utf8', 0, MAX_BYTES);
  const answered = parseMessages(payload).flatMap((one) =>
    'id' in one && one.id !== null ? [one.id.text] : [],
  );
  const digest = /\[redacted:[a-z]+:[0-9a-f]+\]/.exec(text)?.[0] ?? text;
  const answers = answered.length === 0 ? '' : `, answers ${answered.join(', ')}`;
  return `not kept, ${formatSize(size)} ${digest}${answers}`;
}

/** Of a text that is no message, so much is a title. In bytes. */
const TITLE_BYTES = 300;

/** What a frame says, in a line. Nothing is escaped. */
export function frameTitle(frame: BareFrame, rows: readonly MessageRow[]): string {
  if (isMetaOnly(frame)) return metaOnlyTitle(frame);
  if (rows.length === 0)
    return frame.part === 'block' ? blockText(frame.payload) : frame.payload.toString('utf8', 0, TITLE_BYTES);
  const messages = messagesOf(frame);
  const json = jsonOf(frame);
  const labels = rows.flatMap((row) => {
    const message = messages[row.n];
    return message === undefined ? [] : [messageLabel(message, json, row.n, row.askedMethod)];
  });
  return labels.join(', ');
}
