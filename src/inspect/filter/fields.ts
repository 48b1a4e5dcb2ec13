/**
 * The fields of the filter language. A filter is asked of each message with its frame, and of a frame without messages
 * alone. Answers, progress and cancellations have the method, tool, status, duration and so on of the request that they
 * belong to, so that a call's frames come together.
 *
 * Each field says twice where its values come from: in SQL, over the tables that `filter-sql.ts` joins, and for a row in
 * memory. A field may have several values, or none; `=` and `~` hold where they hold for one of them.
 */
import { type Channel, directionOf } from '../../protocol/wire/frame.ts';
import type { Store } from '../../store/file/open.ts';
import type { StoredFrame } from '../../store/read/frames.ts';
import { prepareHttpSummary } from '../../store/read/http.ts';
import { findSession, type SessionRow } from '../../store/read/sessions.ts';

type FieldType = 'text' | 'choice' | 'number' | 'size' | 'duration' | 'time' | 'payload';

/** `frame` is always there; `answer` needs `call`, and `call` needs `message`. */
export type Join = 'session' | 'message' | 'call' | 'answer' | 'http';

export type Value = string | number | null;

export type Field = {
  type: FieldType;
  joins: readonly Join[];
  /** Whether one value passes a test, given as SQL about an expression. */
  sql: (test: (expression: string) => string) => string;
  values: (row: FilterRow) => readonly Value[];
  /** The words that it may have; the key is what people may write. */
  choices?: Readonly<Record<string, string>>;
  /** Of a field of sessions: `=` also takes the beginning of its first value. */
  takesBeginning?: boolean;
  /** Of a time: how it stands to the value, and the SQL of a time that no frame of the session goes beyond. */
  compares?: '>=' | '<';
  bound?: string;
};

type Source = Pick<Field, 'sql' | 'values'>;

type Getter = (row: FilterRow) => Value | undefined;

/** A field with a value for each pair of an SQL expression and a getter. */
function from(...pairs: [expression: string, getter: Getter][]): Source {
  return {
    sql: (test) => `(${pairs.map(([expression]) => test(expression)).join(' OR ')})`,
    values: (row) => pairs.map(([, getter]) => getter(row) ?? null),
  };
}

const MESSAGE = ['message'] as const;

const CALL = ['message', 'call'] as const;

const ANSWER = ['message', 'call', 'answer'] as const;

const SESSION = ['session'] as const;

const choicesOf = (...words: string[]) => Object.fromEntries(words.map((word) => [word, word]));

/** What a call is about, where its method is one of these. */
function targetOf(methods: readonly string[]): Source {
  const list = methods.map((method) => `'${method}'`).join(', ');
  const pair = (alias: 'm' | 'c', pick: (row: FilterRow) => MessageFacts | null): [string, Getter] => [
    `CASE WHEN ${alias}.canonical IN (${list}) THEN ${alias}.target END`,
    (row) => {
      const message = pick(row);
      return methods.includes(message?.canonical ?? '') ? message?.target : null;
    },
  ];
  return from(
    pair('m', ({ message }) => message),
    pair('c', ({ call }) => call),
  );
}

const STATUS_SQL = `coalesce(a.outcome, c.outcome, CASE WHEN c.kind = 'request' THEN
  CASE WHEN EXISTS (SELECT 1 FROM message AS x WHERE x.session = c.session AND x.to_seq = c.seq AND x.to_n = c.n
    AND x.relation = 'cancel') THEN 'cancelled' ELSE 'unanswered' END END)`;

function statusOf({ call, answer, isCancelled }: FilterRow): string | null {
  const own = answer?.outcome ?? call?.outcome;
  if (own !== undefined && own !== null) return own;
  if (call?.kind !== 'request') return null;
  return isCancelled ? 'cancelled' : 'unanswered';
}

const peer = (name: string | null, version: string | null) =>
  name === null || version === null ? null : `${name} ${version}`;

