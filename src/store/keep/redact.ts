/**
 * Redaction after the fact: the frames, heads and row of a session that was recorded without redaction, or with less of it.
 * Recorders write into the same store meanwhile, so everything is looked through outside of transactions, and written in
 * short ones.
 */

import { redactArgv } from '../../protocol/redact/argv.ts';
import { joinedProfiles, type RedactionProfile } from '../../protocol/redact/profile.ts';
import { createRedactor, type Redactor } from '../../protocol/redact/redactor.ts';
import type { Frame } from '../../protocol/wire/frame.ts';
import { flagsOf, PART_BYTES } from '../file/columns.ts';
import { pause, type Store } from '../file/open.ts';
import { createDigest, createPassingDigest, placeholderKey } from '../file/secret.ts';
import type { Turn } from '../file/turn.ts';
import { type BareFrame, prepareFramesAfter, unfinishedFrames } from '../read/frames.ts';
import { type HttpExchangeRow, originalOf, prepareHttpExchangesAfter } from '../read/http.ts';
import { sessionDetails } from '../read/sessions.ts';
import { forgetIndex, reindexSession } from '../write/index.ts';
import {
  createFrameRedactor,
  createHeadRedactor,
  type HeadColumns,
  type HttpHeads,
  type KeyLines,
  redactionColumn,
  redactStart,
} from '../write/redaction.ts';
import { prepareFrameDetails, prepareUnfinished } from '../write/rows.ts';
import { RUN_LABEL, renameRunLabel } from '../write/run.ts';
import {
  beginRedaction,
  endRedaction,
  type OpenRedaction,
  openRedactions,
  prepareRedactionStep,
} from './redaction-state.ts';
import { forgetSessions } from './side-file.ts';

/** By rule, in how many frames it found something; and how many heads and fields of the session's row have changed. */
export type RedactionCounts = { frames: Map<string, number>; heads: number; fields: number };

/** Called with the `seq` up to which frames are done. */
export type OnFrames = (seq: number) => void;

