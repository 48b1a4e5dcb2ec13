/**
 * What belongs to a request: its id, its answer, its progress, its cancellation. Specification, basic, "Requests" and
 * "Responses"; basic/utilities (basic/patterns in 2026-07-28).
 */

import { BoundedMap } from '../../protocol/bounded.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { formatDuration } from '../view/text.ts';
import {
  type CheckedFrame,
  type CheckedHttpExchange,
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  shown,
} from './checked-message.ts';
import type { Report, Side } from './rules.ts';

/** Codes of errors that answer what could not be read, so that they have no id to give. */
const UNREADABLE = new Set([-32700, -32600]);

/** Faults that take what was open along. */
const ENDING = /^(?:close|reset|exit)/;

type OpenRequest = {
  place: Place;
  side: Side;
  method: string;
  revision: string | null;
  text: string;
  type: string;
};

export function inspectIds(report: Report, { basis, isWhole }: CheckedSession): Inspector {
  /** By sender and id: requests that wait for an answer. */
  const open = new BoundedMap<string, OpenRequest>(MAX_REMEMBERED);
  const used = new BoundedMap<string, true>(MAX_REMEMBERED);
  const answered = new BoundedMap<string, true>(MAX_REMEMBERED);
  /** Requests that a fault was put into: what becomes of them is nobody's doing. */
  const excused = new BoundedMap<string, true>(MAX_REMEMBERED);
  let lastOfClient = 0;
  let isCutShort = false;
  /** Several clients may stand in one session of stateless traffic, each with ids of its own. */
  const isOneClient = basis !== 'stateless';

  /** Whoever answers a request twice that came twice is right. */
  function frame({ copied: { side, messages } }: CheckedFrame): void {
    for (const copy of messages) if (copy.kind === 'request') excused.set(`${side} ${copy.id.key}`, true);
  }

  function message(seen: CheckedMessage): void {
    const { message } = seen;
    if (seen.side === 'client') lastOfClient = seen.place.seq;
    if (seen.fault !== null && ENDING.test(seen.fault.action)) isCutShort = true;
    if (message.kind === 'request') request(seen, message.id.key, message.id.text, message.id.type);
    else if (message.kind === 'result' || message.kind === 'error') answer(seen);
    if (seen.correlation.relation === 'cancel' && seen.correlation.to !== null) close(seen.correlation.to);
  }

  function request(seen: CheckedMessage, key: string, text: string, type: string): void {
    const own = `${seen.side} ${key}`;
    if (seen.correlation.remark === 'id-in-use')
      report('id-in-use', seen.side, seen, 'an id of its own', `id ${text}, which an open request has`);
    else if (isOneClient && used.has(own))
      report('id-reused', seen.side, seen, 'an id of its own', `id ${text}, used before`);
    used.set(own, true);
    answered.delete(own);
    if (seen.fault !== null) {
      excused.set(own, true);
      return;
    }
    excused.delete(own);
    const { canonical: method } = seen.message as Extract<CheckedMessage['message'], { kind: 'request' }>;
    open.set(placeKey(seen.place), {
      place: seen.place,
      side: seen.side,
      method,
      revision: seen.revision,
      text,
      type,
    });
  }

  function answer(seen: CheckedMessage): void {
    const { message, correlation, side } = seen;
    if (message.kind !== 'result' && message.kind !== 'error') return;
    if (message.id === null) {
      if (message.kind === 'error' && !UNREADABLE.has(message.code ?? 0) && seen.http === null)
        report('answer-without-id', side, seen, 'the id of the request', 'none');
      return;
    }
    const asker = `${opposite(side)} ${message.id.key}`;
    const isExcused = excused.has(asker);
    // Who did not get it may have it sent again.
    if (seen.fault !== null) excused.set(asker, true);
    if (isExcused) {
      if (correlation.to !== null) close(correlation.to);
      return;
    }
    if (correlation.remark !== 'no-open-request') {
      if (correlation.to !== null) close(correlation.to);
      answered.set(asker, true);
      return;
    }
    const { text, type } = message.id;
    if (answered.has(asker)) report('answer-twice', side, seen, 'one answer', `another answer to id ${text}`);
    else if (hasOtherType(text, type))
      report(
        'id-changed-type',
        side,
        seen,
        `the id as ${type === 'string' ? 'a number' : 'a string'}`,
        `${text} as a ${type}`,
      );
    else report('answer-unknown', side, seen, 'the id of an open request', `id ${text}`);
  }

  function hasOtherType(text: string, type: string): boolean {
    for (const request of open.values()) if (request.text === text && request.type !== type) return true;
    return false;
  }

  function close({ seq, n }: Place): void {
    open.delete(`${seq}.${n}`);
  }

  function end(): void {
    if (!isWhole || isCutShort) return;
    for (const request of open.values()) {
      const { place, side, method, revision } = request;
      if (isOwed(request))
        report('unanswered', opposite(side), { place, revision }, 'an answer', `none to ${method}`);
    }
  }

  /** A stream that stays open is answered when it ends, and a client that leaves need not answer what came just then. */
  function isOwed({ side, method, place }: OpenRequest): boolean {
    return method !== 'subscriptions/listen' && (side === 'client' || place.seq < lastOfClient);
  }

  /** Its client took it back, or its status refused it: nobody owes an answer. */
  function httpExchange(_: CheckedHttpExchange, closed: readonly Place[]): void {
    for (const place of closed) close(place);
  }

  return { frame, message, httpExchange, end };
}

