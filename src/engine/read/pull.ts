/** Brings sessions of an engine here, row by row: of however large ones never more than a row is in memory. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Client } from 'pg';
import { figuresText } from '../../inspect/figures/call-figures.ts';
import { weighLists } from '../../inspect/figures/costs.ts';
import type { Term } from '../../inspect/filter/filter.ts';
import type { Cache } from './cache.ts';
import { copyOut } from './copy-out.ts';
import { countsOfCalls } from './counts.ts';
import { COUNTED_TABLES, type FetchedStore, FRAME_TABLES, type ReadTable, SESSION_TABLE } from './fetched.ts';
import type { Found } from './find.ts';

export type PullNotices = {
  /** Bytes of payloads that have come so far, of so many. */
  onPulled(bytes: number, total: number): void;
  /** Sessions of which what is counted has come so far. */
  onCounted(sessions: number): void;
  /** All that is needed is here. */
  onFetched(): void;
  onNote(text: string): void;
};

export type Puller = {
  /** What the sessions' own rows say, with their first HTTP exchange and their last. */
  rows(sessions: readonly Found[]): Promise<void>;
  /** Everything of the sessions. */
  frames(sessions: readonly Found[]): Promise<void>;
  /** What figures are made of: everything but payloads and headers, with the lists of tools that servers have given. */
  figures(sessions: readonly Found[]): Promise<void>;
  /**
   * Figures themselves, of calls whose requests passed at these times, of sealed sessions whose rows are here. Returns the sessions of which
   * it takes more to know them.
   */
  counts(sessions: readonly Found[], times: readonly Term[]): Promise<Found[]>;
  /** Of sessions whose rows are here: the lists of tools that their servers have given. */
  tools(sessions: readonly Found[]): Promise<void>;
  /** The rows of sessions that have begun since, as they were before anything of them came. */
  begun(sessions: readonly Found[]): Promise<void>;
  /** What has come since of sessions whose rows are here. */
  rest(sessions: readonly Found[]): Promise<void>;
};

/** Sessions whose rows are asked for at once, and whose frames. */
const ROWS_AT_ONCE = 1000;

const SESSIONS_AT_ONCE = 100;

/** So many rows are put in between two looks at what else there is to do. */
const ROWS_IN_A_TURN = 2000;

