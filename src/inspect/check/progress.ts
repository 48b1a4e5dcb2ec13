/** Progress and cancellation. Specification, basic/utilities (basic/patterns in 2026-07-28). */

import { createRecent } from '../../protocol/bounded.ts';
import type { Report } from './rules.ts';
import { type Inspector, methodOf, type Seen, shown } from './seen.ts';

type Token = { owner: string; last: number | null; isEnded: boolean };

export function inspectProgress(report: Report): Inspector {
  /** By who asked and token. */
  const tokens = createRecent<Token>();
  const ofRequest = createRecent<string>();

  function message(seen: Seen): void {
    const { message, correlation } = seen;
    if (message.kind === 'request') request(seen);
    if (methodOf(seen) === 'notifications/progress') progress(seen);
    if (correlation.relation === 'reply' && correlation.to !== null) {
      if (!message.details.beginsTask) endToken(`${correlation.to.seq}.${correlation.to.n}`);
    }
  }

  function request(seen: Seen): void {
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

  function progress(seen: Seen): void {
    const { progressToken } = seen.message.details;
    if (progressToken === null) return;
    const token = tokens.get(`${seen.side === 'client' ? 'server' : 'client'} ${progressToken}`);
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

  return { message };
}

function tokenText({ params }: Seen): string {
  const meta = params?.['_meta'] as Record<string, unknown> | undefined;
  return shown(meta?.['progressToken']);
}

export function inspectCancellation(report: Report): Inspector {
  const open = createRecent<true>();
  const cancelled = createRecent<true>();

  function message(seen: Seen): void {
    const { message, correlation } = seen;
    if (message.kind === 'request') open.set(`${seen.side} ${message.id.key}`, true);
    if (methodOf(seen) === 'notifications/cancelled') cancel(seen);
    else if (correlation.relation === 'reply' && correlation.to !== null) {
      const place = `${correlation.to.seq}.${correlation.to.n}`;
      if (cancelled.has(place))
        report('answer-cancelled', seen.side, seen, 'no answer', 'one to a request that was cancelled');
      if ((message.kind === 'result' || message.kind === 'error') && message.id !== null)
        open.delete(`${seen.side === 'client' ? 'server' : 'client'} ${message.id.key}`);
    }
  }

  function cancel(seen: Seen): void {
    const { cancels } = seen.message.details;
    const { to } = seen.correlation;
    if (to !== null) cancelled.set(`${to.seq}.${to.n}`, true);
    if (to !== null || cancels === null) return;
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
    else report('cancel-unknown', seen.side, seen, 'the id of an open request', `id ${id}`);
  }

  return { message };
}
