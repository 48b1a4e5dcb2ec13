import { expect, test } from 'vitest';
import { compareRuns, formatDifference } from './compare.js';
import { findReason } from './expected-differences.js';

const run = (...checks: [scenario: string, id: string, status: string][]) => {
  const scenarios = new Map<string, { id: string; status: string }[]>();
  for (const [scenario, id, status] of checks) {
    scenarios.set(scenario, [...(scenarios.get(scenario) ?? []), { id, status }]);
  }
  return scenarios;
};
const compare = (direct: ReturnType<typeof run>, through: ReturnType<typeof run>) =>
  compareRuns(direct, through).map((difference) => formatDifference(difference, 'through the proxy'));

test('runs with the same verdicts in another order agree', () => {
  const one = run(['a', 'x', 'SUCCESS'], ['a', 'x', 'FAILURE'], ['b', 'y', 'WARNING']);
  const other = run(['b', 'y', 'WARNING'], ['a', 'x', 'FAILURE'], ['a', 'x', 'SUCCESS']);
  expect(compare(one, other)).toEqual([]);
});

test('a verdict that changes, repeats or is missing is a difference', () => {
  const direct = run(['a', 'x', 'SUCCESS'], ['b', 'y', 'SUCCESS'], ['c', 'z', 'SUCCESS']);
  const through = run(['a', 'x', 'FAILURE'], ['b', 'y', 'SUCCESS'], ['b', 'y', 'SUCCESS']);
  expect(compare(direct, through)).toEqual([
    'a x: direct 1 SUCCESS; through the proxy 1 FAILURE',
    'b y: direct 1 SUCCESS; through the proxy 2 SUCCESS',
    'c z: direct 1 SUCCESS; through the proxy absent',
  ]);
});

const findReasonOf = (subject: string, differences: ReturnType<typeof compareRuns>) =>
  differences.map((difference) => findReason({ subject }, difference));

test('only the verdict in the table is expected, at its server alone', () => {
  const rebinding = (status: string) =>
    compareRuns(
      run(['dns-rebinding-protection', 'localhost-host-rebinding-rejected', 'FAILURE']),
      run(['dns-rebinding-protection', 'localhost-host-rebinding-rejected', status]),
    );
  expect(findReasonOf('server everything', rebinding('SUCCESS'))).toEqual([expect.stringContaining('Host')]);
  expect(findReasonOf('server everything', rebinding('WARNING'))).toEqual([undefined]);
  expect(findReasonOf('server dual-era', rebinding('SUCCESS'))).toEqual([undefined]);
});

test('the log of requests may differ where a verdict may, and nowhere else', () => {
  const logged = (scenario: string) => compareRuns(run([scenario, 'request', 'INFO']), run());
  expect(findReasonOf('client', logged('auth/dpop'))).toEqual([expect.stringContaining('DPoP')]);
  expect(findReasonOf('client', logged('sse-retry'))).toEqual([undefined]);
});
