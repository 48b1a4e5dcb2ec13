import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { openForReading } from '../../src/store/file/open.ts';
import { findSession } from '../../src/store/read/sessions.ts';
import type {
  FindingView,
  FrameDetail,
  HttpDetail,
  Outline,
  ReportIndex,
  SessionDetail,
} from '../../src/web/api.ts';
import { makeReport } from '../../src/web/report/report.ts';
import { checkWork } from '../../src/web/slow/check.ts';
import { inFull, sample } from '../support/scale.ts';
import { ROOT, tapedeck, tapedeckInProcess, tempFolder, tempStore } from '../support/tapedeck.ts';
import { startUi, storeOf } from '../support/ui.ts';

/** The newest session of a store as a report. */
async function reportOf(db: string, mostBytes = 10_000_000): Promise<string> {
  const store = openForReading(db);
  try {
    const options = { onFrame() {}, filter: null, check: checkWork, mostBytes };
    let report = '';
    for await (const piece of makeReport(store, findSession(store, 'latest'), options)) report += piece;
    return report;
  } finally {
    store.close();
  }
}

/** The blocks of a report, unpacked, by their ids, in the order in which they stand. */
function blocksOf(report: string): Map<string, Buffer> {
  const found = report.matchAll(/^<script type="text\/plain" id="([\w-]+)">([^<]*)<\/script>$/gm);
  return new Map([...found].map(([, id = '', text = '']) => [id, gunzipSync(Buffer.from(text, 'base64'))]));
}

function answersIn(report: string) {
  const blocks = blocksOf(report);
  const json = <T>(number: number): T => JSON.parse(String(blocks.get(`block-${number}`))) as T;
  return { blocks, json, index: json<ReportIndex>(0) };
}

