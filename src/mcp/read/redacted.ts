/**
 * Nothing leaves with a secret in it. A session that was recorded with all rules is read as it is stored; any other is first copied
 * through them, whole, so that no reader ever sees what they would replace: not where it cuts a text, nor where it looks for one.
 * And whatever leaves passes the rules once more, by what it says.
 */

import { TapedeckError } from '../../errors.ts';
import { readNdjson } from '../../export/text/read.ts';
import { writeNdjson } from '../../export/text/write.ts';
import { PLAIN_PROFILE } from '../../protocol/redact/profile.ts';
import { createRedactor, type Redactor } from '../../protocol/redact/redactor.ts';
import { openTemporaryStore, type Store } from '../../store/file/open.ts';
import { adoptKey, createDigest, createPassingDigest, placeholderKey } from '../../store/file/secret.ts';
import { findSession, type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import { redactStart } from '../../store/write/redaction.ts';

/** A session, and the store in which it is read. Its id is that of the store on the disk. */
export type Opened = { store: Store; session: SessionRow };

/** A larger one is refused: nobody waits that long. */
const MOST_COPIED_BYTES = 64 * 1024 * 1024;

const MOST_COPIED_FRAMES = 50_000;

/** Copies are kept for the next question. */
const COPIES = 4;

/** Opens sessions as they may be read. Throws `TapedeckError` `refused` for one that is too large to be copied. */
export function createUnveiling(store: Store, reveal: boolean): (session: SessionRow) => Promise<Opened> {
  const copies = new Map<string, Opened>();
  return async (session) => {
    if (reveal || isRedacted(store, session.number)) return { store, session };
    const key = `${session.id} ${session.frames} ${session.indexed}`;
    const copy = copies.get(key) ?? (await redactedCopy(store, session));
    copies.delete(key);
    copies.set(key, copy);
    for (const [old, { store: its }] of copies) {
      if (copies.size <= COPIES) break;
      copies.delete(old);
      its.close();
    }
    return copy;
  };
}

/** By all rules, and not just now. */
function isRedacted(store: Store, session: number): boolean {
  const { redaction } = sessionDetails(store, session);
  if (redaction === null || redaction.without.length > 0) return false;
  return store.prepare<[number]>('SELECT 1 FROM masking WHERE session = ?').get(session) === undefined;
}

async function redactedCopy(store: Store, session: SessionRow): Promise<Opened> {
  if (session.bytes > MOST_COPIED_BYTES || session.frames > MOST_COPIED_FRAMES)
    throw new TapedeckError(
      'refused',
      `Session ${session.id} was recorded without redaction, and is too large to be redacted for each question. Somebody has to redact it first: tapedeck redact ${session.id}`,
    );
  const copy = openTemporaryStore();
  const key = placeholderKey(store);
  if (key !== undefined) adoptKey(copy, key);
  const { host, pid, processStarted } = session;
  const id = await readNdjson(copy, linesOf(store, session), {
    file: session.id,
    name: null,
    importer: { host, pid, processStarted, tapedeck: sessionDetails(store, session.number).tapedeck },
    redaction: PLAIN_PROFILE,
    onFrame() {},
    signal: new AbortController().signal,
  });
  copy.prepare('UPDATE session SET id = ?, imported_at = NULL WHERE id = ?').run(session.id, id);
  return { store: copy, session: findSession(copy, session.id) };
}

async function* linesOf(store: Store, session: SessionRow): AsyncGenerator<Buffer> {
  for (const piece of writeNdjson(store, session, { onFrame() {} })) yield Buffer.from(piece);
}

/** What the row of a session says of it, without secrets. */
export function prepareHeads(
  store: Store,
  reveal: boolean,
): (session: SessionRow) => { row: SessionRow; labels: object; command: readonly string[] | null } {
  const redactor = redactorFor(store);
  return (session) => {
    const { labels, command } = sessionDetails(store, session.number);
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
