/**
 * What was fetched of an engine, as a store: the same tables, so that everything that reads a store reads this. It lies in a folder of
 * its own and is gone with it.
 */

import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TapedeckError } from '../../errors.ts';
import { openStore, type Store } from '../../store/file/open.ts';
import { makeFolder } from '../../store/file/path.ts';
import { isAlive } from '../../store/file/process.ts';
import { type EngineTable, TABLES, tableNamed } from '../tables.ts';
import type { Reading, Value } from './copy-out.ts';

/** A table of the engine as it is read: one value for each reading, the first of them the session's key. */
export type ReadTable = {
  name: string;
  columns: readonly string[];
  readings: readonly Reading[];
  sql: string;
};

const OWN = new Set(['session', 'day']);

/** Columns that the session's own row has only on an engine. */
const ENGINE_ONLY = new Set(['received_at', 'sealed_at', 'digest']);

/** What of a session is fetched with its frames, in the order in which it must be inserted. */
export const FRAME_TABLES: readonly ReadTable[] = [
  ...[
    'frame',
    'frame_part',
    'frame_edit',
    'frame_fault',
    'sse_event',
    'unfinished',
    'http_exchange',
    'message',
  ],
  'trace',
].map((name) => readTable(tableNamed(name)));

export const SESSION_TABLE: ReadTable = readTable(tableNamed('session'));

function readTable({ name, columns }: EngineTable): ReadTable {
  const read = columns.filter((column) => !OWN.has(column.name) && !ENGINE_ONLY.has(column.name));
  return {
    name,
    columns: read.map((column) => column.name),
    readings: ['text', ...read.map(({ type }) => readingOf(type))],
    sql: `x.session::text, ${read.map((one) => (one.type === 'jsonb' || one.type === 'uuid' || one.type === 'real' ? `x.${one.name}::text` : `x.${one.name}`)).join(', ')}`,
  };
}

function readingOf(type: EngineTable['columns'][number]['type']): Reading {
  if (type === 'bigint' || type === 'integer') return 'integer';
  return type === 'bytea' ? 'bytes' : 'text';
}

/** In place of what no figure is made of: payloads, and what headers may hold. */
const UNCOUNTED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  frame: { payload: `''::bytea`, sha256: 'NULL::text', rules: 'NULL::text' },
  http_exchange: {
    ...{ request_headers: `'[]'`, response_headers: `'[]'`, request_trailers: 'NULL::text' },
    ...{ response_trailers: 'NULL::text', informations: 'NULL::text', edits: 'NULL::text' },
  },
};

/** What of a session is fetched to count it: the rows of its frames without their bytes. */
export const COUNTED_TABLES: readonly ReadTable[] = FRAME_TABLES.filter(({ name }) =>
  ['frame', 'http_exchange', 'message', 'trace'].includes(name),
).map((table) => {
  const stands = table.columns.map((column) => UNCOUNTED[table.name]?.[column] ?? `x.${column}`);
  return { ...table, sql: ['x.session::text', ...stands].join(', ') };
});

/** The tables that only an engine has in this form, with what becomes of a row in a store. */
type Put = (session: number, row: Record<string, Value>) => void;

export type FetchedStore = {
  store: Store;
  file: string;
  /** The session's number here; undefined: its row is not here. */
  numberOf(key: string): number | undefined;
  /** The numbers of those that are here with all their frames. */
  whole: Set<number>;
  /** What is counted of sessions, in place of their frames. */
  counted: Map<number, string>;
  /** Puts the session's own row, with its labels and runs, in; sessions come from the newest to the oldest. Returns its number. */
  addSession(key: string, row: Record<string, Value>, id: string): number;
  /** Brings the session's own row up to date; its labels and runs stay. */
  updateSession(number: number, row: Record<string, Value>): void;
  /** Puts a row of another table in, unless it is there. */
  add(table: string, session: number, row: Record<string, Value>): void;
  /** To be called when all rows of the tables were added: what came in pieces is put in whole. */
  flush(): void;
  close(): void;
};