/** Frames are stored in the order of their times, or so: a body has that of its last byte, a clock may be set. */
const DISORDER_US = 3_600_000_000;

/** Of two that are equally near to a slip, the first is proposed. */
export const FIELDS = {
  method: {
    type: 'text',
    joins: CALL,
    ...from(
      ['m.canonical', ({ message }) => message?.canonical],
      ['m.method', ({ message }) => message?.method],
      ['c.canonical', ({ call }) => call?.canonical],
      ['c.method', ({ call }) => call?.method],
    ),
  },
  tool: { type: 'text', joins: CALL, ...targetOf(['tools/call']) },
  prompt: { type: 'text', joins: CALL, ...targetOf(['prompts/get']) },
  resource: {
    type: 'text',
    joins: CALL,
    ...targetOf([
      'resources/read',
      'resources/subscribe',
      'resources/unsubscribe',
      'notifications/resources/updated',
    ]),
  },
  status: {
    type: 'choice',
    joins: ANSWER,
    choices: choicesOf('ok', 'tool-error', 'error', 'cancelled', 'input-required', 'unanswered'),
    ...from([STATUS_SQL, statusOf]),
  },
  kind: {
    type: 'choice',
    joins: MESSAGE,
    choices: choicesOf('request', 'notification', 'result', 'error', 'invalid'),
    ...from(['m.kind', ({ message }) => message?.kind]),
  },
  id: {
    type: 'text',
    joins: CALL,
    ...from(['m.id', ({ message }) => message?.id], ['c.id', ({ call }) => call?.id]),
  },
  dir: {
    type: 'choice',
    joins: [],
    choices: {
      client: 'client-to-server',
      server: 'server-to-client',
      ...choicesOf('client-to-server', 'server-to-client'),
    },
    ...from([
      "CASE WHEN f.channel IN ('stdin', 'request') THEN 'client-to-server' ELSE 'server-to-client' END",
      ({ frame }) => directionOf(frame.channel),
    ]),
  },
  channel: {
    type: 'choice',
    joins: [],
    choices: choicesOf('stdin', 'stdout', 'stderr', 'request', 'response', 'sse'),
    ...from(['f.channel', ({ frame }) => frame.channel]),
  },
  dur: {
    type: 'duration',
    joins: ANSWER,
    ...from(['a.latency', ({ answer }) => answer?.latency]),
  },
  size: { type: 'size', joins: [], ...from(['f.size', ({ frame }) => frame.size]) },
  code: {
    type: 'number',
    joins: ANSWER,
    ...from(
      ['a.error_code', ({ answer }) => answer?.errorCode],
      ['c.error_code', ({ call }) => call?.errorCode],
    ),
  },
  http: { type: 'number', joins: ['http'], ...from(['h.status', ({ frame }) => frame.httpStatus]) },
  problem: { type: 'text', joins: MESSAGE, ...from(['m.problem', ({ message }) => message?.problem]) },
  text: { type: 'payload', joins: [], sql: (test) => test('f.payload'), values: () => [] },
  since: {
    type: 'time',
    joins: [],
    compares: '>=',
    bound: `(SELECT f.at FROM frame AS f WHERE f.session = s.number ORDER BY f.seq DESC LIMIT 1) + ${DISORDER_US}`,
    ...from(['f.at', ({ frame }) => frame.at]),
  },
  until: {
    type: 'time',
    joins: [],
    compares: '<',
    bound: `(SELECT f.at FROM frame AS f WHERE f.session = s.number ORDER BY f.seq LIMIT 1) - ${DISORDER_US}`,
    ...from(['f.at', ({ frame }) => frame.at]),
  },
  session: {
    type: 'text',
    joins: SESSION,
    takesBeginning: true,
    ...from(
      ['s.id', ({ session }) => session.id],
      ['s.name', ({ session }) => session.name],
      [
        `CASE WHEN s.number = (SELECT number FROM session ORDER BY started_at DESC, number DESC LIMIT 1) THEN 'latest' END`,
        ({ session }) => (session.isLatest ? 'latest' : null),
      ],
    ),
  },
  name: { type: 'text', joins: SESSION, ...from(['s.name', ({ session }) => session.name]) },
  label: {
    type: 'text',
    joins: SESSION,
    sql: (test) =>
      `EXISTS (SELECT 1 FROM label AS l WHERE l.session = s.number AND ${test("l.key || '=' || l.value")})`,
    values: ({ session }) => session.labels,
  },
  client: {
    type: 'text',
    joins: SESSION,
    ...from(
      ['s.client_name', ({ session }) => session.clientName],
      [
        `s.client_name || ' ' || s.client_version`,
        ({ session }) => peer(session.clientName, session.clientVersion),
      ],
      ['s.client_program', ({ session }) => session.clientProgram],
    ),
  },
  server: {
    type: 'text',
    joins: SESSION,
    ...from(
      ['s.server_name', ({ session }) => session.serverName],
      [
        `s.server_name || ' ' || s.server_version`,
        ({ session }) => peer(session.serverName, session.serverVersion),
      ],
    ),
  },
  transport: {
    type: 'choice',
    joins: SESSION,
    choices: choicesOf('stdio', 'http', 'sse'),
    ...from(['s.transport', ({ session }) => session.transport]),
  },
} as const satisfies Record<string, Field>;

