/** What is kept of sessions that were fetched: while they are the same, within bounds, whoever reads or is killed. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { withEngine } from '../support/engine.ts';
import { expectSame, fleet, newStore, ship } from '../support/fleet.ts';
import { inFull } from '../support/scale.ts';
import { storeSession } from '../support/stored.ts';
import { tapedeck, tapedeckInProcess } from '../support/tapedeck.ts';

withEngine('the cache of a reader', () => {
  inFull('a session is fetched once, and again when it has changed on the engine', async () => {
    const own = await fleet();
    const file = newStore((store) => void storeSession(store, { start: { name: 'one' } }));
    await ship(own, file);
    await expectSame(own, file, ['show', 'one']);
    const folder = join(String(own.env['XDG_CACHE_HOME']), 'tapedeck/engine');
    const [kept = ''] = readdirSync(folder);
    expect(readdirSync(folder)).toEqual([kept]);
    expect(statSync(join(folder, kept)).mode & 0o777).toBe(0o600);
    // One of an older version is made anew, without a copy.
    const old = openStore(join(folder, kept));
    old.pragma('user_version = 1');
    old.close();
    await expectSame(own, file, ['show', 'one']);
    expect(readdirSync(folder)).toEqual([kept]);
    const secret = 'sk-proj-OldOldOldOldOldOldOldOldOldOld';
    const store = openStore(file);
    storeSession(store, {
      start: { name: 'two', at: 2e15 },
      lines: [
        `{"jsonrpc":"2.0","id":1,"method":"x","params":["${secret}"]}`,
        '{"jsonrpc":"2.0","id":1,"result":{}}',
      ],
    });
    store.close();
    await ship(own, file);
    expect(await expectSame(own, file, ['show', 'two', '--full'])).toContain(secret);
    expect(readFileSync(join(folder, kept)).includes(secret)).toBe(true);
    expect((await tapedeckInProcess(['redact', 'two', '--db', file])).code).toBe(0);
    await ship(own, file);
    expect(await expectSame(own, file, ['show', 'two', '--full'])).not.toContain(secret);
  });

  inFull('what is kept stays within its bounds, and goes when it goes from the engine', async () => {
    const own = await fleet();
    const text = (i: number) => `planted-${i}-${'x'.repeat(40_000)}`;
    const file = newStore((store) => {
      for (let i = 0; i < 6; i += 1)
        storeSession(store, {
          start: { name: `n${i}`, at: 1e15 + i },
          lines: [`{"jsonrpc":"2.0","method":"m","params":"${text(i)}"}`],
        });
    });
    await ship(own, file);
    const folder = join(String(own.env['XDG_CACHE_HOME']), 'tapedeck/engine');
    const read = (name: string, size: string) =>
      tapedeckInProcess(['show', name, '--db', own.reader], { env: { ...own.env, TAPEDECK_CACHE: size } });
    const kept = () => {
      const store = openStore(join(folder, readdirSync(folder)[0] ?? ''));
      const held = store.prepare<[], string>('SELECT payload FROM frame').pluck().all();
      store.close();
      return held.map((payload) => /planted-(\d)/.exec(String(payload))?.[1]).toSorted();
    };
    for (let i = 0; i < 6; i += 1) await read(`n${i}`, '100kb');
    expect(kept()).toEqual(['4', '5']);
    await read('n4', '100kb');
    await read('n1', '100kb');
    // The one that was used last stays.
    expect(kept()).toEqual(['1', '4']);
    // Several at once.
    const many = await Promise.all(Array.from({ length: 30 }, (_, i) => read(`n${i % 6}`, '2gb')));
    expect(many.map(({ code, stderr }) => [code, stderr])).toEqual(many.map(() => [0, '']));
    expect(kept()).toEqual(['0', '1', '2', '3', '4', '5']);
    // Killed while it fetches and keeps: what is there is whole.
    for (let i = 0; i < 5; i += 1) {
      const killed = tapedeck(['search', 'planted', '--db', own.reader], {
        env: { ...own.env, TAPEDECK_CACHE: '2gb' },
      });
      setTimeout(() => killed.child.kill('SIGKILL'), 300 + 100 * i);
      await killed.ended;
    }
    await expectSame(own, file, ['search', 'planted']);
    const [gone] = await own.database.query<{ session: string; day: string; recorder: string }>(
      "SELECT session, day::text, recorder FROM tapedeck.session WHERE name = 'n2'",
    );
    await own.database.query('SELECT tapedeck.remove($1, $2, $3)', [
      gone?.session,
      gone?.day,
      gone?.recorder,
    ]);
    expect((await read('n2', '2gb')).code).toBe(2);
    expect(kept()).toEqual(['0', '1', '3', '4', '5']);
    for (const name of readdirSync(folder))
      expect(readFileSync(join(folder, name)).includes('planted-2')).toBe(false);
  });

  inFull('a name is never more than a name', async () => {
    const own = await fleet();
    const names = [
      `'; DROP TABLE tapedeck.meta; --`,
      '%',
      '_',
      '\\',
      '../../etc',
      '$1',
      'a/b',
      '{a,b}',
      '\u001b[2J',
      '-',
      'x'.repeat(5000),
    ];
    const file = newStore((store) => {
      for (const [i, name] of names.entries()) storeSession(store, { start: { name, at: 1e15 + i } });
    });
    await ship(own, file);
    for (const name of [...names, '%%', "'", 'nothing/here', '/'])
      await expectSame(own, file, ['show', '--json', '--', name]);
    await expectSame(own, file, ['list', '--json', '--filter', `name="${names[0]}"`]);
  });
});
