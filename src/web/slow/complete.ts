/** What may stand at the cursor of a filter: fields, operators and choices, and then what this store holds. */

import { completionAt, type ValuePlace, type Word } from '../../inspect/filter/completion.ts';
import type { FieldName } from '../../inspect/filter/fields.ts';
import type { Store } from '../../store/file/open.ts';
import type { Completions } from '../api.ts';
import { numberParam } from '../params.ts';
import { emitJson, type Job, sessionOf, workOf } from './job.ts';

const MOST_WORDS = 50;

/** So long a key waits, in milliseconds: what was seen by then is offered, that of the newest sessions first. */
const LOOK_MS = 150;

/** Of each session the first and the last. */
const MESSAGES = 2000;

export const completeWork = workOf(complete);

async function complete(job: Job): Promise<void> {
  const filter = job.params['filter'] ?? '';
  const { from, to, words, value } = completionAt(
    filter,
    numberParam(job.params, 'at', { most: filter.length, otherwise: filter.length }),
  );
  const seen = value === null ? [] : wordsSeen(job, value);
  await emitJson(job, { from, to, words: [...words, ...seen].slice(0, MOST_WORDS) } satisfies Completions);
}

/** Those that begin with what is written stand before those that have it elsewhere. */
function wordsSeen(job: Job, { field, prefix, spell }: ValuePlace): Word[] {
  const part = prefix.toLowerCase();
  const found = valuesOf(job, field).filter(
    ([value]) => value !== prefix && value.toLowerCase().includes(part),
  );
  const isFirst = ([value]: Seen) => value.toLowerCase().startsWith(part);
  return [...found.filter(isFirst), ...found.filter((one) => !isFirst(one))].map(([value, times]) => ({
    text: spell(value),
    about: times === 1 ? 'seen once' : `seen ${times} times`,
  }));
}

type Seen = [value: string, times: number];

/** What each field's values are taken from; `m` is a message, `s` a session, `h` an HTTP exchange. */
const OF_MESSAGES: Partial<Record<FieldName, string>> = {
  method: 'm.canonical',
  tool: "iif(m.canonical = 'tools/call', m.target, NULL)",
  prompt: "iif(m.canonical = 'prompts/get', m.target, NULL)",
  resource: "iif(m.canonical LIKE '%resources/%', m.target, NULL)",
  code: 'm.error_code',
  problem: 'm.problem',
};

const OF_SESSIONS: Partial<Record<FieldName, string>> = {
  session: 's.id',
  name: 's.name',
  client: 's.client_name',
  server: 's.server_name',
};

function valuesOf(job: Job, field: FieldName): Seen[] {
  const { store } = job;
  const ofMessages = OF_MESSAGES[field];
  if (ofMessages !== undefined) return inSessions(job, messageValues(store, ofMessages));
  const ofSessions = OF_SESSIONS[field];
  if (ofSessions !== undefined) return seenIn(store, `SELECT ${ofSessions} AS value FROM session AS s`)();
  if (field === 'run') return seenIn(store, 'SELECT id AS value FROM run')();
  if (field === 'label') return seenIn(store, `SELECT key || '=' || value AS value FROM label`)();
  const ofRows = OF_ROWS[field];
  if (ofRows === undefined) return [];
  return inSessions(job, seenIn(store, `SELECT ${ofRows} WHERE session = @session LIMIT ${MESSAGES}`));
}

const OF_ROWS: Partial<Record<FieldName, string>> = {
  http: 'status AS value FROM http_exchange',
  trace: 'trace_id AS value FROM trace',
};

/** In the session that is asked about, else in all, as far as the time goes. */
function inSessions(job: Job, valuesIn: (values: { session: number }) => Seen[]): Seen[] {
  const sessions =
    job.params['session'] !== undefined
      ? [sessionOf(job).number]
      : job.store
          .prepare<[], number>('SELECT number FROM session ORDER BY started_at DESC, number DESC')
          .pluck()
          .all();
  const until = performance.now() + LOOK_MS;
  const lists: Seen[][] = [];
  for (const session of sessions) {
    lists.push(valuesIn({ session }));
    if (performance.now() > until) break;
  }
  return together(lists);
}

function messageValues(store: Store, value: string): (values: { session: number }) => Seen[] {
  const some = (order: string) =>
    `SELECT * FROM (SELECT ${value} AS value FROM message AS m WHERE m.session = @session
       ORDER BY m.seq ${order} LIMIT ${MESSAGES})`;
  const all = seenIn(store, `SELECT ${value} AS value FROM message AS m WHERE m.session = @session`);
  const ends = seenIn(store, `${some('ASC')} UNION ALL ${some('DESC')}`);
  const isSmall = store
    .prepare<[number], number>(
      `SELECT count(*) FROM (SELECT 1 FROM message WHERE session = ? LIMIT ${2 * MESSAGES + 1})`,
    )
    .pluck();
  return (values) => ((isSmall.get(values.session) ?? 0) <= 2 * MESSAGES ? all : ends)(values);
}

function seenIn(store: Store, sql: string): (values?: object) => Seen[] {
  const select = store
    .prepare<[object], Seen>(
      `SELECT CAST(value AS TEXT), count(*) FROM (${sql}) WHERE value IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1`,
    )
    .raw();
  return (values = {}) => select.all(values);
}

function together(lists: readonly Seen[][]): Seen[] {
  const counts = new Map<string, number>();
  for (const [value, times] of lists.flat()) counts.set(value, (counts.get(value) ?? 0) + times);
  return [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
}
