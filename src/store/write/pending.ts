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
  /** HTTP exchanges that have no row yet, in the order of their numbers. */
  newHttpExchanges(): readonly HttpExchange[];
  /** Those that may have one, and have changed. */
  changedHttpExchanges(): ReadonlySet<HttpExchange>;
  /** It is no part of the sample: nothing more of it waits, and none of it counts as lost. */
  readonly isLeftOut: boolean;

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
  /** Makes it `isLeftOut`: forgets what waits, and says so once more, so that its row can go. */
  leaveOut(): void;
};

type PendingOptions = Pick<SessionState, 'basis' | 'transport'> &
  Partial<SessionState> & {
    id?: string;
    startedAt?: number;
    /** So many frames are stored already. */
    storedFrames?: number;
    loss?: Loss;
    /** Called whenever something more waits. */
    onChange?: (session: PendingSession) => void;
  };

export function createPendingSession(options: PendingOptions): PendingSession {
  return new Pending(options);
}

const NO_EXCHANGES: ReadonlySet<HttpExchange> = new Set();

/** A class, because a proxy has thousands of sessions at once, and closures take more memory. */
class Pending implements PendingSession {
  readonly id: string | null;
  key: SessionKey | null = null;
  readonly startedAt: number;
  readonly state: SessionState;
  readonly loss: Loss;
  isLeftOut = false;
  readonly #onChange: (session: PendingSession) => void;
  #newHttpExchanges: HttpExchange[] = [];
  #changedHttpExchanges: Set<HttpExchange> | null = null;
  #frames: FrameWithReading[] = [];
  #begun: Frame[] = [];
  #firstSeq: number;
  #redacted = 0;
  #lastHttpExchange = 0;
  /** Those up to this number were stored, or given up. */
  #storedHttpExchange = 0;

  constructor(options: PendingOptions) {
    const { basis, transport, serverPid = null, end = null, startedAt = 0, storedFrames = 0 } = options;
    this.id = options.id ?? null;
    this.startedAt = startedAt;
    this.state = { basis, transport, serverPid, end };
    this.loss = { frames: 0, bytes: 0, ...options.loss };
    this.#firstSeq = storedFrames + 1;
    this.#onChange = options.onChange ?? (() => {});
  }

  frames(): readonly FrameWithReading[] {
    return this.#frames;
  }

  firstSeq(): number {
    return this.#firstSeq;
  }

  lastSeq(): number {
    return this.#firstSeq + this.#frames.length - 1;
  }

  begun(): readonly Frame[] {
    return this.#frames.length === 0 ? [] : this.#begun;
  }

  newHttpExchanges(): readonly HttpExchange[] {
    return this.#newHttpExchanges;
  }

  changedHttpExchanges(): ReadonlySet<HttpExchange> {
    return this.#changedHttpExchanges ?? NO_EXCHANGES;
  }

  add(frame: FrameWithReading, isBegun: boolean): void {
    if (this.isLeftOut) return;
    this.#frames.push(frame);
    if (isBegun) this.#begun.push(frame);
    this.#onChange(this);
  }

  redact(redact: (frame: Frame) => Frame): void {
    const frames = this.#frames;
    for (; this.#redacted < frames.length; this.#redacted += 1)
      frames[this.#redacted] = redact(frames[this.#redacted] as Frame);
  }

  lose(frames: number, bytes: number): void {
    if (this.isLeftOut) return;
    this.loss.frames += frames;
    this.loss.bytes += bytes;
    this.#onChange(this);
  }

  begin(httpExchange: HttpExchange): void {
    this.#lastHttpExchange += 1;
    httpExchange.number = this.#lastHttpExchange;
    if (this.isLeftOut) return;
    this.#newHttpExchanges.push(httpExchange);
    this.#onChange(this);
  }

  touch(httpExchange: HttpExchange): void {
    if (this.isLeftOut) return;
    const { number } = httpExchange;
    // One that was begun here and is new is stored as it will be then.
    if (number <= this.#storedHttpExchange || number > this.#lastHttpExchange) {
      this.#changedHttpExchanges ??= new Set();
      this.#changedHttpExchanges.add(httpExchange);
    }
    this.#onChange(this);
  }

  change(change: Partial<SessionState>): void {
    Object.assign(this.state, change);
    if (!this.isLeftOut) this.#onChange(this);
  }

  confirm(): void {
    if (this.#frames.length > 0) this.#begun = [];
    this.#firstSeq += this.#frames.length;
    this.#forget();
  }

  giveUp(): void {
    for (const { size } of this.#frames) {
      this.loss.frames += 1;
      this.loss.bytes += size;
    }
    // Their numbers are free again, so that those of the stored ones have no hole.
    this.#forget();
  }

  leaveOut(): void {
    this.#forget();
    this.#begun = [];
    this.#onChange(this);
    this.isLeftOut = true;
  }

  /** The beginnings of frames that were given up are removed along with those of the next frames. */
  #forget(): void {
    if (this.#frames.length > 0) this.#frames = [];
    this.#redacted = 0;
    this.#storedHttpExchange = this.#lastHttpExchange;
    if (this.#newHttpExchanges.length > 0) this.#newHttpExchanges = [];
    this.#changedHttpExchanges = null;
  }
}
