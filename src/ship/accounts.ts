/**
 * What store and engine owe each other beside rows to come: what is to be deleted there, what was lost here, and what the engine has
 * lost. One that was restored from a backup has neither what came last nor what was deleted last; nobody but its hosts can tell.
 */

import { hostname } from 'node:os';
import type { Store } from '../store/file/open.ts';
import { type SessionOrigin, sessionKey } from '../store/read/session-key.ts';
import { AT_THE_BEGINNING, type ProgressBook } from './progress.ts';
import type { EngineSink, EngineState, ShipLoss } from './sink.ts';

const AT_ONCE = 500;

/** Another shipper of this store may have had a slice of a session under way when it was deleted: so long it is looked for again. */
const UNDER_WAY_US = 600 * 1e6;

type Held = { key: string; day: string; revision: number; seq: number };

/** What was in the engine, and is not in the store any more. */
type Departed = Held & { id: string; frames: number; bytes: number };

/** What is to be deleted there, and what was lost here. */
export async function settleAccounts(store: Store, sink: EngineSink, target: string): Promise<void> {
  await withdrawAgain(store, sink, target, Date.now() * 1000 - UNDER_WAY_US);
  const due = store.prepare<[string], { key: string; day: string }>(
    `SELECT key, day FROM withdrawal WHERE target = ? AND done_at IS NULL LIMIT ${AT_ONCE}`,
  );
  const done = store.prepare('UPDATE withdrawal SET done_at = ? WHERE target = ? AND key = ? AND day = ?');
  for (let some = due.all(target); some.length > 0; some = due.all(target)) {
    await sink.remove(some);
    const now = Date.now() * 1000;
    store.transaction(() => some.forEach(({ key, day }) => void done.run(now, target, key, day))).immediate();
  }
  const losses = store
    .prepare<[], Omit<ShipLoss, 'names'> & { names: string }>(
      `SELECT at, sessions, frames, bytes, cause,
         (SELECT json_group_array(d.id) FROM departed AS d WHERE d.loss = loss.at) AS names
       FROM loss WHERE told_at IS NULL`,
    )
    .all();
  if (losses.length === 0) return;
  await sink.tellLosses(losses, hostname(), target);
  const told = store.prepare('UPDATE loss SET told_at = ? WHERE at = ?');
  for (const { at } of losses) told.run(Date.now() * 1000, at);
}

/**
 * What an engine that was restored has lost goes there again, as far as it is still here; the rest is counted and named. Returns how many
 * sessions that were found to be lost for good. `keptFrom`: what is older than this day may have been deleted there on purpose.
 */
export async function checkEngine(
  store: Store,
  sink: EngineSink,
  target: string,
  book: ProgressBook,
  keptFrom: string | null,
): Promise<number> {
  await shipAgain(store, sink, target, book, keptFrom);
  await withdrawAgain(store, sink, target, 0);
  const lost = await countDeparted(store, sink, target, keptFrom);
  const there = new Set(await sink.lossesThere());
  const again = store.prepare('UPDATE loss SET told_at = NULL WHERE at = ?');
  for (const { at } of store
    .prepare<[], { at: number }>('SELECT at FROM loss WHERE told_at IS NOT NULL')
    .all())
    if (!there.has(at)) again.run(at);
  return lost;
}

/** The sessions that were sealed last are asked for, and those before them as long as some are missing. */
async function shipAgain(
  store: Store,
  sink: EngineSink,
  target: string,
  book: ProgressBook,
  keptFrom: string | null,
): Promise<void> {
  const select = store.prepare<[string, string, number], Held & { number: number }>(
    `SELECT p.session AS number, p.key, p.revision, p.seq, date(s.started_at / 1000000, 'unixepoch') AS day
       FROM shipped AS p JOIN session AS s ON s.number = p.session
       WHERE p.target = ? AND p.state = 'sealed' AND day >= ?
       ORDER BY p.at DESC, p.session DESC LIMIT ${AT_ONCE} OFFSET ?`,
  );
  for (let offset = 0; ; offset += AT_ONCE) {
    const some = select.all(target, keptFrom ?? '', offset);
    const there = await statesThere(sink, some);
    const missing = some.filter((one) => !(isHeld(one, there.get(one.key)) && there.get(one.key)?.isSealed));
    // Where it is elsewhere than at the beginning, it says so.
    for (const one of missing)
      book.change(book.of(one), { ...AT_THE_BEGINNING, state: 'open', reason: null });
    if (missing.length === 0) break;
  }
  book.save();
}

/** What has been deleted there since then, and is there again, is deleted again. */
async function withdrawAgain(store: Store, sink: EngineSink, target: string, sinceUs: number): Promise<void> {
  const select = store.prepare<[string, number, number], { key: string; day: string }>(
    `SELECT key, day FROM withdrawal WHERE target = ? AND done_at >= ? ORDER BY done_at DESC LIMIT ${AT_ONCE} OFFSET ?`,
  );
  const again = store.prepare(
    'UPDATE withdrawal SET done_at = NULL WHERE target = ? AND key = ? AND day = ?',
  );
  let own: ReadonlySet<string> | null = null;
  for (let offset = 0; ; ) {
    const some = select.all(target, sinceUs, offset);
    const there = await statesThere(sink, some);
    const back = some.filter(({ key }) => there.has(key));
    if (back.length > 0) own ??= keysOf(store);
    // One that has come back here, too, is to be there.
    const unwanted = back.filter(({ key }) => own?.has(key) !== true);
    for (const { key, day } of unwanted) again.run(target, key, day);
    if (some.length < AT_ONCE || (unwanted.length === 0 && sinceUs === 0)) break;
    offset += some.length - unwanted.length;
  }
}

