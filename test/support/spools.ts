/** Spools as recorders by stdio leave them, made without a recorder. */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { readFrameRule } from '../../src/inspect/filter/frame-rule.ts';
import { PLAIN_PROFILE, type RedactionProfile } from '../../src/protocol/redact/profile.ts';
import { openSpool, openStore, type Store } from '../../src/store/file/open.ts';
import { spoolPath } from '../../src/store/file/spool.ts';
import { eachBareFrame } from '../../src/store/read/frames.ts';
import { findSession } from '../../src/store/read/sessions.ts';
import { createIntake, type Intake } from '../../src/store/record/intake.ts';
import { createMetaFor } from '../../src/store/sample/meta-for.ts';
import { STOPPED } from './http-store.ts';
import { tempFolder } from './tapedeck.ts';

/** As the writer's thread has it, of a server that was never started. */
export function stdioIntake(
  redaction: RedactionProfile | null,
  name = 'it',
  metaFor: readonly string[] = [],
): Intake {
  return createIntake(
    {
      ...{ basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'], cwd: null },
      ...{ name, labels: [['team', 'search']], at: 1, tapedeck: '0' },
      ...{ pid: process.pid, parentPid: process.ppid },
    },
    4 * 1024 * 1024,
    redaction && metaFor.length > 0 ? { ...redaction, metaFor } : redaction,
    () => {},
    () => {},
    { metaFor: metaFor.length > 0 ? createMetaFor(readFrameRule(metaFor)) : null },
  );
}

/** Stores what was fed. */
export function saveIntake(intake: Intake): void {
  intake.save(true);
  intake.confirm();
}

/** A session of these lines in a spool beside `db`. It is open still, as its recorder would have it: close it. */
export function spoolSession(db: string, name: string, lines: readonly string[]): Store {
  const spool = openSpool(spoolPath(db, name), false);
  const intake = stdioIntake(null, name);
  intake.openSpool(spool);
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  intake.framer.feed({ kind: 0, owner: 0, at: 1000, bytes });
  saveIntake(intake);
  intake.end(STOPPED);
  return spool;
}

/** Records the newest session of `db`, which is one by stdio, again as `filtered`, with these filters of `--meta-for`. */
export function recordAgain(db: string, filters: readonly string[]): void {
  const store = openStore(db);
  const whole = findSession(store, 'latest');
  const intake = stdioIntake(PLAIN_PROFILE, 'filtered', filters);
  intake.open(store);
  for (const { channel, payload, lineEnd, at } of eachBareFrame(store, whole.number)) {
    const kind = ['stdin', 'stdout', 'stderr'].indexOf(channel) as 0 | 1 | 2;
    intake.framer.feed({ kind, owner: 0, at, bytes: Buffer.concat([payload, Buffer.from(lineEnd)]) });
  }
  saveIntake(intake);
  intake.end(STOPPED);
  while (!intake.index(1000));
  store.close();
}

/** Whether so many frames are in a spool that its recorder has to itself: of a copy. */
export function hasFrames(spool: string, count: number): boolean {
  const copy = join(tempFolder(), 'copy.db');
  try {
    for (const end of ['', '-wal']) copyFileSync(spool + end, copy + end);
    const store = new Database(copy);
    const stored = store.prepare<[], number>('SELECT count(*) FROM frame').pluck().get();
    store.close();
    return stored === count;
  } catch {
    return false;
  } finally {
    for (const end of ['', '-wal', '-shm']) rmSync(copy + end, { force: true });
  }
}
