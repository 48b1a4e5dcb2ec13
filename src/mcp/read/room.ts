/**
 * The room that an answer has. It goes to a client twice, as text and as structured content, so what a value costs is counted in both:
 * its JSON, and its JSON inside of a JSON string.
 */

import { isUtf8 } from 'node:buffer';
import type { Veil } from './redacted.ts';

/** The most that a whole answer may have, in bytes. */
const MOST_ANSWER_BYTES = 20_000;

/** For what is said beside the recorded: the sentence in front, cursors, what was left out. */
const BESIDE_BYTES = 2_500;

/** Longer texts in a list are cut: whoever wants one whole asks for its frame. */
const MOST_CHARACTERS = 300;

export type Room = {
  /** Takes secrets out of a value and cuts its texts; undefined where it does not fit any more. */
  admit<T>(value: T): T | undefined;
  /** As many of the rows as fit, beginning with one of them, and how many these are. */
  fill<T>(rows: readonly T[]): T[];
  /** A piece of a payload from one of its bytes on, in so many bytes of the room. */
  payload(bytes: Buffer, from: number, most?: number): Payload;
  left(): number;
};

/** `message`: the whole, where JSON.parse loses nothing of it. `next`: from where to ask for more. */
type Payload = { bytes: number } & (
  | { message: unknown }
  | { from: number; text: string; next?: number }
  | { from: number; base64: string; next?: number }
);

export function createRoom(veil: Veil, bytes = MOST_ANSWER_BYTES - BESIDE_BYTES): Room {
  let left = bytes;

  function admit<T>(value: T): T | undefined {
    const brief = JSON.parse(JSON.stringify(veil(value), cut)) as T;
    const cost = costOf(brief) + 2;
    if (cost > left) return undefined;
    left -= cost;
    return brief;
  }

  return {
    admit,
    fill<T>(rows: readonly T[]) {
      const taken: T[] = [];
      for (const row of rows) {
        const fitted = admit(row);
        if (fitted === undefined) break;
        taken.push(fitted);
      }
      return taken;
    },
    payload(payload, from, most = left) {
      const piece = pieceOf(payload, from, Math.min(most, left) - PLACE_BYTES, veil);
      left -= costOf(piece);
      return piece;
    },
    left: () => left,
  };
}

/** For the numbers of a piece. */
const PLACE_BYTES = 150;

function cut(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= MOST_CHARACTERS) return value;
  return `${value.slice(0, MOST_CHARACTERS)}… (${value.length} characters)`;
}

function costOf(value: unknown): number {
  const text = JSON.stringify(value);
  return Buffer.byteLength(text) + Buffer.byteLength(JSON.stringify(text));
}

function pieceOf(payload: Buffer, from: number, room: number, veil: Veil): Payload {
  const bytes = payload.length;
  const isText = isUtf8(payload);
  const whole = from === 0 && isText && bytes <= room ? exactJson(payload) : undefined;
  if (whole !== undefined) {
    const message = veil(whole);
    if (costOf(message) <= room) return { bytes, message };
  }
  const start = isText ? characterStart(payload, Math.min(from, bytes)) : Math.min(from, bytes);
  for (let length = Math.min(bytes - start, Math.max(room, 0)); ; ) {
    const end = isText ? characterStart(payload, start + length) : start + length;
    const text = veil(payload.toString(isText ? 'utf8' : 'base64', start, end));
    const cost = costOf(text);
    if (cost <= room || length === 0) {
      const next = end < bytes ? { next: end } : {};
      return isText ? { bytes, from: start, text, ...next } : { bytes, from: start, base64: text, ...next };
    }
    length = Math.min(length - 1, Math.floor((length * room * 0.98) / cost));
  }
}

/** What is written as JSON.stringify writes it keeps every digit. */
function exactJson(payload: Buffer): unknown {
  const text = payload.toString();
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

/** At or before this byte. */
function characterStart(bytes: Buffer, at: number): number {
  if (at >= bytes.length) return bytes.length;
  let start = at;
  while (start > 0 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
