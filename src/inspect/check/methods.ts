/** Method names: written right, sent by the right side, as the right kind, in a revision that has them. */

import { REVISIONS, type Revision } from './rule.ts';
import type { Report } from './rules.ts';
import type { Inspector, Seen } from './seen.ts';

export function inspectMethods(report: Report): Inspector {
  function message(seen: Seen): void {
    const { message, side } = seen;
    if (message.kind !== 'request' && message.kind !== 'notification') return;
    const { method, canonical, kind } = message;
    if (method !== canonical) report('method-variant', side, seen, canonical, method);
    if (method.startsWith('rpc.')) report('method-reserved', side, seen, 'another name', method);
    const facts = METHODS.get(canonical);
    if (facts === undefined) return;
    if (facts.kind !== kind)
      report(
        'method-kind',
        side,
        seen,
        `a ${facts.kind}`,
        `${canonical} ${kind === 'request' ? 'with' : 'without'} an id`,
      );
    if (facts.sender !== 'both' && facts.sender !== side)
      report('method-direction', side, seen, `${canonical} from the ${facts.sender}`, `it from the ${side}`);
    else revision(seen, canonical);
  }

  function revision(seen: Seen, canonical: string): void {
    const facts = METHODS.get(canonical);
    if (facts === undefined || seen.revision === null) return;
    // Revisions before the first are as good as the first.
    const isEarly =
      seen.revision < facts.since && facts.since !== REVISIONS[0] && canonical !== 'server/discover';
    const isLate = facts.until !== null && seen.revision > facts.until && canonical !== 'initialize';
    if (!isEarly && !isLate) return;
    const range = facts.until === null ? `${facts.since} and later` : `${facts.since} to ${facts.until}`;
    report(
      'method-revision',
      seen.side,
      seen,
      `a method of ${seen.revision}`,
      `${canonical}, which belongs to ${range}`,
    );
  }

  return { message };
}

/**
 * The methods of the specification: who sends each, as what, and which revisions have it. From the `ClientRequest`,
 * `ServerRequest`, `ClientNotification` and `ServerNotification` unions of each revision's schema.
 */

type Sender = 'client' | 'server' | 'both';

type MethodFacts = {
  kind: 'request' | 'notification';
  sender: Sender;
  since: Revision;
  until: Revision | null;
};

type Row = readonly [method: string, sender: Sender, since: Revision, until: Revision | null];

// biome-ignore format: a table
const REQUESTS: readonly Row[] = [
  ['initialize', 'client', '2024-11-05', '2025-11-25'],
  ['ping', 'both', '2024-11-05', '2025-11-25'],
  ['server/discover', 'client', '2026-07-28', null],
  ['tools/list', 'client', '2024-11-05', null],
  ['tools/call', 'client', '2024-11-05', null],
  ['resources/list', 'client', '2024-11-05', null],
  ['resources/templates/list', 'client', '2024-11-05', null],
  ['resources/read', 'client', '2024-11-05', null],
  ['resources/subscribe', 'client', '2024-11-05', '2025-11-25'],
  ['resources/unsubscribe', 'client', '2024-11-05', '2025-11-25'],
  ['prompts/list', 'client', '2024-11-05', null],
  ['prompts/get', 'client', '2024-11-05', null],
  ['completion/complete', 'client', '2024-11-05', null],
  ['logging/setLevel', 'client', '2024-11-05', '2025-11-25'],
  ['subscriptions/listen', 'client', '2026-07-28', null],
  ['tasks/get', 'both', '2025-11-25', null],
  ['tasks/result', 'both', '2025-11-25', '2025-11-25'],
  ['tasks/list', 'both', '2025-11-25', '2025-11-25'],
  ['tasks/cancel', 'both', '2025-11-25', null],
  ['tasks/update', 'client', '2026-07-28', null],
  ['sampling/createMessage', 'server', '2024-11-05', '2025-11-25'],
  ['roots/list', 'server', '2024-11-05', '2025-11-25'],
  ['elicitation/create', 'server', '2025-06-18', '2025-11-25'],
];

// biome-ignore format: a table
const NOTIFICATIONS: readonly Row[] = [
  ['notifications/initialized', 'client', '2024-11-05', '2025-11-25'],
  ['notifications/cancelled', 'both', '2024-11-05', null],
  ['notifications/progress', 'both', '2024-11-05', null],
  ['notifications/roots/list_changed', 'client', '2024-11-05', '2025-11-25'],
  ['notifications/message', 'server', '2024-11-05', null],
  ['notifications/tools/list_changed', 'server', '2024-11-05', null],
  ['notifications/prompts/list_changed', 'server', '2024-11-05', null],
  ['notifications/resources/list_changed', 'server', '2024-11-05', null],
  ['notifications/resources/updated', 'server', '2024-11-05', null],
  ['notifications/elicitation/complete', 'server', '2025-11-25', '2025-11-25'],
  ['notifications/tasks/status', 'both', '2025-11-25', '2025-11-25'],
  ['notifications/subscriptions/acknowledged', 'server', '2026-07-28', null],
  ['notifications/tasks', 'server', '2026-07-28', null],
];

/** By canonical method. Other methods are legal: extensions and vendors have their own. */
const METHODS: ReadonlyMap<string, MethodFacts> = new Map([
  ...REQUESTS.map((row) => factsOf('request', row)),
  ...NOTIFICATIONS.map((row) => factsOf('notification', row)),
]);

function factsOf(kind: MethodFacts['kind'], [method, sender, since, until]: Row): [string, MethodFacts] {
  return [method, { kind, sender, since, until }];
}
