/**
 * The engine's side: a slice in one transaction, with its rows, the cursor and the digest; so it is there once or not at all,
 * whoever is killed. The row of the session says how far the engine is, and is locked from the first statement on.
 */

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Client } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { type EngineTable, tableNamed } from '../engine/tables.ts';
import { COPY_HEAD, COPY_TRAILER, type Copied, release } from './copy-rows.ts';
import type { LargePart } from './frames.ts';
import type { SessionProgress } from './progress.ts';
import type { Slice } from './slice.ts';

/** How far the engine is with a session, where that is not what was expected. */
export type EngineState = {
  key: string;
  cursor: number;
  revision: number;
  digest: Buffer | null;
  indexed: number;
  isSealed: boolean;
};

/** `cause`: 'unshipped' or 'engine'. `names`: the ids of the sessions as far as they are known, a list as JSON. */
export type ShipLoss = {
  at: number;
  sessions: number;
  frames: number;
  bytes: number;
  cause: string;
  names: string;
};

export type EngineSink = {
  /**
   * Ships slices of different sessions in one transaction. Nothing is shipped where the engine is elsewhere with some of them:
   * those are returned. Throws what pg throws, and `SealError`; then nothing is shipped either.
   */
  ship(slices: readonly Slice[]): Promise<EngineState[]>;
  /** How far the engine is with these sessions; of one that it does not know, nothing is returned. */
  statesOf(keys: readonly string[]): Promise<EngineState[]>;
  /** Deletes sessions there. */
  remove(sessions: readonly { key: string; day: string }[]): Promise<void>;
  tellLosses(losses: readonly ShipLoss[], host: string, target: string): Promise<void>;
  /** When there were losses that the engine knows of, in microseconds since the Unix epoch. */
  lossesThere(): Promise<number[]>;
  /** What frames of a session are there. */
  sumsOf(session: { key: string; day: string }): Promise<{ frames: number; bytes: number }>;
  /** Whether the rows of many sessions go into one transaction, which on Citus are on several workers. */
  takesMany: boolean;
  /** Ends the connection, whatever is under way. */
  end(): void;
};

/** The engine does not have what it was given. */
export class SealError extends Error {
  override name = 'SealError';
  readonly key: string;

  constructor(key: string, message: string) {
    super(message);
    this.key = key;
  }
}

/** Nothing takes so long but a connection that is dead and does not say so. */
const SILENT_MS = 120_000;

const BEGIN = "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '60s'";

