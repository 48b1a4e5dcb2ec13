/**
 * Joins several recordings, one after the other, so that a conversation that was recorded in pieces is replayed whole:
 * requests without a session id whose client named itself differently, or the runs of a test suite. Each keeps its own
 * script: no message of one belongs to a call of another.
 *
 * The server's revision and its way of speaking HTTP are those of the first recording.
 */

import type { Place } from '../../protocol/message/correlate.ts';
import { createColumn } from './columns.ts';
import type { Origin, Recording } from './recording.ts';
import type { Script, ScriptLine, Step } from './script.ts';
import type { RecordingSecrets } from './secrets.ts';
import { createTopics } from './topics.ts';

/** One recording. Its places, HTTP exchanges and calls come after those of the recordings before it. */
type Part = { recording: Recording; seqs: number; httpExchanges: number; calls: number };

/** A session that is being recorded grows while its parts are counted. */
const ROOM = 1_000_000;

/** Throws `RangeError` where there is none. */
export function joinRecordings(recordings: readonly Recording[]): Recording {
  const [first] = recordings;
  if (first === undefined) throw new RangeError('no recording to join');
  if (recordings.length === 1) return first;
  const parts = partsOf(recordings);
  const at = ({ seq }: Place) => lastOf(parts, ({ seqs }) => seqs < seq);
  const inside = <T>(place: Place, ask: (recording: Recording, own: Place, part: Part) => T): T => {
    const part = at(place);
    return ask(part.recording, { seq: place.seq - part.seqs, n: place.n }, part);
  };
  const eras = new Set(recordings.map(({ session }) => session.era));
  const last = parts.at(-1);
  return {
    session: {
      ...first.session,
      era: eras.size === 1 ? first.session.era : 'dual',
      httpExchanges: (last?.httpExchanges ?? 0) + (last?.recording.session.httpExchanges ?? 0),
    },
    script: joinScripts(parts),
    *lines() {
      for (const part of parts) for (const line of part.recording.lines()) yield movedLine(part, line);
    },
    load: (place) => inside(place, ({ load }, own) => load(own)),
    read: first.read,
    ...joinSecrets(recordings),
    httpExchange(number) {
      const part = lastOf(parts, ({ httpExchanges }) => httpExchanges < number);
      return part.recording.httpExchange(number - part.httpExchanges);
    },
    tools: () => new Map(recordings.flatMap(({ tools }) => [...tools()])),
    paramHeadersOf(tool) {
      const known = recordings.findLast(({ paramHeadersOf }) => paramHeadersOf(tool).length > 0);
      return known?.paramHeadersOf(tool) ?? [];
    },
    answerTo: (place) =>
      inside(place, ({ answerTo }, own, part) => nullOr(answerTo(own), (to) => moved(part, to))),
    wasCancelled: (place) => inside(place, ({ wasCancelled }, own) => wasCancelled(own)),
    resultsOf: (method) =>
      parts.flatMap((part) => part.recording.resultsOf(method).map((place) => moved(part, place))),
    hadEventId: (place) => inside(place, ({ hadEventId }, own) => hadEventId(own)),
    primingBefore: (step) =>
      inside(step.place, ({ primingBefore }, place, { httpExchanges }) =>
        primingBefore({
          ...step,
          place,
          httpExchange: nullOr(step.httpExchange, (number) => number - httpExchanges),
        }),
      ),
    originOf: (place): Origin =>
      inside(place, ({ session: { name, id } }, { seq }) => ({ seq, session: name ?? id })),
  };
}

/** The numbers of one recording mean nothing in another, so they tell no more than the rule. */
function joinSecrets(recordings: readonly Recording[]): RecordingSecrets {
  const areNumbered = recordings.some(({ numbers }) => numbers !== null);
  const alike = (json: Buffer) => recordings.reduce((text, recording) => recording.alike(text), json);
  return {
    isExact: !areNumbered && recordings.every(({ isExact }) => isExact),
    numbers: null,
    redacted: (json) => recordings.reduce((text, { redacted }) => redacted(text), json),
    redactedNow: (json) => recordings.reduce((text, { redactedNow }) => redactedNow(text), json),
    comparable: areNumbered
      ? alike
      : (json) => recordings.reduce((text, { comparable }) => comparable(text), json),
    alike,
  };
}