/** `cache`: null where nothing is kept. */
export function createPuller(
  client: Client,
  fetched: FetchedStore,
  cache: Cache | null,
  notices: PullNotices,
): Puller {
  const ids = new Map<string, string>();
  const whole = new Set<string>();
  /** Without payloads, but for lists of tools. */
  const light = new Set<string>();
  let counted = 0;

  async function copy(
    { name, columns, readings, sql }: ReadTable,
    from: string,
    take: (key: string, row: Record<string, Value>) => void,
  ): Promise<void> {
    const { store } = fetched;
    let count = 0;
    store.exec('BEGIN');
    try {
      const query = `SELECT ${sql} FROM tapedeck.${name} AS x ${from}`;
      for await (const some of copyOut(client, query, readings)) {
        for (const [key, ...values] of some) {
          const row: Record<string, Value> = {};
          for (const [i, column] of columns.entries()) row[column] = values[i] ?? null;
          take(String(key), row);
        }
        count += some.length;
        if (count < ROWS_IN_A_TURN) continue;
        count = 0;
        store.exec('COMMIT');
        await nextTurn();
        store.exec('BEGIN');
      }
      fetched.flush();
      store.exec('COMMIT');
    } catch (error) {
      if (store.inTransaction) store.exec('ROLLBACK');
      throw error;
    }
  }

  const addTo = (table: string) => (key: string, row: Record<string, Value>) => {
    const number = fetched.numberOf(key);
    if (number !== undefined) fetched.add(table, number, row);
  };

  async function rows(sessions: readonly Found[]): Promise<void> {
    const missing = sessions.filter(({ key }) => fetched.numberOf(key) === undefined);
    for (const some of slices(missing, ROWS_AT_ONCE)) {
      const byKey = new Map<string, Record<string, Value>>();
      await copy(SESSION_TABLE, among(some), (key, row) => void byKey.set(key, row));
      for (const one of some) {
        const row = byKey.get(one.key);
        if (row !== undefined && fetched.numberOf(one.key) === undefined)
          fetched.addSession(one.key, row, shownId(one));
      }
      await copy(
        tableNamed('http_exchange'),
        `${among(some)} AND (x.number = 1 OR (x.session, x.number) IN (SELECT y.session, max(y.number)
           FROM tapedeck.http_exchange AS y ${among(some, 'y')} GROUP BY 1))`,
        addTo('http_exchange'),
      );
    }
  }

  async function begun(sessions: readonly Found[]): Promise<void> {
    const fresh = sessions.filter(({ key }) => fetched.numberOf(key) === undefined);
    await rows(fresh);
    const reset = fetched.store.prepare('UPDATE session SET indexed = 0 WHERE number = ?');
    for (const { key } of fresh) reset.run(fetched.numberOf(key));
  }

  /** Ids are of 48 bits: of two sessions that share one the second is shown with its host. */
  function shownId({ key, id, host }: Found): string {
    const other = ids.get(id);
    if (other === undefined || other === key) {
      ids.set(id, key);
      return id;
    }
    const shown = `${host}/${id}`;
    if (ids.has(shown)) return `${shown}/${key}`;
    ids.set(shown, key);
    notices.onNote(`two sessions have the id ${id}: the one of ${host} is shown as ${shown}`);
    return shown;
  }

  async function frames(sessions: readonly Found[]): Promise<void> {
    await rows(sessions);
    const wanted = sessions.filter(({ key }) => !whole.has(key) && fetched.numberOf(key) !== undefined);
    const total = wanted.reduce((sum, { bytes }) => sum + bytes, 0);
    let bytes = 0;
    const missing = wanted.filter((one) => {
      const isKept = cache?.take(one, Number(fetched.numberOf(one.key))) ?? false;
      if (isKept) bytes += one.bytes;
      return !isKept;
    });
    for (const some of slices(missing, SESSIONS_AT_ONCE)) {
      for (const table of FRAME_TABLES) {
        const add = addTo(table.name);
        await copy(table, `${among(some)} ${REST[table.name] ?? ''} ${order(table)}`, (key, row) => {
          add(key, row);
          if (table.name !== 'frame' && table.name !== 'frame_part') return;
          bytes += sizeOf(row['payload'] ?? row['bytes']);
          notices.onPulled(bytes, total);
        });
      }
      for (const one of some) settle(one);
      for (const one of some) cache?.keep(one, Number(fetched.numberOf(one.key)));
    }
    for (const { key } of wanted) {
      whole.add(key);
      fetched.whole.add(Number(fetched.numberOf(key)));
    }
  }

  async function figures(sessions: readonly Found[]): Promise<void> {
    await rows(sessions);
    const wanted = sessions.filter(
      ({ key }) => !whole.has(key) && !light.has(key) && fetched.numberOf(key) !== undefined,
    );
    for (const some of slices(wanted, SESSIONS_AT_ONCE)) {
      for (const table of COUNTED_TABLES)
        await copy(table, `${among(some)} ${order(table)}`, addTo(table.name));
      await lists(some);
      for (const one of some) {
        settle(one);
        light.add(one.key);
      }
      counted += some.length;
      notices.onCounted(counted);
    }
  }

  /** Brings the bytes of requests for `tools/list` and of their answers to sessions whose frames are here without. */
  async function lists(sessions: readonly Found[]): Promise<void> {
    const { store } = fetched;
    const asked = store
      .prepare<[number], number>(
        `WITH asked AS (SELECT session, seq, n FROM message WHERE session = ? AND kind = 'request' AND canonical = 'tools/list')
         SELECT seq FROM asked UNION SELECT a.seq FROM asked AS q
         JOIN message AS a ON a.session = q.session AND a.to_seq = q.seq AND a.to_n = q.n AND a.relation = 'reply'`,
      )
      .pluck();
    const empty = store.prepare('DELETE FROM frame WHERE session = ? AND seq = ?');
    const places = sessions.flatMap(({ key }) => {
      const number = Number(fetched.numberOf(key));
      return asked.all(number).map((seq): [string, number] => {
        empty.run(number, seq);
        return [key, seq];
      });
    });
    await framesAt(places, sessions);
  }

  /** Some frames of these sessions, each by its session's key and its number. */
  async function framesAt(
    places: readonly (readonly [key: string, seq: number])[],
    sessions: readonly Found[],
  ): Promise<void> {
    for (const some of slices(places, ROWS_AT_ONCE)) {
      const values = some.map(([key, seq]) => `('${key}'::uuid, ${seq}::bigint)`);
      for (const name of ['frame', 'frame_part'])
        await copy(
          tableNamed(name),
          `JOIN (VALUES ${values.join(', ')}) AS v (key, seq) ON x.session = v.key AND x.seq = v.seq
           ${among(sessions)} ${order(tableNamed(name))}`,
          addTo(name),
        );
    }
  }

  async function counts(sessions: readonly Found[], times: readonly Term[]): Promise<Found[]> {
    const found = await countsOfCalls(client, sessions, times);
    const places = [...found].flatMap(([key, { lists: answers }]) =>
      answers.map(({ seq }): [string, number] => [key, seq]),
    );
    await framesAt(places, sessions);
    for (const [key, { figures: made, lists: answers }] of found) {
      const number = Number(fetched.numberOf(key));
      weighLists(made.costs, fetched.store, number, answers);
      fetched.counted.set(number, figuresText(made));
    }
    counted += found.size;
    notices.onCounted(counted);
    return sessions.filter(({ key }) => !found.has(key));
  }

  /** Of a session that is still arriving the row is ahead of its frames. */
  function settle({ key, isSealed }: Found): void {
    if (isSealed) return;
    fetched.store
      .prepare(
        `UPDATE session SET (frames, bytes) = (SELECT count(*), ifnull(sum(size), 0) FROM frame WHERE session = @number)
           WHERE number = @number`,
      )
      .run({ number: fetched.numberOf(key) });
  }

  async function tools(sessions: readonly Found[]): Promise<void> {
    const some = sessions.filter(({ key }) => !whole.has(key) && !light.has(key));
    if (some.length === 0) return;
    const asked = `SELECT q.session, q.seq, q.n FROM tapedeck.message AS q ${among(some, 'q')}
      AND q.kind = 'request' AND q.canonical = 'tools/list'`;
    await copy(
      tableNamed('message'),
      `${among(some)} AND ((x.session, x.seq, x.n) IN (${asked}) OR x.relation = 'reply' AND (x.session, x.to_seq, x.to_n) IN (${asked}))`,
      addTo('message'),
    );
    const seqs = `SELECT session, seq FROM (${asked}) AS asked UNION SELECT a.session, a.seq FROM tapedeck.message AS a
      ${among(some, 'a')} AND a.relation = 'reply' AND (a.session, a.to_seq, a.to_n) IN (${asked})`;
    for (const name of ['frame', 'frame_part'])
      await copy(
        tableNamed(name),
        `${among(some)} AND (x.session, x.seq) IN (${seqs}) ${order(tableNamed(name))}`,
        addTo(name),
      );
  }

  async function rest(sessions: readonly Found[]): Promise<void> {
    if (sessions.length === 0) return;
    const places = sessions.map((one) => `('${one.key}'::uuid, ${placesOf(one).join(', ')})`);
    const since = `JOIN (VALUES ${places.join(', ')}) AS v (key, seq, indexed, number) ON x.session = v.key ${among(sessions)}`;
    for (const table of FRAME_TABLES) {
      const place = PLACES[table.name];
      if (place !== undefined)
        await copy(
          table,
          `${since} AND x.${place.column} > v.${place.after} ${order(table)}`,
          addTo(table.name),
        );
    }
    await copy(SESSION_TABLE, among(sessions), (key, row) =>
      fetched.updateSession(Number(fetched.numberOf(key)), row),
    );
  }

  /** The last frame that is here, how far messages are, and the last HTTP exchange that has ended; the others come again. */
  function placesOf({ key }: Found): number[] {
    const { store } = fetched;
    const number = Number(fetched.numberOf(key));
    store
      .prepare(
        'DELETE FROM http_exchange WHERE session = @number AND number > (SELECT ifnull(min(number), 1e15) - 1 FROM http_exchange WHERE session = @number AND ended_at IS NULL)',
      )
      .run({ number });
    const [seq, indexed, exchange] = store
      .prepare<[object], number[]>(
        `SELECT ifnull((SELECT max(seq) FROM frame WHERE session = @number), 0), indexed,
           ifnull((SELECT max(number) FROM http_exchange WHERE session = @number), 0) FROM session WHERE number = @number`,
      )
      .raw()
      .get({ number }) ?? [0, 0, 0];
    return [Math.max(seq ?? 0, indexed ?? 0), indexed ?? 0, exchange ?? 0];
  }

  return { rows, frames, figures, counts, tools, begun, rest };
}