test.each(sample(['everything-http', 'everything-stdio', 'modern-http']))(
  'a report of %s is imported as what it was made of, byte for byte',
  async (name) => {
    const db = await storeOf(name);
    const file = join(tempFolder(), 'report.html');
    const made = await tapedeck(['export', '--format', 'html', '--output', file, '--db', db]).ended;
    expect(made).toMatchObject({ code: 0, stderr: '' });
    const other = tempStore();
    const { code, stderr } = await tapedeckInProcess(['import', file, '--db', other]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { stdout } = await tapedeckInProcess(['export', '--db', other]);
    expect(stdout.toString()).toBe(readFileSync(join(ROOT, 'recordings', `${name}.ndjson`), 'utf8'));
  },
);

test('the answers in a report are those of the viewer', async () => {
  const db = await storeOf('everything-http');
  const ui = await startUi(db);
  const { index, json, blocks } = answersIn(await reportOf(db));
  const session = await ui.json('/api/sessions/latest');
  const id = session.session.session;
  expect(index.about.report).toMatchObject({ session: id, redacted: false, filter: null });
  const { environment, ...detail } = json<SessionDetail>(index.session);
  // The viewer counts them where it has the time; of a report they are no part.
  const head = { ...session.session, errorsOverTime: null };
  expect({ ...session, session: head, environment: [] }).toEqual({ ...detail, environment: [] });
  expect(environment.map(([fact]) => fact)).toEqual(['recorded by', 'redaction']);
  const findings = index.findings.flatMap(([, , block]) => json<FindingView[]>(block));
  const { findings: none, ...check } = await ui.json(`/api/sessions/${id}/check`);
  expect([json(index.check), findings]).toEqual([check, none]);
  expect(index.outline).toHaveLength(1);
  expect(json<Outline>(index.outline[0]?.[1] ?? 0)).toEqual(await ui.json(`/api/sessions/${id}/outline`));
  for (const frame of index.frames.flatMap(([, , block]) => json<FrameDetail[]>(block)))
    expect(frame).toEqual(await ui.json(`/api/sessions/${id}/frames/${frame.seq}`));
  const exchanges = index.http.flatMap(([, , block]) => json<HttpDetail[]>(block));
  expect(exchanges.length).toBeGreaterThan(5);
  for (const exchange of exchanges)
    expect(exchange).toEqual(await ui.json(`/api/sessions/${id}/http/${exchange.http}`));
  // The outline is what is shown first.
  expect([...blocks.keys()][0]).toBe(`block-${index.outline[0]?.[1]}`);
});

test('the policy of a report lets its own script and style run and nothing else, and no text of a session is HTML', async () => {
  const db = await storeOf('everything-stdio');
  await tapedeckInProcess([
    'import',
    'recordings/modern-http.ndjson',
    '--db',
    db,
    '--name',
    '</title><img src=x>',
  ]);
  const report = await reportOf(db);
  const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(report) ?? [];
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(report) ?? [];
  const [, script = ''] = /<script type="module">([\s\S]*?)<\/script>/.exec(report) ?? [];
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  expect(policy.split('; ')).toEqual(
    expect.arrayContaining([
      "default-src 'none'",
      `script-src ${hash(script)}`,
      `style-src ${hash(style)}`,
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ]),
  );
  expect(report).not.toContain('<img');
  expect(report).toContain('<title>&lt;/title&gt;&lt;img src=x&gt; · tapedeck report</title>');
  const outside = report
    .replaceAll(/^<script type="text\/plain".*$/gm, '')
    .replace(script, '')
    .replace(style, '');
  expect(outside).not.toMatch(/<(?:link|img|iframe|object|embed|base)\b|https?:/);
});

test('a report of a filter holds what matches, and so does the recording in it', async () => {
  const db = await storeOf('everything-stdio');
  const file = join(tempFolder(), 'report.html');
  const filter = 'tool=echo';
  await tapedeck(['export', '--format', 'html', '--filter', filter, '-o', file, '--db', db]).ended;
  const { index, json, blocks } = answersIn(readFileSync(file, 'utf8'));
  expect(index.about.report?.filter).toBe(filter);
  const frames = index.frames.flatMap(([, , block]) => json<FrameDetail[]>(block));
  expect(frames.map(({ seq, channel }) => [seq, channel])).toEqual([
    [1, 'stdin'],
    [2, 'stdout'],
  ]);
  const { stdout } = await tapedeckInProcess(['export', '--filter', filter, '--db', db]);
  expect(String(blocks.get('recording-0'))).toBe(stdout.toString());
});

inFull('what is shown cut has all of its bytes in blocks of at most a megabyte', async () => {
  const folder = tempFolder();
  const text = `{"jsonrpc":"2.0","method":"large","params":"${'0123456789'.repeat(250_000)}"}`;
  const session = {
    ...{ name: 'large', basis: 'stdio-process', transport: 'stdio', target: 'x' },
    startedAt: '2026-11-20T10:00:00Z',
  };
  const lines = [
    { tapedeck: 1, session },
    { channel: 'stdin', text },
  ].map((line) => `${JSON.stringify(line)}\n`);
  writeFileSync(join(folder, 'large.ndjson'), lines.join(''));
  const db = tempStore();
  await tapedeckInProcess(['import', join(folder, 'large.ndjson'), '--db', db]);
  const { index, blocks } = answersIn(await reportOf(db));
  const [[seq, numbers] = [0, []]] = index.bytes;
  expect(seq).toBe(1);
  const bytes = Buffer.concat(numbers.map((number) => blocks.get(`block-${number}`) ?? Buffer.alloc(0)));
  expect(bytes.equals(Buffer.from(text))).toBe(true);
  for (const [id, bytes] of blocks) expect(bytes.length, id).toBeLessThanOrEqual(1_000_000);
});

test('a report that becomes too large is refused, and says how to make it smaller', async () => {
  const db = await storeOf('everything-stdio');
  await expect(reportOf(db, 1000)).rejects.toThrow(/at most 1\.0 kB.*larger one.*--filter.*--force/);
});

test('a report of any size is written as it is made; of one with a bound nothing before all of it', async () => {
  const store = openForReading(await storeOf('everything-stdio'));
  const session = findSession(store, 'latest');
  const madeBeforeTheFirst = async (mostBytes: number) => {
    let made = 0;
    const onFrame = (count: number) => {
      made = count;
    };
    const pieces = makeReport(store, session, { onFrame, filter: null, check: checkWork, mostBytes });
    expect((await pieces.next()).value).toMatch(/^<!doctype html>/);
    await pieces.return(undefined);
    return made;
  };
  expect(await madeBeforeTheFirst(Number.POSITIVE_INFINITY)).toBe(0);
  expect(await madeBeforeTheFirst(10_000_000)).toBe(session.frames);
  store.close();
});

inFull('very many findings stand in blocks of at most a megabyte each', async () => {
  const db = tempStore();
  const file = join(tempFolder(), 'wrong.ndjson');
  const session = {
    ...{ name: 'wrong', basis: 'stdio-process', transport: 'stdio', target: 'x' },
    startedAt: '2026-11-20T10:00:00Z',
  };
  const lines = [
    { tapedeck: 1, session },
    ...Array.from({ length: 1500 }, (_, i) => ({
      channel: 'stdin',
      text: `{"jsonrpc":"1.0","id":${i},"method":"${'m'.repeat(300)}","${'extra'.repeat(60)}":1}`,
    })),
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await tapedeckInProcess(['import', file, '--db', db]);
  const { index, blocks, json } = answersIn(await reportOf(db));
  const ui = await startUi(db);
  const { findings } = await ui.json('/api/sessions/latest/check');
  expect(findings.length).toBeGreaterThan(1000);
  expect(index.findings.length).toBeGreaterThan(1);
  expect(index.findings.flatMap(([, , block]) => json<FindingView[]>(block))).toEqual(findings);
  for (const [id, bytes] of blocks) expect(bytes.length, id).toBeLessThanOrEqual(1_000_000);
});

test('a report that is cut, changed or of a newer tapedeck is not imported', async () => {
  const report = await reportOf(await storeOf('everything-stdio'));
  const file = join(tempFolder(), 'report.html');
  const db = tempStore();
  const recording = report.indexOf('id="recording-0"');
  const wrong: [text: string, complaint: RegExp][] = [
    [report.slice(0, recording), /expected a whole report, got one that breaks off/],
    [
      report.replace('id="recording-0">', 'id="recording-0">AAAA'),
      /line \d+: expected a block that gzip has packed/,
    ],
    [
      report.replace('data-tapedeck-report="1"', 'data-tapedeck-report="2"'),
      /written by a newer tapedeck \(report 2/,
    ],
  ];
  for (const [text, complaint] of wrong) {
    writeFileSync(file, text);
    const { code, stderr } = await tapedeckInProcess(['import', file, '--db', db]);
    expect(code).toBe(2);
    expect(stderr).toMatch(complaint);
  }
  const { stdout } = await tapedeckInProcess(['list', '--json', '--db', db]);
  expect(stdout.toString()).toBe('');
});

test('a frame without a byte is in a report, and in the viewer', async () => {
  const file = join(tempFolder(), 'empty.ndjson');
  const session = {
    ...{ name: 'empty', basis: 'stdio-process', transport: 'stdio', target: 'x' },
    startedAt: '2026-11-20T10:00:00Z',
  };
  const lines = [
    { tapedeck: 1, session },
    { channel: 'stderr', text: '' },
    { channel: 'stdin', text: '' },
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const db = tempStore();
  await tapedeckInProcess(['import', file, '--db', db]);
  const { index, json } = answersIn(await reportOf(db));
  const frames = index.frames.flatMap(([, , block]) => json<FrameDetail[]>(block));
  expect(frames.map(({ text, storedBytes }) => [text, storedBytes])).toEqual([
    ['', 0],
    ['', 0],
  ]);
  const ui = await startUi(db);
  expect((await ui.json('/api/sessions/latest/outline')).seq).toEqual([1, 2]);
});
