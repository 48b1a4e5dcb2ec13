/** Holds an engine against the stores that were shipped to it, by plain SQL on both sides: every table, every column, every byte. */

import { createHash } from 'node:crypto';
import { partSql, payloadSql } from '../../src/store/file/codec.ts';
import { openForReading, openStore, type Store } from '../../src/store/file/open.ts';
import { type Database, newDatabase } from './engine.ts';
import { tapedeckInProcess, tempStore } from './tapedeck.ts';

type Row = Record<string, unknown>;

/** An engine that is set up, and the URL by which a host ships to it, with the least rights. */
export async function engineForHosts(port?: number): Promise<{ database: Database; host: string }> {
  const database = await newDatabase(port);
  const { code, stderr } = await tapedeckInProcess(['engine', 'init', '--to', database.url]);
  if (code !== 0) throw new Error(stderr);
  return { database, host: await database.login('tapedeck_ship') };
}

export const shipOnce = (host: string, file: string, ...options: string[]) =>
  tapedeckInProcess(['ship', '--once', '--to', host, '--db', file, ...options]);

export function filledStore(fill: (store: Store) => void): string {
  const file = tempStore();
  const store = openStore(file);
  fill(store);
  store.close();
  return file;
}

/** What a local row is called in the engine, by table; `key` orders the rows. */
const LOCAL: Readonly<Record<string, { sql: string; key: string }>> = {
  frame: {
    sql: `SELECT f.seq, f.at, f.channel, f.size, f.flags, f.http, f.sha256, r.rules, ${payloadSql('f.')} AS payload FROM frame AS f
      LEFT JOIN frame_redaction AS r ON r.session = f.session AND r.seq = f.seq WHERE f.session = ? ORDER BY f.seq`,
    key: 'seq',
  },
  frame_part: {
    sql: `SELECT seq, part, ${partSql()} AS bytes FROM frame_part WHERE session = ? ORDER BY seq, part`,
    key: 'seq, part',
  },
  ...Object.fromEntries(
    (
      [
        ['frame_fault', 'seq'],
        ['sse_event', 'seq'],
        ['unfinished', 'channel, http, part'],
        ['http_exchange', 'number'],
        ['message', 'seq, n'],
        ['trace', 'seq, trace_id, parent_id'],
      ] as const
    ).map(([table, key]) => [
      table,
      { sql: `SELECT * FROM ${table} WHERE session = ? ORDER BY ${key}`, key },
    ]),
  ),
};

/** Columns that are only the engine's, or are only of the local file. */
const NOT_COMPARED = new Set([
  ...['session', 'day', 'odd', 'rowid', 'number_of_row', 'amendments'],
  ...['tenant', 'recorder', 'cursor', 'digest', 'sealed_at', 'received_at', 'sample', 'labels', 'runs'],
]);

/** What the engine has otherwise than the stores together, in words; nothing, where it is all the same. */
export async function differences(
  database: Database,
  files: readonly string[],
  { isSealed = true }: { isSealed?: boolean } = {},
): Promise<string[]> {
  const found: string[] = [];
  const keys = new Set<string>();
  for (const file of files) {
    const store = openForReading(file);
    const identity = store.prepare('SELECT id FROM identity').pluck().get();
    for (const session of store.prepare<[], Row>('SELECT * FROM session WHERE imported_at IS NULL').all()) {
      const central = await database.query<Row>(
        'SELECT * FROM tapedeck.session WHERE recorder = $1 AND id = $2 AND started_at = $3',
        [identity, session['id'], session['started_at']],
      );
      const place = `session ${session['id']}`;
      if (central.length !== 1) {
        found.push(`${place} is there ${central.length} times`);
        continue;
      }
      keys.add(String(central[0]?.['session']));
      found.push(
        ...(await compareSession(database, store, session, central[0] as Row, isSealed)).map(
          (text) => `${place}: ${text}`,
        ),
      );
    }
    store.close();
  }
  for (const table of ['session', 'frame_edit', ...Object.keys(LOCAL)]) {
    const of = await database.query<{ session: string }>(`SELECT DISTINCT session FROM tapedeck.${table}`);
    for (const { session } of of)
      if (!keys.has(session)) found.push(`${table} has rows of ${session}, which no store has`);
  }
  return found;
}

