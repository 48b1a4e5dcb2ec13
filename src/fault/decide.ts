/**
 * Decides which messages get a fault. A decision is a keyed hash of the seed, the rule, the key of the call as replay makes it
 * (replay/match/key.ts) and how often that call has come: the same calls get the same faults, whatever else runs, and in
 * whatever order answers come. No random stream is shared.
 *
 * Filters are asked of an index of the same kind as a store's, in memory, with the calls that are open.
 */

import { createHash, createHmac } from 'node:crypto';
import { selectFrames } from '../inspect/filter/sql.ts';
import { BoundedMap } from '../protocol/bounded.ts';
import { createConversation, type IndexedMessage, jsonOf } from '../protocol/message/conversation.ts';
import type { RequestMessage } from '../protocol/message/message.ts';
import { messageText } from '../protocol/message/payload.ts';
import { directionOf, type Frame } from '../protocol/wire/frame.ts';
import { findParams, requestKey } from '../replay/match/key.ts';
import type { SessionStart } from '../store/file/columns.ts';
import { openTemporaryStore, type Store } from '../store/file/open.ts';
import { prepareIndex } from '../store/write/index.ts';
import { insertSession } from '../store/write/rows.ts';
import { ACTIONS, type Action } from './action.ts';
import type { FaultRule } from './rule.ts';

/** A message that gets a fault. */
export type Chosen = {
  rule: FaultRule;
  call: Occurrence;
  /** A number from 0 up to 1, always the same for this call and rule. */
  draw: (name: string) => number;
  /** Of an answer: what it answers, and its own id as JSON text. */
  answers: { request: RequestMessage; id: string } | null;
};

/** One of equal calls: which call it is, in words; how often it came, from 1 on. */
type Occurrence = { key: string; name: string; times: number };

/** Which transport it is says what may be asked for; see `refuses`. */
export type Judge = {
  /**
   * Takes each frame in the order in which it passes, before it goes on. Returns what is to happen to it; null: nothing.
   * `refuses`: actions that this frame cannot have.
   */
  judge(frame: Frame, refuses?: (action: Action) => boolean): Chosen | null;
  close(): void;
};

type JudgeOptions = {
  rules: readonly FaultRule[];
  seed: number;
  /** Whether one more fault may be put in; asked once for each that would be. */
  mayMore: () => boolean;
};

/** So many requests are remembered until they are answered. */
const MAX_OPEN = 10_000;

/** So many kinds of calls are counted. */
const MAX_KEYS = 100_000;

type Open = Occurrence & { request: RequestMessage; said: number };

export function createJudge({ rules, seed, mayMore }: JudgeOptions): Judge {
  const store = openTemporaryStore();
  const session = insertSession(store, SCRATCH).number;
  const index = prepareIndex(store);
  const conversation = createConversation();
  const rows = prepareRows(store, session);
  const tests = rules.map((rule) => prepareTest(store, session, rule));
  const counts = new BoundedMap<string, number>(MAX_KEYS);
  const open = new BoundedMap<string, Open>(MAX_OPEN);
  let seq = 0;

  function occurrenceOf({ message, correlation, n }: IndexedMessage, frame: Frame): Open | Occurrence {
    const asked = correlation.to === null ? undefined : open.get(`${correlation.to.seq}.${correlation.to.n}`);
    if (asked !== undefined && correlation.relation === 'reply') return asked;
    const name = 'canonical' in message && message.canonical !== null ? message.canonical : message.kind;
    // What names its request by an id or a token is told apart by that request.
    if (asked !== undefined) {
      asked.said += 1;
      return {
        key: `${name} of ${asked.key} ${asked.times}`,
        name: `${name} of ${asked.name}`,
        times: asked.said,
      };
    }
    const { target } = message.details;
    const own = message.kind === 'request' || message.kind === 'notification' ? digestOf : bytesOf;
    const key = `${directionOf(frame.channel)} ${own(name, target, messageText(jsonOf(frame), n))}`;
    const times = (counts.get(key) ?? 0) + 1;
    counts.set(key, times);
    return { key, name: target === null ? name : `${name} ${target}`, times };
  }

  function take(indexed: IndexedMessage, frame: Frame): { call: Occurrence; request: RequestMessage | null } {
    const call = occurrenceOf(indexed, frame);
    const { message, n, correlation } = indexed;
    if (message.kind === 'request') open.set(`${seq}.${n}`, { ...call, request: message, said: 0 });
    if (correlation.relation !== 'reply' || !('request' in call)) return { call, request: null };
    if (correlation.to !== null) open.delete(`${correlation.to.seq}.${correlation.to.n}`);
    return { call, request: call.request };
  }

  function choose(taken: ReturnType<typeof take>, indexed: IndexedMessage, frame: Frame, refuses: Refuses) {
    const { call, request } = taken;
    const { message } = indexed;
    const isAnswer = (message.kind === 'result' || message.kind === 'error') && message.id !== null;
    for (const [i, rule] of rules.entries()) {
      if (rule.direction !== directionOf(frame.channel) || refuses(rule.action)) continue;
      const { of } = ACTIONS[rule.action.name];
      if (of !== 'message' && (!isAnswer || request === null)) continue;
      if (of === 'tool-answer' && request?.canonical !== 'tools/call') continue;
      const draw = (name: string) => drawn(seed, rule.text, call, name);
      if (draw('p') >= rule.chance || tests[i]?.(seq) !== true) continue;
      if (!mayMore()) return null;
      const id = isAnswer && message.id !== null ? idText(message.id) : '';
      return { rule, call, draw, answers: request === null ? null : { request, id } };
    }
    return null;
  }

  function judge(frame: Frame, refuses: Refuses = () => false): Chosen | null {
    seq += 1;
    const messages = conversation.add(frame, seq);
    if (messages.length === 0) return null;
    rows.add(seq, frame);
    for (const message of messages) index.insert(session, message);
    index.update(session, conversation.facts(), seq);
    let chosen: Chosen | null = null;
    for (const message of messages) {
      const taken = take(message, frame);
      // A batch goes on or fails as a whole, and what stands for one answer cannot stand for several.
      const refusesHere: Refuses = (action) =>
        refuses(action) || (messages.length > 1 && ACTIONS[action.name].of !== 'message');
      chosen ??= choose(taken, message, frame, refusesHere);
    }
    rows.forget(seq, messages);
    return chosen;
  }

  return { judge, close: () => void store.close() };
}

