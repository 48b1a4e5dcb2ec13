import { expect, test } from 'vitest';
import { isAboutSessions, parseFilter } from '../../../src/inspect/filter/filter.ts';
import { parseDuration, parseSize, parseTime } from '../../../src/inspect/filter/values.ts';

/** A filter back as text, with every pair of parentheses that is meant. */
function shape(text: string): string {
  const write = (filter: ReturnType<typeof parseFilter>): string => {
    if (filter.type === 'not') return `!${write(filter.part)}`;
    if (filter.type !== 'term')
      return `(${filter.parts.map(write).join(filter.type === 'and' ? ' & ' : ' | ')})`;
    const { test: asked } = filter;
    const value =
      asked.type === 'matches'
        ? `~${asked.pattern.type === 'part' ? asked.pattern.text : `/${asked.pattern.source}/${asked.pattern.flags}`}`
        : asked.type === 'equals'
          ? `=${asked.value}`
          : `${asked.operator}${asked.value}`;
    return `${filter.isNegated ? '!' : ''}${filter.field}${value}`;
  };
  return write(parseFilter(text, 0));
}

test.each([
  ['', '()'],
  ['a', 'text~a'],
  ['a b or c d', '((text~a & text~b) | (text~c & text~d))'],
  ['a and (b or not c)', '(text~a & (text~b | !text~c))'],
  ['not not a', '!!text~a'],
  ['not(a)b', '(!text~a & text~b)'],
  ['NOT a OR b', '(!text~a | text~b)'],
  ['"or" android', '(text~or & text~android)'],
  ['tool=echo', 'tool=echo'],
  ['TOOL = echo', 'tool=echo'],
  ['tool="a b" id=\'"1"\'', '(tool=a b & id="1")'],
  ['name=a=b', 'name=a=b'],
  ['tool=f(x) x', '(tool=f(x) & text~x)'],
  ['(tool=f)', 'tool=f'],
  ['dur>1.5s size<=10kb', '(dur>1500000 & size<=10240)'],
  ['dir=client', 'dir=client-to-server'],
  ['status!=OK', '!status=ok'],
  ['tool!~get', '!tool~get'],
  ['text~/a b\\/(c|d)/i x', '(text~/a b/(c|d)/i & text~x)'],
  ['(text~/x/)', 'text~/x/'],
  ['resource=/etc/hosts', 'resource=/etc/hosts'],
  ['text~"/usr/local"', 'text~/usr/local'],
  ['"C:\\temp" "say \\"x\\""', '(text~C:\\temp & text~say "x")'],
  ['https://example.com/x?y=1', 'text~https://example.com/x?y=1'],
  ['{"a":1}', 'text~{"a":1}'],
  ['code=-32601', 'code=-32601'],
])('%s is read as %s', (text, expected) => expect(shape(text)).toBe(expected));

test.each([
  ['tol=echo', /a field at column 1 .*, got `tol`\. Nearest: `tool`/],
  ['a statsu=ok', /a field at column 3 .*Nearest: `status`/],
  ['sesion~x', /Nearest: `session`/],
  ['zzzzzz=1', /column 1 .*Fields: method, tool/],
  ['tool==echo', /one of .* at column 5 .*, got `==`\. Write `=`/],
  ['tool~~echo', /at column 5 .*, got `~~`\. Write `~`/],
  ['tool!==echo', /got `!==`\. Write `!=`/],
  ['dur>>1s', /got `>>`\. Write `>`/],
  ['dur!<1s', /got `!<`\. Write `>=`/],
  ['duration>1s', /a field at column 1 .*Nearest: `dur`/],
  ['latency>1s', /Nearest: `dur`/],
  ['toolname=a', /Nearest: `tool`/],
  ['uri=a', /Nearest: `resource`/],
  ['after=2h', /Nearest: `since`/],
  ['tool>a', /one of `=` `!=` `~` `!~` at column 5 .*For `tool`, write `=`/],
  ['dur~1s', /at column 4 .*For `dur`, write `>`/],
  ['since>1h', /one of `=` at column 6/],
  ['text=a', /For `text`, write `~`/],
  ['text!=a', /For `text`, write `!~`/],
  ['dur>1', /a duration with its unit.* at column 5/],
  ['dur>1parsec', /a duration/],
  ['size>big', /a size/],
  ['size>1constructor', /a size/],
  ['code=x', /a whole number at column 6/],
  ['since=soon', /a time/],
  ['since=2026-02-30', /a time/],
  ['kind=reqest', /one of request, .* at column 6 .*Nearest: `request`/],
  ['kind=constructor', /one of request/],
  ['tool:echo', /Write tool=echo, or quote it/],
  ['a && b', /at column 3 .*Write a space, or `and`/],
  ['a || b', /Write `or`/],
  ['! a', /Write `not`/],
  ['=a', /a field at column 1/],
  ['tool=', /a value at column 6 .*got its end\. An empty one is ""/],
  ['tool="a', /a closing " at column 8/],
  ['(a', /`\)` at column 3 .*The `\(` stands at column 1/],
  ['a)', /column 2/],
  ['()', /a term at column 2/],
  ['a or', /a term at column 5/],
  ['or a', /a term at column 1/],
  ['not', /a term at column 4/],
  ['text~/usr/local', /at column 6 .*quote it: "\/usr\/local"/],
  ['text~/a(/', /an expression that RE2 reads at column 6 .*missing closing/],
  ['text~/(?=a)/', /an expression that RE2 reads/],
  [`${'('.repeat(60)}a${')'.repeat(60)}`, /at most 50 levels at column 51/],
  ['a '.repeat(201), /at most 200 terms/],
  ['a'.repeat(10_001), /at most 10000 characters/],
])('%s is refused with the place and the remedy', (text, message) => {
  expect(() => parseFilter(text, 0)).toThrow(message);
  expect(() => parseFilter(text, 0)).toThrow(expect.objectContaining({ code: 'usage' }));
});

test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
  '%s is a word like any other',
  (word) => {
    expect(shape(word)).toBe(`text~${word}`);
  },
);

