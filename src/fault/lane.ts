/**
 * One direction of a connection with faults: takes messages in the order in which they were said, and lets each go on as its
 * effect says. What has no fault goes on at once and as it is, unless something is being written piece by piece: two messages
 * are never mixed up.
 */

import { clearTimeout, setTimeout } from 'node:timers';
import type { FrameFault } from '../protocol/wire/frame.ts';
import type { Chosen } from './decide.ts';
import { type Effect, NO_BYTES, type Piece } from './effect.ts';
import { createTurns, type Turns } from './turns.ts';

/** A message on its way. */
type Unit = {
  /** As it was said. */
  json: Buffer;
  /** The bytes of the wire for a JSON text in its place. */
  wire: (json: Buffer) => Buffer;
  /** It has gone on, or never will: what stands in its place, and what was done. */
  passed: (json: Buffer, fault: FrameFault | null) => void;
};

export type Lane = {
  take(unit: Unit, chosen: Chosen | null, effect: Effect | null): void;
  /** Bytes that wait. */
  waiting(): number;
  /** Nothing more is said. Settles when everything has gone on. */
  finish(): Promise<void>;
  /** Nobody listens any more: nothing goes on. */
  cancel(): void;
};

type LaneOptions = {
  write: (bytes: Buffer) => void;
  /** What an effect does besides, once its message has gone on or is kept back. */
  besides: (what: NonNullable<Effect['besides']>) => void;
  /** How a fault is told of, with what was said where that went on otherwise. */
  mark: (chosen: Chosen, effect: Effect, original: Buffer | null) => FrameFault;
  /** Where the messages of others count, too, and may come when nothing more is said here. */
  turns?: Turns;
};

/** What is written next. `done` is called when it has gone on, `undone` where it never will. */
type Writing = { pieces: Piece[]; done: () => void; undone: () => void; size: number };

export function createLane({ write, besides, mark, turns: shared }: LaneOptions): Lane {
  const queue: Writing[] = [];
  const timers = new Map<NodeJS.Timeout, Writing>();
  const turns = shared ?? createTurns();
  /** How each that is to go behind others gives that up. */
  const behind = new Map<Writing, () => void>();
  let current: Writing | null = null;
  let isCancelled = false;
  let onIdle = () => {};

  function isIdle(): boolean {
    return current === null && queue.length === 0 && timers.size === 0 && behind.size === 0;
  }

  function go(writing: Writing): void {
    queue.push(writing);
    if (current === null) writeNext();
  }

  function writeNext(): void {
    current = queue.shift() ?? null;
    if (current === null) {
      if (isIdle()) onIdle();
      return;
    }
    writePiece(current, 0);
  }

  function writePiece(writing: Writing, i: number): void {
    if (isCancelled) return;
    const piece = writing.pieces[i];
    if (piece === undefined) {
      writing.done();
      // Only then the next: what goes now must find this one still under way.
      turns.passed();
      current = null;
      writeNext();
      return;
    }
    const put = () => {
      if (isCancelled) return;
      write(piece.bytes);
      writePiece(writing, i + 1);
    };
    if (piece.afterMs === 0) put();
    else setTimeout(put, piece.afterMs);
  }

  function later(writing: Writing, ms: number): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      go(writing);
    }, ms);
    timers.set(timer, writing);
  }

  function goBehind(writing: Writing, count: number): void {
    const giveUp = turns.behind(count, () => {
      behind.delete(writing);
      go(writing);
    });
    behind.set(writing, giveUp);
  }

  function take(unit: Unit, chosen: Chosen | null, effect: Effect | null): void {
    if (chosen === null || effect === null) {
      const bytes = unit.wire(unit.json);
      const done = () => unit.passed(unit.json, null);
      const undone = () => {};
      go({ pieces: [{ bytes, afterMs: 0 }], done, undone, size: bytes.length });
      return;
    }
    const { payload, copies, waitMs, behind: count, cut, besides: what } = effect;
    const undone = () => unit.passed(NO_BYTES, mark(chosen, effect, unit.json));
    if (copies === 0) {
      undone();
      if (what !== null) besides(what);
      return;
    }
    const json = payload ?? unit.json;
    const bytes = unit.wire(json);
    const pieces = cut === null ? [{ bytes, afterMs: 0 }] : cut(bytes);
    const marked = mark(chosen, effect, payload === null ? null : unit.json);
    const done = () => {
      // Of two equal ones, the second is what nobody has said.
      unit.passed(json, copies === 2 ? null : marked);
      if (what !== null) besides(what);
    };
    const writing = { pieces, done, undone, size: bytes.length };
    if (waitMs > 0) later(writing, waitMs);
    else if (count > 0) goBehind(writing, count);
    else go(writing);
    if (copies === 2) {
      const again = () => unit.passed(json, mark(chosen, effect, NO_BYTES));
      go({ pieces, done: again, undone: () => {}, size: bytes.length });
    }
  }

  return {
    take,
    waiting() {
      let size = 0;
      for (const one of [...queue, ...timers.values(), ...behind.keys()]) size += one.size;
      return size;
    },
    finish() {
      if (shared === undefined) turns.release();
      return isIdle()
        ? Promise.resolve()
        : new Promise((resolve) => {
            onIdle = resolve;
          });
    },
    cancel() {
      if (isCancelled) return;
      isCancelled = true;
      for (const timer of timers.keys()) clearTimeout(timer);
      for (const giveUp of behind.values()) giveUp();
      const left = [...(current === null ? [] : [current]), ...queue, ...timers.values(), ...behind.keys()];
      queue.length = 0;
      timers.clear();
      behind.clear();
      current = null;
      for (const { undone } of left) undone();
      onIdle();
    },
  };
}
