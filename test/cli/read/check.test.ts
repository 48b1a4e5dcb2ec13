import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from 'sarif';
import { expect, test, vi } from 'vitest';
import { RULE_IDS } from '../../../src/inspect/check/rules.ts';
import { storeOnce } from '../../support/once.ts';
import { ROOT, record, tapedeckInProcess, tempFolder } from '../../support/tapedeck.ts';

const STDIO = join(ROOT, 'recordings/everything-stdio.ndjson');

/** A session with faults of both sides: ids, pollution, an answer that nobody asked for. */
const faulty = storeOnce(async (db) => {
  const { child, ended } = record(db, ['garbage-stdout.js'], ['--name', 'faulty']);
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping","\\u001b[31m":1}\n');
  child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"rpc.x"}\n');
  await ended;
});

async function check(...args: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess(['check', ...args]);
  return { code, stderr, text: stdout.toString() };
}

test('faults are told by rule, the gravest first, each with its place and whose it is', async () => {
  const { code, text } = await check('--db', await faulty());
  expect(code).toBe(1);
  expect(text).toMatch(/^faulty \d+ frames, \d+ rules$/m);
  expect(text).toMatch(/^error {2}stdout-pollution/m);
  expect(text).toMatch(/^ {2}#\d+ server: expected a message, saw text that is not JSON$/m);
  expect(text).toMatch(/^ {2}https:\/\/modelcontextprotocol\.io\/specification\//m);
  expect(text.indexOf('\nwarning')).toBeGreaterThan(text.lastIndexOf('\nerror'));
  expect(text.trimEnd().split('\n').at(-1)).toMatch(/^\d+ errors, \d+ warnings?$/);
});

test('recorded text reaches the terminal escaped', async () => {
  const { text } = await check('--db', await faulty());
  expect(text).toContain('extra-member');
  expect(text).toContain('\\x1b[31m');
  expect(text).not.toContain('\u001b');
});

test('a severity draws the line for what is told and for the exit code', async () => {
  const { code, text } = await check(STDIO);
  expect(code).toBe(1);
  expect(text).toContain('warning  tool-arguments');
  expect(text.trimEnd().split('\n').at(-1)).toBe('1 warning');
  expect(await check(STDIO, '--severity', 'error')).toMatchObject({ code: 0, stderr: '' });
  expect((await check(STDIO, '--severity', 'error')).text.trimEnd().split('\n').at(-1)).toBe(
    'Nothing found.',
  );
  expect(await check(STDIO, '--skip', 'tool-arguments')).toMatchObject({ code: 0 });
});

test('notes of what providers refuse are told where notes are asked for, and never decide over the exit code', async () => {
  const file = join(tempFolder(), 'dotted.ndjson');
  writeFileSync(file, readFileSync(STDIO, 'utf8').replaceAll('"get-sum"', '"get.sum"'));
  const skips = ['--skip', 'tool-arguments'];
  const quiet = await check(file, ...skips);
  expect(quiet).toMatchObject({ code: 0, text: expect.stringContaining('Nothing found.') });
  const told = await check(file, ...skips, '--severity', 'note');
  expect(told.code).toBe(0);
  expect(told.text).toMatch(/^note {2}anthropic-name$/m);
  expect(told.text).toMatch(/^ {2}#\d+ server: expected "get\.sum" named by .*, saw "\."$/m);
});

test('--json gives one finding a line', async () => {
  const { code, text } = await check(STDIO, '--json');
  expect(code).toBe(1);
  expect(
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    {
      recording: STDIO,
      session: expect.any(String),
      rule: 'tool-arguments',
      severity: 'warning',
      side: 'client',
      seq: 13,
      n: 0,
      http: null,
      expected: 'arguments that fit the `inputSchema` of "get-sum"',
      seen: "the whole must have required property 'b'",
      url: 'https://modelcontextprotocol.io/specification/2026-07-28/server/tools',
    },
  ]);
});

test('--json names the recording of each finding, by its file or by the name of its session', async () => {
  const db = await faulty();
  const { text } = await check('faulty', STDIO, '--json', '--db', db);
  const names = text.trimEnd().split('\n');
  expect([...new Set(names.map((line) => JSON.parse(line).recording))]).toEqual(['faulty', STDIO]);
});

test('any number of recordings is checked without a word from Node', async () => {
  const warnings: Error[] = [];
  const heard = (warning: Error) => void warnings.push(warning);
  process.on('warning', heard);
  try {
    expect((await check(...Array(12).fill(STDIO), '--severity', 'error')).stderr).toBe('');
    // Node says it in the next turn.
    await new Promise(setImmediate);
  } finally {
    process.off('warning', heard);
  }
  expect(warnings).toEqual([]);
});

test('a thread for schemas that does not start is told of, and nobody takes the check for a whole one', async () => {
  const wait = vi.spyOn(Atomics, 'wait').mockReturnValue('timed-out');
  try {
    const { code, text, stderr } = await check(STDIO, '--severity', 'note');
    expect(code).toBe(2);
    expect(stderr).toMatch(/^tapedeck: the thread that checks JSON Schema did not start/);
    expect(text).not.toContain('tool-schema-unchecked');
  } finally {
    wait.mockRestore();
  }
});

test('SARIF and JUnit hold the findings of all sessions that were checked', async () => {
  const folder = tempFolder();
  const [sarif, junit] = [join(folder, 'check.sarif'), join(folder, 'check.xml')];
  const { code } = await check(STDIO, STDIO, '--sarif', sarif, '--junit', junit);
  expect(code).toBe(1);
  const log = JSON.parse(readFileSync(sarif, 'utf8')) as Log;
  expect(log.version).toBe('2.1.0');
  const [run] = log.runs;
  expect(
    run?.results?.map(({ ruleId, level, ruleIndex }) => [
      ruleId,
      level,
      run.tool.driver.rules?.[ruleIndex ?? -1]?.id,
    ]),
  ).toEqual([
    ['tool-arguments', 'warning', 'tool-arguments'],
    ['tool-arguments', 'warning', 'tool-arguments'],
  ]);
  const xml = readFileSync(junit, 'utf8');
  expect(xml.match(/<testsuite /g)).toHaveLength(2);
  expect(xml.match(/<failure /g)).toHaveLength(2);
  expect(xml).toMatch(/<testsuite name="[^"]+" tests="\d+" failures="1" errors="0" skipped="0" /);
  expect(xml.match(/<testcase /g)).toHaveLength(2 * RULE_IDS.length);
});

test('what 2026-07-28 adds is told of a recording as all else is, in SARIF with its line', async () => {
  const folder = tempFolder();
  const [file, sarif] = [join(folder, 'modern.ndjson'), join(folder, 'check.sarif')];
  const whole = readFileSync(join(ROOT, 'recordings/modern-http.ndjson'), 'utf8');
  const other = whole
    .replace('"ttlMs":0,', '"ttlMs":-1,')
    .replace('"mcp-name","nothing"', '"mcp-name","something"');
  writeFileSync(file, other);
  const { code, text } = await check(file, '--json', '--sarif', sarif);
  expect(code).toBe(1);
  const found = text.trimEnd().split('\n');
  expect(found.map((line) => JSON.parse(line))).toMatchObject([
    { rule: 'cache-hint-value', severity: 'error', side: 'server', seq: 2, http: 1, seen: '-1' },
    { rule: 'name-header', severity: 'error', side: 'client', http: 8, seen: '"something"' },
  ]);
  const [run] = (JSON.parse(readFileSync(sarif, 'utf8')) as Log).runs;
  expect(run?.results?.[0]?.locations?.[0]?.physicalLocation?.region?.startLine).toBe(5);
});

test('the rules can be listed', async () => {
  const { code, text } = await check('--rules');
  expect(code).toBe(0);
  expect(text).toMatch(/^error {3}id-null {18}An id is never null\.$/m);
  expect(text).toMatch(/^error {3}id-reused .* \(first to 2025-11-25\)$/m);
});

test('a rule or a recording that does not exist is refused', async () => {
  expect(await check(STDIO, '--skip', 'id-nul')).toMatchObject({ code: 2, text: '' });
  const broken = join(tempFolder(), 'a.ndjson');
  writeFileSync(broken, '{"tapedeck":1');
  const { code, stderr } = await check(broken);
  expect(code).toBe(2);
  expect(stderr).toContain('line 1');
});

test('a server of the 2026-07-28 era that runs on after the end of its input is told of', async () => {
  const [header = ''] = readFileSync(STDIO, 'utf8').split('\n', 1);
  const meta =
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}';
  const frames = [
    `{"ms":1,"channel":"stdin","message":{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{${meta}}}}}`,
    '{"ms":1,"channel":"stdout","message":{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}}',
  ];
  const seen = async (endedAt: string) => {
    const file = join(tempFolder(), 'modern.ndjson');
    const session = header.replace(/"endedAt":"[^"]*"/, `"endedAt":"${endedAt}"`);
    writeFileSync(file, [session, ...frames, ''].join('\n'));
    return (await check(file, '--json')).text;
  };
  expect(await seen('2026-11-21T05:02:36.379346Z')).toBe('');
  expect(JSON.parse(await seen('2026-11-21T05:02:40.379346Z'))).toMatchObject({
    rule: 'exit-late',
    seq: null,
    seen: 'one after 5.0 s',
  });
});
