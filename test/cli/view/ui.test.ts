import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openBrowser } from '../../../src/cli/view/browser.ts';
import { listenOn } from '../../support/http.ts';
import { startInProcess } from '../../support/in-process.ts';
import {
  latestSession,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';
import { storeOf } from '../../support/ui.ts';

const LINK = /http:\/\/127\.0\.0\.1:(\d+)(\/\S*)#token=(\S+)/;

test('it prints one line with the link, runs until a signal, and ends with 0', async () => {
  const db = await storeOf('everything-stdio');
  const run = tapedeck(['ui', '--db', db, '--listen', '127.0.0.1:0']);
  await until('it listens', () => LINK.test(run.stdout().toString()));
  const [, port, path, token] = LINK.exec(run.stdout().toString()) ?? [];
  expect([path, token]).toEqual(['/', expect.stringMatching(/^[\w-]{43}$/)]);
  const answer = await fetch(`http://127.0.0.1:${port}/api/about`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  expect(await answer.json()).toMatchObject({ store: 'recordings.db', sessions: 1 });
  run.child.kill('SIGINT');
  const { code, stdout, stderr } = await run.ended;
  expect([code, stdout.toString().split('\n').length, stderr]).toEqual([0, 2, '']);
});

test('a session and a filter are in the link, the token is that of the environment, and view is another name', async () => {
  const db = await storeOf('everything-stdio');
  const { session } = await latestSession(db);
  const env = { TAPEDECK_UI_TOKEN: 'fixed-for-a-container' };
  const run = startInProcess(
    ['view', 'latest', '--filter', 'tool=echo', '--db', db, '--listen', '127.0.0.1:0'],
    { env },
  );
  await until('it listens', () => LINK.test(run.stdout().toString()));
  const [, , path, token] = LINK.exec(run.stdout().toString()) ?? [];
  expect([path, token]).toEqual([`/s/${session}?filter=tool%3Decho`, 'fixed-for-a-container']);
});

test('a port that was asked for and is taken is an error; else the next one is tried', async () => {
  const server = createServer();
  const port = await listenOn(server);
  onTestFinished(() => void server.close());
  const db = await storeOf('everything-stdio');
  const { code, stderr } = await tapedeckInProcess(['ui', '--db', db, '--listen', `127.0.0.1:${port}`]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('something else listens there')]);
  const runs = [1, 2].map(() => startInProcess(['ui', '--db', db]));
  const ports = await Promise.all(
    runs.map(async (run) => {
      await until('it listens', () => LINK.test(run.stdout().toString()));
      return LINK.exec(run.stdout().toString())?.[1];
    }),
  );
  expect(new Set(ports).size).toBe(2);
});

test('what is wrong is said before anything listens', async () => {
  const db = await storeOf('everything-stdio');
  const wrong = [
    [['--filter', 'tol=x'], /column 1 of the filter/],
    [['no-such-session'], /No session has the id or name/],
    [['--listen', 'nowhere'], /Expected host:port/],
  ] as const;
  for (const [args, complaint] of wrong)
    expect(await tapedeckInProcess(['ui', '--db', db, ...args])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(complaint),
    });
  expect(await tapedeckInProcess(['ui', 'latest', '--db', tempStore()])).toMatchObject({ code: 2 });
});

test('the browser of BROWSER gets the link, and where there is none the reason is known', async () => {
  const folder = tempFolder();
  const [script, seen] = [join(folder, 'browser'), join(folder, 'seen')];
  writeFileSync(script, `#!/bin/sh\nprintf '%s\\n' "$@" > '${seen}'\n`);
  chmodSync(script, 0o755);
  const link = 'http://127.0.0.1:1/open/x?a=b&c=d';
  expect(await openBrowser(link, { ...process.env, BROWSER: `${script} --new:other` })).toBeNull();
  await until('it ran', () => existsSync(seen) && readFileSync(seen, 'utf8').endsWith('d\n'));
  expect(readFileSync(seen, 'utf8')).toBe(`--new\n${link}\n`);
  expect(await openBrowser(link, { ...process.env, BROWSER: join(folder, 'none') })).toMatch(/ENOENT/);
  expect(await openBrowser(link, { ...process.env, BROWSER: 'false' })).toBe('false ended with 1');
});

test('the link for a browser leads to the page with the token once, and does not contain it', async () => {
  const folder = tempFolder();
  const [script, seen] = [join(folder, 'browser'), join(folder, 'seen')];
  writeFileSync(script, `#!/bin/sh\nprintf '%s\\n' "$1" > '${seen}'\n`);
  chmodSync(script, 0o755);
  const db = await storeOf('everything-stdio');
  const env = { BROWSER: script, CI: '' };
  const run = startInProcess(['ui', 'latest', '--db', db, '--listen', '127.0.0.1:0'], {
    env,
    isTerminal: true,
  });
  await until('the browser runs', () => existsSync(seen) && readFileSync(seen, 'utf8').endsWith('\n'));
  const [, , path, token = ''] = LINK.exec(run.stdout().toString()) ?? [];
  const link = readFileSync(seen, 'utf8').trim();
  expect(link).toMatch(/\/open\/[\w-]{43}$/);
  expect(link).not.toContain(token);
  const first = await fetch(link, { redirect: 'manual' });
  expect([first.status, first.headers.get('location')]).toEqual([303, `${path}#token=${token}`]);
  expect((await fetch(link, { redirect: 'manual' })).status).toBe(404);
});

test('no browser is opened in CI, in a pipe, or where that is asked for', async () => {
  const folder = tempFolder();
  const script = join(folder, 'browser');
  writeFileSync(script, `#!/bin/sh\ntouch '${join(folder, 'opened')}'\n`);
  chmodSync(script, 0o755);
  const db = await storeOf('everything-stdio');
  const cases = [
    { args: [], how: { env: { BROWSER: script, CI: 'true' }, isTerminal: true } },
    { args: [], how: { env: { BROWSER: script, CI: '' } } },
    { args: ['--no-open'], how: { env: { BROWSER: script, CI: '' }, isTerminal: true } },
  ];
  for (const { args, how } of cases) {
    const run = startInProcess(['ui', ...args, '--db', db, '--listen', '127.0.0.1:0'], how);
    await until('it listens', () => LINK.test(run.stdout().toString()));
    run.child.kill('SIGINT');
    await run.ended;
  }
  expect(existsSync(join(folder, 'opened'))).toBe(false);
});