function placeKey({ seq, n }: Place): string {
  return `${seq}.${n}`;
}

function opposite(side: Side): Side {
  return side === 'client' ? 'server' : 'client';
}

/** Progress and cancellation. */

type Token = { owner: string; last: number | null; isEnded: boolean };

export function inspectProgress(report: Report): Inspector {
  /** By who asked and token. */
  const tokens = new BoundedMap<string, Token>(MAX_REMEMBERED);
  const ofRequest = new BoundedMap<string, string>(MAX_REMEMBERED);
  /** By who asked and token: of requests that a fault said once more. */
  const excused = new BoundedMap<string, true>(MAX_REMEMBERED);

  function frame({ copied: { side, messages } }: CheckedFrame): void {
    for (const { details } of messages)
      if (details.progressToken !== null) excused.set(`${side} ${details.progressToken}`, true);
  }

  function message(seen: CheckedMessage): void {
    const { message, correlation } = seen;
    if (message.kind === 'request') request(seen);
    if (methodOf(seen) === 'notifications/progress') progress(seen);
    if (correlation.relation === 'reply' && correlation.to !== null) {
      if (!message.details.beginsTask) endToken(`${correlation.to.seq}.${correlation.to.n}`);
    }
  }

  function request(seen: CheckedMessage): void {
    const { progressToken } = seen.message.details;
    if (progressToken === null) return;
    const key = `${seen.side} ${progressToken}`;
    const earlier = tokens.get(key);
    // Over HTTP several clients may stand in one session.
    const isForeign = seen.message.details.isModern && seen.http !== null;
    if (earlier !== undefined && !earlier.isEnded && !isForeign)
      report(
        'progress-token-in-use',
        seen.side,
        seen,
        'a token of its own',
        `${tokenText(seen)}, which an open request has`,
      );
    const owner = `${seen.place.seq}.${seen.place.n}`;
    tokens.set(key, { owner, last: null, isEnded: false });
    ofRequest.set(owner, key);
  }

  function progress(seen: CheckedMessage): void {
    const { progressToken } = seen.message.details;
    if (progressToken === null) return;
    const key = `${opposite(seen.side)} ${progressToken}`;
    if (excused.has(key)) return;
    const token = tokens.get(key);
    const name = shown(seen.params?.['progressToken'] ?? seen.params?.['token']);
    if (token === undefined) {
      report('progress-unknown', seen.side, seen, 'a token that the other side gave', name);
      return;
    }
    if (token.isEnded)
      report('progress-after-end', seen.side, seen, 'no more progress', `some for ${name} after the answer`);
    const value = seen.params?.['progress'];
    if (typeof value !== 'number') return;
    if (token.last !== null && value <= token.last && !token.isEnded)
      report('progress-order', seen.side, seen, `more than ${token.last}`, String(value));
    token.last = value;
  }

  function endToken(owner: string): void {
    const key = ofRequest.get(owner);
    const token = key === undefined ? undefined : tokens.get(key);
    if (token?.owner === owner) token.isEnded = true;
  }

  function httpExchange(_: CheckedHttpExchange, closed: readonly Place[]): void {
    for (const { seq, n } of closed) endToken(`${seq}.${n}`);
  }

  return { frame, message, httpExchange };
}

