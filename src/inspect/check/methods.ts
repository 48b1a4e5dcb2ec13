/** Method names: written right, sent by the right side, as the right kind, in a revision that has them. */
import { METHODS } from './methods-table.ts';
import { REVISIONS } from './rule.ts';
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
