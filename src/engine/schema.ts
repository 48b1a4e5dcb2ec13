/**
 * The central schema as SQL: what `engine init` runs, and prints for whoever runs it by hand. It depends on nothing but the version
 * of this program: the engine itself says which week it is, whether it has lz4, and whether it is Citus.
 *
 * There are no foreign keys, triggers or sequences, and no index on text whose length others choose: a row that came from a
 * stranger must not be refused.
 */

import { type EngineColumn, type EngineTable, TABLES } from './tables.ts';

/** Who made the schema, in `meta`: another program's `tapedeck` is left alone. */
export const CREATED_BY = 'mcp-tapedeck';

/** The oldest version of this program's schema that a writer may have been made for. */
const MIN_WRITER = 1;

/** The index of texts has so many bytes of each payload; of frames that are larger there is an index of their sizes. */
export const INDEXED_BYTES = 32_768;

/** Weeks for which there are partitions from the beginning, this one included; `maintain` keeps as many ahead. */
export const WEEKS_AHEAD = 8;

/**
 * Migration i brings an engine from version i to i + 1. Never edit one that was released: append. They only add, so that older
 * writers go on: a column in `tables.ts` gets the number of its version there, and `addedIn` does the rest.
 */
export const ENGINE_MIGRATIONS: readonly (() => string)[] = [createSchema];

/** The newest version of the schema, which this program writes. */
export const SCHEMA_VERSION: number = ENGINE_MIGRATIONS.length;

/** What makes an empty database an engine: roles, tables, rights. Runs in a transaction of its own. */
export function initSql(): string {
  return `BEGIN;\n\n${ROLES}\n${ENGINE_MIGRATIONS.map((migration) => migration()).join('\n')}\n${stampSql(SCHEMA_VERSION)}\n\nCOMMIT;\n`;
}

/** Says which version the schema has. */
export function stampSql(version: number): string {
  return `INSERT INTO tapedeck.meta (name, value) VALUES ('version', '${version}'), ('min_writer', '${MIN_WRITER}')
  ON CONFLICT (name) DO UPDATE SET value = excluded.value;`;
}

/** The columns that this version of the schema adds to tables that were there before. */
export function addedIn(version: number, tables: readonly EngineTable[] = TABLES): string {
  const lines = tables.flatMap(({ name, columns }) =>
    columns
      .filter(({ since }) => since === version)
      .map((column) => `ALTER TABLE tapedeck.${name} ADD COLUMN ${definitionOf(column)};`),
  );
  return lines.join('\n');
}

/** Group roles: people and hosts get roles of their own, which are in one of them. They are of the whole server, not of a database. */
const ROLES = `-- Roles. Give each host one of its own: CREATE ROLE host1 LOGIN PASSWORD '…' IN ROLE tapedeck_ship;
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['tapedeck_admin', 'tapedeck_ship', 'tapedeck_read'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', name);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL; -- Another database of this server was set up at this moment.
      END;
    END IF;
  END LOOP;
  -- Whoever sets this up may act for the owner.
  IF NOT pg_has_role(current_user, 'tapedeck_admin', 'MEMBER') THEN
    EXECUTE format('GRANT tapedeck_admin TO %I', current_user);
  END IF;
END $$;

CREATE SCHEMA tapedeck AUTHORIZATION tapedeck_admin;
SET LOCAL ROLE tapedeck_admin;
SET LOCAL search_path = pg_catalog, pg_temp;
`;

function createSchema(): string {
  return [
    `-- What is known of the schema itself.
CREATE TABLE tapedeck.meta (name text PRIMARY KEY, value text);
INSERT INTO tapedeck.meta (name, value)
  VALUES ('id', gen_random_uuid()::text), ('partition', 'week'), ('created_by', '${CREATED_BY}');
`,
    `-- What hosts had to give up before it could be shipped (cause 'unshipped'); and what was here, is here no more, and is gone
-- there, as after a restore from a backup (cause 'engine'; names: the ids of these sessions).
CREATE TABLE tapedeck.loss (
  host text, recorder uuid, target text, at bigint, sessions bigint, frames bigint, bytes bigint, cause text, names jsonb,
  PRIMARY KEY (recorder, at)
);
`,
    ...TABLES.map(createTable),
    INDEXES,
    LZ4,
    CITUS,
    FUNCTIONS,
    PARTITIONS,
    RIGHTS,
  ].join('\n');
}

/** Rows without a key are found by an index on the same place. */
function createTable({ name, key, columns }: EngineTable): string {
  const lines = columns.filter(({ since }) => since === 1).map(definitionOf);
  if (key !== null) lines.push(`PRIMARY KEY (${key.join(', ')})`);
  const table = `CREATE TABLE tapedeck.${name} (\n${wrapped(lines)}\n) PARTITION BY RANGE (day);\n`;
  return key === null ? `${table}CREATE INDEX ON tapedeck.${name} (session, day);\n` : table;
}

