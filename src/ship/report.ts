/** How far the shipping of a store is, as the store itself knows it; and whether the engine has the same, as both sides know it. */

import type { Hash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Client } from 'pg';
import { readEngine } from '../engine/install.ts';
import { dayOf } from '../engine/tables.ts';
import { partSql, payloadSql } from '../store/file/codec.ts';
import { PART_BYTES } from '../store/file/columns.ts';
import type { Store } from '../store/file/open.ts';
import { isAlive } from '../store/file/process.ts';
import { sessionKey } from '../store/read/session-key.ts';
import { raiseRevision } from '../store/write/revision.ts';
import { departedThere, type GoneSession, goneSessions, isHeld } from './accounts.ts';
import { beginDigest, type DigestedFrame, digestWith, NO_DIGEST } from './digest.ts';

export type ShipStatus = {
  /** The engine's own id; null: none was ever reached. */
  target: string | null;
  /** The process that ships, if there is one on this host. */
  pid: number | null;
  /** What is in the way; null: nothing is known of anything. */
  trouble: string | null;
  /** What is here and not there. */
  backlog: { sessions: number; frames: number; bytes: number };
  /** How long the oldest of it has been waiting, in milliseconds. */
  lagMs: number;
  /** Of which it is not decided yet whether they are shipped: they are no part of the backlog. */
  undecided: { sessions: number; frames: number; bytes: number };
  /** What is here, and is not of the sample that is shipped: neither waited for nor lost. */
  sampledOut: { sessions: number; frames: number; bytes: number };
  sealed: number;
  refused: { session: string; reason: string }[];
  /** What is neither here nor there: what had to go before it was shipped, and what the engine has lost after it had gone here. */
  lost: { sessions: number; frames: number; bytes: number };
  /** What of that the engine had, and has lost. */
  gone: GoneSession[];
};

type Sums = { sessions: number; frames: number | null; bytes: number | null; oldest: number | null };

/** Null: this store is not shipped. */
export function shipStatus(store: Store): ShipStatus | null {
  const row = store
    .prepare<
      [],
      {
        target: string | null;
        trouble: string | null;
        host: string;
        pid: number | null;
        started: string | null;
      }
    >('SELECT target, trouble, host, pid, process_started AS started FROM shipper')
    .get();
  if (row === undefined) return null;
  const { target, trouble, pid } = row;
  const isAtWork = pid !== null && row.host === hostname() && isAlive(pid, row.started);
  const { oldest, ...backlog } = backlogOf(store, target);
  const states = store
    .prepare<[string | null], { id: string; state: string; reason: string }>(
      `SELECT s.id, p.state, p.reason FROM shipped AS p JOIN session AS s ON s.number = p.session
         WHERE p.target = ? ORDER BY s.started_at`,
    )
    .all(target);
  const lost = store
    .prepare<[], ShipStatus['lost']>(
      `SELECT ifnull(sum(sessions), 0) AS sessions, ifnull(sum(frames), 0) AS frames, ifnull(sum(bytes), 0) AS bytes
         FROM loss`,
    )
    .get();
  return {
    ...{ target, trouble, pid: isAtWork ? pid : null },
    backlog,
    lagMs: oldest === null ? 0 : Math.max(0, Date.now() - oldest / 1000),
    undecided: undecidedOf(store, target),
    sampledOut: sampledOutOf(store, target),
    sealed: states.filter(({ state }) => state === 'sealed').length,
    refused: states
      .filter(({ state }) => state === 'refused')
      .map(({ id, reason }) => ({ session: id, reason })),
    lost: lost ?? { sessions: 0, frames: 0, bytes: 0 },
    gone: goneSessions(store, target),
  };
}

/** What is here and not in the engine of this id, and since when the oldest of it waits. Null: no engine was reached yet. */
export function backlogOf(
  store: Store,
  target: string | null,
): ShipStatus['backlog'] & { oldest: number | null } {
  const waiting = store
    .prepare<[string | null], Sums>(
      `SELECT count(*) AS sessions, sum(s.frames - ifnull(p.frames, 0)) AS frames,
         sum(s.bytes - ifnull(p.bytes, 0)) AS bytes,
         min((SELECT f.at FROM frame AS f WHERE f.session = s.number AND f.seq > ifnull(p.seq, 0)
           ORDER BY f.seq LIMIT 1)) AS oldest
       FROM session AS s LEFT JOIN shipped AS p ON p.target = ? AND p.session = s.number
       WHERE s.frames > ifnull(p.frames, 0) AND ifnull(s.sample, 1) > 0 AND (p.state IS NULL OR p.state IN ('open', 'sealed'))
         AND (s.imported_at IS NULL OR (SELECT imported FROM shipper))
         AND NOT (p.state IS NULL AND ${IS_SAMPLED})`,
    )
    .get(target);
  const { sessions = 0, frames = 0, bytes = 0, oldest = null } = waiting ?? {};
  return { sessions, frames: frames ?? 0, bytes: bytes ?? 0, oldest };
}

