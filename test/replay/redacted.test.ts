import { expect, test } from 'vitest';
import { startInProcess } from '../support/in-process.ts';
import { inFull, sample } from '../support/scale.ts';
import { FAKE_SECRETS, storeHolds } from '../support/secrets.ts';
import { fixture, record, tapedeck, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';

const tokens = FAKE_SECRETS.filter(({ rule, text }) => rule !== 'private-key' && !text.includes('\n')).map(
  ({ text }) => text,
);
const GITHUB = FAKE_SECRETS.filter(({ rule }) => rule === 'github-token')
  .map(({ text }) => text)
  .slice(0, 2);

function call(id: number, text: string): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'echo', arguments: { text } },
  });
}

async function recordCalls(texts: readonly string[], options: readonly string[] = []): Promise<string> {
  const db = tempStore();
  const run = record(db, ['echo.js'], options);
  run.child.stdin.end(texts.map((text, i) => `${call(i + 1, text)}\n`).join(''));
  await run.ended;
  return db;
}

async function ask(recording: readonly string[], texts: readonly string[]) {
  const run = startInProcess(['replay', ...recording]);
  run.child.stdin.end(texts.map((text, i) => `${call(i + 100, text)}\n`).join(''));
  const { stdout, stderr } = await run.ended;
  const answers = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return { answers: answers.toSorted((a, b) => a.id - b.id), stderr };
}

async function exported(db: string): Promise<string> {
  const file = `${db}.ndjson`;
  const { code, stderr } = await tapedeckInProcess(['export', '--db', db, '--output', file]);
  expect([code, stderr]).toEqual([0, '']);
  return file;
}

test('a client that sends the real secrets gets the recorded answers, each its own', async () => {
  const db = await recordCalls(tokens);
  for (const recording of [
    ['latest', '--db', db],
    [await exported(db), '--db', db],
  ]) {
    const { answers } = await ask(recording, tokens.toReversed());
    const given = answers.map(({ result }) => result?.content[0].text as string);
    expect(given).toHaveLength(tokens.length);
    for (const text of given) expect(text).toMatch(/\[redacted:[a-z-]+:[0-9a-f]{12}\]/);
    expect(new Set(given).size).toBe(tokens.length);
  }
});

test('a secret that was not recorded is a miss, and the miss does not tell it', async () => {
  const db = await recordCalls([GITHUB[0] ?? '']);
  const { answers, stderr } = await ask(['latest', '--db', db], [GITHUB[1] ?? '']);
  expect(answers[0]).toMatchObject({ error: { data: { reason: 'arguments-differ' } } });
  expect(JSON.stringify(answers) + stderr).not.toContain(GITHUB[1]);
});

test('without the key of its store a text recording answers all the same, but never for another secret’s call', async () => {
  const file = await exported(await recordCalls(['x', GITHUB[0] ?? '']));
  const one = await ask([file, '--db', tempStore()], [GITHUB[0] ?? '', 'x']);
  expect(one.answers.map(({ result }) => result.content[0].text)).toEqual([
    expect.stringMatching(/^\[redacted:github-token:/),
    'x',
  ]);
  const both = await exported(await recordCalls(['x', ...GITHUB]));
  const { answers, stderr } = await ask([both, '--db', tempStore()], [...GITHUB, 'x']);
  expect(answers.map(({ error, result }) => error?.data.reason ?? result.content[0].text)).toEqual([
    'redacted-alike',
    'redacted-alike',
    'x',
  ]);
  expect(stderr).toContain('differ only in what was redacted');
});

test.each(
  sample([
    [['--redact', '$..text'], /^\[redacted:path:\w{12}\]$/],
    [['--redact-rule', 'any=/a\\w+thing/'], /^\[redacted:any:\w{12}\]$/],
  ]),
)('%j of the recording holds for the replay too', async (options, placeholder) => {
  const db = await recordCalls(['anything'], options);
  expect(storeHolds(db, 'anything')).toBe(false);
  for (const recording of ['latest', await exported(db)]) {
    const { answers } = await ask([recording, '--db', db], ['anything', 'a-no-thing']);
    expect(answers.map(({ result, error }) => result?.content[0].text ?? error.data.reason)).toEqual([
      expect.stringMatching(placeholder),
      'arguments-differ',
    ]);
  }
});

test('an exported recording comes back the same, with its rules and what they found', async () => {
  const db = await recordCalls(tokens, ['--redact', '$..card']);
  const file = await exported(db);
  const other = tempStore();
  expect((await tapedeckInProcess(['import', file, '--db', other])).code).toBe(0);
  const [first, again] = await Promise.all(
    [db, other].map(async (one) => (await tapedeckInProcess(['export', '--db', one])).stdout),
  );
  expect(again?.toString()).toBe(first?.toString());
  expect(first?.toString()).toMatch(/"redaction":\{"key":"[0-9a-f]{12}","paths":\["\$\.\.card"\]\}/);
});

inFull(
  'verify sends no placeholder to a server, and says so; what was redacted in answers is redacted in live ones',
  async () => {
    const secret = GITHUB[0] ?? '';
    const db = await recordCalls(['x', secret]);
    const { stdout, code } = await tapedeckInProcess([
      'verify',
      'latest',
      '--db',
      db,
      '--',
      process.execPath,
      fixture('echo.js'),
    ]);
    expect(code).toBe(0);
    expect(stdout.toString()).toMatch(/skipped {2}tools\/call echo: it holds secrets that were redacted/);
    expect(stdout.toString()).toContain('1 equal, 0 drifted, 1 skipped');
  },
);

inFull(
  'a secret in an answer to the server is the recorded one, and another one is told without its text',
  async () => {
    const [recorded = '', other = ''] =
      GITHUB.length > 1 ? GITHUB : [GITHUB[0], GITHUB[0]?.replace(/.$/, 'X')];
    const initialize =
      '{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"capabilities":{"roots":{}}}}';
    const roots = (id: number, secret: string) =>
      JSON.stringify({ jsonrpc: '2.0', id, result: { roots: [{ uri: 'file:///a', name: secret }] } });
    const count = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"count"}}';
    async function answering(run: ReturnType<typeof tapedeck>, id: number, secret: string): Promise<string> {
      run.child.stdin.write(`${initialize}\n${count}\n`);
      await until('it asks', () => run.stdout().includes('roots/list'));
      run.child.stdin.write(`${roots(id, secret)}\n`);
      await until('it answers', () => run.stdout().includes('1 roots'));
      run.child.stdin.end();
      return (await run.ended).stderr;
    }

    const db = tempStore();
    await answering(record(db, ['asks-back.js']), 0, recorded);
    const replay = () => tapedeck(['replay', 'latest', '--db', db]);
    // The server of this recording never answered `initialize`; that is told as well.
    expect(await answering(replay(), 1, recorded)).not.toContain('roots/list');
    const stderr = await answering(replay(), 1, other);
    expect(stderr).toContain('roots/list: the client’s answer is not the recorded one');
    expect(stderr).not.toContain(other);
  },
);

test('malformed input is told without its secrets', async () => {
  const db = await recordCalls(['a']);
  const [secret = ''] = GITHUB;
  const run = startInProcess(['replay', 'latest', '--db', db]);
  run.child.stdin.end(`{"text":"${secret}"\n`);
  const { stderr } = await run.ended;
  expect(stderr).toContain('malformed input: what the client sent is not JSON: {"text":"[redacted:');
  expect(stderr).not.toContain(secret);
});
