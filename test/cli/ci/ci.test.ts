import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Log } from 'sarif';
import { expect, test } from 'vitest';
import { type ApiComment, READ_ONLY, serveGitHub } from '../../support/github.ts';
import { IS_FULL, inFull } from '../../support/scale.ts';
import { FAKE_JWT, FAKE_SECRETS } from '../../support/secrets.ts';
import { fixture, ROOT, tapedeckInProcess, tempFolder } from '../../support/tapedeck.ts';

const STDIO = join(ROOT, 'recordings/everything-stdio.ndjson');
const TOKEN = 'the-token-of-this-job';

type Said = [channel: 'stdin' | 'stdout', message: object];

/** What was said between a client and the first version of the server `versions.js`; nothing in it is against a rule. */
const GREETINGS: Said[] = [
  ['stdin', { id: 1, method: 'tools/call', params: { name: 'greet', arguments: { name: 'Ada' } } }],
  ['stdout', { id: 1, result: { content: [{ type: 'text', text: 'Hello' }] } }],
];

/** A text recording of what was said behind the ordinary handshake. */
function recordingOf(said: readonly Said[]): string {
  const [header = '', ...rest] = readFileSync(STDIO, 'utf8').split('\n');
  const handshake = rest.slice(0, 4).filter((line) => !line.includes('stderr'));
  const frames = said.map(([channel, message]) =>
    JSON.stringify({ ms: 1, channel, message: { jsonrpc: '2.0', ...message } }),
  );
  return [header, ...handshake, ...frames, ''].join('\n');
}

