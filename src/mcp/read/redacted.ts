/**
 * Nothing leaves with a secret in it. A session that was recorded with all rules is read as it is stored; any other is first copied
 * through them (copies.ts), so that no reader ever sees what they would replace: not where it cuts a text, nor where it looks for one.
 * And whatever leaves passes the rules once more, by what it says.
 */

import { PLAIN_PROFILE } from '../../protocol/redact/profile.ts';
import { createRedactor, type Redactor } from '../../protocol/redact/redactor.ts';
import type { Store } from '../../store/file/open.ts';
import { createDigest, createPassingDigest, placeholderKey } from '../../store/file/secret.ts';
import { type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import { redactStart } from '../../store/write/redaction.ts';
import { beginCopy, type Copy } from './copies.ts';

/**
 * A session, and the store in which it is read. Its id is that of the store on the disk. `lack`: what of it cannot be read yet; null:
 * nothing.
 */
export type Opened = { store: Store; session: SessionRow; lack: Lack | null };

/** The first frames alone are redacted. `isFinal`: and no more will be. */
export type Lack = { session: string; done: number; of: number; isFinal: boolean };

export type Unveiling = {
  /** Opens a session as it may be read. Throws `LargeSession` where this thread makes no copies piece by piece. */
  open(session: SessionRow): Promise<Opened>;
  /** A question begins: it has some time for copies. */
  begin(): void;
  /** What the sessions lack that were opened since. */
  lacks(): Lack[];
  /** Goes on with copies that are not whole. True: all are. */
  goOn(ms: number): Promise<boolean>;
};

/** A session is too large to be copied at once, and this thread does nothing else. */
export class LargeSession extends Error {}

/** A larger one is copied piece by piece. */
const MOST_AT_ONCE = { bytes: 64 * 1024 * 1024, frames: 50_000 };

/** Copies are kept for the next question. */
const COPIES = 6;

/** So long one question goes on with copies, in milliseconds. */
const COPY_MS = 400;

/** An open session has grown since it was copied: so long what there is does. */
const STALE_MS = 30_000;

type Kept = { copy: Copy; key: string; isLarge: boolean; wholeSince: number };

/** `copiesLarge`: whether large sessions are copied here, piece by piece. */
export function createUnveiling(store: Store, reveal: boolean, copiesLarge: boolean): Unveiling {
  const kept = new Map<string, Kept>();
  let until = 0;
  let lacks = new Map<string, Lack>();

  async function open(session: SessionRow): Promise<Opened> {
    if (reveal || isRedacted(store, session.number)) return { store, session, lack: null };
    const isLarge = session.bytes > MOST_AT_ONCE.bytes || session.frames > MOST_AT_ONCE.frames;
    if (isLarge && !copiesLarge) throw new LargeSession();
    const one = keptFor(session, isLarge);
    await advance(one, isLarge ? until - performance.now() : Number.POSITIVE_INFINITY);
    const { copy } = one;
    const [done, of] = [copy.done(), session.frames];
    const lack = done < of ? { session: session.id, done, of, isFinal: copy.isOver() } : null;
    if (lack !== null) lacks.set(session.id, lack);
    return { store: copy.store, session: copy.session(), lack };
  }

  function keptFor(session: SessionRow, isLarge: boolean): Kept {
    const { id, frames, indexed } = session;
    const key = `${frames} ${indexed}`;
    const before = kept.get(id);
    const isFresh =
      before !== undefined &&
      (before.key === key ||
        (before.isLarge && (!before.copy.isOver() || performance.now() - before.wholeSince < STALE_MS)));
    const one = isFresh ? before : { copy: beginCopy(store, session), key, isLarge, wholeSince: 0 };
    if (!isFresh) before?.copy.close();
    kept.delete(id);
    kept.set(id, one);
    for (const [old, { copy }] of kept) {
      if (kept.size <= COPIES) break;
      kept.delete(old);
      copy.close();
    }
    return one;
  }

  async function advance(one: Kept, ms: number): Promise<void> {
    if (one.copy.isOver()) return;
    try {
      await one.copy.advance(ms);
    } catch (error) {
      for (const [id, other] of kept) if (other === one) kept.delete(id);
      throw error;
    }
    if (one.copy.isOver()) one.wholeSince = performance.now();
  }

  return {
    open,
    begin() {
      until = performance.now() + COPY_MS;
      lacks = new Map();
    },
    lacks: () => [...lacks.values()],
    async goOn(ms) {
      const next = [...kept.values()].find(({ copy }) => !copy.isOver());
      if (next === undefined) return true;
      await advance(next, ms);
      return false;
    },
  };
}

/** By all rules, and not just now. */
function isRedacted(store: Store, session: number): boolean {
  const { redaction } = sessionDetails(store, session);
  if (redaction === null || redaction.without.length > 0) return false;
  return store.prepare<[number]>('SELECT 1 FROM masking WHERE session = ?').get(session) === undefined;
}

/** What the row of a session says of it, without secrets; of the session itself also where the row is that of a copy. */
export function prepareHeads(
  store: Store,
  reveal: boolean,
): (session: SessionRow) => { row: SessionRow; labels: object; command: readonly string[] | null } {
  const redactor = redactorFor(store);
  // A copy is in a store of its own, under another number.
  const numberOf = store.prepare<[string], number>('SELECT number FROM session WHERE id = ?').pluck();
  return (session) => {
    const { labels, command } = sessionDetails(store, numberOf.get(session.id) ?? 0);
    const { name, target } = session;
    const head = { name, labels, target, command, cwd: null };
    const shown = reveal ? head : redactStart(head, redactor);
    return {
      row: { ...session, name: shown.name, target: shown.target },
      labels: Object.fromEntries(shown.labels),
      command: shown.command,
    };
  };
}

/** A store that is only read is given no key. */
function redactorFor(store: Store): Redactor {
  const digest = placeholderKey(store) === undefined ? createPassingDigest() : createDigest(store);
  return createRedactor(PLAIN_PROFILE, digest);
}

/** A value without secrets, by all that it says. */
export type Veil = <T>(value: T) => T;

/** The rules once more, for JSON that was made of what was recorded. */
export function createVeil(store: Store, reveal: boolean): Veil {
  if (reveal) return (value) => value;
  const redactor = redactorFor(store);
  return (value) => {
    const text = JSON.stringify(value, (_key, member: unknown) =>
      typeof member === 'string' && URL_LIKE.test(member) ? redactor.url(member) : member,
    );
    const found = redactor.payload(Buffer.from(text), false, false);
    return JSON.parse(found?.payload.toString() ?? text);
  };
}

const URL_LIKE = /^(?:[a-z][a-z0-9+.-]*:\/)?\/\S*[?@#]/i;