/** `recorder`: the identity of the store. */
export async function createSink(client: Client, recorder: string): Promise<EngineSink> {
  const { rows } = await client.query<{ citus: boolean }>(
    "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS citus",
  );

  async function transact(slices: readonly Slice[]): Promise<EngineState[]> {
    await client.query(BEGIN);
    const states = await upsertSessions(client, slices);
    const elsewhere = states.filter((state) => !isExpected(state, sliceOf(slices, state.key)));
    if (elsewhere.length > 0) {
      await client.query('ROLLBACK');
      return elsewhere;
    }
    for (const state of states) {
      const { progress } = sliceOf(slices, state.key);
      if (state.revision < progress.revision)
        await client.query('SELECT tapedeck.forget($1, $2, $3)', [progress.key, progress.day, recorder]);
    }
    for (const { progress, clearsExchanges } of slices)
      if (clearsExchanges) await clear(client, progress, recorder, 'http_exchange');
    for (const table of COPIED)
      await copyRows(
        client,
        table,
        slices.flatMap(({ rows }) => rows.get(table.name) ?? []),
      );
    for (const slice of slices) await putRest(client, slice, recorder);
    for (const slice of slices) if (slice.after.state === 'sealed') await assertWhole(client, slice);
    await setCursors(client, slices);
    await client.query('COMMIT');
    for (const { rows } of slices) for (const copied of rows.values()) release(copied);
    return [];
  }

  async function guarded<T>(work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => cutOff(client), SILENT_MS);
    try {
      return await work();
    } catch (error) {
      // A connection that is gone has rolled back by itself.
      await client.query('ROLLBACK').catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    takesMany: rows[0]?.citus !== true,
    ship: (slices) => guarded(() => transact(slices)),
    statesOf: (keys) =>
      guarded(async () => {
        const found = await client.query<StateRow>(
          `SELECT ${STATE} FROM tapedeck.session AS s WHERE s.session = ANY($1::uuid[])`,
          [keys],
        );
        return found.rows.map(stateOf);
      }),
    remove: (sessions) =>
      guarded(async () => {
        for (const { key, day } of sessions)
          await client.query('SELECT tapedeck.remove($1, $2, $3)', [key, day, recorder]);
      }),
    tellLosses: (losses, host, target) =>
      guarded(async () => {
        for (const { at, sessions, frames, bytes, cause, names } of losses)
          await client.query(
            `INSERT INTO tapedeck.loss (host, recorder, target, at, sessions, frames, bytes, cause, names)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
            [host, recorder, target, at, sessions, frames, bytes, cause, names],
          );
      }),
    lossesThere: () =>
      guarded(async () => {
        const found = await client.query<{ at: number }>('SELECT at FROM tapedeck.loss WHERE recorder = $1', [
          recorder,
        ]);
        return found.rows.map(({ at }) => Number(at));
      }),
    sumsOf: ({ key, day }) =>
      guarded(async () => {
        const { last: _, ...sums } = await framesThere(client, key, day);
        return sums;
      }),
    end: () => cutOff(client),
  };
}

/** pg waits for what is under way before it ends; a transaction that is cut off was never there. */
function cutOff(client: Client): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}

/** Tables whose rows come by COPY, the frames last: their number is looked at. */
const COPIED: readonly EngineTable[] = [
  ...['http_exchange', 'frame_part', 'frame_edit', 'frame_fault', 'sse_event', 'message', 'trace', 'frame'],
].map(tableNamed);

function sliceOf(slices: readonly Slice[], key: string): Slice {
  const slice = slices.find(({ progress }) => progress.key === key);
  if (slice === undefined) throw new Error(`the engine answered for another session: ${key}`);
  return slice;
}

/** An engine that has an older revision is made to forget it, wherever it is. */
function isExpected({ revision, cursor, indexed }: EngineState, { progress }: Slice): boolean {
  if (revision !== progress.revision) return revision < progress.revision && progress.seq === 0;
  return cursor === progress.seq && indexed === progress.indexed;
}

const SESSION_COLUMNS = tableNamed('session').columns;

/** What only the end of the transaction sets. */
const SET_LAST = new Set(['session', 'day', 'revision', 'cursor', 'digest', 'indexed', 'sealed_at']);

const STATE = `s.session AS key, s.cursor, s.revision, s.digest, s.indexed, s.sealed_at IS NOT NULL AS sealed`;

type StateRow = {
  key: string;
  cursor: number;
  revision: number;
  digest: Buffer | null;
  indexed: number;
  sealed: boolean;
};

function stateOf({ key, cursor, revision, digest, indexed, sealed }: StateRow): EngineState {
  return { key, cursor, revision, digest, indexed, isSealed: sealed };
}

/** Makes the rows, or brings them up to date; locks them, in the order of their keys; and tells how far they are. */
async function upsertSessions(client: Client, slices: readonly Slice[]): Promise<EngineState[]> {
  const values: unknown[] = [];
  const lines = slices
    .toSorted((a, b) => (a.progress.key < b.progress.key ? -1 : 1))
    .map(({ row, progress }) => {
      const first: Record<string, unknown> = {
        ...{ ...row, session: progress.key, day: progress.day, revision: progress.revision },
        ...{ cursor: 0, digest: null, indexed: 0, sealed_at: null },
      };
      const places = SESSION_COLUMNS.map(({ name, type }) => {
        if (name === 'received_at') return 'now()';
        values.push(first[name] ?? null);
        return `$${values.length}::${type}`;
      });
      return `(${places.join(', ')})`;
    });
  const changing = SESSION_COLUMNS.filter(({ name }) => !SET_LAST.has(name));
  const { rows } = await client.query<StateRow>(
    `INSERT INTO tapedeck.session AS s (${namesOf(tableNamed('session'))}) VALUES ${lines.join(', ')}
       ON CONFLICT (session, day) DO UPDATE SET ${changing.map(({ name }) => `${name} = excluded.${name}`).join(', ')}
       RETURNING ${STATE}`,
    values,
  );
  return rows.map(stateOf);
}

function namesOf({ columns }: EngineTable): string {
  return columns.map(({ name }) => name).join(', ');
}

/** Pieces are sent as they come. */
async function copyRows(client: Client, table: EngineTable, copies: Iterable<Copied>): Promise<void> {
  const iterator = copies[Symbol.iterator]();
  const first = iterator.next();
  if (first.done === true) return;
  function* pieces(): Generator<Buffer> {
    yield COPY_HEAD;
    for (let next = first; next.done !== true; next = iterator.next()) yield* next.value.pieces;
    yield COPY_TRAILER;
  }
  const stream = client.query(
    copyFrom(`COPY tapedeck.${table.name} (${namesOf(table)}) FROM STDIN (FORMAT binary)`),
  );
  await pipeline(Readable.from(pieces(), { objectMode: false, highWaterMark: 256 * 1024 }), stream);
}

async function clear(
  client: Client,
  { key, day }: SessionProgress,
  recorder: string,
  table: string,
): Promise<void> {
  await client.query('SELECT tapedeck.clear_rows($1, $2, $3, $4, 0)', [key, day, recorder, table]);
}

/** What may be there already: of a large frame, because its parts come before the cursor moves; the rest, because it changes. */
async function putRest(client: Client, slice: Slice, recorder: string): Promise<void> {
  const { progress, changed, parts, largeEdits, unfinished, outcomes } = slice;
  const { key, day } = progress;
  for (const part of parts) await putPart(client, key, day, part);
  await copyRows(client, tableNamed('frame_edit'), largeEdits());
  for (const exchange of changed) await putExchange(client, key, day, exchange);
  if (unfinished !== null) {
    await clear(client, progress, recorder, 'unfinished');
    await copyRows(client, tableNamed('unfinished'), unfinished());
  }
  if (outcomes.length > 0)
    await client.query(
      `UPDATE tapedeck.message AS m SET outcome = v.outcome
         FROM unnest($3::bigint[], $4::bigint[], $5::text[]) AS v (seq, n, outcome)
         WHERE m.session = $1 AND m.day = $2 AND m.seq = v.seq AND m.n = v.n`,
      [
        key,
        day,
        outcomes.map(({ seq }) => seq),
        outcomes.map(({ n }) => n),
        outcomes.map((one) => one.outcome),
      ],
    );
}

async function putPart(
  client: Client,
  key: string,
  day: string,
  { seq, part, bytes }: LargePart,
): Promise<void> {
  await client.query(
    `INSERT INTO tapedeck.frame_part (session, day, seq, part, bytes) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT DO NOTHING`,
    [key, day, seq, part, bytes],
  );
}

const EXCHANGE = tableNamed('http_exchange');

/** `excluded` would ask for the right to read the columns. */
const PUT_EXCHANGE = `INSERT INTO tapedeck.http_exchange (${namesOf(EXCHANGE)})
  VALUES (${EXCHANGE.columns.map((_, i) => `$${i + 1}`).join(', ')}) ON CONFLICT (session, day, number) DO UPDATE
  SET ${EXCHANGE.columns
    .slice(3)
    .map(({ name }, i) => `${name} = $${i + 4}`)
    .join(', ')}`;

async function putExchange(
  client: Client,
  key: string,
  day: string,
  exchange: Record<string, unknown>,
): Promise<void> {
  const values = EXCHANGE.columns.slice(2).map(({ name }) => exchange[name] ?? null);
  await client.query(PUT_EXCHANGE, [key, day, ...values]);
}

/** Counts on the engine what it is about to call whole. */
async function assertWhole(client: Client, { progress, after }: Slice): Promise<void> {
  const { frames, bytes, last } = await framesThere(client, progress.key, progress.day);
  const has = [frames, bytes, last].join(', ');
  const wanted = [after.frames, after.bytes, after.seq].join(', ');
  if (has !== wanted)
    throw new SealError(
      progress.key,
      `expected ${wanted} (frames, bytes, last frame) in the engine, got ${has}`,
    );
}

async function framesThere(
  client: Client,
  key: string,
  day: string,
): Promise<{ frames: number; bytes: number; last: number }> {
  const { rows } = await client.query<{ frames: number; bytes: number; last: number }>(
    `SELECT count(*) AS frames, coalesce(sum(size), 0)::bigint AS bytes, coalesce(max(seq), 0) AS last
       FROM tapedeck.frame WHERE session = $1 AND day = $2`,
    [key, day],
  );
  const { frames = 0, bytes = 0, last = 0 } = rows[0] ?? {};
  return { frames: Number(frames), bytes: Number(bytes), last: Number(last) };
}

async function setCursors(client: Client, slices: readonly Slice[]): Promise<void> {
  const columns: unknown[][] = [[], [], [], [], [], [], []];
  for (const { progress, after } of slices) {
    const row = [progress.key, progress.day, after.revision, after.seq, after.digest, after.indexed];
    for (const [i, value] of [...row, after.state === 'sealed'].entries()) columns[i]?.push(value);
  }
  const set = `revision = v.revision, cursor = v.cursor, digest = v.digest, indexed = v.indexed,
    sealed_at = CASE WHEN v.sealed THEN clock_timestamp() END, received_at = clock_timestamp()`;
  const types = ['uuid', 'date', 'integer', 'bigint', 'bytea', 'bigint', 'boolean'];
  const from = types.map((type, i) => `$${i + 1}::${type}[]`).join(', ');
  await client.query(
    `UPDATE tapedeck.session AS s SET ${set}
       FROM unnest(${from}) AS v (session, day, revision, cursor, digest, indexed, sealed)
       WHERE s.session = v.session AND s.day = v.day`,
    columns,
  );
}
