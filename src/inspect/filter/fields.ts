/**
 * The fields of the filter language. A filter is asked of each message with its frame, and of a frame without messages
 * alone. Answers, progress and cancellations have the method, tool, status, duration and so on of the request that they
 * belong to, so that a call's frames come together.
 *
 * Each field says where its values come from, in SQL over the tables that `sql.ts` joins. A field may have several values,
 * or none; `=` and `~` hold where they hold for one of them.
 */

import { TARGETED } from '../../protocol/message/methods.ts';
import { payloadSql } from '../../store/file/codec.ts';

type FieldType = 'text' | 'choice' | 'number' | 'size' | 'duration' | 'time' | 'payload';

/** `frame` is always there; `answer` needs `call`, and `call` needs `message`. */
export type Join = 'session' | 'message' | 'call' | 'answer' | 'http';

export type Field = {
  type: FieldType;
  joins: readonly Join[];
  /** Whether one value passes a test, given as SQL about an expression. */
  sql: (test: (expression: string) => string) => string;
  /** The words that it may have; the key is what people may write. */
  choices?: Readonly<Record<string, string>>;
  /** Of a field of sessions: `=` also takes the beginning of its first value. */
  takesBeginning?: boolean;
  /** Of a time: how it stands to the value, and the SQL of a time that no frame of the session goes beyond. */
  compares?: '>=' | '<';
  bound?: string;
};

/** A field with a value for each of the expressions. */
function from(...expressions: string[]): Pick<Field, 'sql'> {
  return { sql: (test) => `(${expressions.map(test).join(' OR ')})` };
}

const MESSAGE = ['message'] as const;

const CALL = ['message', 'call'] as const;

const ANSWER = ['message', 'call', 'answer'] as const;

const SESSION = ['session'] as const;

const choicesOf = (...words: string[]) => Object.fromEntries(words.map((word) => [word, word]));

/** What a call is about, where its method is one of these. */
function targetOf(methods: readonly string[]): Pick<Field, 'sql'> {
  const list = methods.map((method) => `'${method}'`).join(', ');
  return from(
    ...['m', 'c'].map((alias) => `CASE WHEN ${alias}.canonical IN (${list}) THEN ${alias}.target END`),
  );
}

const STATUS_SQL = `coalesce(iif(c.outcome = 'fault', 'fault', a.outcome), c.outcome, CASE WHEN c.kind = 'request' THEN
  CASE WHEN EXISTS (SELECT 1 FROM message AS x WHERE x.session = c.session AND x.to_seq = c.seq AND x.to_n = c.n
    AND x.relation = 'cancel') THEN 'cancelled' ELSE 'unanswered' END END)`;

/** Frames are stored in the order of their times, or so: a body has that of its last byte, a clock may be set. */
export const DISORDER_US = 3_600_000_000;

