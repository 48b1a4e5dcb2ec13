/**
 * Answers that need no reading. Most calls of a fixture come in the very text in which they were recorded, but for the id, and
 * get one message. Such a call is known by its text, and its answer is the recorded one with the id that came. Reading it
 * anew, to make its key, is most of what a call takes, above all before V8 has compiled what does it.
 *
 * The texts of a recording's first calls are kept, and found in any order. Of a longer recording a text is compared with that of the
 * call whose turn it is, as long as its client asks in recorded order (matcher.ts).
 *
 * Whatever else there is to a call, it is received (mock.ts), which comes to the same answer.
 */

import { surelyHasCanonicalText } from '../../protocol/json/canonical.ts';
import { copyBytes, memberAt } from '../../protocol/json/edit.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import type { Recording } from '../recording/recording.ts';
import type { Step } from '../recording/script.ts';
import { mayHoldPlaceholder } from '../recording/secrets.ts';

export type ReadyAnswers = {
  /**
   * Takes the text of a recorded call, as it is compared: redacted. Its key must be known. False where there is no room for it,
   * where another call has this text already, or where a live call of this text need not be the same.
   */
  add(call: number, json: Buffer): boolean;
  /** The first call that was added with this text, but for the id; -1 where there is none. */
  find(json: Buffer): number;
  /** Whether a recorded call has this text, but for the id, so that both have one key, which need not be known. */
  isTextOf(call: number, json: Buffer): boolean;
  /** The answer to such a text. Null where the call gets more than an answer, or none, or where it cannot be read. */
  answer(call: number, json: Buffer): ReadyAnswer | null;
};

/** `json`: as it is sent. `step`: all that was recorded for the request, which came on `httpExchange`; null for stdio. */
export type ReadyAnswer = { json: Buffer; step: Step; httpExchange: number | null };

const MAX_TEXT_BYTES = 64 * 1024;

const MAX_BYTES = 16 * 1024 * 1024;

/** Null where a text says too little: of several recorded clients who asks counts, and in the newer era who it says that it is. */
export function createReadyAnswers(recording: Recording): ReadyAnswers | null {
  const { script, session, load } = recording;
  if (script.clients.length !== 1 || session.era === 'modern' || session.era === 'dual') return null;
  const calls = new Map<string, number>();
  let bytes = 0;

  function onlyStep(call: number): Step | null {
    // A client says in it what it can do, and over HTTP begins a session.
    if (script.topics.methodOf(script.topicOf(call)) === 'initialize') return null;
    if (!script.isAnswered(call) || script.isDoubtful(call)) return null;
    if (script.aftermathOf(call).length > 0) return null;
    const [step, ...more] = script.stepsOf(call);
    return step === undefined || more.length > 0 ? null : step;
  }

  function loaded(place: Place): Buffer | null {
    try {
      return load(place);
    } catch {
      // What needs it is received, and so refused in words.
      return null;
    }
  }

  return {
    add(call, json) {
      if (json.length > MAX_TEXT_BYTES || bytes + json.length > MAX_BYTES) return false;
      const id = idIn(json);
      if (id === null || !saysAll(json, id)) return false;
      const text = textAround(json, id);
      if (calls.has(text)) return false;
      calls.set(text, call);
      bytes += text.length;
      return true;
    },
    find(json) {
      // The id that came may be longer than the recorded one.
      const mayBe = calls.size > 0 && json.length < MAX_TEXT_BYTES + MAX_DIGITS;
      const id = mayBe ? idIn(json) : null;
      return id === null ? -1 : (calls.get(textAround(json, id)) ?? -1);
    },
    isTextOf(call, json) {
      const recorded = loaded(script.placeOf(call));
      const [id, own] = [idIn(json), recorded && idIn(recorded)];
      if (recorded === null || id === null || own === null || !isSameText(json, id, recorded, own))
        return false;
      const isPlain = saysAll(recorded, own) && surelyHasCanonicalText(recorded);
      // Redaction may be stricter now than when it was recorded.
      return isPlain && recording.comparable(recording.redacted(recorded)).equals(recorded);
    },
    answer(call, json) {
      const step = onlyStep(call);
      const recorded = step && loaded(step.place);
      const [from, to] = [idIn(json), recorded && idIn(recorded)];
      if (step === null || recorded === null || from === null || to === null) return null;
      return {
        json: withId(recorded, to, json, from),
        step,
        httpExchange: script.httpExchangeOf(call),
      };
    },
  };
}

/** Where an id stands. */
type Digits = { start: number; end: number };

const FIRST = Buffer.from('{"jsonrpc":"2.0","id":');

const LAST = Buffer.from('"id":');

const MAX_DIGITS = 15;

/**
 * The number that is the id of a message, if it is one and stands where most write it: at the very end, or behind the version. It is
 * found without reading the message, so what is found in a text that is no message, or has an id twice, means nothing.
 */
function idIn(json: Buffer): Digits | null {
  const last = json.length - 1;
  const isLast = json[last] === CLOSE_OBJECT && isDigit(json[last - 1]);
  if (!isLast && !isAt(json, 0, FIRST)) return null;
  let [start, end] = isLast ? [last, last] : [FIRST.length, FIRST.length];
  if (isLast) while (isDigit(json[start - 1])) start -= 1;
  else while (isDigit(json[end])) end += 1;
  const isNumber = end - start === 1 || (end - start <= MAX_DIGITS && json[start] !== ZERO);
  if (end === start || !isNumber) return null;
  return isLast && !isAt(json, start - LAST.length, LAST) ? null : { start, end };
}

/** Whether a recorded text has no other id, and no secret: which one stood there does not show in it. */
function saysAll(json: Buffer, id: Digits): boolean {
  return memberAt(json, ['id'])?.start === id.start && !mayHoldPlaceholder(json);
}

/** But for the ids. */
function isSameText(one: Buffer, idOfOne: Digits, other: Buffer, id: Digits): boolean {
  return (
    one.compare(other, 0, id.start, 0, idOfOne.start) === 0 &&
    one.compare(other, id.end, other.length, idOfOne.end, one.length) === 0
  );
}

/** With the id at the end, it ends in a colon; with the id in front, in a bracket. */
function textAround(json: Buffer, { start, end }: Digits): string {
  const before = json.toString('latin1', 0, start);
  return end === json.length - 1 ? before : before + json.toString('latin1', end);
}

function withId(recorded: Buffer, to: Digits, json: Buffer, from: Digits): Buffer {
  const end = to.start + from.end - from.start;
  const bytes = Buffer.allocUnsafe(end + recorded.length - to.end);
  copyBytes(bytes, 0, recorded, 0, to.start);
  copyBytes(bytes, to.start, json, from.start, from.end);
  copyBytes(bytes, end, recorded, to.end, recorded.length);
  return bytes;
}

function isAt(json: Buffer, at: number, text: Buffer): boolean {
  if (at < 0) return false;
  for (let i = 0; i < text.length; i += 1) if (json[at + i] !== text[i]) return false;
  return true;
}

const ZERO = 0x30;

const CLOSE_OBJECT = 0x7d;

function isDigit(c: number | undefined): boolean {
  return c !== undefined && c >= ZERO && c <= 0x39;
}