/** Whether sessions are shipped only once that is decided. */
const IS_SAMPLED = 'EXISTS (SELECT 1 FROM shipper WHERE sampling IS NOT NULL)';

function undecidedOf(store: Store, target: string | null): ShipStatus['undecided'] {
  return sumsOf(
    store,
    target,
    `p.state IS NULL AND ${IS_SAMPLED} AND ifnull(s.sample, 1) > 0
       AND (s.imported_at IS NULL OR (SELECT imported FROM shipper))`,
  );
}

function sampledOutOf(store: Store, target: string | null): ShipStatus['sampledOut'] {
  return sumsOf(store, target, 'p.sample = 0');
}

function sumsOf(store: Store, target: string | null, condition: string): ShipStatus['undecided'] {
  const sums = store
    .prepare<[string | null], ShipStatus['undecided']>(
      `SELECT count(*) AS sessions, ifnull(sum(s.frames), 0) AS frames, ifnull(sum(s.bytes), 0) AS bytes
         FROM session AS s LEFT JOIN shipped AS p ON p.target = ? AND p.session = s.number WHERE ${condition}`,
    )
    .get(target);
  return sums ?? { sessions: 0, frames: 0, bytes: 0 };
}

/** The next shipper takes back what the engine has of the session, and ships all of it again, also where it was left out of a sample. */
export function retrySession(store: Store, session: number): void {
  store
    .transaction(() => {
      // What was decided stands, but for what somebody asks for now: that stands for itself.
      store
        .prepare(
          `UPDATE shipped SET seq = 0, frames = 0, bytes = 0, indexed = 0, digest = ?, state = 'open', reason = NULL,
             sample = iif(sample = 0, 1, sample) WHERE session = ? AND sample IS NOT NULL`,
        )
        .run(NO_DIGEST, session);
      store.prepare('DELETE FROM shipped WHERE session = ? AND sample IS NULL').run(session);
      raiseRevision(store, session);
    })
    .immediate();
}

/** From now on `prune` need not keep what is not shipped. False: this store was not shipped. */
export function forgetEngine(store: Store): boolean {
  return store.prepare('DELETE FROM shipper').run().changes > 0;
}

/**
 * `same`; `behind`: not all of it is there yet; `missing`: nothing of it is; `undecided`: nor is it decided whether it will be;
 * `sampled-out`: it will not; `different`; `lost`: it was there, or more of it, and is not here any more.
 */
export type Verified = {
  session: string;
  frames: number;
  verdict: 'same' | 'behind' | 'missing' | 'undecided' | 'sampled-out' | 'different' | 'lost';
};

type SessionFacts = {
  number: number;
  id: string;
  startedAt: number;
  host: string;
  pid: number;
  processStarted: string | null;
};

/**
 * Whether the engine has the frames of the sessions as they are here: by the digest that it keeps, and where the role may read
 * payloads, by one made of its bytes. Yields them one by one.
 */
export async function* verifySessions(
  store: Store,
  client: Client,
  numbers: readonly number[],
): AsyncGenerator<Verified> {
  const identity = String(store.prepare('SELECT id FROM identity').pluck().get());
  const select = store.prepare<[number], SessionFacts>(
    `SELECT number, id, started_at AS startedAt, host, pid, process_started AS processStarted FROM session
       WHERE number = ?`,
  );
  const last = store
    .prepare<[number], number>('SELECT ifnull(max(seq), 0) FROM frame WHERE session = ?')
    .pluck();
  const { rows } = await client.query<{ may: boolean }>(
    "SELECT has_column_privilege('tapedeck.frame', 'payload', 'SELECT') AS may",
  );
  const mayRead = rows[0]?.may === true;
  const { id: target } = await readEngine(client);
  const whyMissing = store
    .prepare<[string, number], Verified['verdict']>(
      `SELECT CASE WHEN s.sample = 0 OR p.sample = 0 THEN 'sampled-out'
         WHEN p.state IS NULL AND ${IS_SAMPLED} THEN 'undecided' ELSE 'missing' END
       FROM session AS s LEFT JOIN shipped AS p ON p.target = ? AND p.session = s.number WHERE s.number = ?`,
    )
    .pluck();
  for (const number of numbers) {
    const session = select.get(number);
    if (session === undefined) continue;
    const place = [sessionKey(identity, session), dayOf(session.startedAt)];
    const found = await client.query<{ cursor: number; digest: Buffer | null }>(
      'SELECT cursor, digest FROM tapedeck.session WHERE session = $1 AND day = $2',
      place,
    );
    const [there] = found.rows;
    if (there === undefined) {
      yield { session: session.id, frames: 0, verdict: whyMissing.get(target, number) ?? 'missing' };
      continue;
    }
    const here = localDigest(store, number, there.cursor);
    const isSame =
      here.equals(there.digest ?? NO_DIGEST) &&
      (!mayRead || here.equals(await engineDigest(client, place, there.cursor)));
    const isBehind = there.cursor < Number(last.get(number));
    yield {
      session: session.id,
      frames: there.cursor,
      verdict: !isSame ? 'different' : isBehind ? 'behind' : 'same',
    };
  }
}

