import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findClient, isAlive, processStarted } from '../../../src/store/file/process.ts';
import { ROOT, start, tempFolder, until } from '../../support/tapedeck.ts';

test('this process is alive, and another that had its pid before is not', () => {
  const started = processStarted(process.pid);
  expect(started).not.toBeNull();
  expect(isAlive(process.pid, started)).toBe(true);
  expect(isAlive(process.pid, 'at another time')).toBe(false);
});

test('a process that has ended is not alive', async () => {
  const { child, ended } = start(process.execPath, ['-e', '']);
  const pid = child.pid ?? 0;
  await ended;
  expect(isAlive(pid, null)).toBe(false);
});

test('the client is the first ancestor that is no launcher', async () => {
  const script = join(tempFolder(), 'client.mjs');
  const module = JSON.stringify(join(ROOT, 'build/store/file/process.js'));
  writeFileSync(
    script,
    `const { findClient } = await import(${module}); console.log(JSON.stringify(findClient(process.ppid)));`,
  );
  // A shell that stays: the command after it keeps it from giving its process away.
  const run = start('sh', ['-c', `'${process.execPath}' '${script}'; true`]);
  await until('the answer', () => run.stdout().includes('}'));
  expect(JSON.parse(run.stdout().toString())).toMatchObject({ pid: process.pid });
  expect(findClient(process.pid)).toMatchObject({ pid: process.pid });
});

test('a program whose process is called after its first thread is named by what was started', async () => {
  const nameOf = async (title: string) => {
    // As newer Node does by itself.
    const script = `require('node:fs').writeFileSync('/proc/self/comm', '${title}'); console.log('named'); setInterval(() => {}, 1e6)`;
    const { child, stdout } = start(process.execPath, ['-e', script]);
    await until('it has its name', () => stdout().includes('named'));
    return findClient(child.pid ?? 0)?.program;
  };
  if (process.platform !== 'linux') return;
  expect(await nameOf('MainThread')).toBe('node');
  expect(await nameOf('my-client')).toBe('my-client');
});

test('a pid that nobody has leads to no client', () => {
  expect(findClient(2 ** 22 + 1)).toBeNull();
});

const hasPs = spawnSync('ps', ['-o', 'lstart=', '-p', String(process.pid)]).status === 0;

test.runIf(hasPs)(
  'where ps tells when a process started, the time zone of who asks makes no difference',
  () => {
    const { platform } = process;
    const { TZ } = process.env;
    onTestFinished(() => {
      Object.defineProperty(process, 'platform', { value: platform });
      if (TZ === undefined) delete process.env['TZ'];
      else process.env['TZ'] = TZ;
    });
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    const here = processStarted(process.pid);
    expect(here).toMatch(/^\w{3} \w{3} +\d+ [\d:]{8} \d{4}$/);
    process.env['TZ'] = 'Asia/Tokyo';
    expect(processStarted(process.pid)).toBe(here);
    expect(isAlive(process.pid, here)).toBe(true);
  },
);