/** Of two names that are equally near to a misspelt one, the first is proposed. */
export const FIELDS = {
  method: {
    type: 'text',
    joins: CALL,
    ...from('m.canonical', 'm.method', 'c.canonical', 'c.method'),
  },
  tool: { type: 'text', joins: CALL, ...targetOf(TARGETED.tool) },
  prompt: { type: 'text', joins: CALL, ...targetOf(TARGETED.prompt) },
  resource: { type: 'text', joins: CALL, ...targetOf(TARGETED.resource) },
  status: {
    type: 'choice',
    joins: ANSWER,
    choices: choicesOf('ok', 'tool-error', 'error', 'cancelled', 'input-required', 'unanswered', 'fault'),
    ...from(STATUS_SQL),
  },
  kind: {
    type: 'choice',
    joins: MESSAGE,
    choices: choicesOf('request', 'notification', 'result', 'error', 'invalid'),
    ...from('m.kind'),
  },
  id: {
    type: 'text',
    joins: CALL,
    ...from('m.id', 'c.id'),
  },
  dir: {
    type: 'choice',
    joins: [],
    choices: {
      client: 'client-to-server',
      server: 'server-to-client',
      ...choicesOf('client-to-server', 'server-to-client'),
    },
    ...from(
      "CASE WHEN f.channel IN ('stdin', 'request') THEN 'client-to-server' ELSE 'server-to-client' END",
    ),
  },
  channel: {
    type: 'choice',
    joins: [],
    choices: choicesOf('stdin', 'stdout', 'stderr', 'request', 'response', 'sse'),
    ...from('f.channel'),
  },
  dur: {
    type: 'duration',
    joins: ANSWER,
    ...from('a.latency'),
  },
  size: { type: 'size', joins: [], ...from('f.size') },
  code: {
    type: 'number',
    joins: ANSWER,
    ...from('a.error_code', 'c.error_code'),
  },
  http: { type: 'number', joins: ['http'], ...from('h.status') },
  problem: { type: 'text', joins: MESSAGE, ...from('m.problem') },
  text: { type: 'payload', joins: [], sql: (test) => test(payloadSql('f.')) },
  since: {
    type: 'time',
    joins: [],
    compares: '>=',
    bound: `(SELECT f.at FROM frame AS f WHERE f.session = s.number ORDER BY f.seq DESC LIMIT 1) + ${DISORDER_US}`,
    ...from('f.at'),
  },
  until: {
    type: 'time',
    joins: [],
    compares: '<',
    bound: `(SELECT f.at FROM frame AS f WHERE f.session = s.number ORDER BY f.seq LIMIT 1) - ${DISORDER_US}`,
    ...from('f.at'),
  },
  session: {
    type: 'text',
    joins: SESSION,
    takesBeginning: true,
    ...from(
      's.id',
      's.name',
      `CASE WHEN s.number = (SELECT number FROM session ORDER BY started_at DESC, number DESC LIMIT 1) THEN 'latest' END`,
    ),
  },
  name: { type: 'text', joins: SESSION, ...from('s.name') },
  label: {
    type: 'text',
    joins: SESSION,
    sql: (test) =>
      `EXISTS (SELECT 1 FROM label AS l WHERE l.session = s.number AND ${test("l.key || '=' || l.value")})`,
  },
  run: {
    type: 'text',
    joins: SESSION,
    sql: (test) => `EXISTS (SELECT 1 FROM run AS r WHERE r.session = s.number AND ${test('r.id')})`,
  },
  trace: {
    type: 'text',
    joins: CALL,
    sql: (test) =>
      `EXISTS (SELECT 1 FROM trace AS t WHERE t.session = f.session AND t.seq IN (f.seq, c.seq) AND ${test('t.trace_id')})`,
  },
  client: {
    type: 'text',
    joins: SESSION,
    ...from('s.client_name', `s.client_name || ' ' || s.client_version`, 's.client_program'),
  },
  server: {
    type: 'text',
    joins: SESSION,
    ...from('s.server_name', `s.server_name || ' ' || s.server_version`),
  },
  transport: {
    type: 'choice',
    joins: SESSION,
    choices: choicesOf('stdio', 'http', 'sse'),
    ...from('s.transport'),
  },
} as const satisfies Record<string, Field>;

export type FieldName = keyof typeof FIELDS;

export const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];

export function filterField(name: FieldName): Field {
  return FIELDS[name];
}

/** Whether a field is the same for all frames of a session. */
export function isOfSession(name: FieldName): boolean {
  return filterField(name).joins.includes('session');
}

export const OPERATORS = ['=', '!=', '~', '!~', '>=', '<=', '>', '<'] as const;

export type Operator = (typeof OPERATORS)[number];

const EQUALITY: readonly Operator[] = ['=', '!='];

const ORDER: readonly Operator[] = ['>', '<', '>=', '<='];

const LIKENESS: readonly Operator[] = ['~', '!~'];

/** The operators of a type of fields; of those that people confuse, the first is proposed. */
export const OPERATORS_OF: Readonly<Record<FieldType, readonly Operator[]>> = {
  text: [...EQUALITY, ...LIKENESS],
  choice: [...EQUALITY, ...LIKENESS],
  number: [...EQUALITY, ...ORDER],
  size: [...ORDER, ...EQUALITY],
  duration: [...ORDER, ...EQUALITY],
  time: ['='],
  payload: LIKENESS,
};
