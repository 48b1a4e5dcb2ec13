/** Masking the frames of a session after the fact. */
import type { Frame } from '../protocol/frame.ts';
import type { Redactor } from '../protocol/redact.ts';
import { readSse } from '../protocol/sse.ts';
import { flagsOf } from './frame-flags.ts';
import { PART_BYTES } from './frame-writer.ts';
import { originalOf } from './http-reader.ts';
import type { Store } from './open.ts';
import { type BareFrame, prepareFramesAfter, unfinishedFrames } from './reader.ts';
import { createLineRedactor, type KeyLines, redactHttpFrame } from './redaction.ts';

/** A frame as it is stored, and as it is to be. */
export type FrameChange = { before: BareFrame; after: Frame };

const FRAMES_AT_ONCE = 64;
/** What is written in one transaction, or one frame. */
const BYTES_AT_ONCE = 1024 * 1024;

/**
 * What is to be changed in the frames after `upTo`, some at a time. `keyLines` is the state at that place, and is brought on
 * to the place of what was given last. Between two steps the store may be written.
 */
export function* frameChanges(
  store: Store,
  session: number,
  redactor: Redactor,
  start: { upTo: number; keyLines: KeyLines },
  bytesAtOnce = BYTES_AT_ONCE,
): Generator<{ changes: FrameChange[]; upTo: number }> {
  const framesAfter = prepareFramesAfter(store, session, FRAMES_AT_ONCE);
  const redactLine = createLineRedactor(redactor, start.keyLines);
  let { upTo } = start;
  for (let some = framesAfter(upTo); some.length > 0; some = framesAfter(upTo)) {
    let changes: FrameChange[] = [];
    let bytes = 0;
    for (const before of some) {
      const after = before.http === null ? redactLine(before) : redactHttp(store, session, before, redactor);
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

function redactHttp(store: Store, session: number, frame: BareFrame, redactor: Redactor): Frame {
  const { http, payload } = frame;
  // Its bytes are gone already.
  if (http === null || (http.marks.includes('undecoded') && payload.length === 0)) return frame;
  if (!frame.isEdited) return redactHttpFrame(frame, redactor);
  const whole = { ...frame, http: { ...http, original: originalOf(store, session, frame.seq) } };
  const redacted = redactHttpFrame(whole, redactor);
  return redacted === whole ? frame : redacted;
}

/** Puts frames into the place of others, in the transaction at hand. */
export function prepareFrameChange(store: Store, session: number): (change: FrameChange) => void {
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
  return ({ before, after }) => {
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

/** What a killed recorder left unfinished: how often which rules found something, and what is to be written. */
export type UnfinishedChange = { rules: readonly string[]; write(): void };

export function unfinishedChanges(store: Store, session: number, redactor: Redactor): UnfinishedChange[] {
  const remove = store.prepare('DELETE FROM unfinished WHERE session = ? AND channel = ? AND http IS ?');
  const insert = store.prepare(
    'INSERT INTO unfinished (session, channel, part, at, bytes, http) VALUES (?, ?, 0, ?, ?, ?)',
  );
  return [...unfinishedFrames(store, session, 0)].flatMap(({ channel, at, payload, http }) => {
    const found = channel === 'sse' ? redactor.event(payload, true) : redactor.payload(payload, false, true);
    if (found === null) return [];
    const exchange = http?.exchange ?? null;
    const write = () => {
      remove.run(session, channel, exchange);
      insert.run(session, channel, at, found.payload, exchange);
    };
    return [{ rules: found.rules, write }];
  });
}