/** What the engine had, and has lost, of sessions that are not in the store any more, as far as these are remembered. */
export async function* verifyDeparted(store: Store, client: Client): AsyncGenerator<Verified> {
  const { id, keptFrom } = await readEngine(client);
  const statesOf = async (keys: readonly string[]) => {
    const { rows } = await client.query<{ key: string; cursor: number; revision: number }>(
      'SELECT session AS key, cursor, revision FROM tapedeck.session WHERE session = ANY($1::uuid[])',
      [keys],
    );
    return rows;
  };
  for await (const { session, there } of departedThere(store, statesOf, id, keptFrom))
    if (!isHeld(session, there)) yield { session: session.id, frames: there?.cursor ?? 0, verdict: 'lost' };
}

type Frame = DigestedFrame & { payload: Buffer };

function localDigest(store: Store, session: number, upTo: number): Buffer {
  const frames = store.prepare<[number, number], Frame>(
    `SELECT f.seq, f.at, f.channel, f.size, f.flags, f.http, f.sha256, r.rules, ${payloadSql('f.')} AS payload FROM frame AS f
       LEFT JOIN frame_redaction AS r ON r.session = f.session AND r.seq = f.seq
       WHERE f.session = ? AND f.seq <= ? ORDER BY f.seq`,
  );
  const parts = store
    .prepare<[number, number], Buffer>(
      `SELECT ${partSql()} FROM frame_part WHERE session = ? AND seq = ? ORDER BY part`,
    )
    .pluck();
  let digest = NO_DIGEST;
  for (const frame of frames.iterate(session, upTo)) digest = digestWith(digest, frame, payload(frame));
  function* payload(frame: Frame): Generator<Buffer> {
    yield frame.payload;
    yield* parts.iterate(session, frame.seq);
  }
  return digest;
}

const ROWS_AT_ONCE = 100;

/** A few frames at a time: each has a MiB at most. */
async function engineDigest(client: Client, place: readonly string[], upTo: number): Promise<Buffer> {
  let digest = NO_DIGEST;
  for (let after = 0; ; ) {
    const { rows } = await client.query<Frame>(
      `SELECT seq, at, channel, size, flags, http, sha256, rules, payload FROM tapedeck.frame
         WHERE session = $1 AND day = $2 AND seq > $3 AND seq <= $4 ORDER BY seq
         LIMIT (SELECT CASE WHEN bool_or(size > 65536) THEN 1 ELSE ${ROWS_AT_ONCE} END FROM (
           SELECT size FROM tapedeck.frame WHERE session = $1 AND day = $2 AND seq > $3 ORDER BY seq
             LIMIT ${ROWS_AT_ONCE}) AS next)`,
      [...place, after, upTo],
    );
    if (rows.length === 0) return digest;
    for (const frame of rows) {
      const hash = beginDigest(digest, frame).update(frame.payload);
      if (frame.payload.length === PART_BYTES) await addParts(client, place, frame.seq, hash);
      digest = hash.digest();
      after = frame.seq;
    }
  }
}

/** One at a time: together they are as large as the largest frame. */
async function addParts(client: Client, place: readonly string[], seq: number, hash: Hash): Promise<void> {
  for (let part = 1; ; part += 1) {
    const { rows } = await client.query<{ bytes: Buffer }>(
      'SELECT bytes FROM tapedeck.frame_part WHERE session = $1 AND day = $2 AND seq = $3 AND part = $4',
      [...place, seq, part],
    );
    if (rows[0] === undefined) return;
    hash.update(rows[0].bytes);
  }
}
