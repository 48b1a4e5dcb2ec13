/** The reports for CI, by the schemas of their formats: with findings, without, and with recorded text that is hostile. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import type { Log } from 'sarif';
import { expect, test } from 'vitest';
import { validateXML } from 'xmllint-wasm';
import { fixture, ROOT, tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

const require = createRequire(import.meta.url);
const STDIO = join(ROOT, 'recordings/everything-stdio.ndjson');
const MODERN = join(ROOT, 'recordings/modern-http.ndjson');
const OLD = fixture('versions.js');

const SARIF = join(require.resolve('@microsoft/sarif-multitool-ts'), '../../assets/sarif-2.1.0.schema.json');
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
const isSarif = ajv.compile<Log>(JSON.parse(readFileSync(SARIF, 'utf8')));

/** Markup, control characters, what XML cannot hold at all, and characters at random. */
const HOSTILE = [
  ']]><testcase/><!--',
  '&lt;&#0;',
  '"\' />',
  '\u0000\u001b[31m\u0085\u202e\ufeff',
  '\ufffe\uffff\ud800 \udc00',
  '\u{10ffff}\u{1fffe}',
  'a\nb\tc\r',
  '{0} {message} [a](b)',
  ...fc.sample(fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }), { numRuns: 100, seed: 3 }),
];

type Message = Record<string, unknown>;
type Said = [channel: 'stdin' | 'stdout', message: Message];

/** A text recording of what was said, with the ordinary handshake before it. */
function recordingOf(said: readonly Said[], name = 'hostile.ndjson'): string {
  const [header = '', ...rest] = readFileSync(STDIO, 'utf8').split('\n');
  const frames = said.map(([channel, message]) =>
    JSON.stringify({ ms: 1, channel, message: { jsonrpc: '2.0', ...message } }),
  );
  const file = join(tempFolder(), name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, [header, ...rest.slice(0, 3), ...frames, ''].join('\n'));
  return file;
}

async function checked(...recordings: string[]) {
  const folder = tempFolder();
  const [sarif, junit] = [join(folder, 'check.sarif'), join(folder, 'check.xml')];
  const { code, stderr } = await tapedeckInProcess([
    'check',
    ...recordings,
    '--sarif',
    sarif,
    '--junit',
    junit,
  ]);

  return { code, stderr, sarif: readFileSync(sarif, 'utf8'), junit: readFileSync(junit, 'utf8') };
}

async function verified(recording: string, ...options: string[]): Promise<string> {
  const junit = join(tempFolder(), 'verify.xml');
  const { stderr } = await tapedeckInProcess([
    ...['verify', recording, '--junit', junit, ...options],
    ...['--', process.execPath, OLD, '2'],
  ]);
  expect(stderr).toBe('');
  return readFileSync(junit, 'utf8');
}

function sarifLog(text: string): Log {
  const log: unknown = JSON.parse(text);
  expect(isSarif(log), JSON.stringify(isSarif.errors)).toBe(true);
  return log as Log;
}

async function junitErrors(xml: string): Promise<string[]> {
  const schema = { fileName: 'junit.xsd', contents: readFileSync(fixture('junit.xsd')) };
  const { errors } = await validateXML({ xml: { fileName: 'report.xml', contents: xml }, schema });
  return errors.map(({ rawMessage }) => rawMessage);
}

async function expectJunit(xml: string): Promise<void> {
  expect(await junitErrors(xml)).toEqual([]);
}

test('the schemas refuse what is wrong', async () => {
  const { sarif, junit } = await checked(STDIO);
  expect(isSarif(JSON.parse(sarif.replace('"ruleId"', '"rule"')))).toBe(false);
  expect(await junitErrors(junit.replace(' type="warning"', ''))).toEqual([
    expect.stringContaining("The attribute 'type' is required"),
  ]);
});

