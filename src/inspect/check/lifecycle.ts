/** The handshake of the legacy era, and versions. Specification 2025-11-25, basic/lifecycle; 2026-07-28, basic/versioning. */

import { type CheckedMessage, type CheckedSession, type Inspector, methodOf } from './checked-message.ts';
import type { Report } from './rules.ts';
import { REVISIONS } from './rules.ts';

const SLOW_MS = 10_000;

/** After that the official clients send SIGTERM. */
const LINGER_MS = 2000;

/** A pre-release revision that SDKs still accept. */
const VERSIONS: ReadonlySet<string> = new Set([...REVISIONS, '2024-10-07']);

/** What may be sent before the handshake is over. */
const EARLY = new Set([
  'ping',
  'initialize',
  'server/discover',
  'notifications/cancelled',
  'notifications/progress',
]);

type Stage = 'none' | 'asked' | 'answered' | 'done';

export function inspectLifecycle(
  report: Report,
  { basis, isWhole, isForeign, lingeredMs }: CheckedSession,
): Inspector {
  let stage: Stage = 'none';
  let requested: string | null = null;
  let isMissingTold = false;
  let answerAt: CheckedMessage | null = null;
  let revision: string | null = null;
  /** Another tool may have left out a part of the handshake, or taken several conversations for one. */
  const isConversation = basis !== 'stateless' && isForeign !== true;
  /** A proxy may be put before a server whose clients have shaken hands long ago. */
  const isFromStart = basis === 'stdio-process' || basis === 'sse-endpoint';

  function message(seen: CheckedMessage): void {
    revision = seen.revision ?? revision;
    if (seen.message.kind === 'result' && seen.asked?.method === 'initialize') {
      answer(seen);
      return;
    }
    if (seen.asked?.method === 'server/discover') slowness(seen);
    const method = methodOf(seen);
    if (method === null || seen.message.details.isModern) return;
    if (method === 'initialize') {
      initialize(seen);
      return;
    }
    if (method === 'notifications/initialized') initialized(seen);
    else if (seen.message.details.subscription === null && isConversation) order(seen, method);
    if (method === 'notifications/cancelled') cancelled(seen);
  }

  function initialize(seen: CheckedMessage): void {
    if (stage !== 'none' && isConversation)
      report('initialize-twice', 'client', seen, 'one `initialize`', 'another one');
    stage = 'asked';
    requested = seen.message.details.protocolVersion;
    version(seen, requested);
  }

  function initialized(seen: CheckedMessage): void {
    if (stage === 'asked' && isConversation)
      report(
        'initialized-early',
        'client',
        seen,
        'the answer to `initialize` first',
        'a client that did not wait for it',
      );
    stage = 'done';
  }

  function answer(seen: CheckedMessage): void {
    if (stage === 'asked') stage = 'answered';
    answerAt = seen;
    const { protocolVersion } = seen.message.details;
    version(seen, protocolVersion);
    slowness(seen);
  }

  function slowness(seen: CheckedMessage): void {
    const ms = (seen.correlation.latency ?? 0) / 1000;
    if (ms > SLOW_MS)
      report(
        'handshake-slow',
        'server',
        seen,
        'an answer within 10 s',
        `one after ${(ms / 1000).toFixed(1)} s`,
      );
  }

  function version(seen: CheckedMessage, name: string | null): void {
    if (name === null || VERSIONS.has(name)) return;
    report('version-format', seen.side, seen, `one of ${REVISIONS.join(', ')}`, JSON.stringify(name));
  }

  function order(seen: CheckedMessage, method: string): void {
    if (EARLY.has(method) || seen.revision === '2026-07-28') return;
    if (seen.side === 'server') {
      orderOfServer(seen, method);
      return;
    }
    if (stage === 'none' && seen.message.kind === 'request' && !isMissingTold && isFromStart) {
      isMissingTold = true;
      report('initialize-missing', 'client', seen, '`initialize` first', method);
    }
    if (stage === 'asked' && seen.message.kind === 'request')
      report('before-answer', 'client', seen, 'nothing but `ping` before `initialize` is answered', method);
    if (stage === 'answered' && seen.message.kind === 'request' && !isMissingTold) {
      isMissingTold = true;
      report('initialized-missing', 'client', seen, '`notifications/initialized` first', method);
    }
  }

  function orderOfServer(seen: CheckedMessage, method: string): void {
    const isEarly = stage === 'asked' || stage === 'answered';
    if (isEarly && method !== 'notifications/message' && isWhole)
      report(
        'before-initialized',
        'server',
        seen,
        'nothing but `ping` and logs before `notifications/initialized`',
        method,
      );
  }

  function cancelled(seen: CheckedMessage): void {
    if (seen.asked?.method === 'initialize')
      report('initialize-cancelled', seen.side, seen, '`initialize` left alone', 'its cancellation');
  }

  function end(): void {
    if (isWhole && lingeredMs !== null && lingeredMs > LINGER_MS)
      report(
        'exit-late',
        'server',
        { place: null, revision },
        'an exit within 2 s of the end of its input',
        `one after ${(lingeredMs / 1000).toFixed(1)} s`,
      );
    refusal();
  }

  /** A client that goes on after a version that it cannot know: it asked for another, and knows none so new. */
  function refusal(): void {
    if (answerAt === null || requested === null || stage !== 'done') return;
    const answered = answerAt.message.details.protocolVersion;
    if (answered !== null && VERSIONS.has(requested) && answered > requested)
      report(
        'version-refused',
        'client',
        answerAt,
        `${requested}, or an older one`,
        `${answered}, and a client that goes on`,
      );
  }

  return { message, end };
}
