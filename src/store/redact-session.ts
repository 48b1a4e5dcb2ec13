/**
 * Masking after the fact: the frames, heads and row of a session that was recorded without redaction, or with less of it.
 * Recorders write into the same store meanwhile, so everything is looked through outside of transactions, and written in
 * short ones.
 */
import { createRedactor, type Redactor } from '../protocol/redact.ts';
import type { RedactionProfile } from '../protocol/redact-profile.ts';
import { forgetIndex, reindexSession } from './indexer.ts';
import { beginMasking, endMasking, type Masking, openMaskings, prepareMaskingStep } from './masking.ts';
import type { Store } from './open.ts';
import { pause } from './pause.ts';
import { type FrameChange, frameChanges, prepareFrameChange, unfinishedChanges } from './redact-frames.ts';
import { headChanges, prepareHeadChange } from './redact-heads.ts';
import { noteRedaction, rowChange } from './redact-row.ts';
import { createDigest } from './secret.ts';
import { forgetSessions } from './side-file.ts';
import type { Turn } from './turn.ts';

/** By rule, in how many frames it found something; and how many heads and fields of the session's row have changed. */
export type RedactionCounts = { frames: Map<string, number>; heads: number; fields: number };

/** Told up to which `seq` frames are done. */
export type OnFrames = (seq: number) => void;

/** What `redactSession` would mask. Changes nothing. */
export function countSecrets(
  store: Store,
  session: number,
  profile: RedactionProfile,
  onFrames: OnFrames,
): RedactionCounts {
  const redactor = createRedactor(profile, createDigest(store));
  const counts: RedactionCounts = { frames: new Map(), heads: 0, fields: 0 };
  for (const { changes, upTo } of frameChanges(store, session, redactor, { upTo: 0, keyLines: new Map() })) {
    countFrames(counts, changes);
    onFrames(upTo);
  }
  for (const { rules } of unfinishedChanges(store, session, redactor)) count(counts, rules);
  for (const changes of headChanges(store, session, redactor)) counts.heads += changes.length;
  counts.fields = rowChange(store, session, redactor).fields;
  return counts;
}

/**
 * Redacts a session that has ended, and makes its index anew. What is masked is erased for good by `scrubStore`. To be
 * called by who has the turn, which is kept. Throws SQLite's errors; then, and when it is killed, `finishMaskings` goes on.
 */
export function redactSession(
  store: Store,
  session: number,
  profile: RedactionProfile,
  turn: Turn,
  onFrames: OnFrames,
): RedactionCounts {
  beginMasking(store, session, profile);
  const begun = openMaskings(store).find((masking) => masking.session === session);
  if (begun === undefined) throw new RangeError(`the store has no session ${session}`);
  return goOn(store, begun, turn, onFrames);
}

/** Goes on with what others left when they were killed, and gives the ids of those sessions. */
export function finishMaskings(store: Store, turn: Turn, onFrames: OnFrames): string[] {
  const left = openMaskings(store);
  for (const masking of left) goOn(store, masking, turn, onFrames);
  return left.map(({ id }) => id);
}

function goOn(store: Store, masking: Masking, turn: Turn, onFrames: OnFrames): RedactionCounts {
  const { session, id, profile } = masking;
  const redactor = createRedactor(profile, createDigest(store));
  const counts: RedactionCounts = { frames: new Map(), heads: 0, fields: 0 };
  const write = createShortWrite(store, turn);
  // Before the first frame is masked, for whoever is killed on the way; and after the last, for who searched meanwhile.
  forgetSessions(store, [id]);
  maskFrames(store, masking, redactor, counts, write, onFrames);
  maskRest(store, session, redactor, counts, write);
  write(() => noteRedaction(store, session, profile));
  forgetIndex(store, session, turn.keep);
  forgetSessions(store, [id]);
  endMasking(store, session);
  reindexSession(store, session, turn.keep);
  return counts;
}

/** One short transaction. Afterwards others get half as long as it took. */
function createShortWrite(store: Store, turn: Turn): (change: () => void) => void {
  return (change) => {
    const began = performance.now();
    store.transaction(change).immediate();
    turn.keep();
    pause((performance.now() - began) / 2);
  };
}

function maskFrames(
  store: Store,
  masking: Masking,
  redactor: Redactor,
  counts: RedactionCounts,
  write: (change: () => void) => void,
  onFrames: OnFrames,
): void {
  const { session, keyLines } = masking;
  const put = prepareFrameChange(store, session);
  const step = prepareMaskingStep(store, session);
  for (const { changes, upTo } of frameChanges(store, session, redactor, masking)) {
    countFrames(counts, changes);
    if (changes.length > 0)
      write(() => {
        for (const change of changes) put(change);
        step(upTo, keyLines);
      });
    onFrames(upTo);
  }
}

/** Done twice, this changes nothing more. */
function maskRest(
  store: Store,
  session: number,
  redactor: Redactor,
  counts: RedactionCounts,
  write: (change: () => void) => void,
): void {
  for (const change of unfinishedChanges(store, session, redactor)) {
    count(counts, change.rules);
    write(change.write);
  }
  const putHead = prepareHeadChange(store, session);
  for (const changes of headChanges(store, session, redactor)) {
    counts.heads += changes.length;
    write(() => changes.forEach(putHead));
  }
  const row = rowChange(store, session, redactor);
  counts.fields = row.fields;
  if (row.fields > 0) write(row.write);
}

function countFrames(counts: RedactionCounts, changes: readonly FrameChange[]): void {
  for (const { after } of changes) count(counts, after.redacted ?? []);
}

function count({ frames }: RedactionCounts, rules: readonly string[]): void {
  for (const rule of rules) frames.set(rule, (frames.get(rule) ?? 0) + 1);
}