function definitionOf({ name, type }: EngineColumn): string {
  return `${name} ${type}`;
}

/** Items in lines of about a hundred characters. */
function wrapped(items: readonly string[]): string {
  const lines: string[] = [];
  for (const [i, item] of items.entries()) {
    const text = i === items.length - 1 ? item : `${item},`;
    const last = lines.at(-1);
    if (last === undefined || last.length + text.length > 100) lines.push(`  ${text}`);
    else lines[lines.length - 1] = `${last} ${text}`;
  }
  return lines.join('\n');
}

/** Text that a stranger chooses only through `left`: an entry of an index has at most 2,704 bytes. */
const INDEXES = `CREATE INDEX ON tapedeck.session (started_at DESC);
CREATE INDEX ON tapedeck.session (left(host, 128), started_at DESC);
CREATE INDEX ON tapedeck.session (left(id, 64) text_pattern_ops);
CREATE INDEX ON tapedeck.session (left(tenant, 128), started_at DESC);
CREATE INDEX ON tapedeck.session (received_at);
CREATE INDEX ON tapedeck.session USING gin (labels jsonb_path_ops);
CREATE INDEX ON tapedeck.session USING gin (runs jsonb_path_ops);
CREATE INDEX ON tapedeck.message (left(canonical, 128), left(target, 128), day) WHERE kind = 'request';
CREATE INDEX ON tapedeck.message (latency DESC) WHERE latency IS NOT NULL;
CREATE INDEX ON tapedeck.message (outcome) WHERE outcome <> 'ok';
CREATE INDEX ON tapedeck.message (session, to_seq) WHERE to_seq IS NOT NULL;
CREATE INDEX ON tapedeck.trace (trace_id);
`;

const LZ4 = `-- Where the server has lz4: half the processor time of its own compression.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
    ALTER TABLE tapedeck.frame ALTER COLUMN payload SET COMPRESSION lz4;
    ALTER TABLE tapedeck.frame_part ALTER COLUMN bytes SET COMPRESSION lz4;
    ALTER TABLE tapedeck.frame_edit ALTER COLUMN original SET COMPRESSION lz4;
  END IF;
END $$;
`;

/** Dynamic, so that a server without Citus does not look for its functions. */
const CITUS = `-- On Citus the rows of a session are together on one worker.
DO $$
DECLARE
  name text;
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    SET LOCAL search_path = pg_catalog, public, pg_temp;
    EXECUTE 'SELECT create_reference_table(''tapedeck.meta'')';
    EXECUTE 'SELECT create_reference_table(''tapedeck.loss'')';
    EXECUTE 'SELECT create_distributed_table(''tapedeck.session'', ''session'')';
    FOREACH name IN ARRAY ARRAY[${TABLES.slice(1)
      .map((table) => `'${table.name}'`)
      .join(', ')}] LOOP
      EXECUTE format(
        'SELECT create_distributed_table(%L, ''session'', colocate_with => ''tapedeck.session'')', 'tapedeck.' || name);
    END LOOP;
    SET LOCAL search_path = pg_catalog, pg_temp;
  END IF;
END $$;
`;

const PART_TABLES = TABLES.map(({ name }) => `'${name}'`).join(', ');

const DEPENDENTS = TABLES.filter(({ name }) => name !== 'session');

/** Deleting is for hosts only by these, and only what is of the recorder that they name. */
const FUNCTIONS = `-- Deletes all rows of a session but its own, whose cursor goes back to the beginning. False: there is no such session.
CREATE FUNCTION tapedeck.forget(key uuid, on_day date, by_recorder uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE tapedeck.session SET cursor = 0, digest = NULL, sealed_at = NULL
    WHERE session = key AND day = on_day AND recorder = by_recorder;
  IF NOT FOUND THEN RETURN false; END IF;
${DEPENDENTS.map(({ name }) => `  DELETE FROM tapedeck.${name} WHERE session = key AND day = on_day;`).join('\n')}
  RETURN true;
END $$;

-- Deletes a session altogether. False: there is no such session.
CREATE FUNCTION tapedeck.remove(key uuid, on_day date, by_recorder uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT tapedeck.forget(key, on_day, by_recorder) THEN RETURN false; END IF;
  DELETE FROM tapedeck.session WHERE session = key AND day = on_day;
  RETURN true;
END $$;

-- Deletes the rows of a session that are to be written anew, from this place on. False: there is no such session.
CREATE FUNCTION tapedeck.clear_rows(key uuid, on_day date, by_recorder uuid, of_table text, from_place bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM FROM tapedeck.session WHERE session = key AND day = on_day AND recorder = by_recorder FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  CASE of_table
${TABLES.flatMap(({ name, place }) =>
  place === null
    ? []
    : [
        `    WHEN '${name}' THEN DELETE FROM tapedeck.${name} WHERE session = key AND day = on_day AND ${place} >= from_place;`,
      ],
).join('\n')}
  END CASE;
  RETURN true;
END $$;

-- What searching in an index is about: the first 32 KiB, in small letters. Whatever the bytes are, it does not fail: all
-- that is not ASCII is written as \\ooo.
CREATE FUNCTION tapedeck.payload_text(payload bytea) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN lower(encode(substring(payload FROM 1 FOR ${INDEXED_BYTES}), 'escape') COLLATE "C");
`;

