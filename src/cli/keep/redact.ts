import { TapedeckError } from '../../errors.ts';
import { formatCount } from '../../inspect/view/text.ts';
import { type RedactionProfile, readProfile } from '../../protocol/redact/profile.ts';
import type { Store } from '../../store/file/open.ts';
import { createTurn, type Turn, waitForTurn } from '../../store/file/turn.ts';
import {
  countSecrets,
  finishRedactions,
  type RedactionCounts,
  redactSession,
} from '../../store/keep/redact.ts';
import { scrubStore } from '../../store/keep/scrub.ts';
import { findSession, type SessionRow, stateOf } from '../../store/read/sessions.ts';
import { type Command, type Io, say } from '../io.ts';
import { DB_OPTION, JSON_OPTION } from '../options.ts';
import { createProgress, type ProgressLine, sayFinished } from '../output.ts';
import { PATH_OPTION, REDACTION_OPTIONS } from '../redaction-options.ts';
import { withWritableStore } from '../store.ts';

type Options = {
  session: string;
  db: string | undefined;
  json: boolean;
  'dry-run': boolean;
  'no-redact-rule': string[];
  'redact-rule': string[];
  redact: string[];
};

const ON_ITS_HOST = 'Redact the session on the host that has recorded it, and ship that again.';

export const redactCommand: Command<Options> = {
  command: 'redact <session>',
  describe: 'Overwrite the secrets of a recorded session, for good',
  builder: (args) =>
    args
      .positional('session', {
        type: 'string',
        demandOption: true,
        describe: 'An id, the beginning of one, a name, or latest',
      })
      .options({
        db: DB_OPTION,
        json: JSON_OPTION,
        'dry-run': {
          type: 'boolean',
          default: false,
          describe: 'Change nothing; say what would be redacted',
        },
        ...REDACTION_OPTIONS,
        redact: PATH_OPTION,
      })
      .example('$0 redact latest --dry-run', 'How many secrets would be redacted, by rule')
      .example('$0 redact staging', 'Redact what the rules find')
      .example("$0 redact 4f --redact '$..card'", 'Redact the values of a member too')
      .epilog(
        'Secrets are overwritten: no file of the store has them afterwards. Exits with 1 where some bytes of them may be left, and says where.',
      ) as never,
  run({ session: reference, db, json, 'dry-run': isDry, ...given }, io) {
    const profile = readProfile(given['no-redact-rule'], given['redact-rule'], given.redact);
    return withWritableStore(io, db, ON_ITS_HOST, (store) => {
      const session = findSession(store, reference);
      if (stateOf(session) === 'open' && !isDry) throw stillOpen(session.id);
      const progress = createProgress(io, isDry ? 'searched' : 'redacted', session.frames);
      const { counts, remains } = isDry
        ? { counts: countSecrets(store, session.number, profile, progress.advance), remains: [] }
        : redact(io, store, session, profile, progress);
      progress.end();
      io.stdout.write(json ? `${countsJson(session.id, counts, isDry)}\n` : countsText(counts, isDry));
      for (const remain of remains) say(io, remain);
      if (remains.length > 0) io.exitCode = 1;
    });
  },
};

/** Finishes interrupted redactions first. `remains`: which of the old bytes could not be erased. */
function redact(
  io: Io,
  store: Store,
  { number }: SessionRow,
  profile: RedactionProfile,
  progress: ProgressLine,
): { counts: RedactionCounts; remains: string[] } {
  const turn = createTurn(store);
  waitForTurn(turn);
  try {
    finishInterrupted(io, store, turn);
    const counts = redactSession(store, number, profile, turn, progress.advance);
    return { counts, remains: scrubStore(store).remains };
  } finally {
    turn.end();
  }
}

function finishInterrupted(io: Io, store: Store, turn: Turn): void {
  const progress = createProgress(io, 'redacted', null);
  const sessions = finishRedactions(store, turn, progress.advance);
  progress.end();
  sayFinished(io, sessions);
}

function stillOpen(id: string): TapedeckError {
  return new TapedeckError(
    'busy',
    `Session ${id} is still being recorded. Redact it when it has ended. See: tapedeck list`,
  );
}

function countsJson(session: string, { frames, heads, fields }: RedactionCounts, isDry: boolean): string {
  return JSON.stringify({ session, dryRun: isDry, frames: Object.fromEntries(frames), heads, fields });
}

function countsText({ frames, heads, fields }: RedactionCounts, isDry: boolean): string {
  const verb = isDry ? 'would be redacted' : 'redacted';
  const lines = [...frames]
    .toSorted(([, a], [, b]) => b - a)
    .map(([rule, count]) => `${rule.padEnd(20)}${verb} in ${formatCount(count, 'frame')}`);
  if (heads > 0) lines.push(`${'heads'.padEnd(20)}${verb} of ${formatCount(heads, 'HTTP exchange')}`);
  if (fields > 0) lines.push(`${'session'.padEnd(20)}${verb} in ${formatCount(fields, 'field')}`);
  if (lines.length === 0) lines.push('nothing to redact');
  return `${lines.join('\n')}\n`;
}
