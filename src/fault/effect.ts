/** What a fault does to one message: pure, from what was chosen and what was said. Shells of each transport carry it out. */

import { createHash } from 'node:crypto';
import type { Action, Spread } from './action.ts';
import type { Chosen } from './decide.ts';

export type Effect = {
  /** The action with the values that were drawn, as `delay 231ms`. */
  text: string;
  /** The JSON text that goes on in place of what was said; null: what was said. Empty: nothing. */
  payload: Buffer | null;
  /** How often it goes on. */
  copies: 0 | 1 | 2;
  /** Nothing is ever said in its place: whoever waits for it waits on. */
  isHeld: boolean;
  /** How long it waits, while others may overtake it. Milliseconds. */
  waitMs: number;
  /** So many others go first, or as many as come within a second. */
  behind: number;
  /** Null: in one piece. */
  cut: ((bytes: Buffer) => Piece[]) | null;
  /** What happens besides, to all that is connected. */
  besides: 'close' | 'reset' | 'stall-stderr' | Exit | null;
  http: { status: number; retryAfter: number | null } | null;
};

/** `afterMs`: the pause before it. */
export type Piece = { bytes: Buffer; afterMs: number };

export type Exit = { code: number; signal: NodeJS.Signals | null };

export const NO_BYTES: Buffer = Buffer.alloc(0);

const AS_IT_IS: Effect = {
  text: '',
  payload: null,
  copies: 1,
  isHeld: false,
  waitMs: 0,
  behind: 0,
  cut: null,
  besides: null,
  http: null,
};

/** `json`: what was said. */
export function effectOf(chosen: Chosen, json: Buffer): Effect {
  const { action } = chosen.rule;
  return { ...AS_IT_IS, text: action.name, ...changeOf(action, chosen, json) };
}

function changeOf(action: Action, chosen: Chosen, json: Buffer): Partial<Effect> {
  switch (action.name) {
    case 'delay': {
      const waitMs = timeFrom(action.time, chosen.draw);
      return { waitMs, text: `delay ${Math.round(waitMs)}ms` };
    }
    case 'dribble':
      return {
        cut: (bytes) => dribbled(bytes, action.chunks, action.ms),
        text: `dribble ${action.chunks}, ${action.ms}ms`,
      };
    case 'rate':
      return {
        cut: (bytes) => paced(bytes, action.bytesPerSecond),
        text: `rate ${action.bytesPerSecond} B/s`,
      };
    case 'split':
      return { cut: (bytes) => split(bytes, action.bytes), text: `split ${action.bytes}` };
    case 'hold':
      return { payload: NO_BYTES, copies: 0, isHeld: true };
    case 'drop':
      return { payload: NO_BYTES, copies: 0 };
    case 'duplicate':
      return { copies: 2 };
    case 'reorder':
      return { behind: action.count, text: `reorder ${action.count}` };
    case 'truncate':
      return { payload: json.subarray(0, action.bytes), text: `truncate ${action.bytes}` };
    case 'garbage':
      return { payload: garbage(json.length, chosen.draw('garbage')) };
    case 'error':
      return { payload: errorAnswer(chosen, action), text: `error ${action.code}` };
    case 'tool-error':
      return { payload: toolError(chosen, action.message) };
    case 'http':
      return { payload: NO_BYTES, copies: 0, http: action, text: `http ${action.status}` };
    case 'exit':
      return { payload: NO_BYTES, copies: 0, besides: action, text: `exit ${action.signal ?? action.code}` };
    case 'close':
    case 'reset':
      return { payload: NO_BYTES, copies: 0, besides: action.name };
    case 'stall-stderr':
      return { besides: action.name };
  }
}

/** Milliseconds, never more than an hour where they are drawn. */
function timeFrom(time: Spread, draw: Chosen['draw']): number {
  if (time.type === 'fixed') return time.ms;
  if (time.type === 'uniform') return time.least + draw('time') * (time.most - time.least);
  // Box and Muller: two uniform numbers make a normal one.
  const normal = Math.sqrt(-2 * Math.log(1 - draw('time'))) * Math.cos(2 * Math.PI * draw('angle'));
  return Math.min(MOST_DRAWN_MS, time.median * Math.exp(time.sigma * normal));
}

const MOST_DRAWN_MS = 60 * 60 * 1000;

/** More would be timers without end: what is left goes in one piece. */
const MAX_PIECES = 1000;

function piecesOf(bytes: Buffer, size: number, pauseMs: number): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = pieces.length === MAX_PIECES - 1 ? bytes.length : at + size;
    pieces.push({ bytes: bytes.subarray(at, end), afterMs: at === 0 ? 0 : pauseMs });
    at = end;
  }
  return pieces;
}

function dribbled(bytes: Buffer, chunks: number, ms: number): Piece[] {
  return piecesOf(bytes, Math.max(1, Math.ceil(bytes.length / chunks)), ms / (chunks - 1));
}

const PACE_MS = 100;

function paced(bytes: Buffer, perSecond: number): Piece[] {
  const size = Math.max(1, Math.floor((perSecond * PACE_MS) / 1000), Math.ceil(bytes.length / MAX_PIECES));
  return piecesOf(bytes, size, (size / perSecond) * 1000);
}

/** The pause lets a reader take each piece for itself, mostly. */
function split(bytes: Buffer, size: number): Piece[] {
  return piecesOf(bytes, size, 1);
}

const MOST_GARBAGE_BYTES = 64 * 1024;

/** Bytes that are no JSON, no UTF-8 and no line end; always the same for one seed. */
function garbage(length: number, seed: number): Buffer {
  const size = Math.max(8, Math.min(length, MOST_GARBAGE_BYTES));
  const blocks: Buffer[] = [Buffer.from([0xff])];
  for (let i = 0; i * 32 < size; i += 1) blocks.push(createHash('sha256').update(`${seed} ${i}`).digest());
  const bytes = Buffer.concat(blocks).subarray(0, size);
  for (const [i, byte] of bytes.entries()) if (byte === 0x0a || byte === 0x0d) bytes[i] = 0x2e;
  return bytes;
}

function errorAnswer({ answers }: Chosen, { code, message }: { code: number; message: string }): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","id":${answers?.id},"error":${JSON.stringify({ code, message })}}`);
}

/** Results of 2026-07-28 say of which type they are. */
function toolError({ answers }: Chosen, text: string): Buffer {
  const isModern = answers?.request.details.isModern === true;
  const result = {
    ...(isModern ? { resultType: 'complete' } : {}),
    content: [{ type: 'text', text }],
    isError: true,
  };
  return Buffer.from(`{"jsonrpc":"2.0","id":${answers?.id},"result":${JSON.stringify(result)}}`);
}

/** A body that says what it says twice: JSON-RPC has no other way but a batch. */
export function twice(json: Buffer): Buffer {
  const text = json.toString('latin1').trim();
  const messages = text.startsWith('[') ? text.slice(1, -1) : text;
  return Buffer.from(`[${messages},${messages}]`, 'latin1');
}
