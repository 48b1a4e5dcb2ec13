/** What inspectors look at: the messages of a session in order, each with what was known when it came. */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import type { Correlation, Place } from '../../protocol/message/correlate.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { FrameFault } from '../../protocol/wire/frame.ts';
import type { EarlierTools } from '../verdict/earlier.ts';
import type { Side } from './rules.ts';

/** How many requests, tokens or tasks an inspector remembers, so that a session of any length takes constant memory. */
export const MAX_REMEMBERED = 65_536;

/** A request that an answer or a cancellation is about. */
export type AnsweredRequest = {
  place: Place;
  at: number;
  side: Side;
  message: Message;
  /** Canonical method. */
  method: string;
  params: JsonObject | null;
  revision: string | null;
};

export type CheckedMessage = {
  place: Place;
  /** Microseconds since the Unix epoch. */
  at: number;
  /** Bytes of the frame that it came in. */
  size: number;
  /** Who sent it. */
  side: Side;
  channel: string;
  message: Message;
  correlation: Correlation;
  /** The whole message; null where it is no object, or too large to be looked into. */
  value: JsonObject | null;
  /** Of a request or notification; null where there are none. */
  params: JsonObject | null;
  /** The revision that the message speaks, as far as it is known by then. */
  revision: string | null;
  /** Of an answer: what it answers. */
  asked: AnsweredRequest | null;
  /** Number of the HTTP exchange it came on. */
  http: number | null;
  isBatch: boolean;
  /** What was done to it on purpose; null: nothing. It stands here as its sender had sent it. */
  fault: FrameFault | null;
};

/** A frame, whether there is a message in it or not. */
export type CheckedFrame = {
  place: Place;
  channel: string;
  payload: Buffer;
  http: number | null;
  /** Messages that a fault said once more, by whose name. Nobody had sent them. */
  copied: { side: Side; messages: readonly Message[] };
};

/** An HTTP exchange as far as rules need it. Header names in lower case; a repeated one is joined by a comma. */
export type CheckedHttpExchange = {
  number: number;
  method: string;
  status: number | null;
  requestHeaders: ReadonlyMap<string, string>;
  responseHeaders: ReadonlyMap<string, string>;
  responseBytes: number;
};

export type CheckedSession = {
  transport: 'stdio' | 'http';
  basis: string;
  /** Its recorder is still at work, or was cut off: what is missing at its end proves nothing. */
  isWhole: boolean;
  /** Something may have passed before its end that was not recorded, or not whole. */
  mayMissFrames?: boolean;
  /** Another tool has recorded it. */
  isForeign?: boolean;
  /** What the server had listed in its session before; null where nothing is known of one. */
  earlier?: EarlierTools | null;
  /** How long a server ran on after the end of its input, in milliseconds; null where that is not known. */
  lingeredMs: number | null;
};

/** Looks for one kind of fault. Its parts are called in the order of the session. */
export type Inspector = {
  /** Before its messages. */
  frame?(frame: CheckedFrame): void;
  message?(seen: CheckedMessage): void;
  /** An HTTP exchange, when it ended; after all its messages. `closed`: the requests that this concludes without an answer. */
  httpExchange?(httpExchange: CheckedHttpExchange, closed: readonly Place[]): void;
  end?(): void;
};

/** A value as a finding shows it: its JSON, cut. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value) ?? String(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

const MAX_SHOWN = 120;

/** Of a request or a notification: its canonical method. */
export function methodOf({ message }: Pick<CheckedMessage, 'message'>): string | null {
  return message.kind === 'request' || message.kind === 'notification' ? message.canonical : null;
}

/** The `result` of an answer that is one. */
export function resultOf({ message, value }: Pick<CheckedMessage, 'message' | 'value'>): JsonObject | null {
  if (message.kind !== 'result' || value === null) return null;
  const { result } = value;
  return isObject(result) ? result : null;
}
