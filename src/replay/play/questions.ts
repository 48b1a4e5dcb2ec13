/**
 * Asks one live client what the recorded server asked its own (sampling, elicitation, roots): with a fresh id, and only what
 * the client has declared that it can answer. Its answers are awaited, and compared with the recorded ones.
 */

import { sourceAt, substitute } from '../../protocol/json/edit.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import type { Message, RequestMessage } from '../../protocol/message/message.ts';
import { type Answer, type Notice, otherAnswerNotice } from '../match/compare.ts';
import { frameText, type Recording } from '../recording/recording.ts';
import { isCancellation } from './translate.ts';

/** A question without an answer so far. `asked`: for whom; null where no call depends on it. */
type OpenQuestion<T> = { asked: T | null; place: Place };

/** `T`: for whom it is asked; null where no call depends on it. */
type Questions<T> = {
  /** Reads what a request says about its client. */
  learn(request: RequestMessage, json: Buffer): void;
  /** The capability that the client must declare to be asked this, but has not; null where it may be asked. */
  lacking(recorded: Buffer): string | null;
  /** The recorded question with a fresh id. */
  ask(recorded: Buffer, place: Place, asked: T | null): Buffer;
  /**
   * A notification by which the server takes a question back, with the fresh id in place of the recorded one. Null where
   * the client was not asked that: the recorded id may be the fresh one of another question.
   */
  takeBack(recorded: Buffer): Buffer | null;
  /** Whether one of these questions, asked for the same, is still open. */
  isOpen(places: readonly Place[], asked: T): boolean;
  /** Takes an answer of the client. Returns for whom it was asked; null for nobody, or where it was not asked. */
  settle(answer: Message, json: Buffer): T | null;
};

const REQUEST_ID = ['params', 'requestId'];

const CLIENT_CAPABILITIES = ['params', '_meta', 'io.modelcontextprotocol/clientCapabilities'];

/** `onNotice` is called when the client answers otherwise than the recorded one did. */
export function createQuestions<T>(recording: Recording, onNotice: (notice: Notice) => void): Questions<T> {
  /** By their fresh id. */
  const open = new Map<string, OpenQuestion<T>>();
  /** The fresh id of each question, by the text of its recorded one. */
  const freshIds = new Map<string, string>();
  let capabilities: Capabilities = {};
  let count = 0;

  return {
    learn({ canonical, details }, json) {
      if (canonical !== 'initialize' && !details.isModern) return;
      const path = canonical === 'initialize' ? ['params', 'capabilities'] : CLIENT_CAPABILITIES;
      capabilities = declaredAt(json, path);
    },
    lacking(recorded) {
      const method = String(valueAt(recorded, ['method']));
      const capability = capabilityFor(method, valueAt(recorded, ['params']));
      return capability === null || isDeclared(capability, capabilities) ? null : capability;
    },
    ask(recorded, place, asked) {
      count += 1;
      const text = String(count);
      open.set(`n${text}`, { asked, place });
      freshIds.set(sourceAt(recorded, ['id']) ?? '', text);
      return substitute(recorded, [{ path: ['id'], text }]);
    },
    takeBack(recorded) {
      const named = sourceAt(recorded, REQUEST_ID);
      const text = named === undefined ? undefined : freshIds.get(named);
      if (text !== undefined) return substitute(recorded, [{ path: REQUEST_ID, text }]);
      return named !== undefined && isCancellation(recorded) ? null : recorded;
    },
    isOpen: (places, asked) =>
      places.some((place) =>
        [...open.values()].some((one) => one.asked === asked && isSamePlace(one.place, place)),
      ),
    settle(message, json) {
      if ((message.kind !== 'result' && message.kind !== 'error') || message.id === null) return null;
      const { key } = message.id;
      const question = open.get(key);
      if (question === undefined) return null;
      open.delete(key);
      const notice = compareAnswer(recording, question.place, { json, message });
      if (notice !== null) onNotice(notice);
      return question.asked;
    },
  };
}

/** Null where the answer is the recorded one, or cannot be compared. */
function compareAnswer(recording: Recording, question: Place, answer: Answer): Notice | null {
  const at = recording.answerTo(question);
  const asked = messageAt(recording, question);
  const recorded = at && messageAt(recording, at);
  if (!recorded || asked?.message.kind !== 'request') return null;
  const frame = frameText(recording.originOf(question));
  // What was redacted then does not count as another answer now, nor is it shown.
  const alike = ({ json, message }: Answer) => ({
    message,
    json: recording.alike(recording.redacted(json)),
  });
  return otherAnswerNotice(asked.message.canonical, frame, alike(recorded), alike(answer));
}

/** Null where it cannot be read any more. */
function messageAt({ load, read }: Recording, place: Place): Answer | null {
  try {
    const json = load(place);
    const message = read(json);
    return message === undefined ? null : { json, message };
  } catch {
    return null;
  }
}

/** The capability that a request of 2026-07-28 must declare to get this result, but does not; null where it may have it. */
export function lackingForInput(recorded: Buffer, request: Buffer): string | null {
  if (sourceAt(recorded, ['result', 'resultType']) !== '"input_required"') return null;
  return lackingFor(valueAt(recorded, ['result', 'inputRequests']), declaredAt(request, CLIENT_CAPABILITIES));
}

function declaredAt(json: Buffer, path: readonly string[]): Capabilities {
  const declared = valueAt(json, path);
  return typeof declared === 'object' && declared !== null ? (declared as Capabilities) : {};
}

function valueAt(json: Buffer, path: readonly string[]): unknown {
  const text = sourceAt(json, path);
  return text === undefined ? undefined : JSON.parse(text);
}

export function isSamePlace(a: Place, b: Place): boolean {
  return a.seq === b.seq && a.n === b.n;
}

/** What a client declared: the member `capabilities` of its `initialize`, or of `_meta` in 2026-07-28. */
type Capabilities = Readonly<Record<string, unknown>>;

/**
 * The capability that a client must declare to be asked this, such as `elicitation.url`; null for what every client may be
 * asked (MCP specification 2025-11-25, client/sampling, elicitation, roots; basic/utilities/tasks; 2026-07-28,
 * basic/patterns/mrtr: nothing else may stand in `inputRequests`).
 */
export function capabilityFor(method: string, params: unknown): string | null {
  const given = objectOf(params);
  if (method === 'roots/list') return 'roots';
  if (method === 'sampling/createMessage')
    return given['tools'] === undefined ? 'sampling' : 'sampling.tools';
  if (method === 'elicitation/create')
    return given['mode'] === 'url' ? 'elicitation.url' : 'elicitation.form';
  return method.startsWith('tasks/') ? 'tasks' : null;
}

export function isDeclared(capability: string, declared: Capabilities): boolean {
  const [name = '', part] = capability.split('.');
  const own = declared[name];
  if (own === undefined || own === null || part === undefined) return own !== undefined && own !== null;
  const parts = objectOf(own);
  // Forms are what elicitation was before it had modes.
  if (capability === 'elicitation.form' && parts['url'] === undefined) return true;
  return parts[part] !== undefined && parts[part] !== null;
}

/** The first capability that the requests of a result of type `input_required` want and the client has not declared. */
function lackingFor(inputRequests: unknown, declared: Capabilities): string | null {
  for (const request of Object.values(objectOf(inputRequests))) {
    const { method, params } = objectOf(request);
    const capability = typeof method === 'string' ? capabilityFor(method, params) : null;
    if (capability !== null && !isDeclared(capability, declared)) return capability;
  }
  return null;
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