/** What `redactSession` would replace. Changes nothing. */
export function countSecrets(
  store: Store,
  session: number,
  profile: RedactionProfile,
  onFrames: OnFrames,
): RedactionCounts {
  // A store that is only read is given no key.
  const digest = placeholderKey(store) === undefined ? createPassingDigest() : createDigest(store);
  const redactor = createRedactor(profile, digest);
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
 * Redacts a session that has ended, and makes its index anew. `scrubStore` erases for good what was replaced. The caller has
 * the turn, and keeps it. Throws SQLite's errors; then, and when it is killed, `finishRedactions` goes on.
 */
export function redactSession(
  store: Store,
  session: number,
  profile: RedactionProfile,
  turn: Turn,
  onFrames: OnFrames,
): RedactionCounts {
  beginRedaction(store, session, profile);
  const begun = openRedactions(store).find(({ session: number }) => number === session);
  if (begun === undefined) throw new RangeError(`the store has no session ${session}`);
  return goOn(store, begun, turn, onFrames);
}

/** Goes on with what others left when they were killed. Returns the ids of those sessions. */
export function finishRedactions(store: Store, turn: Turn, onFrames: OnFrames): string[] {
  const left = openRedactions(store);
  for (const one of left) goOn(store, one, turn, onFrames);
  return left.map(({ id }) => id);
}

function goOn(store: Store, state: OpenRedaction, turn: Turn, onFrames: OnFrames): RedactionCounts {
  const { session, id, profile } = state;
  const redactor = createRedactor(profile, createDigest(store));
  const counts: RedactionCounts = { frames: new Map(), heads: 0, fields: 0 };
  const write = createShortWrite(store, turn);
  // Before the first frame is changed, in case we are killed on the way; and after the last, as a search may have run meanwhile.
  forgetSessions(store, [id]);
  redactFrames(store, state, redactor, counts, write, onFrames);
  redactRest(store, session, redactor, counts, write);
  write(() => noteRedaction(store, session, profile));
  forgetIndex(store, session, turn.keep);
  forgetSessions(store, [id]);
  endRedaction(store, session);
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

function redactFrames(
  store: Store,
  state: OpenRedaction,
  redactor: Redactor,
  counts: RedactionCounts,
  write: (change: () => void) => void,
  onFrames: OnFrames,
): void {
  const { session, keyLines } = state;
  const put = prepareFrameChange(store, session);
  const step = prepareRedactionStep(store, session);
  for (const { changes, upTo } of frameChanges(store, session, redactor, state)) {
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
function redactRest(
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

/** The frames of a session. */

/** A frame as it is stored, and as it is to be. */
type FrameChange = { before: BareFrame; after: Frame };

const FRAMES_AT_ONCE = 64;

/** What is written in one transaction, or one frame. */
const BYTES_AT_ONCE = 1024 * 1024;

/**
 * What is to be changed in the frames after `upTo`, some at a time. `keyLines` is the state at that place, and is brought on
 * to the place of what was returned last. Between two steps the store may be written.
 */
export function* frameChanges(
  store: Store,
  session: number,
  redactor: Redactor,
  start: { upTo: number; keyLines: KeyLines },
  bytesAtOnce = BYTES_AT_ONCE,
): Generator<{ changes: FrameChange[]; upTo: number }> {
  const framesAfter = prepareFramesAfter(store, session, FRAMES_AT_ONCE);
  const redact = createFrameRedactor(redactor, start.keyLines);
  let { upTo } = start;
  for (let some = framesAfter(upTo); some.length > 0; some = framesAfter(upTo)) {
    let changes: FrameChange[] = [];
    let bytes = 0;
    for (const before of some) {
      const after = redactStored(store, session, before, redact);
      if (after !== before) changes.push({ before, after });
      bytes += after === before ? 0 : after.payload.length;
      upTo = before.seq;
      if (bytes < bytesAtOnce && before !== some.at(-1)) continue;
      yield { changes, upTo };
      changes = [];
      bytes = 0;
    }
  }
}

function redactStored(
  store: Store,
  session: number,
  frame: BareFrame,
  redact: (frame: Frame) => Frame,
): Frame {
  const { http, payload } = frame;
  // Its bytes are gone already.
  if (http?.marks.includes('undecoded') && payload.length === 0) return frame;
  if (http === null || !frame.isEdited || frame.fault !== undefined) return redact(frame);
  const whole = { ...frame, http: { ...http, original: originalOf(store, session, frame.seq) } };
  const redacted = redact(whole);
  return redacted === whole ? frame : redacted;
}

/** Puts frames into the place of others, in the transaction at hand. */
function prepareFrameChange(store: Store, session: number): (change: FrameChange) => void {
  const setFrame = store.prepare(
    `UPDATE frame SET payload = ?, codec = NULL, unpacked = NULL, flags = ?, sha256 = ? WHERE session = ${session} AND seq = ?`,
  );
  const details = prepareFrameDetails(store);
  return ({ before, after }) => {
    const { seq } = before;
    const { payload, http } = after;
    const redacted = [...new Set([...(before.redacted ?? []), ...(after.redacted ?? [])])];
    setFrame.run(payload.subarray(0, PART_BYTES), flagsOf(after), http?.sha256 ?? null, seq);
    details.remove(session, seq);
    details.insert(session, seq, redacted.length > 0 ? { ...after, redacted } : after);
  };
}

/** What a killed recorder left unfinished: how often which rules found something, and what is to be written. */
type UnfinishedChange = { rules: readonly string[]; write(): void };

function unfinishedChanges(store: Store, session: number, redactor: Redactor): UnfinishedChange[] {
  const unfinished = prepareUnfinished(store);
  return [...unfinishedFrames(store, session, 0)].flatMap(({ channel, at, payload, http }) => {
    const found = channel === 'sse' ? redactor.event(payload, true) : redactor.payload(payload, false, true);
    if (found === null) return [];
    const exchange = http?.exchange ?? null;
    const write = () => {
      unfinished.remove(session, channel, exchange);
      unfinished.insert(session, { channel, exchange, part: 0, at, bytes: found.payload });
    };
    return [{ rules: found.rules, write }];
  });
}

/** The heads of its HTTP exchanges. */

/** The columns of an exchange as they are to be. */
type HeadChange = HeadColumns & { number: number };

const EXCHANGES_AT_ONCE = 256;

/** What is to be changed in the heads of a session, some at a time. Between two steps the store may be written. */
function* headChanges(store: Store, session: number, redactor: Redactor): Generator<HeadChange[]> {
  const exchangesAfter = prepareHttpExchangesAfter(store, session, EXCHANGES_AT_ONCE);
  const redactHeads = createHeadRedactor(redactor);
  const asTheyAre = createHeadRedactor(null);
  let some = exchangesAfter(-1);
  while (some.length > 0) {
    const changes = some.flatMap((exchange) => {
      const heads = headsOf(exchange);
      const redacted = redactHeads(heads);
      const isSame = JSON.stringify(redacted) === JSON.stringify(asTheyAre(heads));
      return isSame ? [] : [{ ...redacted, number: exchange.number }];
    });
    if (changes.length > 0) yield changes;
    some = exchangesAfter(some.at(-1)?.number ?? 0);
  }
}

/** Puts changed heads in their place, in the transaction at hand. */
function prepareHeadChange(store: Store, session: number): (change: HeadChange) => void {
  const put = store.prepare(
    `UPDATE http_exchange SET path = @path, request_headers = @requestHeaders, request_trailers = @requestTrailers,
       response_headers = @responseHeaders, response_trailers = @responseTrailers, informations = @informations,
       edits = @edits, status_text = @statusText, error = @error WHERE session = ${session} AND number = @number`,
  );
  return (change) => void put.run(change);
}

/** A stored exchange's heads, as they were before they were stored. */
function headsOf(exchange: HttpExchangeRow): HttpHeads {
  const { requestHeaders, requestTrailers, informations, responseHeaders, responseTrailers } = exchange;
  return {
    ...exchange,
    requestHeaders: requestHeaders.flat(),
    requestTrailers: requestTrailers.flat(),
    informations: informations.map((one) => ({ ...one, headers: one.headers.flat() })),
    responseHeaders: responseHeaders?.flat() ?? null,
    responseTrailers: responseTrailers.flat(),
  };
}

/** Its row: what people called it, and its command. */

type Row = { name: string | null; target: string; command: string | null; cwd: string | null };

/** How many fields and labels are to be changed, and what changes them. */
type RowChange = { fields: number; write(): void };

function rowChange(store: Store, session: number, redactor: Redactor): RowChange {
  const row = store
    .prepare<[number], Row>('SELECT name, target, command, cwd FROM session WHERE number = ?')
    .get(session);
  if (row === undefined) return { fields: 0, write: () => {} };
  const { labels, command } = sessionDetails(store, session);
  const isChanged = command === null || redactArgv(command, redactor).some((word, i) => word !== command[i]);
  const redacted = redactStart({ ...row, command, labels }, redactor);
  const after = {
    ...{ name: redacted.name, cwd: redacted.cwd },
    // A target that was written by hand stays, where nothing in the command is secret.
    target: isChanged ? redacted.target : redactor.text(row.target),
    command: redacted.command && JSON.stringify(redacted.command),
  };
  const fields = (['name', 'target', 'command', 'cwd'] as const).filter((name) => after[name] !== row[name]);
  const changedLabels = redacted.labels.flatMap(([key, value], i) => {
    const [, before = ''] = labels[i] ?? [];
    return value === before ? [] : [{ key, value, before }];
  });
  const write = () => {
    store
      .prepare(
        'UPDATE session SET name = @name, target = @target, command = @command, cwd = @cwd WHERE number = @session',
      )
      .run({ ...after, session });
    const setLabel = store.prepare('UPDATE label SET value = ? WHERE session = ? AND key = ?');
    for (const { key, value, before } of changedLabels) {
      setLabel.run(value, session, key);
      if (key === RUN_LABEL) renameRunLabel(store, session, before, value);
    }
  };
  return { fields: fields.length + changedLabels.length, write };
}

/** Notes that the session is redacted with this profile too. */
function noteRedaction(store: Store, session: number, profile: RedactionProfile): void {
  const both = joinedProfiles(sessionDetails(store, session).redaction, profile);
  store
    .prepare('UPDATE session SET redaction = ? WHERE number = ?')
    .run(redactionColumn(store, both), session);
}
