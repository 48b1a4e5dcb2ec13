/** Masking after the fact: the frames, heads and row of a session that was recorded without redaction, or with less of it. */
import type { Frame } from '../protocol/frame.ts';
import type { Redactor } from '../protocol/redact.ts';
import { redactArgv } from '../protocol/redact-argv.ts';
import type { RedactionProfile } from '../protocol/redact-profile.ts';
import { readSse } from '../protocol/sse.ts';
import { flagsOf } from './frame-flags.ts';
import { PART_BYTES } from './frame-writer.ts';
import { originalOf } from './http-reader.ts';
import type { Store } from './open.ts';
import { type BareFrame, prepareFramesAfter, unfinishedFrames } from './reader.ts';
import { redactHeads } from './redact-heads.ts';
import { createLineRedactor, redactHttpFrame, redactionColumn, redactStart } from './redaction.ts';
import { sessionDetails } from './session-details.ts';

/** By rule, in how many frames it found something; and how many heads and fields of the session's row have changed. */
export type RedactionCounts = { frames: Map<string, number>; heads: number; fields: number };

const FRAMES_AT_ONCE = 64;

/**
 * Redacts a session in one transaction: wholly, or not at all. `isDry`: only counts. Its index of messages is gone
 * afterwards, and is to be made anew; what is masked is erased for good by `scrubStore`.
 */
export function redactSession(
  store: Store,
  session: number,
  redactor: Redactor,
  profile: RedactionProfile,
  isDry: boolean,
): RedactionCounts {
  const counts: RedactionCounts = { frames: new Map(), heads: 0, fields: 0 };
  const redactAll = store.transaction(() => {
    redactFrames(store, session, redactor, counts, isDry);
    redactUnfinished(store, session, redactor, counts, isDry);
    counts.heads = redactHeads(store, session, redactor, isDry);
    counts.fields = redactRow(store, session, redactor, isDry);
    if (isDry) return;
    store.prepare('UPDATE upkeep SET scraps = 1').run();
    store
      .prepare('UPDATE session SET redaction = ?, indexed = 0 WHERE number = ?')
      .run(redactionColumn(store, joined(sessionDetails(store, session).redaction, profile)), session);
    store.prepare('DELETE FROM message WHERE session = ?').run(session);
  });
  if (isDry) redactAll.deferred();
  else redactAll.immediate();
  return counts;
}

/** What either of them redacts. */
function joined(before: RedactionProfile | null, now: RedactionProfile): RedactionProfile {
  if (before === null) return now;
  const both = (name: 'rules' | 'paths') => [...new Set([...before[name], ...now[name]])];
  return {
    without: before.without.filter((id) => now.without.includes(id)),
    ...(before.capture === undefined ? {} : { capture: before.capture }),
    rules: both('rules'),
    paths: both('paths'),
  };
}

function redactFrames(
  store: Store,
  session: number,
  redactor: Redactor,
  { frames: counts }: RedactionCounts,
  isDry: boolean,
): void {
  const framesAfter = prepareFramesAfter(store, session, FRAMES_AT_ONCE);
  const redactLine = createLineRedactor(redactor);
  const put = prepareReplacement(store, session);
  let some = framesAfter(0);
  while (some.length > 0) {
    for (const frame of some) {
      const redacted = frame.http === null ? redactLine(frame) : redactHttp(store, session, frame, redactor);
      if (redacted === frame) continue;
      count(counts, redacted.redacted ?? []);
      if (!isDry) put(frame, redacted);
    }
    some = framesAfter(some.at(-1)?.seq ?? 0);
  }
}

function redactHttp(store: Store, session: number, frame: BareFrame, redactor: Redactor): Frame {
  const { http, payload } = frame;
  // Its bytes are gone already.
  if (http === null || (http.marks.includes('undecoded') && payload.length === 0)) return frame;
  if (!frame.isEdited) return redactHttpFrame(frame, redactor);
  const whole = { ...frame, http: { ...http, original: originalOf(store, session, frame.seq) } };
  const redacted = redactHttpFrame(whole, redactor);
  return redacted === whole ? frame : redacted;
}

