/**
 * The tables of the central schema, as what writes them and what reads them have them in common. Every column of the local store
 * that tells of a session stands here under the name that it has there: a test holds both together.
 *
 * All of them are partitioned by `day`, and begin with the key of a session: `session` (a UUID that its recorder's store makes)
 * and `day` (UTC, on which it began, `dayOf`). Text is as it is in the local store, but for what PostgreSQL's text cannot hold:
 * where there is some, `odd` has the true values (odd.ts).
 */

type ColumnType =
  | 'uuid'
  | 'date'
  | 'text'
  | 'integer'
  | 'bigint'
  | 'real'
  | 'bytea'
  | 'jsonb'
  | 'timestamptz';

export type EngineColumn = {
  name: string;
  type: ColumnType;
  /** The version of the schema that brought it. */
  since: number;
};

export type EngineTable = {
  name: string;
  /** The columns of its primary key, all of them `session` and `day` at first; null: its rows are replaced as a whole. */
  key: readonly string[] | null;
  /** In the order of the table, which is that of a `COPY`. */
  columns: readonly EngineColumn[];
  /** Of rows that may be written anew: the column by which `clear_rows` counts them. Null of those that never change. */
  place: string | null;
};

type Definition = {
  /** What the key has besides `session` and `day`; null: no key. */
  key: string | null;
  place?: string;
  /** By the version of the schema that brought them: `name type, name type`. */
  columns: Readonly<Record<number, string>>;
};

const DEFINITIONS: Readonly<Record<string, Definition>> = {
  /**
   * `cursor`: the last frame that is here. `labels`: an object. `runs`: a list of `{kind, key, id}`, the rows of the local `run`.
   * `sample`: the share of sessions that are kept, where some are not. `received_at`: when its last slice came, by the
   * engine's clock. `sealed_at`: since when nothing is missing.
   */
  session: {
    key: '',
    columns: {
      1: `id text, tenant text, host text, recorder uuid, revision integer, cursor bigint, digest bytea,
        sealed_at timestamptz, received_at timestamptz, sample real, name text, basis text, transport text, target text,
        command text, cwd text, started_at bigint, ended_at bigint, end_reason text, exit_code bigint, signal text,
        client_closed_at bigint, server_closed_at bigint, pid bigint, process_started text, server_pid bigint,
        client_pid bigint, client_program text, client_started text, tapedeck text, era text, protocol_version text,
        client_name text, client_version text, server_name text, server_version text, frames bigint, indexed bigint,
        bytes bigint, exchanges bigint, errors bigint, unanswered bigint, dropped bigint, dropped_bytes bigint,
        truncated bigint, imported_at bigint, redaction text, labels jsonb, runs jsonb, odd bytea`,
    },
  },
  /** `rules`: those of the local `frame_redaction`. `payload`: its first MiB; the rest is in `frame_part`, from part 1 on. */
  frame: {
    key: 'seq',
    columns: {
      1: `seq bigint, at bigint, channel text, size bigint, flags text, http bigint, sha256 text, rules text,
        payload bytea`,
    },
  },
  frame_part: { key: 'seq, part', columns: { 1: 'seq bigint, part integer, bytes bytea' } },
  /** `original` in parts of a MiB, from part 0 on. */
  frame_edit: { key: 'seq, part', columns: { 1: 'seq bigint, part integer, original bytea' } },
  frame_fault: {
    key: 'seq',
    columns: { 1: 'seq bigint, number bigint, rule text, action text, odd bytea' },
  },
  sse_event: { key: 'seq', columns: { 1: 'seq bigint, event text, id text, retry text, odd bytea' } },
  unfinished: {
    key: null,
    place: 'part',
    columns: { 1: 'channel text, part integer, at bigint, bytes bytea, http bigint' },
  },
  http_exchange: {
    key: 'number',
    place: 'number',
    columns: {
      1: `number bigint, method text, path text, version text, client text, request_headers text,
        request_trailers text, request_bytes bigint, informations text, status bigint, status_text text,
        response_headers text, response_trailers text, response_bytes bigint, at bigint, request_ended_at bigint,
        response_at bigint, ended_at bigint, ended_after bigint, closed_by text, error text, edits text, odd bytea`,
    },
  },
  message: {
    key: 'seq, n',
    place: 'seq',
    columns: {
      1: `seq bigint, n bigint, kind text, id_type text, id text, method text, canonical text, target text, task text,
        relation text, to_seq bigint, to_n bigint, latency bigint, outcome text, error_code bigint, problem text,
        odd bytea`,
    },
  },
  trace: {
    key: 'seq, trace_id, parent_id',
    place: 'seq',
    columns: { 1: 'seq bigint, trace_id text, parent_id text' },
  },
};

/** All but `meta` and `loss`, which are of no session. */
export const TABLES: readonly EngineTable[] = Object.entries(DEFINITIONS).map(([name, one]) => ({
  name,
  key: one.key === null ? null : ['session', 'day', ...namesIn(one.key)],
  columns: [
    { name: 'session', type: 'uuid', since: 1 },
    { name: 'day', type: 'date', since: 1 },
    ...Object.entries(one.columns).flatMap(([since, text]) => columnsIn(text, Number(since))),
  ],
  place: one.place ?? null,
}));

/** The definition of a table. Throws for a name that is none. */
export function tableNamed(name: string): EngineTable {
  const table = TABLES.find((one) => one.name === name);
  if (table === undefined) throw new Error(`no table of the engine: ${name}`);
  return table;
}

/** The UTC day of a time in microseconds since the Unix epoch, as `2026-11-23`: the partition of a session that began then. */
export function dayOf(startedAt: number): string {
  return new Date(Math.floor(startedAt / 1000)).toISOString().slice(0, 10);
}

function columnsIn(text: string, since: number): EngineColumn[] {
  return text.split(',').map((words) => {
    const [name = '', type = ''] = words.trim().split(' ');
    return { name, type: type as ColumnType, since };
  });
}

function namesIn(text: string): string[] {
  return text.split(',').flatMap((name) => (name.trim() === '' ? [] : [name.trim()]));
}