/** A folder with these recordings. */
function repository(files: Readonly<Record<string, string>>): string {
  const folder = tempFolder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

function git(cwd: string, ...args: string[]): string {
  const names = ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main'];
  const { status, stdout, stderr } = spawnSync('git', [...names, ...args], { cwd });
  expect(status, String(stderr)).toBe(0);
  return stdout.toString().trim();
}

function commit(cwd: string): string {
  git(cwd, 'init', '-q');
  git(cwd, 'add', '.');
  git(cwd, 'commit', '-qm', 'recordings');
  return git(cwd, 'rev-parse', 'HEAD');
}

async function ci(cwd: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const nobody = { GITHUB_TOKEN: '', GITHUB_STEP_SUMMARY: '', GITHUB_EVENT_PATH: '' };
  const { code, stdout, stderr } = await tapedeckInProcess(['ci', ...args], {
    cwd,
    env: { ...nobody, ...env },
  });
  return { code, text: stdout.toString(), stderr };
}

async function linesOf(cwd: string, args: readonly string[], env?: Record<string, string>) {
  const { code, text, stderr } = await ci(cwd, ['--json', ...args], env);
  const all = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  const of = (type: string) => all.filter((line) => line.type === type);
  return {
    code,
    stderr,
    recordings: of('recording'),
    findings: of('finding'),
    troubles: of('trouble'),
    summary: of('summary')[0],
  };
}

const SERVER = (version: string) => ['--', process.execPath, fixture('versions.js'), version];

/** The environment of a job of GitHub Actions for a pull request. */
function actions(apiUrl: string): { env: Record<string, string>; summary: string } {
  const folder = tempFolder();
  const [event, summary] = [join(folder, 'event.json'), join(folder, 'summary.md')];
  writeFileSync(event, JSON.stringify({ action: 'synchronize', number: 7, pull_request: { number: 7 } }));
  const env = {
    ...{ GITHUB_TOKEN: TOKEN, GITHUB_REPOSITORY: 'o/r', GITHUB_EVENT_PATH: event, GITHUB_API_URL: apiUrl },
    ...{ GITHUB_STEP_SUMMARY: summary, GITHUB_SERVER_URL: 'https://github.com', GITHUB_RUN_ID: '12' },
  };
  return { env, summary };
}

test('every text recording below a folder is checked, and nothing else', async () => {
  const cwd = repository({
    'a.ndjson': recordingOf(GREETINGS),
    'test/__recordings__/b.ndjson': recordingOf(GREETINGS),
    'node_modules/x/c.ndjson': recordingOf(GREETINGS),
    '.cache/d.ndjson': recordingOf(GREETINGS),
    'data.ndjson': '{"rows":1}\n',
    'notes.txt': 'x',
  });
  const { code, recordings, summary } = await linesOf(cwd, []);
  expect(code).toBe(0);
  expect(recordings.map(({ recording, check }) => [recording, check])).toEqual([
    ['a.ndjson', 'Nothing found.'],
    ['test/__recordings__/b.ndjson', 'Nothing found.'],
  ]);
  expect(summary).toEqual({
    ...{ type: 'summary', exitCode: 0, recordings: 2, findings: 0, troubles: 0, comment: null },
  });
  const { text } = await ci(cwd, ['test']);
  expect(text).toBe(
    'test/__recordings__/b.ndjson\n  check   Nothing found.\n\nnothing found in 1 recording\n',
  );
});

test('findings of a check and broken assertions decide over the exit code, and SARIF points at their lines', async () => {
  const cwd = repository({ 'recordings/a.ndjson': readFileSync(STDIO, 'utf8') });
  const { code, findings } = await linesOf(cwd, ['--forbid', 'tool=echo', '--sarif', 'ci.sarif']);
  expect(code).toBe(1);
  expect(findings.map(({ step, rule, severity, seq }) => [step, rule, severity, seq])).toEqual([
    ['check', 'forbid', 'error', 9],
    ['check', 'tool-arguments', 'warning', 13],
  ]);
  const { results = [], tool } = sarifLog(join(cwd, 'ci.sarif')).runs[0] ?? {};
  const lines = readFileSync(STDIO, 'utf8').split('\n');
  expect(results).toHaveLength(2);
  for (const [i, words] of ['"name":"echo"', '"name":"get-sum"'].entries()) {
    const { artifactLocation, region } = results[i]?.locations?.[0]?.physicalLocation ?? {};
    expect(artifactLocation?.uri).toBe('recordings/a.ndjson');
    expect(lines[(region?.startLine ?? 0) - 1]).toContain(words);
    expect(tool?.driver.rules?.[results[i]?.ruleIndex ?? -1]?.id).toBe(results[i]?.ruleId);
  }
  if (IS_FULL) expect((await ci(cwd, ['--skip', 'tool-arguments'])).code).toBe(0);
});

const require = createRequire(import.meta.url);
const SCHEMA = join(require.resolve('@microsoft/sarif-multitool-ts'), '../../assets/sarif-2.1.0.schema.json');

function sarifLog(file: string): Log {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  const isSarif = ajv.compile<Log>(JSON.parse(readFileSync(SCHEMA, 'utf8')));
  const log: unknown = JSON.parse(readFileSync(file, 'utf8'));
  expect(isSarif(log), JSON.stringify(isSarif.errors)).toBe(true);
  return log as Log;
}

test('a live server is asked what was recorded: the same is no finding, another answer is one', async () => {
  const cwd = repository({ 'a.ndjson': recordingOf(GREETINGS) });
  const same = await linesOf(cwd, ['--read-only', '--ignore-result', '$', ...SERVER('1')]);
  expect(same).toMatchObject({ code: 0, findings: [], troubles: [] });
  expect(same.recordings[0].verify).toMatch(/^equal: /);
  const { code, findings, recordings } = await linesOf(cwd, ['--sarif', 'ci.sarif', ...SERVER('2')]);
  expect(code).toBe(1);
  expect(recordings[0].verify).toMatch(/drift/);
  expect(findings).toContainEqual(
    expect.objectContaining({
      ...{ step: 'verify', rule: 'drift', severity: 'error', what: '1 difference' },
      names: ['tools/call greet', '/content/0/text'],
      detail: expect.stringContaining('recorded "Hello", live "Good day"'),
    }),
  );
  expect(sarifLog(join(cwd, 'ci.sarif')).runs[0]?.results?.map(({ ruleId }) => ruleId)).toContain('drift');
});

inFull('a server that cannot be asked is no success: the rest is done, and the exit code is 2', async () => {
  const cwd = repository({ 'a.ndjson': readFileSync(STDIO, 'utf8') });
  const { code, findings, troubles } = await linesOf(cwd, ['--', process.execPath, '-e', 'process.exit(3)']);
  expect(code).toBe(2);
  expect(findings.map(({ rule }) => rule)).toEqual(['tool-arguments']);
  expect(troubles).toEqual([
    { type: 'trouble', step: 'verify', recording: 'a.ndjson', message: expect.any(String) },
  ]);
});

inFull('the server does not get the token', async () => {
  const cwd = repository({ 'a.ndjson': recordingOf(GREETINGS) });
  const script = `require('fs').writeFileSync('seen', String(process.env.GITHUB_TOKEN))`;
  await ci(cwd, ['--', process.execPath, '-e', script], { GITHUB_TOKEN: TOKEN });
  expect(readFileSync(join(cwd, 'seen'), 'utf8')).toBe('undefined');
});

test('what cannot be read is told, and keeps nothing else from being checked', async () => {
  const cwd = repository({ 'a.ndjson': '{"tapedeck":1', 'b.ndjson': recordingOf(GREETINGS) });
  const { code, recordings, troubles } = await linesOf(cwd, []);
  expect(code).toBe(2);
  expect(recordings.map(({ check }) => check)).toEqual([null, 'Nothing found.']);
  expect(troubles).toMatchObject([{ step: 'check', recording: 'a.ndjson' }]);
  expect(await ci(cwd, ['nowhere'])).toMatchObject({ code: 2, text: expect.stringContaining('at nowhere') });
  const empty = await ci(tempFolder());
  expect(empty).toMatchObject({ code: 2, text: expect.stringContaining('There is no text recording in .') });
  const asked = await ci(cwd, ['b.ndjson', '--expect', 'server=other']);
  expect(asked).toMatchObject({ code: 2, text: expect.stringContaining('is about none of them') });
});

/** The base has three recordings: one that stays, one that changes, one that goes. */
const BEFORE = {
  'same.ndjson': recordingOf(GREETINGS),
  'deep/changed.ndjson': recordingOf(GREETINGS),
  'gone.ndjson': recordingOf(GREETINGS),
};

function change(cwd: string): void {
  const file = join(cwd, 'deep/changed.ndjson');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"Hello"', '"Howdy"'));
  rmSync(join(cwd, 'gone.ndjson'));
  writeFileSync(join(cwd, 'new.ndjson'), recordingOf(GREETINGS));
}

const CHANGED = {
  recordings: [
    { recording: 'deep/changed.ndjson', diff: expect.stringContaining('1 differs') },
    { recording: 'new.ndjson', diff: 'new' },
    { recording: 'same.ndjson', diff: 'the same' },
  ],
  findings: [
    {
      ...{ recording: 'deep/changed.ndjson', step: 'diff', rule: 'recording-changed', severity: 'note' },
      ...{ what: 'the answer differs', names: ['tools/call greet', '/content/0/text'] },
    },
    { recording: 'gone.ndjson', what: 'the recording was removed', severity: 'note' },
  ],
};

test('recordings are compared with a commit; what was changed on purpose fails only where it is asked for', async () => {
  const cwd = repository(BEFORE);
  const base = commit(cwd);
  change(cwd);
  for (const name of IS_FULL ? [base, 'main', 'HEAD'] : [base]) {
    const found = await linesOf(cwd, ['--base', name]);
    expect(found).toMatchObject({ code: 0, ...CHANGED });
  }
  expect((await ci(cwd, ['--base', base, '--severity', 'note'])).code).toBe(1);
  if (IS_FULL) expect((await linesOf(cwd, ['deep', '--base', base])).findings).toHaveLength(1);
});

inFull('recordings are compared with those of a folder', async () => {
  const [cwd, folder] = [repository(BEFORE), repository(BEFORE)];
  change(cwd);
  expect(await linesOf(cwd, ['--base', folder])).toMatchObject({ code: 0, ...CHANGED });
  expect(existsSync(join(folder, 'deep/changed.ndjson'))).toBe(true);
});

inFull('a base that is not there is told with how to get it', async () => {
  const cwd = repository(BEFORE);
  commit(cwd);
  for (const base of ['nowhere', '--output=x']) {
    const { code, troubles } = await linesOf(cwd, [`--base=${base}`]);
    expect(code).toBe(2);
    expect(troubles[0].message).toContain(`got \`${base}\``);
    expect(troubles[0].message).toContain('git fetch --depth=1 origin');
  }
});

inFull('a tool that callers lose since the base is an error', async () => {
  const offer = (...names: string[]): Said[] => [
    ['stdin', { id: 1, method: 'tools/list' }],
    [
      'stdout',
      { id: 1, result: { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) } },
    ],
  ];
  const folder = repository({ 'a.ndjson': recordingOf(offer('search', 'delete')) });
  const fewer = repository({ 'a.ndjson': recordingOf(offer('search')) });
  const more = repository({ 'a.ndjson': recordingOf(offer('search', 'delete', 'new')) });
  const lost = await linesOf(fewer, ['--base', folder]);
  expect(lost.code).toBe(1);
  expect(lost.findings).toContainEqual(
    expect.objectContaining({
      rule: 'offer-broken',
      severity: 'error',
      names: ['delete', 'the tool is gone'],
    }),
  );
  const gained = await linesOf(more, ['--base', folder]);
  expect(gained.code).toBe(0);
  expect(gained.findings).toContainEqual(
    expect.objectContaining({ rule: 'offer-changed', severity: 'note' }),
  );
});