function count(counts: Map<string, number>, rules: readonly string[]): void {
  for (const rule of rules) counts.set(rule, (counts.get(rule) ?? 0) + 1);
}

function prepareReplacement(store: Store, session: number): (before: BareFrame, after: Frame) => void {
  const own = `session = ${session} AND seq = ?`;
  const setFrame = store.prepare(`UPDATE frame SET payload = ?, flags = ?, sha256 = ? WHERE ${own}`);
  const removeParts = store.prepare(`DELETE FROM frame_part WHERE ${own}`);
  const addPart = store.prepare(
    `INSERT INTO frame_part (session, seq, part, bytes) VALUES (${session}, ?, ?, ?)`,
  );
  const setOriginal = store.prepare(`UPDATE frame_edit SET original = ? WHERE ${own}`);
  const removeOriginal = store.prepare(`DELETE FROM frame_edit WHERE ${own}`);
  const setEvent = store.prepare(`UPDATE sse_event SET event = ?, id = ?, retry = ? WHERE ${own}`);
  const setRules = store.prepare(
    `INSERT OR REPLACE INTO frame_redaction (session, seq, rules) VALUES (${session}, ?, ?)`,
  );
  return (before, after) => {
    const { seq } = before;
    const { payload, http, channel } = after;
    setFrame.run(payload.subarray(0, PART_BYTES), flagsOf(after), http?.sha256 ?? null, seq);
    removeParts.run(seq);
    for (let part = 1; part * PART_BYTES < payload.length; part += 1)
      addPart.run(seq, part, payload.subarray(part * PART_BYTES, (part + 1) * PART_BYTES));
    if (before.isEdited && http?.original != null) setOriginal.run(http.original, seq);
    else if (before.isEdited) removeOriginal.run(seq);
    if (channel === 'sse') {
      const { event, id, retry } = readSse(payload);
      setEvent.run(event, id, retry, seq);
    }
    const rules = [...new Set([...(before.redacted ?? []), ...(after.redacted ?? [])])];
    if (rules.length > 0) setRules.run(seq, rules.join(' '));
  };
}

function redactUnfinished(
  store: Store,
  session: number,
  redactor: Redactor,
  { frames: counts }: RedactionCounts,
  isDry: boolean,
): void {
  const remove = store.prepare('DELETE FROM unfinished WHERE session = ? AND channel = ? AND http IS ?');
  const insert = store.prepare(
    'INSERT INTO unfinished (session, channel, part, at, bytes, http) VALUES (?, ?, 0, ?, ?, ?)',
  );
  for (const { channel, at, payload, http } of [...unfinishedFrames(store, session, 0)]) {
    const found = channel === 'sse' ? redactor.event(payload, true) : redactor.payload(payload, false, true);
    if (found === null) continue;
    count(counts, found.rules);
    if (isDry) continue;
    remove.run(session, channel, http?.exchange ?? null);
    insert.run(session, channel, at, found.payload, http?.exchange ?? null);
  }
}

type Row = { name: string | null; target: string; command: string | null; cwd: string | null };

function redactRow(store: Store, session: number, redactor: Redactor, isDry: boolean): number {
  const row = store
    .prepare<[number], Row>('SELECT name, target, command, cwd FROM session WHERE number = ?')
    .get(session);
  if (row === undefined) return 0;
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
  const changedLabels = redacted.labels.filter(([, value], i) => value !== labels[i]?.[1]);
  if (!isDry && fields.length > 0)
    store
      .prepare(
        'UPDATE session SET name = @name, target = @target, command = @command, cwd = @cwd WHERE number = @session',
      )
      .run({ ...after, session });
  const setLabel = store.prepare('UPDATE label SET value = ? WHERE session = ? AND key = ?');
  if (!isDry) for (const [key, value] of changedLabels) setLabel.run(value, session, key);
  return fields.length + changedLabels.length;
}
