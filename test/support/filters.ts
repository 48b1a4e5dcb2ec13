/** Filters, and sessions to hold them against, made by chance. */
import fc from 'fast-check';
import { FIELDS, type FieldName, OPERATORS_OF } from '../../src/inspect/filter/fields.ts';
import { parseFilter } from '../../src/inspect/filter/filter.ts';

/** When the filters are read: microseconds since the Unix epoch. */
export const FILTERED_AT = 1_800_000_000_000_000;

const STARTED = FILTERED_AT - 3_600_000_000;

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

const VALUES: Record<FieldName, readonly string[]> = {
  method: ['tools/call', 'ping', 'notifications/progress', 'nope', '/^tools/', 'call'],
  tool: ['echo', 'get_sum', 'e', '/^e/', '""'],
  prompt: ['greet', '/.*/'],
  resource: ['"file:///a b"', '/a/'],
  status: ['ok', 'tool-error', 'error', 'cancelled', 'unanswered', 'input-required'],
  kind: ['request', 'notification', 'result', 'error', 'invalid'],
  id: ['1', '2', '"a"', '/[0-9]/'],
  dir: ['client', 'server-to-client'],
  channel: ['stdin', 'stdout', 'stderr', 'sse'],
  dur: ['1ms', '3ms', '0.5s'],
  size: ['40', '90', '1kb'],
  code: ['-32601', '7', '0'],
  http: ['200', '404'],
  problem: ['json', '/not/'],
  text: ['Straße', '"ΟΔΌΣ"', '/w(ä|a)rm/i', 'jsonrpc', 'STRASSE'],
  since: ['"59m ago"', '2027-01-15', '1h', '59m57s'],
  until: ['"59m ago"', '2h', 'now', '59m57s'],
  session: ['latest', 'abc', '/^0/', 'one'],
  name: ['one', 'n', '/o/'],
  label: ['team=a=b', 'team', '/^t/'],
  run: ['nightly', '/^[0-9a-f]/', 'a'],
  trace: [TRACE, '4bf', '/^0/'],
  client: ['"tester 1.0"', 'tester'],
  server: ['/./'],
  transport: ['stdio', 'http'],
};

const word = fc.constantFrom('warm', 'straße', '"two words"', "'dur>1'");
const term = fc.oneof(
  word,
  fc.constantFrom(...(Object.keys(FIELDS) as FieldName[])).chain((field) =>
    fc
      .record({
        operator: fc.constantFrom(...OPERATORS_OF[FIELDS[field].type]),
        value: fc.constantFrom(...VALUES[field]),
      })
      .map(({ operator, value }) => {
        const isPattern = operator.endsWith('~');
        return `${field}${operator}${value.startsWith('/') && !isPattern ? `"${value}"` : value}`;
      }),
  ),
);
const { filter } = fc.letrec<{ filter: string }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    term,
    fc.tuple(tie('filter'), tie('filter')).map(([a, b]) => `(${a} ${b})`),
    fc.tuple(tie('filter'), tie('filter')).map(([a, b]) => `(${a} or ${b})`),
    tie('filter').map((inner) => `not ${inner}`),
  ),
}));
// "number" and "choice" values are checked while a filter is read: these would be refused.
/** Filters of every field and operator. */
export const anyFilter = filter.filter((text) => {
  try {
    parseFilter(text, FILTERED_AT);
    return true;
  } catch {
    return false;
  }
});

export const anyText = fc.constantFrom(
  'warm',
  'Wärm',
  'STRASSE straße',
  'ὁδός ΟΔΌΣ',
  'two  words',
  'dur>1',
  '',
);
const id = fc.constantFrom<string | number>(1, 2, 'a', '1');
const method = fc.oneof(
  anyText.map((text) => ({
    method: 'tools/call',
    params: { name: 'echo', arguments: { text }, _meta: { progressToken: 1 } },
  })),
  fc.constant({ method: 'tools/call', params: { name: 'get_sum', _meta: { progressToken: 1 } } }),
  fc.constant({ method: 'prompts/get', params: { name: 'greet' } }),
  fc.constant({ method: 'resources/read', params: { uri: 'file:///a b' } }),
  fc.constant({ method: 'ping' }),
  fc.constant({
    method: 'tools/call',
    params: { _meta: { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` } },
  }),
);
const answer = fc.constantFrom(
  { result: {} },
  { result: { content: [], isError: true } },
  { error: { code: -32601, message: 'no' } },
  { error: { code: 7, message: 'no' } },
);
const message = fc.oneof(
  { weight: 4, arbitrary: fc.record({ id, method }).map((m) => ({ id: m.id, ...m.method })) },
  { weight: 4, arbitrary: fc.record({ id, answer }).map((m) => ({ id: m.id, ...m.answer })) },
  {
    weight: 3,
    arbitrary: fc.constant({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }),
  },
  id.map((requestId) => ({ method: 'notifications/cancelled', params: { requestId } })),
  fc.constant({ method: 'resources/updated', params: { uri: 'file:///a b' } }),
  fc.constant({ id: null, method: 'ping' }),
);
const content = fc.oneof(
  { weight: 6, arbitrary: message.map((m) => ({ message: { jsonrpc: '2.0', ...m } })) },
  fc
    .array(message, { maxLength: 3 })
    .map((batch) => ({ message: batch.map((m) => ({ jsonrpc: '2.0', ...m })) })),
  anyText.map((text) => ({ text })),
);
const line = fc
  .record({
    ms: fc.constantFrom(0, 0.4, 2, 700),
    channel: fc.constantFrom('stdin', 'stdout', 'stdout', 'stderr'),
  })
  .chain((place) => content.map((frame) => JSON.stringify({ ...place, ...frame })));
/** Sessions in which such filters hold, and in which they do not. */
export const anySession = fc.record({
  name: fc.constantFrom('one', 'Two', null),
  labels: fc.constantFrom({}, { team: 'a=b', x: '' }, { run: 'nightly' }),
  lines: fc.array(line, { maxLength: 14 }),
});

/** One of them as a text recording. `second`: so long after the first one it began. */
export function recordingOf(
  { name, labels, lines }: { name: string | null; labels: object; lines: string[] },
  second = 0,
): string {
  const header = {
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'x',
    command: ['x'],
    startedAt: new Date(STARTED / 1000 + second * 1000).toISOString().replace('Z', '000Z'),
    ...(name === null ? {} : { name }),
    labels,
  };
  return [JSON.stringify({ tapedeck: 1, session: header }), ...lines, ''].join('\n');
}
