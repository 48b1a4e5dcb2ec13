/** Tools that are no longer what they were, in this session or in the one before it. Specification, server/tools. */

import {
  changeText,
  compareDefinitions,
  createToolPages,
  type DefinitionChange,
  type Definitions,
} from '../../verdict/definitions.ts';
import {
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  resultOf,
  shown,
} from '../checked-message.ts';
import type { Report } from '../rules.ts';

export function inspectDefinitions(report: Report, { earlier = null }: CheckedSession): Inspector {
  const listing = createToolPages();
  let known: Definitions | null = earlier?.tools ?? null;
  let where = earlier === null ? '' : `session ${earlier.session}`;

  function message(seen: CheckedMessage): void {
    const result = seen.asked?.method === 'tools/list' ? resultOf(seen) : null;
    if (result === null) return;
    const tools = listing.page(seen.asked?.params?.['cursor'], result);
    if (tools === null) return;
    for (const change of known === null ? [] : compareDefinitions(known, tools)) tell(seen, change);
    known = tools;
    where = `the list of #${seen.place.seq}`;
  }

  function tell(seen: CheckedMessage, change: DefinitionChange): void {
    report(
      change.loosened.length > 0 ? 'definition-loosened' : 'definition-changed',
      seen.side,
      seen,
      `${shown(change.tool)} as in ${where}`,
      changeText(change),
    );
  }

  return { message };
}