test('the comment is made, then changed; the token is printed nowhere', async () => {
  const cwd = repository({ 'a.ndjson': readFileSync(STDIO, 'utf8') });
  const api = await serveGitHub([]);
  const { env, summary } = actions(api.url);
  const first = await linesOf(cwd, ['--comment'], env);
  expect(first).toMatchObject({ code: 1, stderr: '', summary: { comment: { kind: 'created' } } });
  expect(api.comments[0]?.body).toContain('`tool-arguments` in `a.ndjson`, frame 13');
  expect(api.comments[0]?.body).toContain('(https://github.com/o/r/actions/runs/12)');
  const second = await ci(cwd, ['--comment', '--severity', 'error'], env);
  expect(second.code).toBe(0);
  expect(api.comments).toHaveLength(1);
  expect(api.comments[0]?.body).toContain('nothing found in 1 recording');
  expect(existsSync(summary)).toBe(false);
  expect(JSON.stringify([first, second])).not.toContain(TOKEN);
});

test('with the read-only token of a fork the job summary has it, and the exit code stays', async () => {
  const cwd = repository({ 'a.ndjson': readFileSync(STDIO, 'utf8') });
  const api = await serveGitHub([], (method) => (method === 'GET' ? undefined : READ_ONLY));
  const { env, summary } = actions(api.url);
  const { code, text, stderr } = await ci(cwd, ['--comment'], env);
  expect(code).toBe(1);
  expect(stderr).toBe(
    'tapedeck: no comment on a pull request: GitHub answers POST with 403: Resource not accessible by integration. It stands in the summary of this job instead.\n',
  );
  expect(readFileSync(summary, 'utf8')).toMatch(
    /^<!-- mcp-tapedeck ci .*\n### :x: MCP recordings: 1 finding/,
  );
  expect(text + stderr).not.toContain(TOKEN);
  const clean = await ci(cwd, ['--comment', '--severity', 'error'], { ...env, GITHUB_EVENT_PATH: '' });
  expect(clean.code).toBe(0);
  expect(clean.stderr).toContain('there is no GITHUB_EVENT_PATH in the environment');
});

