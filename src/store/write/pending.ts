import { BoundedMap } from '../../protocol/bounded.ts';
import type { HttpExchange } from '../../protocol/http/exchange.ts';
import type { Frame, HttpChannel } from '../../protocol/wire/frame.ts';
import type { Basis, EndReason, Loss, Transport } from '../file/columns.ts';

/** A piece of a body or event that is not whole yet. `part` counts from 0 within it. */
export type HttpHeld = {
  session: LiveSession;
  exchange: number;
  channel: HttpChannel;
  part: number;
  at: number;
  bytes: Buffer;
};

/** A session of HTTP traffic while it is recorded, or of any while it is imported: what of it waits to be stored. */

export type LiveSession = {
  readonly number: number;
  readonly startedAt: number;
  /** What stands in its row and may change. */
  readonly row: LiveRow;
  readonly loss: Loss;
  /** Frames that wait, the first of them as number `firstSeq`. */
  frames(): readonly Frame[];
  /** Changes those of them that it has not changed before. */
  changeFrames(change: (frame: Frame) => Frame): void;
  firstSeq(): number;
  /** The number of the newest frame, 0 before the first. */
  lastSeq(): number;
  /** Those of them that were stored as unfinished before. */
  finished(): readonly Frame[];
  /** HTTP exchanges that are new or have changed. */
  changed(): ReadonlySet<HttpExchange>;
  /** Says that all that waited is stored. */
  confirm(): void;
  /** Forgets what waits, and counts it as lost. */
  giveUp(): void;

  /** Takes an exchange in, and gives it its number. */
  begin(exchange: HttpExchange): void;
  touch(exchange: HttpExchange): void;
  /** `isHeld`: the beginning of it is stored as unfinished, and is to be forgotten there. */
  add(frame: Frame, isHeld: boolean): void;
  lose(frames: number, bytes: number): void;
  /** Whether an event with this id and these data has come before; remembers it. */
  hasSeen(eventId: string, data: Buffer): boolean;
  change(change: Partial<LiveRow>): void;
};

type LiveRow = {
  basis: Basis;
  transport: Transport;
  end: { at: number; reason: EndReason } | null;
};

const MAX_EVENTS = 65_536;

/** `onNews` is told of everything that waits to be stored from now on; `stored` frames are there already. */
export function createLiveSession(
  number: number,
  startedAt: number,
  onNews: () => void,
  stored = 0,
): LiveSession {
  const row: LiveRow = { basis: 'stateless', transport: 'http', end: null };
  const loss: Loss = { frames: 0, bytes: 0 };
  const changed = new Set<HttpExchange>();
  const events = new BoundedMap<string, number>(MAX_EVENTS);
  let frames: Frame[] = [];
  let finished: Frame[] = [];
  let firstSeq = stored + 1;
  let exchanges = 0;
  let changedFrames = 0;

  function confirm(): void {
    firstSeq += frames.length;
    frames = [];
    changedFrames = 0;
    finished = [];
    changed.clear();
  }

  function touch(exchange: HttpExchange): void {
    changed.add(exchange);
    onNews();
  }

  return {
    number,
    startedAt,
    row,
    loss,
    frames: () => frames,
    changeFrames(change) {
      for (; changedFrames < frames.length; changedFrames += 1)
        frames[changedFrames] = change(frames[changedFrames] as Frame);
    },
    firstSeq: () => firstSeq,
    lastSeq: () => firstSeq + frames.length - 1,
    finished: () => finished,
    changed: () => changed,
    confirm,
    giveUp() {
      for (const { size } of frames) {
        loss.frames += 1;
        loss.bytes += size;
      }
      // Their numbers are free again: the stored ones stay without a hole.
      frames = [];
      changedFrames = 0;
      finished = [];
      changed.clear();
    },
    begin(exchange) {
      exchanges += 1;
      exchange.number = exchanges;
      touch(exchange);
    },
    touch,
    add(frame, isHeld) {
      onNews();
      frames.push(frame);
      if (isHeld) finished.push(frame);
    },
    lose(count, bytes) {
      loss.frames += count;
      loss.bytes += bytes;
      onNews();
    },
    hasSeen(eventId, data) {
      const before = events.get(eventId);
      const now = fingerprint(data);
      events.set(eventId, now);
      return before === now;
    },
    change(change) {
      Object.assign(row, change);
      // Ended sessions are kept, and after idleness alone may they be resumed.
      if (row.end !== null && row.end.reason !== 'idle') events.clear();
      onNews();
    },
  };
}

/** FNV-1a. */
function fingerprint(data: Buffer): number {
  let hash = 0x811c9dc5;
  for (const byte of data) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}