test('the reports of a check are valid, with findings and without', async () => {
  const some = await checked(STDIO, MODERN, STDIO);
  expect(some).toMatchObject({ code: 1, stderr: '' });
  expect(sarifLog(some.sarif).runs[0]?.results?.map(({ ruleId }) => ruleId)).toContain('tool-arguments');
  await expectJunit(some.junit);
  expect(some.junit.match(/<testsuite /g)).toHaveLength(3);

  const none = await checked(recordingOf([]));
  expect(none).toMatchObject({ code: 0, stderr: '' });
  expect(sarifLog(none.sarif).runs[0]?.results).toEqual([]);
  await expectJunit(none.junit);
});

test('the reports of a check are valid whatever was recorded', async () => {
  const pings = HOSTILE.flatMap((odd, id): Said[] => [
    ['stdin', { id, method: 'ping', [`${odd} ${id}`]: odd }],
    ['stdout', { id, result: {} }],
    ['stdin', { id: `${odd} ${id}`, method: odd }],
    ['stdout', { id: `${odd} ${id}`, result: odd }],
  ]);
  const { code, stderr, sarif, junit } = await checked(recordingOf(pings));
  expect(code, stderr).toBe(1);
  const results = sarifLog(sarif).runs[0]?.results ?? [];
  expect(results.filter(({ ruleId }) => ruleId === 'extra-member')).toHaveLength(HOSTILE.length);
  await expectJunit(junit);
});

test('a finding names its file as a reference that leads back to it', async () => {
  const file = recordingOf([['stdin', { id: 1, method: 'ping' }]], 'a b/ü#1?%41&<x>.ndjson');
  const { sarif, junit } = await checked(file);
  const [result] = sarifLog(sarif).runs[0]?.results ?? [];
  const uri = result?.locations?.[0]?.physicalLocation?.artifactLocation?.uri ?? '';
  expect(decodeURIComponent(new URL(uri, 'file:///').pathname)).toBe(file);
  await expectJunit(junit);
});

test('a finding in a text recording points at the line of its frame', async () => {
  const HTTP = join(ROOT, 'recordings/everything-http.ndjson');
  const spaced = join(tempFolder(), 'spaced.ndjson');
  writeFileSync(spaced, readFileSync(HTTP, 'utf8').replaceAll('\n', '\r\n\r\n'));
  const { sarif } = await checked(STDIO, HTTP, spaced);
  const results = sarifLog(sarif).runs[0]?.results ?? [];
  expect(results).toHaveLength(3);
  for (const { locations, message } of results) {
    const { artifactLocation, region } = locations?.[0]?.physicalLocation ?? {};
    const file = new URL(artifactLocation?.uri ?? '', 'file:///').pathname;
    const line = readFileSync(file, 'utf8').split('\n')[(region?.startLine ?? 0) - 1] ?? '';
    expect(JSON.parse(line), message.text).toMatchObject({
      message: { method: 'tools/call', params: { name: 'get-sum', arguments: { a: 'one' } } },
    });
  }
});

test('the report of a verification is valid, with drift, with what was left out, and with nothing', async () => {
  const greet: Said[] = [
    ['stdin', { id: 1, method: 'tools/call', params: { name: 'greet' } }],
    ['stdout', { id: 1, result: { content: [{ type: 'text', text: 'Hello' }] } }],
    ['stdin', { id: 2, method: 'tools/list' }],
    ['stdout', { id: 2, result: { tools: [{ name: 'old', inputSchema: { type: 'object' } }] } }],
  ];
  const drifted = await verified(recordingOf(greet));
  await expectJunit(drifted);
  expect(drifted).toContain('<failure type="drift" message="the result differs in 1 place">');
  expect(drifted).toContain('<failure type="removed" message="removed, breaking">');
  const skipped = await verified(recordingOf(greet), '--only', 'tools/list');
  await expectJunit(skipped);
  expect(skipped).toContain('<skipped>not in --only</skipped>');
});

test('the report of a verification is valid whatever was recorded', async () => {
  const calls = HOSTILE.flatMap((odd, id): Said[] => [
    ['stdin', { id, method: 'tools/call', params: { name: odd } }],
    ['stdout', { id, result: { content: [{ type: 'text', text: odd }] } }],
  ]);
  const report = await verified(recordingOf(calls));
  await expectJunit(report);
  expect(report.match(/<testcase /g)).toHaveLength(HOSTILE.length + 1);
});
