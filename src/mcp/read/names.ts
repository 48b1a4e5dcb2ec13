/** Names of sessions, for completion; and what is looked at to tell that an open session has new frames. */

import { formatIsoTime } from '../../protocol/text.ts';
import { stateOf } from '../../store/read/sessions.ts';
import type { ToolQuestion } from './asked.ts';

const NAMES = 50;

/** A name that says nothing but who it is: a label that somebody recorded is no place for sentences. */
const NAME = /^[\w.@/:-]{1,80}$/;

/** Names and ids that begin with a text, the newest first. */
export async function completeNames({ scope, room, args }: ToolQuestion): Promise<{ names: string[] }> {
  const { value = '' } = args;
  const rows = scope.sessions().map((session) => scope.head(session).row);
  const words = rows.flatMap(({ name, id }) => [...(name !== null && NAME.test(name) ? [name] : []), id]);
  const known = [...new Set(['latest', ...words])].filter((word) => word.startsWith(value));
  return { names: room.fill(known.slice(0, NAMES)) };
}

/** Sessions for a list of resources: what was recorded has no place in their names. */
export async function sessionResources({ scope, room }: ToolQuestion): Promise<{ sessions: object[] }> {
  const rows = scope.sessions().slice(0, NAMES);
  return {
    sessions: room.fill(
      rows.map(({ id, startedAt, transport }) => ({ id, at: formatIsoTime(startedAt), transport })),
    ),
  };
}

/** For each session a text that changes with it; null for one that is over, or that may not be seen. */
export async function sessionVersions({
  scope,
  args,
}: ToolQuestion): Promise<{ versions: Record<string, string | null> }> {
  const versions = (args.uris ?? []).map((reference): [string, string | null] => [
    reference,
    versionOf(reference),
  ]);
  return { versions: Object.fromEntries(versions) };

  function versionOf(reference: string): string | null {
    try {
      const session = scope.find(reference);
      return `${session.id} ${session.frames} ${session.indexed} ${stateOf(session)}`;
    } catch {
      return null;
    }
  }
}