/** Answers every request with what is secret: by its shape, and by its name. */
const TELLTALE = `require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const contents = [{ uri: 1, text: process.env.LIVE, password: 'hunter2-of-the-live' }];
  const handshake = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };
  const result = method === 'initialize' ? handshake : { contents };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
})`;

test('no secret of a recording or of a live server gets into comment, log or SARIF', async () => {
  const secrets = [FAKE_JWT, ...FAKE_SECRETS.slice(2, 6).map(({ secret }) => secret)];
  const said = secrets.flatMap((secret, id): Said[] => [
    ['stdin', { id, method: 'resources/read', params: { uri: `https://x.example/?access_token=${secret}` } }],
    ['stdout', { id, result: { contents: [{ uri: 1, text: secret, password: secret }] } }],
  ]);
  const cwd = repository({ 'a.ndjson': recordingOf(said) });
  const other = repository({ 'a.ndjson': recordingOf(said).replaceAll('"password":"', '"password":"old') });
  const api = await serveGitHub([]);
  const env = { ...actions(api.url).env, LIVE: secrets[1] ?? '' };
  const args = ['--comment', '--sarif', 'ci.sarif', '--severity', 'note', '--base', other];
  const server = ['--', process.execPath, '-e', TELLTALE];
  const human = await ci(cwd, [...args, ...server], env);
  const json = await ci(cwd, [...args, '--json', ...server], env);
  expect(human.code).toBe(1);
  const comment = api.comments[0]?.body ?? '';
  const told = [comment, human.text, human.stderr, json.text, readFileSync(join(cwd, 'ci.sarif'), 'utf8')];
  expect(comment).toContain('resources/read');
  expect(human.text).toContain('live "[redacted:secret-value:hidden]"');
  for (const secret of [...secrets, 'hunter2-of-the-live'])
    for (const text of told) expect(text).not.toContain(secret);
});

