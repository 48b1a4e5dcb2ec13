import { describe, expect, test } from 'vitest';
import { ACTION_NAMES, ACTIONS } from '../../src/fault/action.ts';
import { readFaults } from '../../src/fault/faults.ts';
import { readFaultRule } from '../../src/fault/rule.ts';

const rule = (text: string) => readFaultRule(text, 1);

test('a rule has a filter, an action and a chance, in any order', () => {
  const { action, chance, direction, filter } = rule('tool=search delay=lognormal(200ms,0.6) p=0.2');
  expect(action).toEqual({ name: 'delay', time: { type: 'lognormal', median: 200, sigma: 0.6 } });
  expect([chance, direction]).toEqual([0.2, 'server-to-client']);
  expect(filter).toMatchObject({ type: 'term', field: 'tool', test: { type: 'equals', value: 'search' } });
  expect(rule('p=0.2 delay(lognormal(200ms, 0.6)) tool=search')).toMatchObject({ action, chance, filter });
  expect(rule('drop')).toMatchObject({ chance: 1, filter: { type: 'and', parts: [] } });
  expect(rule('dir=client drop').direction).toBe('client-to-server');
});

test('each action can be written as its own help writes it', () => {
  for (const name of ACTION_NAMES)
    for (const usage of ACTIONS[name].usage.split(/, | or /).filter((one) => one.startsWith(name)))
      expect(rule(`tool=a ${usage}`).action.name, usage).toBe(name);
});

test('the filter keeps its own words: quoted, in parentheses, and fields that are named like an action', () => {
  expect(rule('"drop" hold').filter).toMatchObject({ type: 'term', field: 'text' });
  expect(rule('http=200 http(503,2s)')).toMatchObject({
    action: { name: 'http', status: 503, retryAfter: 2 },
    filter: { type: 'term', field: 'http' },
  });
  expect(rule('(tool=a or tool=b) error(-32000,"a, \\"b\\" (c")')).toMatchObject({
    action: { name: 'error', code: -32000, message: 'a, "b" (c' },
    filter: { type: 'or' },
  });
});

describe('a rule that cannot be read says where, and what was expected', () => {
  const cases: [rule: string, column: number, expected: RegExp][] = [
    ['', 1, /an action .*delay, dribble/],
    ['tool=a', 7, /an action/],
    ['tool=a delya=2s', 8, /an action.*Nearest: `delay`/],
    ['tool=a delay', 13, /a time with its unit, as 200ms/],
    ['tool=a delay=200', 14, /a time with its unit/],
    ['tool=a delay=gauss(1s)', 14, /`lognormal\(…\)` or `uniform\(…\)`/],
    ['delay=lognormal(1s)', 19, /a sigma/],
    ['delay=lognormal(1s,0.5,3)', 24, /no more values/],
    ['delay=uniform(2s,1s)', 18, /a time/],
    ['delay=lognormal(1s,0.5', 23, /`\)`/],
    ['tool=a error', 13, /the code of an error/],
    ['tool=a error(x)', 14, /the code of an error/],
    ['tool=a error(1,"x)', 19, /a closing "/],
    ['tool=a http(200)', 13, /a status from 400 to 599/],
    ['dribble(5)', 10, /a time/],
    ['exit(SIGNOPE)', 6, /an exit code, or the name of a signal/],
    ['drop p=2', 8, /a chance from 0 to 1/],
    ['drop p=', 8, /a chance from 0 to 1/],
    ['drop p=0.5 p=0.6', 12, /one `p=`/],
    ['drop hold', 6, /one action/],
    ['drop(1)', 6, /no more values/],
    ['drop dir=sideways', 10, /`client` or `server`/],
    ['dir=client hold', 12, /an action for what a client says/],
    ['toool=a drop', 1, /a field.*Nearest: `tool`/],
    ['tool=a and drop', 16, /a term/],
    ['tool>a drop', 5, /=/],
  ];
  test.each(cases)('%s', (text, column, expected) => {
    expect(() => rule(text)).toThrow(expected);
    expect(() => rule(text)).toThrow(`at column ${column} `);
  });
});

test('no text of a rule does anything but being read or refused, in little time', () => {
  const pieces = [
    'tool=',
    'a',
    ' ',
    '(',
    ')',
    '"',
    '\\',
    'drop',
    'delay=',
    '200ms',
    ',',
    'p=',
    '0.5',
    '\u001b[2J',
    '𝕏',
    '/',
    'or ',
  ];
  let seed = 1;
  const next = () => {
    seed = (seed * 48_271) % 0x7fffffff;
    return seed;
  };
  for (let i = 0; i < 2000; i += 1) {
    const text = Array.from({ length: next() % 12 }, () => pieces[next() % pieces.length]).join('');
    try {
      expect(rule(text).text).toBe(text);
    } catch (error) {
      expect((error as Error).name, text).toBe('TapedeckError');
      expect((error as Error).message).not.toContain('\u001b');
    }
  }
  const began = performance.now();
  for (const text of ['('.repeat(4000), '"\\'.repeat(2000), 'delay=('.repeat(570), 'a '.repeat(2000)])
    expect(() => rule(text)).toThrow();
  expect(performance.now() - began).toBeLessThan(2000);
  expect(() => rule('a'.repeat(4001))).toThrow(/at most 4000 characters/);
});

test('what cannot be done somewhere is refused there', () => {
  const at = (fault: string, place: Parameters<typeof readFaults>[1]) => () =>
    readFaults({ fault: [fault] }, place);
  expect(at('http(503)', 'record-stdio')).toThrow(/http goes with `record <url>`, `replay --listen`/);
  expect(at('reset', 'replay-stdio')).toThrow(/cannot be done here/);
  expect(at('exit(1)', 'record-http')).toThrow(/cannot be done here/);
  expect(at('stall-stderr', 'replay-stdio')).toThrow(/cannot be done here/);
  expect(at('split(3)', 'kit-transport')).toThrow(/cannot be done here/);
  for (const place of ['record-stdio', 'record-http', 'replay-http'] as const)
    expect(at('dir=client drop', place)()).toMatchObject({ rules: [{ direction: 'client-to-server' }] });
  expect(at('dir=client exit(1)', 'record-http')).toThrow(/cannot be done here/);
});

test('seed, limit and plan go with a fault, and are whole numbers', () => {
  const read = (raw: Parameters<typeof readFaults>[0]) => readFaults(raw, 'record-stdio');
  expect(read({})).toBeNull();
  expect(() => read({ seed: '1' })).toThrow(/Expected `--fault` with `--seed`/);
  expect(() => read({ 'fault-plan': true })).toThrow(/Expected `--fault` with `--fault-plan`/);
  expect(() => read({ fault: ['drop'], seed: 'x' })).toThrow(/a whole number after `--seed`/);
  expect(() => read({ fault: ['drop'], 'max-faults': '-1' })).toThrow(/a whole number after `--max-faults`/);
  expect(read({ fault: ['drop'], seed: '7', 'max-faults': '2' })).toMatchObject({ seed: 7, most: 2 });
  const [one, other] = [read({ fault: ['drop'] }), read({ fault: ['drop'] })];
  expect(one?.seed).not.toBe(other?.seed);
});