/** A partition is made beside its table and attached: making it in place would stop all writers. */
const PARTITIONS = `-- What no partition takes, as that of a clock in 2099.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[${PART_TABLES}] LOOP
    EXECUTE format('CREATE TABLE tapedeck.%I PARTITION OF tapedeck.%I DEFAULT', name || '_default', name);
  END LOOP;
END $$;

-- Makes the partitions of a day's week, with the rows that the default partitions have of it. False: they are there.
-- Whoever runs it, they belong to tapedeck_admin.
CREATE FUNCTION tapedeck.add_week(of_day date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  monday date := date_trunc('week', of_day::timestamp)::date;
  tables text[] := ARRAY[${PART_TABLES}];
  name text;
  part text;
BEGIN
  IF to_regclass('tapedeck.session_' || to_char(monday, 'YYYYMMDD')) IS NOT NULL THEN RETURN false; END IF;
  FOREACH name IN ARRAY tables LOOP
    EXECUTE format('LOCK TABLE tapedeck.%I IN ACCESS EXCLUSIVE MODE', name || '_default');
  END LOOP;
  FOREACH name IN ARRAY tables LOOP
    part := name || '_' || to_char(monday, 'YYYYMMDD');
    EXECUTE format('CREATE TABLE tapedeck.%I (LIKE tapedeck.%I INCLUDING ALL)', part, name);
    EXECUTE format(
      'WITH moved AS (DELETE FROM tapedeck.%I WHERE day >= %L AND day < %L RETURNING *)
       INSERT INTO tapedeck.%I SELECT * FROM moved', name || '_default', monday, monday + 7, part);
    EXECUTE format(
      'ALTER TABLE tapedeck.%I ATTACH PARTITION tapedeck.%I FOR VALUES FROM (%L) TO (%L)', name, part, monday, monday + 7);
  END LOOP;
  RETURN true;
END $$;

SELECT tapedeck.add_week((current_timestamp AT TIME ZONE 'UTC')::date + 7 * week)
  FROM generate_series(0, ${WEEKS_AHEAD - 1}) AS week;
`;

/** `INSERT … ON CONFLICT` asks for the right to read the columns of the key. */
const RIGHTS = `-- Who writes can read what it takes to go on, and nobody's traffic.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tapedeck FROM PUBLIC;
GRANT USAGE ON SCHEMA tapedeck TO tapedeck_ship, tapedeck_read;
GRANT SELECT ON tapedeck.meta TO tapedeck_ship, tapedeck_read;
GRANT SELECT, INSERT, UPDATE ON tapedeck.session TO tapedeck_ship;
GRANT INSERT, SELECT (recorder, at) ON tapedeck.loss TO tapedeck_ship;
GRANT INSERT ON ${DEPENDENTS.map(({ name }) => `tapedeck.${name}`).join(', ')} TO tapedeck_ship;
${DEPENDENTS.map(
  ({ name, key }) =>
    `GRANT SELECT (${readableBy(name, key).join(', ')}) ON tapedeck.${name} TO tapedeck_ship;`,
).join('\n')}
GRANT UPDATE ON tapedeck.http_exchange, tapedeck.message TO tapedeck_ship;
GRANT EXECUTE ON FUNCTION tapedeck.forget, tapedeck.remove, tapedeck.clear_rows TO tapedeck_ship;
GRANT SELECT ON tapedeck.session, tapedeck.loss, ${DEPENDENTS.map(({ name }) => `tapedeck.${name}`).join(', ')}
  TO tapedeck_read;
GRANT EXECUTE ON FUNCTION tapedeck.payload_text TO tapedeck_read;
`;

/** By the number of frames and their sizes a shipper knows whether all of them have come. */
function readableBy(name: string, key: EngineTable['key']): readonly string[] {
  const columns = key ?? ['session', 'day'];
  return name === 'frame' ? [...columns, 'size'] : columns;
}