/** `folder`: where such stores lie. Throws `TapedeckError` `io` where none can be made there. */
export function createFetched(folder: string): FetchedStore {
  sweep(folder);
  const own = join(folder, `${PREFIX}${process.pid}-${randomBytes(4).toString('hex')}`);
  try {
    makeFolder(folder, 0o700);
    mkdirSync(own, { mode: 0o700 });
  } catch (error) {
    const why = (error as Error).message;
    throw new TapedeckError(
      'io',
      `What is fetched of an engine cannot be put into ${folder}: ${why}. On Linux XDG_CACHE_HOME names another.`,
      { cause: error },
    );
  }
  const file = join(own, 'recordings.db');
  const store = openStore(file);
  // Nobody needs it after a crash.
  store.pragma('synchronous = OFF');
  const numbers = new Map<string, number>();
  const putters = new Map<string, Put>();
  const edits = prepareEdits(store);
  let putSession: ReturnType<typeof preparePutSession> | undefined;
  let next = FIRST_NUMBER;

  return {
    ...{ store, file, whole: new Set(), counted: new Map() },
    numberOf: (key) => numbers.get(key),
    addSession(key, row, id) {
      const number = next;
      next -= 1;
      putSession ??= preparePutSession(store);
      putSession(number, { ...restored(row), id });
      numbers.set(key, number);
      return number;
    },
    updateSession: (number, row) => updateSession(store, number, restored(row)),
    add(table, session, row) {
      if (table === 'frame_edit') {
        edits.add(session, row);
        return;
      }
      const put = putters.get(table) ?? preparePut(store, table);
      putters.set(table, put);
      put(session, row);
    },
    flush: edits.flush,
    close() {
      store.close();
      rmSync(own, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

const PREFIX = 'reading-';

/** The newest session has the highest number, as in a store that has recorded them. */
const FIRST_NUMBER = 2 ** 40;

/** What processes left behind that were killed. */
function sweep(folder: string): void {
  for (const name of namesIn(folder)) {
    const [, pid] = /^reading-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || Number(pid) === process.pid || isAlive(Number(pid), null)) continue;
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The true values, where the engine's text could not hold them. */
function restored(row: Record<string, Value>): Record<string, Value> {
  const { odd } = row;
  if (!Buffer.isBuffer(odd)) return row;
  const values = JSON.parse(odd.toString('utf8')) as Record<string, unknown>;
  const texts = Object.entries(values).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return { ...row, ...Object.fromEntries(texts) };
}

function columnsOf(store: Store, table: string): string[] {
  return (store.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);
}

/** Prepared once: `list` puts a thousand in. */
function preparePutSession(store: Store): (number: number, row: Record<string, Value>) => void {
  const columns = columnsOf(store, 'session').filter((name) => SESSION_TABLE.columns.includes(name));
  const places = columns.map(() => '?').join(', ');
  const insert = store.prepare(`INSERT INTO session (number, ${columns.join(', ')}) VALUES (?, ${places})`);
  const label = store.prepare('INSERT INTO label (session, key, value) VALUES (?, ?, ?)');
  const run = store.prepare('INSERT OR IGNORE INTO run (session, kind, key, id) VALUES (?, ?, ?, ?)');
  return (number, row) => {
    insert.run(number, ...columns.map((name) => row[name] ?? null));
    const labels = JSON.parse(String(row['labels'] ?? '{}')) as Record<string, string>;
    for (const [key, value] of Object.entries(labels)) label.run(number, key, value);
    const runs = JSON.parse(String(row['runs'] ?? '[]')) as { kind: string; key: string; id: string }[];
    for (const { kind, key, id } of runs) run.run(number, kind, key, id);
  };
}

function updateSession(store: Store, number: number, row: Record<string, Value>): void {
  const columns = columnsOf(store, 'session').filter((name) => Object.hasOwn(row, name) && name !== 'id');
  const set = columns.map((name) => `${name} = @${name}`).join(', ');
  store.prepare(`UPDATE session SET ${set} WHERE number = @number`).run({ ...row, number });
}

function preparePut(store: Store, table: string): Put {
  const known = new Set(columnsOf(store, table));
  const definition = TABLES.find(({ name }) => name === table);
  const columns = (definition?.columns ?? [])
    .map(({ name }) => name)
    .filter((name) => known.has(name) && !OWN.has(name));
  const insert = store.prepare(
    `INSERT OR IGNORE INTO ${table} (session, ${columns.join(', ')}) VALUES (?, ${columns.map(() => '?').join(', ')})`,
  );
  const rules = store.prepare('INSERT OR IGNORE INTO frame_redaction (session, seq, rules) VALUES (?, ?, ?)');
  return (session, row) => {
    const true_ = restored(row);
    insert.run(session, ...columns.map((name) => true_[name] ?? null));
    if (table === 'frame' && row['rules'] != null) rules.run(session, row['seq'], row['rules']);
  };
}

type Edits = { add(session: number, row: Record<string, Value>): void; flush(): void };

/** What a frame was before it was changed comes in pieces, one after the other, and lies in one. */
function prepareEdits(store: Store): Edits {
  let at: { session: number; seq: Value } | null = null;
  let pieces: Buffer[] = [];

  function flush(): void {
    if (at !== null)
      store
        .prepare('INSERT OR IGNORE INTO frame_edit (session, seq, original) VALUES (?, ?, ?)')
        .run(at.session, at.seq, Buffer.concat(pieces));
    at = null;
    pieces = [];
  }

  return {
    flush,
    add(session, { seq = null, original }) {
      if (at?.session !== session || at.seq !== seq) flush();
      at = { session, seq };
      pieces.push(Buffer.from(original as Buffer));
    },
  };
}
