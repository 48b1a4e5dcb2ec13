import { renameSync } from 'node:fs';
import { expect, test } from 'vitest';
import { inFull } from '../../support/scale.ts';
import {
  type JsonFrame,
  listSessions,
  type Run,
  record,
  tapedeck,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const HELLO = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';

function tail(db: string, ...args: string[]): Run {
  return tapedeck(['tail', '--db', db, ...args]);
}

async function stop(run: Run): Promise<void> {
  run.child.kill('SIGINT');
  expect(await run.ended).toMatchObject({
    code: 0,
    signal: null,
    stderr: expect.not.stringContaining('Error'),
  });
}

test('what passes in several sessions shows while it passes, each line with its session', async () => {
  const db = tempStore();
  const following = tail(db);
  await until('it waits for the store', () => following.stderr().includes('waiting for a store'));
  const one = record(db, ['echo.js'], ['--name', 'one']);
  const two = record(db, ['echo.js'], ['--name', 'two']);
  for (const { child } of [one, two]) child.stdin.write(HELLO);
  const text = () => following.stdout().toString();
  await until('both sessions show', () => /two .* → {2}ping/.test(text()) && /one .* → {2}ping/.test(text()));
  await until('the answers show', () => text().match(/← {2}result .* ping$/gm)?.length === 2);
  expect(text()).not.toContain('\u001b');
  await stop(following);
  for (const { child } of [one, two]) child.stdin.end();
});

inFull(
  'of a store that it waited for everything shows, however much was there at the first look',
  async () => {
    const elsewhere = tempStore();
    for (const name of ['one', 'two']) {
      const { child, ended } = record(elsewhere, ['echo.js'], ['--name', name]);
      child.stdin.end(HELLO);
      await ended;
    }
    const db = tempStore();
    const following = tail(db, '--lines', '1');
    await until('it waits for the store', () => following.stderr().includes('waiting for a store'));
    renameSync(elsewhere, db);
    await until('all frames show', () => following.stdout().toString().match(/ping$/gm)?.length === 4);
    expect(following.stdout().toString()).toMatch(/one .* → {2}ping[\s\S]*two .* → {2}ping/);
    await stop(following);
  },
);

inFull('one session alone is followed by its name, and again when it is started again', async () => {
  const db = tempStore();
  const first = record(db, ['echo.js'], ['--name', 'mine']);
  first.child.stdin.write(HELLO);
  await until('it is stored', async () => (await listSessions(db).catch(() => []))[0]?.frames === 2);
  const following = tail(db, 'mine', '--lines', '0');
  // What passed before it began to follow does not show: one goes on until something does.
  await until('it follows', () => {
    first.child.stdin.write('{"jsonrpc":"2.0","id":2,"method":"now/call"}\n');
    return following.stdout().includes('now/call');
  });
  first.child.stdin.end();
  await first.ended;
  const other = record(db, ['echo.js'], ['--name', 'other']);
  other.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"other/call"}\n');
  await other.ended;
  const again = record(db, ['echo.js'], ['--name', 'mine']);
  again.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"mine/call"}\n');
  await until('the second session shows', () => following.stdout().includes('mine/call'));
  expect(following.stdout().toString()).not.toMatch(/other\/call|ping/);
  await stop(following);
});

inFull('it begins with the last frames of the newest session', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['cat.js']);
  child.stdin.end([1, 2, 3].map((id) => `{"jsonrpc":"2.0","id":${id},"method":"call/${id}"}\n`).join(''));
  await ended;
  const following = tail(db, '--lines', '2');
  await until('it shows', () => following.stdout().toString().trim().split('\n').length === 2);
  expect(following.stdout().toString()).not.toContain('call/1');
  await stop(following);
});

test('a filter and --json give programs what they want to see', async () => {
  const db = tempStore();
  const following = tail(db, '--json', '--filter', 'method=b');
  const { child } = record(db, ['echo.js']);
  for (const method of ['a', 'b'])
    child.stdin.write(`{"jsonrpc":"2.0","id":"${method}","method":"${method}"}\n`);
  await until('both frames show', () => following.stdout().toString().split('\n').length === 3);
  const frames = following
    .stdout()
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as JsonFrame);
  expect(frames.map(({ channel, messages }) => [channel, messages[0]?.id])).toEqual([
    ['stdin', 'b'],
    ['stdout', 'b'],
  ]);
  await stop(following);
  child.stdin.end();
});

test('a call that stays open is told once where there is no terminal, and an answer that was slow stands out', async () => {
  const db = tempStore();
  const following = tail(db, '--slow', '50');
  const { child } = record(db, ['cat.js']);
  // Sent back as it is, so that a request of the other side stands open, too.
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u001b[2Jslow"}}\n');
  const text = () => following.stdout().toString();
  await until('it is told', () => /… {2}tools\/call \\x1b\[2Jslow {2}open for/.test(text()));
  child.stdin.write('{"jsonrpc":"2.0","id":1,"result":{}}\n');
  await until('the slow answer shows', () => text().includes('SLOW '));
  expect(text().match(/open for/g)?.length).toBeLessThanOrEqual(2);
  expect(text()).not.toContain('\u001b');
  await stop(following);
  child.stdin.end();
});

test('it ends quietly when nobody reads it any more', async () => {
  const db = tempStore();
  const following = tail(db);
  const { child } = record(db, ['echo.js']);
  child.stdin.write(HELLO);
  await until('something shows', () => following.stdout().length > 0);
  following.child.stdout.destroy();
  child.stdin.write(HELLO.replace('1', '2'));
  const { code, signal, stderr } = await following.ended;
  expect({ code, signal, stderr: stderr.replace(/^tapedeck: waiting.*\n/, '') }).toEqual({
    code: 0,
    signal: null,
    stderr: '',
  });
  child.stdin.end();
});
