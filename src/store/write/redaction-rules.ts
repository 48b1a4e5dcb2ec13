/** The rules by which secrets are replaced, and payloads are not kept, which may change while sessions are recorded. */

import { type KeptAnswer, writeAnswers } from '../../protocol/message/envelope.ts';
import { joinedProfiles, type RedactionProfile } from '../../protocol/redact/profile.ts';
import type { Redactor } from '../../protocol/redact/redactor.ts';
import type { Frame } from '../../protocol/wire/frame.ts';
import type { Store } from '../file/open.ts';
import type { PendingSession, SessionKey } from './pending.ts';
import { createFrameRedactor, createStoreRedactor, type KeyLines, redactionColumn } from './redaction.ts';

/** What is kept of a frame without its payload: what it says of requests that are kept. */
type MetaOnly = { answers: readonly KeptAnswer[]; isBatch: boolean };

/** Takes the frames of one session in their order, as they passed. Null: the payload is kept. */
export type JudgeFrame = (frame: Frame) => MetaOnly | null;

/** Makes what decides for the frames of one more session; null: all payloads are kept. */
export type MetaFor = (() => JudgeFrame) | null;

export type RedactionRules = {
  profile(): RedactionProfile | null;
  /** Null: there are none, and there will be none. */
  redactor(): Redactor | null;
  /** Where in the bytes of what has not ended a secret could begin; null: nowhere. Itself null where all may be stored. */
  firstSign: ((bytes: Buffer, isForeign: boolean) => number | null) | null;
  /** Redacts the frames of a session that wait to be stored, each once and in their order. */
  redact(session: PendingSession): void;
  /** Placeholders are made with the key of this store. Returns what redacts the rows of sessions. */
  open(store: Store): Redactor | null;
  set(profile: RedactionProfile, metaFor: MetaFor, underWay: readonly PendingSession[]): void;
  /** Lets the row of a session that was under way when rules changed name both. Call it in a transaction. */
  restate(store: Store, key: SessionKey, session: PendingSession): void;
  confirm(session: PendingSession): void;
};

export function createRedactionRules(
  first: RedactionProfile | null,
  onWork: () => void,
  firstMetaFor: MetaFor,
): RedactionRules {
  const keyLines: KeyLines = new Map();
  /** Sessions whose rows do not name the newest rules. */
  const outdated = new Set<PendingSession>();
  let profile = first;
  let secrets = first && createStoreRedactor(first);
  let redact = secrets && createFrameRedactor(secrets.redactor, keyLines);
  let withoutPayload = secrets && createFrameRedactor(secrets.meta);
  let metaFor = firstMetaFor;
  let judges = new WeakMap<PendingSession, JudgeFrame>();

  function metaOnlyOf(session: PendingSession, frame: Frame, begin: () => JudgeFrame): MetaOnly | null {
    const judge = judges.get(session) ?? begin();
    judges.set(session, judge);
    try {
      return judge(frame);
    } catch {
      // A fault of ours: then nobody can say that it may be kept.
      return { answers: [], isBatch: false };
    }
  }

  function redactFrame(session: PendingSession, frame: Frame): Frame {
    onWork();
    if (redact === null) return frame;
    const metaOnly = metaFor === null ? null : metaOnlyOf(session, frame, metaFor);
    if (metaOnly === null) return redact(frame);
    // A private key may begin or end in it.
    if (frame.http === null) redact(frame);
    const bare = withoutPayload?.(frame) ?? frame;
    return metaOnly.answers.length === 0 ? bare : withAnswers(bare, metaOnly);
  }

  function withAnswers(frame: Frame, { answers, isBatch }: MetaOnly): Frame {
    const payload = writeAnswers(answers, frame.payload.toString(), isBatch);
    // An id may hold a secret, which then is redacted in its request, too.
    return { ...frame, payload: secrets?.redactor.payload(payload, false, false)?.payload ?? payload };
  }

  return {
    profile: () => profile,
    redactor: () => secrets?.redactor ?? null,
    firstSign:
      first === null
        ? null
        : (bytes, isForeign) =>
            metaFor === null ? (secrets?.redactor.firstSign(bytes, isForeign) ?? null) : 0,
    redact(session) {
      if (first !== null) session.redact((frame) => redactFrame(session, frame));
    },
    open(store) {
      secrets?.open(store);
      return secrets?.row ?? null;
    },
    set(next, nextMetaFor, underWay) {
      const isSameFilter = JSON.stringify(next.metaFor) === JSON.stringify(profile?.metaFor);
      if (!isSameFilter) {
        metaFor = nextMetaFor;
        judges = new WeakMap();
      }
      profile = next;
      secrets = createStoreRedactor(next);
      // A private key may be in the middle of its lines.
      redact = createFrameRedactor(secrets.redactor, keyLines);
      withoutPayload = createFrameRedactor(secrets.meta);
      for (const session of underWay) if (session.key !== null) outdated.add(session);
    },
    restate(store, { number }, session) {
      if (profile === null || !outdated.has(session)) return;
      const before = store.prepare('SELECT redaction FROM session WHERE number = ?').pluck().get(number);
      const both = joinedProfiles(before == null ? null : JSON.parse(String(before)), profile);
      const column = redactionColumn(store, both);
      store.prepare('UPDATE session SET redaction = ? WHERE number = ?').run(column, number);
    },
    confirm: (session) => void outdated.delete(session),
  };
}
