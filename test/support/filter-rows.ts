/**
 * The filter in memory: what it must mean, by a second way. The filter's own SQL is held against it. A filter is asked of
 * one message with its frame, or of a frame without messages alone; here are these rows, put together from the tables.
 */

import { type FieldName, filterField } from '../../src/inspect/filter/fields.ts';
import type { Filter, Term, Test } from '../../src/inspect/filter/filter.ts';
import { type Channel, directionOf } from '../../src/protocol/wire/frame.ts';
import type { Store } from '../../src/store/file/open.ts';
import { type BareFrame, eachBareFrame } from '../../src/store/read/frames.ts';
import { eachSession, type SessionRow } from '../../src/store/read/sessions.ts';

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
  | 'run'
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

type MessageFacts = {
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

type FilterRow = {
  session: SessionFacts;
  frame: FrameFacts;
  message: MessageFacts | null;
  /** The request that the message belongs to; the message itself, where it belongs to none. */
  call: MessageFacts | null;
  /** What answered the call. */
  answer: MessageFacts | null;
  /** Whether a notification cancelled the call. */
  isCancelled: boolean;
  /** The traces that its frame, or that of its call, is part of. */
  traces: readonly string[];
};

type Value = string | number | null | undefined;

/** The values of each field; `=` and `~` hold where they hold for one of them. */
const VALUES: Record<FieldName, (row: FilterRow) => readonly Value[]> = {
  method: ({ message, call }) => [message?.canonical, message?.method, call?.canonical, call?.method],
  tool: targetsOf('tools/call'),
  prompt: targetsOf('prompts/get'),
  resource: targetsOf(
    'resources/read',
    'resources/subscribe',
    'resources/unsubscribe',
    'notifications/resources/updated',
  ),
  status: (row) => [statusOf(row)],
  kind: ({ message }) => [message?.kind],
  id: ({ message, call }) => [message?.id, call?.id],
  dir: ({ frame }) => [directionOf(frame.channel)],
  channel: ({ frame }) => [frame.channel],
  dur: ({ answer }) => [answer?.latency],
  size: ({ frame }) => [frame.size],
  code: ({ answer, call }) => [answer?.errorCode, call?.errorCode],
  http: ({ frame }) => [frame.httpStatus],
  problem: ({ message }) => [message?.problem],
  text: () => [],
  since: ({ frame }) => [frame.at],
  until: ({ frame }) => [frame.at],
  session: ({ session }) => [session.id, session.name, session.isLatest ? 'latest' : null],
  name: ({ session }) => [session.name],
  label: ({ session }) => session.labels,
  run: ({ session }) => [session.run],
  trace: ({ traces }) => traces,
  client: ({ session: { clientName, clientVersion, clientProgram } }) => [
    clientName,
    peer(clientName, clientVersion),
    clientProgram,
  ],
  server: ({ session: { serverName, serverVersion } }) => [serverName, peer(serverName, serverVersion)],
  transport: ({ session }) => [session.transport],
};

/** What a call is about, where its method is one of these. */
function targetsOf(...methods: string[]): (row: FilterRow) => readonly Value[] {
  return ({ message, call }) =>
    [message, call].map((one) => (methods.includes(one?.canonical ?? '') ? one?.target : null));
}

function statusOf({ call, answer, isCancelled }: FilterRow): string | null {
  const own = answer?.outcome ?? call?.outcome;
  if (own !== undefined && own !== null) return own;
  if (call?.kind !== 'request') return null;
  return isCancelled ? 'cancelled' : 'unanswered';
}

function peer(name: string | null, version: string | null): string | null {
  return name === null || version === null ? null : `${name} ${version}`;
}

/** Whether a filter holds for a row. */
export function holds(filter: Filter, row: FilterRow): boolean {
  switch (filter.type) {
    case 'and':
      return filter.parts.every((part) => holds(part, row));
    case 'or':
      return filter.parts.some((part) => holds(part, row));
    case 'not':
      return !holds(filter.part, row);
    case 'term':
      return termHolds(filter, row) !== filter.isNegated;
  }
}

function termHolds({ field: name, test }: Term, row: FilterRow): boolean {
  const field = filterField(name);
  if (field.type === 'payload') return test.type === 'matches' && test.text.has(row.frame.payload);
  const values = VALUES[name](row);
  if (values.some((value) => passes(value, test))) return true;
  if (field.takesBeginning !== true || test.type !== 'equals') return false;
  return String(values[0] ?? '').startsWith(String(test.value));
}

function passes(value: Value, test: Test): boolean {
  if (value === null || value === undefined) return false;
  switch (test.type) {
    case 'equals':
      return value === test.value;
    case 'matches':
      return test.text.has(String(value));
    case 'compares':
      return compares(Number(value), test.operator, test.value);
  }
}

function compares(value: number, operator: '>' | '<' | '>=' | '<=', than: number): boolean {
  switch (operator) {
    case '>':
      return value > than;
    case '<':
      return value < than;
    case '>=':
      return value >= than;
    case '<=':
      return value <= than;
  }
}

type Stored = MessageFacts & {
  seq: number;
  n: number;
  relation: string | null;
  toSeq: number | null;
  toN: number | null;
};

/** Every row of a session, with its frame. */
export function rowsOf(
  store: Store,
  session: SessionRow,
): { seq: number; frame: BareFrame; row: FilterRow }[] {
  const messages = store
    .prepare<[number], Stored>(
      `SELECT seq, n, kind, id, method, canonical, target, relation, to_seq AS toSeq, to_n AS toN, latency, outcome,
         error_code AS errorCode, problem FROM message WHERE session = ? ORDER BY seq, n`,
    )
    .all(session.number);
  const tracesOf = store
    .prepare<[number, number], string>('SELECT trace_id FROM trace WHERE session = ? AND seq = ?')
    .pluck();
  const at = (seq: number | null, n: number | null) =>
    messages.find((message) => message.seq === seq && message.n === n) ?? null;
  const aboutTo = (call: Stored | null, relation: string) =>
    messages.find(
      (message) =>
        call !== null &&
        message.relation === relation &&
        message.toSeq === call.seq &&
        message.toN === call.n,
    ) ?? null;

  return [...eachBareFrame(store, session.number)].flatMap((frame) => {
    const traces = (seq: number) => tracesOf.all(session.number, seq);
    const facts = {
      traces: traces(frame.seq),
      session: sessionFacts(store, session),
      frame: { ...frame, httpStatus: httpStatusOf(frame.http) },
    };
    const own = messages.filter(({ seq }) => seq === frame.seq);
    const rows = own.map((message): FilterRow => {
      const isOwnCall = message.kind === 'request' || message.toSeq === null || message.relation === 'round';
      const call = isOwnCall ? message : at(message.toSeq, message.toN);
      const [answer, isCancelled] = [aboutTo(call, 'reply'), aboutTo(call, 'cancel') !== null];
      const more = call === null ? [] : traces(call.seq);
      return { ...facts, traces: [...facts.traces, ...more], message, call, answer, isCancelled };
    });
    const bare: FilterRow = { ...facts, message: null, call: null, answer: null, isCancelled: false };
    return (rows.length > 0 ? rows : [bare]).map((row) => ({ seq: frame.seq, frame, row }));
  });

  function httpStatusOf(http: { exchange: number } | null): number | null {
    return (
      store
        .prepare<[number, number | null], number | null>(
          'SELECT status FROM http_exchange WHERE session = ? AND number = ?',
        )
        .pluck()
        .get(session.number, http?.exchange ?? null) ?? null
    );
  }
}

function sessionFacts(store: Store, session: SessionRow): FilterRow['session'] {
  const [latest] = eachSession(store);
  const labels = store.prepare<[number], { key: string; value: string }>(
    'SELECT key, value FROM label WHERE session = ?',
  );
  return {
    ...session,
    labels: labels.all(session.number).map(({ key, value }) => `${key}=${value}`),
    isLatest: session.number === latest?.number,
  };
}
