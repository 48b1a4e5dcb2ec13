/**
 * Which sessions are kept where not all are: decided for each session as a whole, by a hash of what tells it from others, so that
 * every recorder that sees the session decides alike. Loaded by recorders that sample, and by nobody else.
 */

import { createHash } from 'node:crypto';
import type { Statement } from 'better-sqlite3';
import type { Store } from '../file/open.ts';
import type { PendingSession, SessionKey } from '../write/pending.ts';

/** Rules for sessions that begin from now on. */
export type SamplingRules = {
  /** The share of sessions that are kept, from 0 to 1. */
  rate: number;
  /**
   * A filter: sessions that have what it asks for are kept too. So nobody knows before the end whether one is kept, and all of it
   * is stored until then. Null: what is not kept is not stored.
   */
  keep: string | null;
};

/**
 * What the row of a session says in `sampling`, as JSON, until it is decided. `draw`: below `rate` it is kept anyway. `keep` null:
 * its recorder decides as soon as it knows what names the session; where that was killed before, the session stays.
 */
export type OpenDecision = SamplingRules & { draw: number };

/** Shares of decisions that have nothing to do with each other. */
type Purpose = 'record' | 'ship';

const BITS = 48;

/** A number from 0 up to 1 that is the same for a key wherever it is asked for. */
export function drawOf(key: string, purpose: Purpose = 'record'): number {
  const hash = createHash('sha256').update(`tapedeck ${purpose} ${key}`).digest();
  return hash.readUIntBE(0, BITS / 8) / 2 ** BITS;
}

/** Decides for the sessions of one recorder. */
export type Sampler = {
  /** Sessions that begin from now on are sampled by these; null: all are kept. */
  setRules(rules: SamplingRules | null): void;
  begin(session: PendingSession): void;
  /**
   * What tells the session from others is known; null: nothing on the wire does, so that it is its own id. The first call decides;
   * of sessions that wait for their end it is the last word on the draw.
   */
  decide(session: PendingSession, key: string | null): void;
  /** Sees to it that the row says what was decided. Call it in a transaction. */
  write(store: Store, row: SessionKey, session: PendingSession): void;
  /** What was written is committed. */
  confirm(session: PendingSession, row: SessionKey): void;
  /** Marks the row of a session that was left out, in a spool: whoever takes that in finds the mark. Call it in a transaction. */
  mark(store: Store, row: SessionKey): void;
  /** So many were left out. */
  leftOut(): number;
};

/** `sample` and `sampling` as in the row. */
type Mark = { sample: number | null; sampling: string | null };

type Undecided = { rules: SamplingRules; isDecided: boolean; mark: Mark; written: SessionKey | null };

export function createSampler(first: SamplingRules): Sampler {
  const known = new WeakMap<PendingSession, Undecided>();
  let current: SamplingRules | null = first;
  let leftOut = 0;
  /** Of the store, or of the spool that is written to. */
  let last: { store: Store; statement: Statement<[Mark & { number: number }]> } | null = null;

  /** Prepared once: a statement for each session would cost its memory. */
  function marking(store: Store): Statement<[Mark & { number: number }]> {
    if (last?.store !== store) {
      const sql = 'UPDATE session SET sample = @sample, sampling = @sampling WHERE number = @number';
      last = { store, statement: store.prepare(sql) };
    }
    return last.statement;
  }

  function openMark(rules: SamplingRules, draw: number): Mark {
    const open: OpenDecision = { ...rules, draw };
    return { sample: null, sampling: JSON.stringify(open) };
  }

  return {
    setRules(rules) {
      current = rules;
    },
    begin(session) {
      if (current === null) return;
      const mark = openMark(current, drawOf(session.id ?? ''));
      known.set(session, { rules: current, isDecided: false, mark, written: null });
    },
    decide(session, key) {
      const state = known.get(session);
      if (state === undefined || state.isDecided) return;
      state.isDecided = true;
      const draw = drawOf(key ?? session.id ?? '');
      if (state.rules.keep === null && draw >= state.rules.rate) {
        leftOut += 1;
        known.delete(session);
        session.leaveOut();
        return;
      }
      const { rate, keep } = state.rules;
      state.mark = keep === null ? { sample: rate, sampling: null } : openMark(state.rules, draw);
      state.written = null;
    },
    write(store, row, session) {
      const state = known.get(session);
      if (state === undefined || state.written === row) return;
      marking(store).run({ ...state.mark, number: row.number });
    },
    confirm(session, row) {
      const state = known.get(session);
      if (state !== undefined) state.written = row;
    },
    mark(store, { number }) {
      marking(store).run({ sample: 0, sampling: null, number });
    },
    leftOut: () => leftOut,
  };
}
