/** The stream of the older transport, HTTP+SSE. Specification 2024-11-05, basic/transports. */
import { readSse } from '../../protocol/sse.ts';
import { createRecent } from './recent.ts';
import type { Report } from './rules.ts';
import type { Inspector, SeenFrame, SessionFacts } from './seen.ts';

export function inspectEndpoint(report: Report, { basis }: SessionFacts): Inspector {
  /** HTTP exchanges whose stream has begun. */
  const begun = createRecent<true>();

  function frame({ place, http, channel, payload }: SeenFrame): void {
    if (channel !== 'sse' || http === null || begun.has(String(http))) return;
    const { event, data } = readSse(payload);
    // Comments keep a connection alive, and say nothing.
    if (event === null && data === null) return;
    begun.set(String(http), true);
    if (event !== 'endpoint')
      report(
        'endpoint-first',
        'server',
        { place, revision: null, http },
        '`event: endpoint`',
        event === null ? 'an event without a name' : `\`event: ${event}\``,
      );
  }

  return basis === 'sse-endpoint' ? { frame } : {};
}
