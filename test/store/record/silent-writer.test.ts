import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readBody, startServer } from '../../support/http.ts';
import { postTo, recordUrl } from '../../support/http-record.ts';
import { inFull, sample } from '../../support/scale.ts';
import {
  BIN,
  fixture,
  latestSession,
  listSessions,
  type Run,
  start,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const LINE = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';

const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';

const HANGING = { NODE_OPTIONS: `--require=${fixture('hang-thread.cjs')}` };

async function hasSession(db: string): Promise<boolean> {
  return (await latestSession(db).catch(() => undefined)) !== undefined;
}

function recordHanging(db: string, options: readonly string[] = []): Run {
  const args = ['record', ...options, '--db', db, '--', process.execPath, fixture('cat.js')];
  return start(process.execPath, [BIN, ...args], { env: HANGING });
}

inFull('a writer that hangs is told of, is not waited for, and its loss is on the session', async () => {
  const db = tempStore();
  const run = recordHanging(db);
  await until('the session is there', () => hasSession(db));
  run.child.stdin.write(LINE);
  await until('it is said', () => run.stderr().includes('has not answered for seconds'));
  run.child.stdin.end();
  const { code, stdout, stderr } = await run.ended;
  expect([code, stdout.toString()]).toEqual([0, LINE]);
  expect(stderr).toMatch(/the writer does not answer: 82 bytes of traffic are lost/);
  expect(await latestSession(db)).toMatchObject({ frames: 0, dropped: 2, endReason: 'client-closed' });
});

test.each(
  sample([
    { options: ['--strict'], expected: 1 },
    { options: [], expected: 0 },
  ]),
)(
  'a signal at the end cuts the waiting for a writer that hangs short: $options',
  async ({ options, expected }) => {
    const db = tempStore();
    const run = recordHanging(db, options);
    await until('the session is there', () => hasSession(db));
    run.child.stdin.end(LINE);
    await until('the line is back', () => run.stdout().includes(LINE));
    const signals = setInterval(() => run.stderr() === '' && run.child.kill('SIGTERM'), 300);
    const { code, signal, stderr } = await run.ended;
    clearInterval(signals);
    expect({ code, signal }).toEqual({ code: expected, signal: null });
    expect(stderr).toMatch(/the writer does not answer/);
    expect(await latestSession(db)).toMatchObject({ dropped: 2 });
  },
);

inFull.each([
  { args: ['--strict', '--grace', '0'], expected: 1 },
  { args: [], expected: 0 },
])(
  'by HTTP, every session that is open when the writer hangs tells a loss, and traffic goes on: $args',
  async ({ args, expected }) => {
    const { url } = await startServer(async (request, response) => {
      await readBody(request);
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(RESULT);
    });
    const trigger = join(tempFolder(), 'hang');
    const env = { ...HANGING, HANG_WHEN: trigger };
    const { db, run, url: proxy, rows } = await recordUrl(`${url}/mcp`, { args, env });
    const say = async (session: string) => {
      const answer = await postTo(proxy, LINE, { headers: { 'Mcp-Session-Id': session } });
      expect((await readBody(answer)).toString()).toBe(RESULT);
    };
    for (const session of ['one', 'two', 'three']) await say(session);
    await until('they are stored', () => rows('SELECT 1 FROM session WHERE frames = 2').length === 3);
    writeFileSync(trigger, '');
    await say('one');
    await until('it hangs', () => !existsSync(trigger));
    for (const session of ['one', 'two']) await say(session);
    // With --strict it ends by itself. Once it is at its end, another signal makes that quick.
    const signals = setInterval(() => expected === 0 && run.child.kill('SIGTERM'), 300);
    expect(await run.ended).toMatchObject({ code: expected, signal: null });
    clearInterval(signals);
    expect(run.stderr()).toMatch(/the writer does not answer: \d+ bytes of traffic are lost/);
    const lost = rows<{ dropped: number }>('SELECT dropped, dropped_bytes > 0 AS known FROM session');
    expect(lost).toEqual(Array(3).fill({ dropped: expect.any(Number), known: 1 }));
    for (const { dropped } of lost) expect(dropped).toBeGreaterThan(0);
    const sessions = await listSessions(db);
    expect(sessions.map(({ endReason }) => endReason)).toEqual(Array(3).fill('stopped'));
  },
);

test('in a folder that was removed, a session is recorded', async () => {
  const [db, folder] = [tempStore(), join(tempFolder(), 'gone')];
  mkdirSync(folder);
  const command = `cd '${folder}' && rmdir '${folder}' && exec '${process.execPath}' '${BIN}' record --db '${db}' -- cat`;
  const run = start('sh', ['-c', command]);
  run.child.stdin.end(LINE);
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  expect(await latestSession(db)).toMatchObject({ frames: 2 });
});

test('with however few descriptors, traffic that can pass passes, and is recorded or said to be lost', async () => {
  // Nodes differ in how many they take for themselves.
  const codes: (number | null)[] = [];
  for (const limit of sample([28, 24, 25, 26, 27, 29, 30, 31, 32])) {
    const db = tempStore();
    const command = `ulimit -n ${limit} && exec '${process.execPath}' '${BIN}' record --db '${db}' -- cat`;
    const run = start('sh', ['-c', command]);
    run.child.stdin.end(LINE);
    const { code, stdout, stderr } = await run.ended;
    codes.push(code);
    expect(stderr).not.toMatch(/^ +at /m);
    if (code === 0) expect(stdout.toString()).toBe(LINE);
    else
      expect([code, stderr]).toEqual([126, expect.stringMatching(/^tapedeck: cannot start `cat`: .*EMFILE/)]);
    if (code === 0 && stderr === '') expect(await latestSession(db)).toMatchObject({ frames: 2, dropped: 0 });
    else expect(stderr).toMatch(/^tapedeck: .*EMFILE/m);
  }
  expect(codes).toContain(0);
});