function partsOf(recordings: readonly Recording[]): Part[] {
  const parts: Part[] = [];
  let [seqs, httpExchanges, calls] = [0, 0, 0];
  for (const recording of recordings) {
    parts.push({ recording, seqs, httpExchanges, calls });
    seqs += recording.session.frames + ROOM;
    httpExchanges += recording.session.httpExchanges + ROOM;
    calls += recording.script.size;
  }
  return parts;
}

function joinScripts(parts: readonly Part[]): Script {
  const of = <T>(call: number, ask: (script: Script, own: number, part: Part) => T): T => {
    const part = lastOf(parts, ({ calls }) => calls <= call);
    return ask(part.recording.script, call - part.calls, part);
  };
  const movedAll = (part: Part, steps: readonly Step[]) => steps.map((step) => movedStep(part, step));
  return {
    size: parts.reduce((size, { recording }) => size + recording.script.size, 0),
    ...joinTopics(parts),
    placeOf: (call) => of(call, ({ placeOf }, own, part) => moved(part, placeOf(own))),
    httpExchangeOf: (call) =>
      of(call, ({ httpExchangeOf }, own, { httpExchanges }) =>
        nullOr(httpExchangeOf(own), (number) => number + httpExchanges),
      ),
    stepsOf: (call) => of(call, ({ stepsOf }, own, part) => movedAll(part, stepsOf(own))),
    isAnswered: (call) => of(call, ({ isAnswered }, own) => isAnswered(own)),
    isDoubtful: (call) => of(call, ({ isDoubtful }, own) => isDoubtful(own)),
    aftermathOf: (call) => of(call, ({ aftermathOf }, own, part) => movedAll(part, aftermathOf(own))),
    clients: [...new Set(parts.flatMap(({ recording }) => recording.script.clients))],
    clientOf: (call) => of(call, ({ clientOf }, own) => clientOf(own)),
    refusalOf: (call) => of(call, ({ refusalOf }, own) => refusalOf(own)),
    prologue: (client) => parts.flatMap((part) => movedAll(part, part.recording.script.prologue(client))),
  };
}

/** A topic of several recordings is one topic. */
function joinTopics(parts: readonly Part[]): Pick<Script, 'topics' | 'topicOf'> {
  const topics = createTopics();
  const topicOfCall = createColumn(Uint32Array);
  let call = 0;
  for (const { recording } of parts)
    for (const { direction, kind, method, target } of recording.lines()) {
      if (direction !== 'client-to-server' || kind !== 'request') continue;
      topicOfCall.set(call, topics.add({ method: method ?? '', target }));
      call += 1;
    }
  return { topics, topicOf: topicOfCall.at };
}

function moved({ seqs }: Part, { seq, n }: Place): Place {
  return { seq: seq + seqs, n };
}

function movedStep(part: Part, step: Step): Step {
  return {
    ...step,
    place: moved(part, step.place),
    httpExchange: nullOr(step.httpExchange, (number) => number + part.httpExchanges),
    waitsFor: step.waitsFor.map((place) => moved(part, place)),
  };
}

function movedLine(part: Part, line: ScriptLine): ScriptLine {
  return {
    ...line,
    place: moved(part, line.place),
    httpExchange: nullOr(line.httpExchange, (number) => number + part.httpExchanges),
    to: nullOr(line.to, (place) => moved(part, place)),
  };
}

function lastOf(parts: readonly Part[], holds: (part: Part) => boolean): Part {
  const part = parts.findLast(holds) ?? parts[0];
  if (part === undefined) throw new RangeError('no recording was joined');
  return part;
}

function nullOr<T, R>(value: T | null, change: (value: T) => R): R | null {
  return value === null ? null : change(value);
}
