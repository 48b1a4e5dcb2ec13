import fc from 'fast-check';
import { expect, test } from 'vitest';
import { steadyText } from '../../src/export/text/steady.ts';

const header = (startedAt: string) =>
  `{"tapedeck":1,"session":{"basis":"stdio-process","transport":"stdio","target":"x","startedAt":"${startedAt}","redaction":{"key":"numbered"}}}`;
const secret = (number: number) => `[redacted:token:${String(number).padStart(12, '0')}]`;

/** A recording of these calls: ids, numbers of secrets and times are counted anew in each. */
function recorded(
  calls: readonly string[],
  startedAt: string,
  tempo: number,
  answer = (call: string) => call,
) {
  const secrets: string[] = [];
  const lines = calls.flatMap((call, i) => {
    if (!secrets.includes(call)) secrets.push(call);
    const name = JSON.stringify(`${call} ${secret(secrets.indexOf(call) + 1)}`);
    return [
      `{"ms":${i * tempo},"channel":"stdin","message":{"id":${i + 1},"method":"a","params":{"x":${name},"_meta":{"progressToken":${i + 1}}}}}`,
      `{"ms":${tempo},"channel":"stdout","message":{"method":"notifications/progress","params":{"progressToken":${i + 1}}}}`,
      `{"ms":${tempo},"channel":"stdout","message":{"id":${i + 1},"result":${JSON.stringify(answer(call))}}}`,
    ];
  });
  return [header(startedAt), ...lines].map((line) => `${line}\n`).join('');
}

const FIRST = '2026-01-01T00:00:00.000000Z';
const SECOND = '2026-01-02T00:00:00.000000Z';

const changed = (before: string, after: string) => {
  const old = before.split('\n');
  return after.split('\n').filter((line) => !old.includes(line));
};

test('what has not changed is written as it was', () => {
  const before = recorded(['a', 'b', 'a'], FIRST, 1.5);
  expect(steadyText(before, [recorded(['a', 'b', 'a'], SECOND, 2.25)])).toBe(before);
});

test('the time of a recording that is a month old is renewed, and nothing else', () => {
  const before = recorded(['a', 'b'], FIRST, 1);
  const after = steadyText(before, [recorded(['a', 'b'], '2026-03-01T00:00:00.000000Z', 2)]);
  expect(changed(before, after)).toEqual([header('2026-03-01T00:00:00.000000Z')]);
});

test('a call that came, went or is answered otherwise changes its own lines and the header alone', () => {
  const before = recorded(['a', 'b', 'c', 'd'], FIRST, 1);
  const came = steadyText(before, [recorded(['a', 'new', 'b', 'c', 'd'], SECOND, 2)]);
  expect(changed(before, came)).toEqual([
    header(SECOND),
    expect.stringContaining('"x":"new [redacted:token:000000000006]"'),
    expect.stringContaining('"progressToken":6'),
    expect.stringContaining('"id":6,"result":"new"'),
  ]);
  const went = steadyText(before, [recorded(['a', 'c', 'd'], SECOND, 2)]);
  expect(changed(before, went)).toEqual([header(SECOND)]);
  const other = steadyText(before, [
    recorded(['a', 'b', 'c', 'd'], SECOND, 2, (call) => call.replace('b', 'z')),
  ]);
  expect(changed(before, other)).toEqual([header(SECOND), expect.stringContaining('"id":2,"result":"z"')]);
});

test('whatever changes, what is told is what was recorded: one id and one secret for what was one', () => {
  const calls = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 8 });
  /** Ids and numbers by their first occurrence. */
  const told = (text: string) => {
    const seen: string[] = [];
    const order = (name: string) => {
      if (!seen.includes(name)) seen.push(name);
      return `#${seen.indexOf(name)}`;
    };
    return text
      .split('\n')
      .slice(1)
      .map((line) =>
        line
          .replace(/"ms":[\d.]+/, '')
          .replaceAll(/"(?:id|progressToken)":(\d+)/g, (_, id) => order(`id ${id}`))
          .replaceAll(/token:(\d{12})/g, (_, digits) => order(`secret ${digits}`)),
      );
  };
  fc.assert(
    fc.property(calls, calls, (old, own) => {
      const now = recorded(own, SECOND, 2);
      expect(told(steadyText(recorded(old, FIRST, 1), [now]))).toEqual(told(now));
    }),
  );
});

test('the numbers of HTTP exchanges, and the times of bodies, are no change either', () => {
  const recordedByHttp = (calls: readonly string[], startedAt: string, ms: number) =>
    [
      header(startedAt),
      ...calls.flatMap((call, i) => [
        `{"ms":${ms},"http":${i + 1},"request":{"method":"POST","path":"/mcp","body":{"ms":${ms},"bytes":9}}}`,
        `{"ms":${ms},"http":${i + 1},"channel":"request","message":{"id":${i + 5},"method":"${call}"}}`,
        `{"ms":${ms},"http":${i + 1},"channel":"response","message":{"id":${i + 5},"result":"${call}"}}`,
        `{"ms":${ms},"http":${i + 1},"end":{"closedBy":"server"}}`,
      ]),
    ]
      .map((line) => `${line}\n`)
      .join('');
  const before = recordedByHttp(['a', 'b', 'c'], FIRST, 1);
  expect(steadyText(before, [recordedByHttp(['a', 'b', 'c'], SECOND, 2)])).toBe(before);
  const came = changed(before, steadyText(before, [recordedByHttp(['a', 'z', 'b', 'c'], SECOND, 2)]));
  expect(came.filter((line) => !line.includes('"http":5')).map((line) => line.slice(0, 12))).toEqual([
    '{"tapedeck":',
  ]);
});

test('a file of another kind, or of nothing, is no hindrance', () => {
  const now = recorded(['a'], SECOND, 1);
  for (const before of ['', '\n', 'no JSON', '{}', '{"tapedeck":1}\n[]\nnull\n'])
    expect(steadyText(before, [now])).toBe(now);
});
