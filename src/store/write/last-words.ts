/**
 * What a recorder says of its session when its writer does not answer any more, or could never begin: how it ended, and that
 * something was lost. It runs on the relay's thread, at the very end, and is loaded for that alone.
 */

import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import type { Loss, SessionEnd, SessionStart } from '../file/columns.ts';
import { openSpool, openStore, type Store } from '../file/open.ts';
import { storePath } from '../file/path.ts';
import { processStarted } from '../file/process.ts';
import { lastSpoolOf } from '../file/spool.ts';
import { createStoreRedactor, redactionColumn, redactStart } from './redaction.ts';
import { prepareSessionInsert } from './rows.ts';

export type LastWords = {
  /** The `--db` option. */
  file: string | undefined;
  /** Tells this recorder's spool from others. */
  run: string;
  redaction: RedactionProfile | null;
  session: Omit<
    SessionStart,
    'host' | 'processStarted' | 'clientPid' | 'clientProgram' | 'clientStarted' | 'run' | 'redaction'
  >;
  /** The id of its session, where its writer could tell it. */
  id: string | null;
  loss: Loss;
  end: SessionEnd;
};

/** It is to be quick, whatever the store does. */
const BUSY_MS = 100;

/** Writes into the store, else into the recorder's spool. Throws SQLite's or the system's error where there is neither. */
export function writeLastWords(words: LastWords): void {
  const file = storePath(words.file);
  const spool = lastSpoolOf(file, words.run);
  // What is in it is newer than what is in the store.
  if (!existsSync(spool) && tryWrite(() => openStore(file, { busyMs: BUSY_MS }), words) === null) return;
  const error = tryWrite(() => openSpool(spool, false), words);
  if (error !== null) throw error;
}

function tryWrite(open: () => Store, words: LastWords): Error | null {
  let store: Store | undefined;
  try {
    store = open();
    const { redaction } = words;
    const secrets = redaction && createStoreRedactor(redaction);
    secrets?.open(store);
    write(store, { ...words, session: secrets ? redactStart(words.session, secrets.row) : words.session });
    return null;
  } catch (error) {
    return error as Error;
  } finally {
    store?.close();
  }
}

function write(store: Store, { redaction, session, id, loss, end }: LastWords): void {
  const own = { host: hostname(), pid: session.pid, processStarted: processStarted(session.pid) };
  const find = store.prepare<[object], { id: string; isOpen: number }>(
    `SELECT id, end_reason IS NULL AS isOpen FROM session WHERE id = @id OR (@id IS NULL AND host = @host AND pid = @pid
       AND process_started IS @processStarted AND target = @target) ORDER BY number`,
  );
  const finish = store.prepare(
    `UPDATE session SET ended_at = @at, end_reason = @reason, exit_code = @exitCode, signal = @signal,
       client_closed_at = @clientClosedAt, server_closed_at = @serverClosedAt WHERE end_reason IS NULL AND id = @id`,
  );
  const count = store.prepare(
    `UPDATE session SET dropped = dropped + ?, dropped_bytes = dropped_bytes + ?, amendments = amendments + 1
       WHERE id = ?`,
  );
  const row = { ...session, ...own, clientPid: null, clientProgram: null };
  function insert(): string {
    const redacted = { ...row, redaction: redactionColumn(store, redaction) };
    return prepareSessionInsert(store)(redacted, id ?? undefined).id;
  }
  store
    .transaction(() => {
      const known = find.all({ id, ...own, target: session.target });
      const open = known.filter(({ isOpen }) => isOpen).map((one) => one.id);
      const losers = open.length > 0 ? open : [known.at(-1)?.id ?? insert()];
      for (const [i, loser] of losers.entries()) {
        finish.run({ ...end, id: loser });
        // By HTTP a run has many sessions, and nobody can tell any more whose it was.
        const share = (all: number) => Math.floor(all / losers.length) + (i < all % losers.length ? 1 : 0);
        count.run(Math.max(1, share(loss.frames)), share(loss.bytes), loser);
      }
    })
    .immediate();
}
