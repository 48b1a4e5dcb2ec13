import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EVERYTHING_STDIO } from '../../support/kit.ts';
import { inFull } from '../../support/scale.ts';
import { tapedeck, tempFolder } from '../../support/tapedeck.ts';

const call = (id: string, args: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":${args}}}\n`;

async function replay(input: string, calls: string) {
  const run = tapedeck(['replay', EVERYTHING_STDIO, '--calls', calls]);
  run.child.stdin.end(input);
  return run.ended;
}

test('--calls tells every call, and what became of it, as it happens', async () => {
  const file = join(tempFolder(), 'calls.ndjson');
  const input = [
    call('1', '{"message":"Hello, tape."}'),
    call('"b"', '{"n":12345678901234567890}'),
    '{"jsonrpc":"2.0","id":3,"method":"ping"}\n',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\nno JSON\n',
  ];
  expect((await replay(input.join(''), file)).code).toBe(0);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('"params":{"name":"echo","arguments":{"n":12345678901234567890}}');
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  const ids = [...new Set(lines.map((line) => line.call))];
  expect(ids).toHaveLength(3);
  expect(lines.map(({ call: id, at, params, ...rest }) => [ids.indexOf(id), rest])).toEqual([
    [0, { method: 'tools/call', target: 'echo' }],
    [0, { recorded: { seq: 9, n: 0 } }],
    [0, { outcome: 'ok' }],
    [1, { method: 'tools/call', target: 'echo' }],
    [1, { miss: { reason: 'arguments-differ', line: expect.any(String), report: expect.any(String) } }],
    [1, { outcome: 'error' }],
    [2, { method: 'ping', target: null }],
    [2, { outcome: 'ok' }],
  ]);
  expect(lines[0].at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
});

test('--calls tells of a call that comes in its recorded text, too', async () => {
  const file = join(tempFolder(), 'calls.ndjson');
  const recorded = readFileSync(EVERYTHING_STDIO, 'utf8')
    .split('\n')
    .slice(1, -1)
    .map((line) => JSON.parse(line))
    .filter(({ channel }) => channel === 'stdin')
    .map(({ message, text }) => `${text ?? JSON.stringify(message)}\n`);
  const asked = recorded.filter(
    (line) => JSON.parse(line).id !== undefined && JSON.parse(line).method !== undefined,
  );
  await replay(recorded.join(''), file);
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const methods = lines.flatMap((line) => JSON.parse(line).method ?? []);
  expect(methods).toEqual(asked.map((line) => JSON.parse(line).method));
});

inFull('several processes share one file of calls, and what was in it stays', async () => {
  const file = join(tempFolder(), 'calls.ndjson');
  writeFileSync(file, '{"call":"before"}\n');
  const inputs = Array.from({ length: 4 }, (_, i) => call(String(i), '{"message":"Hello, tape."}'));
  await Promise.all(inputs.map((input) => replay(input, file)));
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const calls = lines.map((line) => JSON.parse(line).call);
  expect(new Set(calls).size).toBe(5);
  expect(calls).toHaveLength(1 + 4 * 3);
});

test('a file of calls that cannot be written is one clear line', async () => {
  const file = join(tempFolder(), 'no', 'such', 'folder');
  const { code, stdout, stderr } = await replay('', file);
  expect({ code, stdout: stdout.toString() }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^tapedeck: The calls cannot be written: ENOENT.*\n$/);
});
