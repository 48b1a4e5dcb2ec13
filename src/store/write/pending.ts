/**
 * What of a session waits to be stored, whether it is recorded, imported or appended. Nothing is forgotten before `confirm`
 * says that it is stored, so a store that is busy or full loses nothing by itself.
 */

import type { HttpExchange } from '../../protocol/http/exchange.ts';
import type { FrameWithReading } from '../../protocol/message/conversation.ts';
import type { Channel, Frame } from '../../protocol/wire/frame.ts';
import type { Basis, Loss, SessionEnd, Transport } from '../file/columns.ts';

/** Which row a session has: its number, by which the other tables refer to it, and its public id. */
export type SessionKey = { number: number; id: string };

/** What the row of a session says besides how it began. */
type SessionState = {
  basis: Basis;
  transport: Transport;
  serverPid: number | null;
  end: SessionEnd | null;
};

/**
 * A piece of a line, body or event that is not whole yet. `part` counts from 0 within it; `exchange` is the number of the
 * HTTP exchange within the session, null for stdio.
 */
export type UnfinishedPiece = {
  channel: Channel;
  exchange: number | null;
  part: number;
  at: number;
  bytes: Buffer;
};

export type PendingSession = {
  /** Its public id, where that was chosen before it has a row; else null. */
  id: string | null;
  /** Its row in the file that is written to; null until that is committed. */
  key: SessionKey | null;
  /** In microseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly state: Readonly<SessionState>;
  /** Everything that was lost so far, stored or not. */
  readonly loss: Readonly<Loss>;
  /** Frames that wait, the oldest first. */
  frames(): readonly FrameWithReading[];
  /** The number in the session of the first of them; the others follow it. */
  firstSeq(): number;
  /** The number of the newest frame; 0 before the first. */
  lastSeq(): number;
  /** Those of the frames whose beginnings are stored as unfinished, and are to be removed there. */
  begun(): readonly Frame[];
  /** HTTP exchanges that are new or have changed. */
  httpExchanges(): ReadonlySet<HttpExchange>;

  /** `isBegun`: its beginning is stored as unfinished. */
  add(frame: FrameWithReading, isBegun: boolean): void;
  /** Applies `redact` to each frame once. */
  redact(redact: (frame: Frame) => Frame): void;
  /** Counts frames and bytes that will never be stored. */
  lose(frames: number, bytes: number): void;
  /** Takes in a new HTTP exchange, and numbers it. */
  begin(httpExchange: HttpExchange): void;
  /** Says that an HTTP exchange is to be stored anew. */
  touch(httpExchange: HttpExchange): void;
  change(state: Partial<SessionState>): void;

  /** Says that everything that waited is stored. */
  confirm(): void;
  /** Forgets what waits, and counts it as lost. */
  giveUp(): void;
};

type PendingOptions = Pick<SessionState, 'basis' | 'transport'> &
  Partial<SessionState> & {
    id?: string;
    startedAt?: number;
    /** So many frames are stored already. */
    storedFrames?: number;
    loss?: Loss;
    /** Called whenever something more waits. */
    onChange?: () => void;
  };

export function createPendingSession(options: PendingOptions): PendingSession {
  const { basis, transport, serverPid = null, end = null, startedAt = 0, storedFrames = 0 } = options;
  const { onChange = () => {} } = options;
  const state: SessionState = { basis, transport, serverPid, end };
  const loss: Loss = { frames: 0, bytes: 0, ...options.loss };
  const httpExchanges = new Set<HttpExchange>();
  let frames: FrameWithReading[] = [];
  let begun: Frame[] = [];
  let firstSeq = storedFrames + 1;
  let redacted = 0;
  let lastHttpExchange = 0;

  function touch(httpExchange: HttpExchange): void {
    httpExchanges.add(httpExchange);
    onChange();
  }

  /** The beginnings of frames that were given up are removed along with those of the next frames. */
  function forget(): void {
    if (frames.length > 0) frames = [];
    redacted = 0;
    httpExchanges.clear();
  }

  return {
    id: options.id ?? null,
    key: null,
    startedAt,
    state,
    loss,
    frames: () => frames,
    firstSeq: () => firstSeq,
    lastSeq: () => firstSeq + frames.length - 1,
    begun: () => (frames.length === 0 ? [] : begun),
    httpExchanges: () => httpExchanges,

    add(frame, isBegun) {
      frames.push(frame);
      if (isBegun) begun.push(frame);
      onChange();
    },
    redact(redact) {
      for (; redacted < frames.length; redacted += 1) frames[redacted] = redact(frames[redacted] as Frame);
    },
    lose(count, bytes) {
      loss.frames += count;
      loss.bytes += bytes;
      onChange();
    },
    begin(httpExchange) {
      lastHttpExchange += 1;
      httpExchange.number = lastHttpExchange;
      touch(httpExchange);
    },
    touch,
    change(change) {
      Object.assign(state, change);
      onChange();
    },

    confirm() {
      if (frames.length > 0) begun = [];
      firstSeq += frames.length;
      forget();
    },
    giveUp() {
      for (const { size } of frames) {
        loss.frames += 1;
        loss.bytes += size;
      }
      // Their numbers are free again, so that those of the stored ones have no hole.
      forget();
    },
  };
}