type Refuses = (action: Action) => boolean;

/** Nothing of it is ever stored. */
const SCRATCH: SessionStart = {
  ...{
    name: null,
    labels: [],
    basis: 'stdio-process',
    transport: 'stdio',
    target: '',
    command: null,
    cwd: null,
  },
  ...{ at: 0, host: '', pid: 0, processStarted: null, clientPid: null, clientProgram: null, tapedeck: '' },
};

function prepareTest(store: Store, session: number, { filter }: FaultRule): (seq: number) => boolean {
  const { sql, values } = selectFrames(store, filter);
  const select = store.prepare<[object], number>(`SELECT 1 FROM (${sql}) WHERE seq = @seq`);
  return (seq) => select.get({ ...values, session, seq }) !== undefined;
}

/** The frame that is asked about, and the requests that are open. */
function prepareRows(store: Store, session: number) {
  const insert = store.prepare(
    'INSERT INTO frame (session, seq, at, channel, size, payload, http) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const removeFrame = store.prepare('DELETE FROM frame WHERE session = ? AND seq = ?');
  const removeMessage = store.prepare('DELETE FROM message WHERE session = ? AND seq = ? AND n = ?');
  const removeOld = store.prepare('DELETE FROM message WHERE session = ? AND seq < ?');
  return {
    add(seq: number, { at, channel, size, payload, http }: Frame): void {
      insert.run(session, seq, at, channel, size, payload, http?.exchange ?? null);
    },
    forget(seq: number, messages: readonly IndexedMessage[]): void {
      removeFrame.run(session, seq);
      for (const { n, message, correlation } of messages) {
        if (message.kind !== 'request') removeMessage.run(session, seq, n);
        if (correlation.relation === 'reply' && correlation.to !== null)
          removeMessage.run(session, correlation.to.seq, correlation.to.n);
      }
      if (seq % MAX_OPEN === 0) removeOld.run(session, seq - MAX_OPEN);
    },
  };
}

/** What makes two messages equal. Of one without a key its bytes do. */
function digestOf(method: string, target: string | null, json: Buffer): string {
  const key = requestKey({ method, target }, json, findParams(json, 0));
  const text = typeof key === 'string' ? json : key.params;
  return createHash('sha256').update(method).update('\0').update(text).digest('base64');
}

/** Of what asks for nothing its bytes say what it is. */
function bytesOf(_name: string, _target: string | null, json: Buffer): string {
  return createHash('sha256').update(json).digest('base64');
}

/** From 0 up to 1, uniform. */
function drawn(seed: number, rule: string, { key, times }: Occurrence, name: string): number {
  const hash = createHmac('sha256', String(seed))
    .update(JSON.stringify([rule, key, times, name]))
    .digest();
  return hash.readUIntBE(0, 6) / 2 ** 48;
}

function idText({ type, text }: { type: string; text: string }): string {
  return type === 'string' ? `"${text}"` : text;
}
