import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from 'sarif';
import { expect, test } from 'vitest';
import { inFull } from '../../support/scale.ts';
import { ROOT, tapedeckInProcess, tempFolder } from '../../support/tapedeck.ts';

const STDIO = join(ROOT, 'recordings/everything-stdio.ndjson');
const HTTP = join(ROOT, 'recordings/everything-http.ndjson');

/** Errors alone, so that what is found is what breaks an assertion. */
async function check(args: readonly string[], cwd = ROOT) {
  const { code, stdout, stderr } = await tapedeckInProcess(['check', '--severity', 'error', ...args], {
    cwd,
  });
  return { code, stderr, text: stdout.toString() };
}

test('assertions are told with what breaks them, in all reports and by the exit code', async () => {
  const folder = tempFolder();
  const [sarif, junit] = [join(folder, 'check.sarif'), join(folder, 'check.xml')];
  const held = ['--expect', 'tool=echo', '--max', 'tool~long dur<60s'];
  const { code, text } = await check([
    STDIO,
    ...held,
    '--forbid',
    'tool=echo',
    '--sarif',
    sarif,
    '--junit',
    junit,
  ]);
  expect(code).toBe(1);
  expect(text).toMatch(/^broken {2}forbid tool=echo\n {2}#9 client: tools\/call echo, ok after 2\.23 ms, /m);
  expect(text.trimEnd().split('\n').at(-1)).toBe('1 assertion does not hold');
  const [run] = (JSON.parse(readFileSync(sarif, 'utf8')) as Log).runs;
  const [result, ...others] = run?.results ?? [];
  expect(others).toEqual([]);
  expect(run?.tool.driver.rules?.[result?.ruleIndex ?? -1]?.id).toBe('forbid');
  const line = result?.locations?.[0]?.physicalLocation?.region?.startLine ?? 0;
  expect(readFileSync(STDIO, 'utf8').split('\n')[line - 1]).toContain('"name":"echo"');
  const xml = readFileSync(junit, 'utf8');
  expect(xml).toMatch(/<testcase [^>]*name="expect tool=echo"[^>]*\/>/);
  expect(xml).toMatch(/<testcase [^>]*name="forbid tool=echo"[^>]*>\s*<failure /);
});

inFull('each recording is held to an assertion, but for one that names other sessions', async () => {
  const found = await check([STDIO, HTTP, '--expect', 'tool=delete', '--json']);
  expect(found.code).toBe(1);
  const lines = found.text.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).recording)).toEqual([STDIO, HTTP]);
  expect(await check([STDIO, HTTP, '--expect', 'transport=http tool=echo'])).toMatchObject({
    code: 0,
    stderr: '',
  });
});

test('an expectation that is about none of the sessions is no success', async () => {
  const nobody = await check([STDIO, '--expect', 'transport=http tool=echo', '--forbid', 'transport=http']);
  expect(nobody.code).toBe(2);
  expect(nobody.stderr).toBe(
    "tapedeck: nobody was asked: --expect 'transport=http tool=echo' is about none of these sessions.\n",
  );
});

test('a filter that is wrong stops a check before it begins', async () => {
  expect(await check([STDIO, '--forbid', 'tol=echo'])).toEqual({
    code: 2,
    text: '',
    stderr:
      'tapedeck: `forbid`: Expected a field at column 1 of the filter, got `tol`. Nearest: `tool`. To look for a text with an operator in it, quote it.\n',
  });
});

inFull('a project says in its configuration what each check must hold to', async () => {
  const cwd = tempFolder();
  const config = join(cwd, 'tapedeck.config.json');
  writeFileSync(config, '{"check":{"forbid":["tool=echo"],"expect":["tool=get-sum"],"max":["dur<1m"]}}');
  const { code, text } = await check([STDIO], cwd);
  expect(code).toBe(1);
  expect(text).toContain('broken  forbid tool=echo');
  expect(text).toContain('1 assertion does not hold');
  writeFileSync(config, '{"check":{"max":"dur<1m"}}');
  expect((await check([STDIO], cwd)).stderr).toContain('Expected a list of strings for `check.max`');
});
