/** The jobs of `deploy`: what they start does what it should. What else is in these files, test/admin/deploy.test.ts says. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { withEngine } from '../support/engine.ts';
import { engineForHosts, filledStore } from '../support/shipped.ts';
import { storeSession } from '../support/stored.ts';
import { ROOT, tapedeckInProcess } from '../support/tapedeck.ts';

const textOf = (file: string) => readFileSync(join(ROOT, 'deploy', file), 'utf8');

/** What a unit starts, in words, without the program. */
function commandOf(unit: string): string[] {
  const [, command = ''] = /^ExecStart=\S+ (.*)$/m.exec(textOf(`systemd/${unit}.service`)) ?? [];
  return command.split(' ');
}

async function run(words: readonly string[], url: string): Promise<void> {
  const { code, stderr } = await tapedeckInProcess(words, { env: { TAPEDECK_SHIP: url } });
  expect([code, words], stderr).toEqual([0, words]);
}

withEngine('the jobs of deploy', () => {
  test('ship what is in the store, and keep the engine', async () => {
    const { database, host } = await engineForHosts();
    const now = Date.now();
    const years = filledStore((store) => void storeSession(store, { start: { at: 1.7e15 } }));
    const today = filledStore((store) => void storeSession(store, { start: { at: now * 1000 } }));
    const words = commandOf('tapedeck-ship');
    for (const file of [years, today]) await run(words.with(words.indexOf('--db') + 1, file), host);
    expect(await database.query('SELECT FROM tapedeck.session')).toHaveLength(2);

    await run(commandOf('tapedeck-maintain'), database.url);
    const { args } = parse(textOf('kubernetes/maintain.yaml')).spec.jobTemplate.spec.template.spec
      .containers[0];
    await run(args, database.url);
    const left = await database.query<{ day: string }>('SELECT day::text FROM tapedeck.session');
    expect(left).toEqual([{ day: new Date(now).toISOString().slice(0, 10) }]);
  });
});
