/** The line of a message: what it is, and behind it how it went. Where there is little room, what tells calls apart stays. */

import { escapeText } from '../../protocol/text.ts';
import type { MessageRow } from '../../store/read/frames.ts';
import { clip, clipMiddle, widthOf } from './text.ts';

/** Between the label and the status, and between the parts of that. */
const GAP = '  ';

/** What a status may take of the room, however long the label is: an answer's label says less than what it answers. */
const STATUS_SHARE = 0.6;

/**
 * Fits the label of a message and its status into so many columns. `parts` are the status' own words; behind them stands what
 * an answer answers. Nothing is escaped yet. Both texts that are returned are.
 */
export function fitMessage(
  row: MessageRow,
  label: string,
  parts: readonly string[],
  room: number,
): { label: string; status: string } {
  const own = escapeText(label);
  const head = parts.map((part) => escapeText(part)).join(GAP);
  const { relation, askedMethod: method, askedTarget: target } = row;
  const asked = relation === 'reply' && method !== null ? { method, target } : null;
  const joined = (askedText: string) => [head, askedText].filter((text) => text !== '').join(GAP);
  const whole = joined(asked === null ? '' : escapeText([asked.method, asked.target ?? ''].join(' ').trim()));
  if (whole === '') return { label: cutLabel(row, own, room), status: '' };
  const most = Math.max(Math.floor(room * STATUS_SHARE), room - widthOf(own) - GAP.length);
  const status = widthOf(whole) <= most ? whole : cutStatus(head, asked, most);
  return { label: cutLabel(row, own, room - widthOf(status) - GAP.length), status };
}

/** A call ends with the name of what is called, all else begins with what matters. */
function cutLabel({ kind }: MessageRow, label: string, room: number): string {
  return kind === 'request' ? clipMiddle(label, room) : clip(label, room);
}

/** The target says what was called; that it was a tool is seldom news. */
function cutStatus(
  head: string,
  asked: { method: string; target: string | null } | null,
  room: number,
): string {
  if (asked === null) return clip(head, room);
  const name = escapeText(asked.target === null ? asked.method : `… ${asked.target}`);
  const left = room - (head === '' ? 0 : widthOf(head) + GAP.length);
  return left < LEAST_NAME ? clip(head, room) : [head, clipMiddle(name, left)].filter(Boolean).join(GAP);
}

/** Less of a name tells nothing. */
const LEAST_NAME = 8;