export type FieldName = keyof typeof FIELDS;

export const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];

export function fieldOf(name: FieldName): Field {
  return FIELDS[name];
}

/** Whether a field is the same for all frames of a session. */
export function isOfSession(name: FieldName): boolean {
  return fieldOf(name).joins.includes('session');
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

/** What a filter is asked of: one message with its frame, or a frame without messages alone. */

type SessionFacts = Pick<
  SessionRow,
  | 'id'
  | 'name'
  | 'transport'
  | 'clientName'
  | 'clientVersion'
  | 'clientProgram'
  | 'serverName'
  | 'serverVersion'
> & {
  /** `key=value`. */
  labels: readonly string[];
  isLatest: boolean;
};

type FrameFacts = {
  /** Microseconds since the Unix epoch. */
  at: number;
  channel: Channel;
  /** Bytes on the wire. */
  size: number;
  payload: Buffer;
  httpStatus: number | null;
};

export type MessageFacts = {
  kind: string;
  id: string | null;
  method: string | null;
  canonical: string | null;
  target: string | null;
  /** Microseconds. */
  latency: number | null;
  outcome: string | null;
  errorCode: number | null;
  problem: string | null;
};

export type FilterRow = {
  session: SessionFacts;
  frame: FrameFacts;
  message: MessageFacts | null;
  /** The request that the message belongs to; the message itself, where it belongs to none. */
  call: MessageFacts | null;
  /** What answered the call. */
  answer: MessageFacts | null;
  /** Whether a notification cancelled the call. */
  isCancelled: boolean;
};

/** The row of a frame without messages. */
export function rowOfFrame(store: Store, session: SessionRow, frame: StoredFrame): FilterRow {
  const { number, id } = session;
  const exchange = frame.http?.exchange;
  const httpStatus =
    exchange === undefined ? null : (prepareHttpSummary(store, number)(exchange)?.status ?? null);
  return {
    session: {
      ...session,
      labels: labelsOf(store, number),
      isLatest: findSession(store, 'latest').id === id,
    },
    frame: { ...frame, httpStatus },
    message: null,
    call: null,
    answer: null,
    isCancelled: false,
  };
}

/** The labels of a session, as `key=value`. */
function labelsOf(store: Store, session: number): string[] {
  const sql = "SELECT key || '=' || value FROM label WHERE session = ?";
  return store.prepare<[number], string>(sql).pluck().all(session);
}