type Value = string | number | Buffer | null;

/** By which column it is known what is here already. */
const PLACES: Readonly<Record<string, { column: string; after: string }>> = {
  frame: { column: 'seq', after: 'seq' },
  frame_part: { column: 'seq', after: 'seq' },
  frame_edit: { column: 'seq', after: 'seq' },
  frame_fault: { column: 'seq', after: 'seq' },
  sse_event: { column: 'seq', after: 'seq' },
  http_exchange: { column: 'number', after: 'number' },
  message: { column: 'seq', after: 'indexed' },
  trace: { column: 'seq', after: 'indexed' },
};

/** Parts come before their frame does, which may not be there yet. */
const REST: Readonly<Record<string, string>> = {
  frame_part: `AND EXISTS (SELECT FROM tapedeck.frame AS f WHERE f.session = x.session AND f.day = x.day AND f.seq = x.seq)`,
};

function tableNamed(name: string): ReadTable {
  const table = FRAME_TABLES.find((one) => one.name === name);
  if (table === undefined) throw new Error(`no table of frames: ${name}`);
  return table;
}

/** Keys and days are of the engine's own types: there is nothing in them to quote. */
function among(sessions: readonly Found[], alias = 'x'): string {
  const keys = sessions.map(({ key }) => key).join(',');
  const days = [...new Set(sessions.map(({ day }) => day))].join(',');
  return `WHERE ${alias}.session = ANY ('{${keys}}'::uuid[]) AND ${alias}.day = ANY ('{${days}}'::date[])`;
}

/** Pieces of one thing follow one another. */
function order({ name }: ReadTable): string {
  const places: Readonly<Record<string, string>> = {
    frame: 'x.seq',
    frame_part: 'x.seq, x.part',
    frame_edit: 'x.seq, x.part',
    http_exchange: 'x.number',
  };
  return places[name] === undefined ? '' : `ORDER BY x.session, x.day, ${places[name]}`;
}

function* slices<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}

function sizeOf(value: Value | undefined): number {
  return Buffer.isBuffer(value) ? value.length : 0;
}