async function compareSession(
  database: Database,
  store: Store,
  session: Row,
  central: Row,
  isSealed: boolean,
): Promise<string[]> {
  const number = Number(session['number']);
  const found = rowDifferences('session', trueRow(central), session);
  if (isSealed !== (central['sealed_at'] !== null)) found.push(isSealed ? 'is not sealed' : 'is sealed');
  const labels = store
    .prepare<[number], { key: string; value: string }>(
      'SELECT key, value FROM label WHERE session = ? ORDER BY key',
    )
    .all(number);
  if (
    JSON.stringify(trueRow(central)['labels']) !==
    JSON.stringify(Object.fromEntries(labels.map(({ key, value }) => [key, value])))
  )
    found.push('has other labels');
  const runs = store
    .prepare<[number], object>('SELECT kind, key, id FROM run WHERE session = ? ORDER BY key')
    .all(number);
  const bare = (list: unknown) => (list as Row[]).map(({ kind, key, id }) => [kind, key, id]);
  if (JSON.stringify(bare(trueRow(central)['runs'])) !== JSON.stringify(bare(runs)))
    found.push('has other runs');
  for (const [table, { sql, key }] of Object.entries(LOCAL)) {
    const rows = await database.query<Row>(
      `SELECT * FROM tapedeck.${table} WHERE session = $1 ORDER BY ${collated(key)}`,
      [central['session']],
    );
    const local = store.prepare<[number], Row>(sql).all(number);
    if (rows.length !== local.length)
      found.push(`${table}: expected ${local.length} rows, got ${rows.length}`);
    for (const [i, row] of local.slice(0, rows.length).entries())
      found.push(...rowDifferences(`${table} ${i}`, trueRow(rows[i] as Row), row));
  }
  found.push(...(await compareEdits(database, store, number, central['session'])));
  if (isSealed && digestOf(store, number) !== (central['digest'] as Buffer).toString('hex'))
    found.push('has another digest');
  return found;
}

function collated(key: string): string {
  return key
    .replaceAll(/channel|trace_id|parent_id/g, (name) => `${name} COLLATE "C"`)
    .replace('http', 'http NULLS FIRST');
}

async function compareEdits(
  database: Database,
  store: Store,
  number: number,
  key: unknown,
): Promise<string[]> {
  const local = store
    .prepare<[number], { seq: number; original: Buffer }>(
      'SELECT seq, original FROM frame_edit WHERE session = ? ORDER BY seq',
    )
    .all(number);
  const rows = await database.query<{ seq: string; original: Buffer }>(
    'SELECT seq, original FROM tapedeck.frame_edit WHERE session = $1 ORDER BY seq, part',
    [key],
  );
  const whole = new Map<number, Buffer[]>();
  for (const { seq, original } of rows) whole.set(Number(seq), [...(whole.get(Number(seq)) ?? []), original]);
  const isSame =
    whole.size === local.length &&
    local.every(({ seq, original }) => original.equals(Buffer.concat(whole.get(seq) ?? [])));
  return isSame ? [] : ['frame_edit: other originals'];
}

/** As it was before it had to do without what text cannot hold. */
function trueRow(row: Row): Row {
  const { odd } = row;
  return odd === null || odd === undefined ? row : { ...row, ...JSON.parse(String(odd)) };
}

function rowDifferences(place: string, central: Row, local: Row): string[] {
  return Object.keys(central)
    .filter((name) => !NOT_COMPARED.has(name))
    .flatMap((name) => {
      const [got, wanted] = [plain(central[name]), plain(local[name])];
      return got === wanted
        ? []
        : [`${place}: ${name}: expected ${wanted.slice(0, 80)}, got ${got.slice(0, 80)}`];
    });
}

function plain(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  return Buffer.isBuffer(value) ? `bytes ${createHash('sha256').update(value).digest('hex')}` : String(value);
}

/** The chain over all frames, as docs/fleet.md has it. */
function digestOf(store: Store, number: number): string {
  let digest = Buffer.alloc(32);
  const frames = store.prepare<[number], Row>((LOCAL['frame'] as { sql: string }).sql).all(number);
  for (const { seq, at, channel, size, flags, http, sha256, rules, payload } of frames) {
    const hash = createHash('sha256').update(digest);
    hash
      .update(`${JSON.stringify([seq, at, channel, size, flags, http, sha256, rules])}\n`)
      .update(payload as Buffer);
    const parts = store
      .prepare<[number, unknown], Buffer>(
        `SELECT ${partSql()} FROM frame_part WHERE session = ? AND seq = ? ORDER BY part`,
      )
      .pluck();
    for (const part of parts.iterate(number, seq)) hash.update(part);
    digest = hash.digest();
  }
  return digest.toString('hex');
}

/** Ends the shipper that a recorder has started, where there is one. */
export function endShipper(file: string): void {
  const store = openForReading(file);
  const pid = store.prepare<[], number>('SELECT pid FROM shipper WHERE pid IS NOT NULL').pluck().get();
  store.close();
  try {
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended, or was killed before it could say so.
  }
}