test('what a refusal quotes cannot harm a terminal', () => {
  expect(() => parseFilter('kind=\u001b[31m', 0)).toThrow(/`\\x1b\[31m`/);
});

test.each([
  ['500ms', 500_000],
  ['2s', 2_000_000],
  ['1m30s', 90_000_000],
  ['1.5h', 5_400_000_000],
  ['10µs', 10],
  ['2', null],
  ['', null],
  ['1y', null],
])('the duration %s is %j microseconds', (text, us) => expect(parseDuration(text)).toBe(us));

test.each([
  ['300', 300],
  ['10kb', 10_240],
  ['10m', 10_485_760],
  ['64 MB', 67_108_864],
  ['1tb', 1_099_511_627_776],
  ['1.5MB', 1_572_864],
  ['kb', null],
])('the size %s is %j bytes', (text, bytes) => expect(parseSize(text)).toBe(bytes));

const NOW = Date.UTC(2026, 10, 20, 12, 0, 0) * 1000;
const local = (...parts: [number, number, number, number?, number?, number?]) =>
  new Date(...parts).getTime() * 1000;

test.each([
  ['now', NOW],
  ['10m', NOW - 600_000_000],
  ['10m ago', NOW - 600_000_000],
  ['1 h ago', NOW - 3_600_000_000],
  ['1w', NOW - 7 * 86_400_000_000],
  ['2026-11-20T10:00:00.123456Z', Date.UTC(2026, 10, 20, 10) * 1000 + 123_456],
  ['2026-11-20T10:00:00+02:00', Date.UTC(2026, 10, 20, 8) * 1000],
  ['2026-11-20T10:00:00-0130', Date.UTC(2026, 10, 20, 11, 30) * 1000],
  ['2026-11-20', local(2026, 10, 20)],
  ['2026-11-20 10:30', local(2026, 10, 20, 10, 30)],
  ['2026-11-20T10:30:15.5', local(2026, 10, 20, 10, 30, 15) + 500_000],
  ['24:00', null],
  ['2026-13-01', null],
  ['2026-11-20T10:00:00Zulu', null],
])('the time %s is %j', (text, at) => expect(parseTime(text, NOW)).toBe(at));

test('days begin at midnight of this place', () => {
  const today = new Date(NOW / 1000);
  const day = (offset: number) =>
    new Date(today.getFullYear(), today.getMonth(), today.getDate() + offset).getTime() * 1000;
  expect(parseTime('today', NOW)).toBe(day(0));
  expect(parseTime('yesterday', NOW)).toBe(day(-1));
  expect(parseTime('00:30', NOW)).toBe(day(0) + 1_800_000_000);
});

test('a filter about sessions alone is known as one', () => {
  expect(isAboutSessions(parseFilter('name=a or not client~x', 0))).toBe(true);
  expect(isAboutSessions(parseFilter('name=a tool=x', 0))).toBe(false);
  expect(isAboutSessions(parseFilter('since=1h', 0))).toBe(false);
});