function keysOf(store: Store): ReadonlySet<string> {
  const identity = String(store.prepare('SELECT id FROM identity').pluck().get());
  const sessions = store.prepare<[], SessionOrigin>(
    'SELECT id, started_at AS startedAt, host, pid, process_started AS processStarted FROM session',
  );
  return new Set([...sessions.iterate()].map((session) => sessionKey(identity, session)));
}

/** What is neither here nor there any more. */
async function countDeparted(
  store: Store,
  sink: EngineSink,
  target: string,
  keptFrom: string | null,
): Promise<number> {
  const lost: Departed[] = [];
  const older: Departed[] = [];
  for await (const { session, there } of departedThere(store, sink.statesOf, target, keptFrom)) {
    if (session.loss !== null || isHeld(session, there)) continue;
    // What was redacted here, and is there as it was before, goes.
    const isOlder = there !== undefined && there.revision < session.revision;
    if (isOlder) older.push(session);
    const { frames, bytes } =
      there === undefined || isOlder ? { frames: 0, bytes: 0 } : await sink.sumsOf(session);
    lost.push({
      ...session,
      frames: Math.max(0, session.frames - frames),
      bytes: Math.max(0, session.bytes - bytes),
    });
  }
  if (lost.length === 0) return 0;
  store
    .transaction(() => {
      const at = store
        .prepare<unknown[], number>(
          `INSERT INTO loss (at, sessions, frames, bytes, cause)
             SELECT max(?, 1 + ifnull((SELECT max(at) FROM loss), 0)), ?, ?, ?, 'engine' RETURNING at`,
        )
        .pluck()
        .get(Date.now() * 1000, lost.length, sumOf(lost, 'frames'), sumOf(lost, 'bytes'));
      const note = store.prepare(
        'UPDATE departed SET loss = ?, frames = ?, bytes = ? WHERE target = ? AND key = ?',
      );
      for (const { key, frames, bytes } of lost) note.run(at, frames, bytes, target, key);
      const withdraw = store.prepare('INSERT OR REPLACE INTO withdrawal (target, key, day) VALUES (?, ?, ?)');
      for (const { key, day } of older) withdraw.run(target, key, day);
    })
    .immediate();
  return lost.length;
}

function sumOf(sessions: readonly Departed[], column: 'frames' | 'bytes'): number {
  return sessions.reduce((sum, session) => sum + session[column], 0);
}

type Asked = Departed & { loss: number | null };

/**
 * Sessions that the engine had, and that are not in the store any more, with what it has of them by now: those that went last into it
 * first, and no more where nothing is missing.
 */
export async function* departedThere<State extends Pick<EngineState, 'key' | 'cursor' | 'revision'>>(
  store: Store,
  statesOf: (keys: readonly string[]) => Promise<State[]>,
  target: string,
  keptFrom: string | null,
): AsyncGenerator<{ session: Asked; there: State | undefined }> {
  const select = store.prepare<[string, string, number], Asked>(
    `SELECT key, day, id, revision, seq, frames, bytes, loss FROM departed WHERE target = ? AND day >= ?
       ORDER BY shipped_at DESC, key LIMIT ${AT_ONCE} OFFSET ?`,
  );
  for (let offset = 0; ; offset += AT_ONCE) {
    const some = select.all(target, keptFrom ?? '', offset);
    if (some.length === 0) return;
    const there = new Map((await statesOf(some.map(({ key }) => key))).map((state) => [state.key, state]));
    for (const session of some) yield { session, there: there.get(session.key) };
    if (some.every((one) => isHeld(one, there.get(one.key)))) return;
  }
}

async function statesThere(
  sink: EngineSink,
  sessions: readonly { key: string }[],
): Promise<Map<string, EngineState>> {
  if (sessions.length === 0) return new Map();
  return new Map((await sink.statesOf(sessions.map(({ key }) => key))).map((state) => [state.key, state]));
}

/** Whether the engine has all that it had, or more. */
export function isHeld(
  { revision, seq }: { revision: number; seq: number },
  there: Pick<EngineState, 'cursor' | 'revision'> | undefined,
): boolean {
  if (there === undefined || there.revision < revision) return false;
  return there.revision > revision || there.cursor >= seq;
}

/** A session that is neither here nor in the engine, or not all of it: what is lost of it. */
export type GoneSession = { session: string; day: string; frames: number; bytes: number };

/** Those that were found to be lost by the engine, and are remembered still; the newest first. */
export function goneSessions(store: Store, target: string | null): GoneSession[] {
  return store
    .prepare<[string | null], GoneSession>(
      `SELECT id AS session, day, frames, bytes FROM departed WHERE target = ? AND loss IS NOT NULL
         ORDER BY shipped_at DESC, key`,
    )
    .all(target);
}
