import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inFull } from '../support/scale.ts';
import { ROOT, tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

const RECORDING = join(ROOT, 'recordings/everything-stdio.ndjson');

inFull(
  'command lines that run at once in one process have streams, environment, folder and exit code of their own',
  async () => {
    const users = ['ada', 'bob', 'cy'].map((name) => ({ name, cwd: tempFolder() }));
    const work = users.map(async ({ name, cwd }) => {
      const env = { TAPEDECK_DB: 'own.db', COLUMNS: '60' };
      copyFileSync(RECORDING, join(cwd, 'a.ndjson'));
      const run = (...args: string[]) => tapedeckInProcess(args, { cwd, env });
      const imported = await run('import', 'a.ndjson', '--name', name);
      const [list, exported, refused, checked] = await Promise.all([
        run('list', '--json'),
        run('export', '-o', 'b.ndjson'),
        run('list', '--limit', name),
        run('check', 'a.ndjson'),
      ]);
      expect([imported.code, exported.code, refused.code, checked.code]).toEqual([0, 0, 2, 1]);
      expect(refused.stderr).toContain('Expected a whole number after `--limit`');
      const lines = list.stdout.toString().trim().split('\n');
      expect(lines.map((line) => JSON.parse(line).name)).toEqual([name]);
      expect(readFileSync(join(cwd, 'b.ndjson'), 'utf8')).toContain(`"name":"${name}"`);
    });
    await Promise.all(work);
  },
);

test('a command line that ran in a process leaves no listener, exit code or variable behind', async () => {
  const state = () => ({
    listeners: process.eventNames().map((name) => [name, process.listenerCount(name)]),
    exitCode: process.exitCode,
    env: { ...process.env },
    folder: process.cwd(),
  });
  const before = state();
  for (const args of [
    ['completion', 'zsh'],
    ['check', RECORDING],
    ['diff', RECORDING, RECORDING],
    ['verify', RECORDING, '--', process.execPath, '-e', ''],
    ['replay', RECORDING],
    ['list', '--limit', 'many'],
  ])
    await tapedeckInProcess(args, { env: { SHELL: '/bin/fish' } });
  expect(state()).toEqual(before);
});