function tokenText({ params }: CheckedMessage): string {
  const meta = params?.['_meta'] as Record<string, unknown> | undefined;
  return shown(meta?.['progressToken']);
}

/** In microseconds. What is cancelled sooner may have met its answer on the way. */
const CROSSING = 1_000_000;

export function inspectCancellation(report: Report): Inspector {
  const open = new BoundedMap<string, true>(MAX_REMEMBERED);
  /** By asker and id: when the last request of that id was answered. */
  const answered = new BoundedMap<string, number>(MAX_REMEMBERED);
  const cancelled = new BoundedMap<string, true>(MAX_REMEMBERED);
  /** By asker and id: answered, but a fault kept that from the asker, or kept it waiting. */
  const excused = new BoundedMap<string, true>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    const { message, correlation } = seen;
    if (message.kind === 'request') begin(`${seen.side} ${message.id.key}`);
    if (methodOf(seen) === 'notifications/cancelled') cancel(seen);
    else if (correlation.relation === 'reply' && correlation.to !== null) {
      const place = `${correlation.to.seq}.${correlation.to.n}`;
      if (cancelled.has(place) && seen.fault === null)
        report('answer-cancelled', seen.side, seen, 'no answer', 'one to a request that was cancelled');
      if ((message.kind === 'result' || message.kind === 'error') && message.id !== null)
        answer(`${opposite(seen.side)} ${message.id.key}`, seen);
    }
  }

  function begin(key: string): void {
    open.set(key, true);
    answered.delete(key);
    excused.delete(key);
  }

  function answer(key: string, { at, fault }: CheckedMessage): void {
    open.delete(key);
    answered.set(key, at);
    if (fault !== null) excused.set(key, true);
  }

  function cancel(seen: CheckedMessage): void {
    const { cancels } = seen.message.details;
    const { to } = seen.correlation;
    if (to !== null) cancelled.set(`${to.seq}.${to.n}`, true);
    if (to !== null || cancels === null || excused.has(`${seen.side} ${cancels}`)) return;
    const id = shown(seen.params?.['requestId'] ?? seen.params?.['id']);
    const other = seen.side === 'client' ? 'server' : 'client';
    if (open.has(`${other} ${cancels}`))
      report(
        'cancel-foreign',
        seen.side,
        seen,
        'a request of its own',
        `id ${id}, a request of the ${other}`,
      );
    else strayCancel(seen, id, answered.get(`${seen.side} ${cancels}`));
  }

  /** What it names was answered before, or never asked. */
  function strayCancel(seen: CheckedMessage, id: string, answeredAt: number | undefined): void {
    const gap = answeredAt === undefined ? 0 : seen.at - answeredAt;
    const before = `id ${id}, answered ${formatDuration(gap / 1000)} before`;
    if (gap >= CROSSING) report('answer-dropped', seen.side, seen, 'a request without an answer', before);
    else
      report(
        'cancel-unknown',
        seen.side,
        seen,
        'the id of an open request',
        answeredAt === undefined ? `id ${id}` : before,
      );
  }

  return { message };
}