inFull('a comment about thousands of findings is one that GitHub takes', async () => {
  const said = Array.from({ length: 900 }, (_, id): Said => ['stdin', { id, method: 'rpc.x', odd: true }]);
  const many = Object.fromEntries([1, 2, 3].map((i) => [`${i}.ndjson`, recordingOf(said)]));
  const comments: ApiComment[] = [];
  const api = await serveGitHub(comments);
  const { code, stderr } = await ci(repository(many), ['--comment'], actions(api.url).env);
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  expect(comments[0]?.body).toMatch(/… and [\d,]+ lines more, which the log has\./);
});

inFull('a project’s configuration counts: what it forbids, and what it leaves out of answers', async () => {
  const cwd = repository({
    'a.ndjson': recordingOf(GREETINGS),
    'tapedeck.config.json': '{"check":{"forbid":["tool=greet"]},"ignoreResult":["greet:$.content"]}',
  });
  const { findings } = await linesOf(cwd, SERVER('2'));
  expect(findings.filter(({ step }) => step === 'check').map(({ rule }) => rule)).toEqual(['forbid']);
  const drifted = findings.filter(({ rule }) => rule === 'drift').flatMap(({ names }) => names);
  expect(drifted).toContain('initialize');
  expect(drifted).not.toContain('tools/call greet');
});

test('what is wrong with a command line is said before anything is done', async () => {
  const cwd = repository({ 'a.ndjson': recordingOf(GREETINGS) });
  for (const [args, words] of [
    [['--forbid', 'tol=x'], 'Nearest: `tool`'],
    [['--skip', 'nothing'], 'Expected the id of a rule'],
    [['--title', 'x'.repeat(101)], 'Expected 1 to 100 characters'],
    [['--header', 'A: b'], 'Expected the server’s URL'],
    [['--url', 'ftp://x'], 'Expected the server’s URL'],
  ] as const)
    expect(await ci(cwd, args)).toMatchObject({ code: 2, text: '', stderr: expect.stringContaining(words) });
});
