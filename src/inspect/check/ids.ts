/** Ids and answers: specification, basic, "Requests" and "Responses". */

import { createRecent } from '../../protocol/bounded.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import type { Side } from './rule.ts';
import type { Report } from './rules.ts';
import type { Inspector, Seen, SessionFacts } from './seen.ts';

/** Codes of errors that answer what could not be read, so that they have no id to give. */
const UNREADABLE = new Set([-32700, -32600]);

type Open = { place: Place; side: Side; method: string; revision: string | null; text: string; type: string };

export function inspectIds(report: Report, { basis, isWhole }: SessionFacts): Inspector {
  /** By sender and id: requests that wait for an answer. */
  const open = createRecent<Open>();
  const used = createRecent<true>();
  const answered = createRecent<true>();
  let lastOfClient = 0;
  /** Several clients may stand in one session of stateless traffic, each with ids of its own. */
  const isOneClient = basis !== 'stateless';

  function message(seen: Seen): void {
    const { message } = seen;
    if (seen.side === 'client') lastOfClient = seen.place.seq;
    if (message.kind === 'request') request(seen, message.id.key, message.id.text, message.id.type);
    else if (message.kind === 'result' || message.kind === 'error') answer(seen);
    if (seen.correlation.relation === 'cancel' && seen.correlation.to !== null) close(seen.correlation.to);
  }

  function request(seen: Seen, key: string, text: string, type: string): void {
    const own = `${seen.side} ${key}`;
    if (seen.correlation.remark === 'id-in-use')
      report('id-in-use', seen.side, seen, 'an id of its own', `id ${text}, which an open request has`);
    else if (isOneClient && used.has(own))
      report('id-reused', seen.side, seen, 'an id of its own', `id ${text}, used before`);
    used.set(own, true);
    answered.delete(own);
    const { canonical: method } = seen.message as Extract<Seen['message'], { kind: 'request' }>;
    open.set(placeKey(seen.place), {
      place: seen.place,
      side: seen.side,
      method,
      revision: seen.revision,
      text,
      type,
    });
  }

  function answer(seen: Seen): void {
    const { message, correlation, side } = seen;
    if (message.kind !== 'result' && message.kind !== 'error') return;
    if (message.id === null) {
      if (message.kind === 'error' && !UNREADABLE.has(message.code ?? 0) && seen.http === null)
        report('answer-without-id', side, seen, 'the id of the request', 'none');
      return;
    }
    const asker = `${opposite(side)} ${message.id.key}`;
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
    if (!isWhole) return;
    for (const request of open.values()) {
      const { place, side, method, revision } = request;
      if (isOwed(request))
        report('unanswered', opposite(side), { place, revision }, 'an answer', `none to ${method}`);
    }
  }

  /** A stream that stays open is answered when it ends, and a client that leaves need not answer what came just then. */
  function isOwed({ side, method, place }: Open): boolean {
    return method !== 'subscriptions/listen' && (side === 'client' || place.seq < lastOfClient);
  }

  return { message, end };
}

function placeKey({ seq, n }: Place): string {
  return `${seq}.${n}`;
}

function opposite(side: Side): Side {
  return side === 'client' ? 'server' : 'client';
}
