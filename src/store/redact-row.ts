/** Masking the row of a session after the fact: what people called it, and its command. */
import type { Redactor } from '../protocol/redact.ts';
import { redactArgv } from '../protocol/redact-argv.ts';
import type { RedactionProfile } from '../protocol/redact-profile.ts';
import type { Store } from './open.ts';
import { redactionColumn, redactStart } from './redaction.ts';
import { sessionDetails } from './session-details.ts';

type Row = { name: string | null; target: string; command: string | null; cwd: string | null };

/** How many fields and labels are to be changed, and what changes them. */
export type RowChange = { fields: number; write(): void };

export function rowChange(store: Store, session: number, redactor: Redactor): RowChange {
  const row = store
    .prepare<[number], Row>('SELECT name, target, command, cwd FROM session WHERE number = ?')
    .get(session);
  if (row === undefined) return { fields: 0, write: () => {} };
  const { labels, command } = sessionDetails(store, session);
  const isChanged = command === null || redactArgv(command, redactor).some((word, i) => word !== command[i]);
  const redacted = redactStart({ ...row, command, labels }, redactor);
  const after = {
    ...{ name: redacted.name, cwd: redacted.cwd },
    // A target that was written by hand stays, where nothing in the command is secret.
    target: isChanged ? redacted.target : redactor.text(row.target),
    command: redacted.command && JSON.stringify(redacted.command),
  };
  const fields = (['name', 'target', 'command', 'cwd'] as const).filter((name) => after[name] !== row[name]);
  const changedLabels = redacted.labels.filter(([, value], i) => value !== labels[i]?.[1]);
  const write = () => {
    store
      .prepare(
        'UPDATE session SET name = @name, target = @target, command = @command, cwd = @cwd WHERE number = @session',
      )
      .run({ ...after, session });
    const setLabel = store.prepare('UPDATE label SET value = ? WHERE session = ? AND key = ?');
    for (const [key, value] of changedLabels) setLabel.run(value, session, key);
  };
  return { fields: fields.length + changedLabels.length, write };
}

/** Notes that the session is redacted with this profile too. */
export function noteRedaction(store: Store, session: number, profile: RedactionProfile): void {
  const both = joined(sessionDetails(store, session).redaction, profile);
  store
    .prepare('UPDATE session SET redaction = ? WHERE number = ?')
    .run(redactionColumn(store, both), session);
}

/** What either of them redacts. */
function joined(before: RedactionProfile | null, now: RedactionProfile): RedactionProfile {
  if (before === null) return now;
  const both = (name: 'rules' | 'paths') => [...new Set([...before[name], ...now[name]])];
  return {
    without: before.without.filter((id) => now.without.includes(id)),
    ...(before.capture === undefined ? {} : { capture: before.capture }),
    rules: both('rules'),
    paths: both('paths'),
  };
}
