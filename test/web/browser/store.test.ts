/** What becomes of a page while its store changes below it, and of many pages of one viewer. */
import { renameSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { MIGRATIONS } from '../../../src/store/file/schema.ts';
import { inBrowser, openPage, rowWith } from '../../support/browser.ts';
import { inFull } from '../../support/scale.ts';
import { fixture, record, start, tapedeckInProcess, until } from '../../support/tapedeck.ts';
import { startUi, storeOf } from '../../support/ui.ts';

/** A browser without a window takes all of its tabs for visible. */
function turn(page: Page, to: 'hidden' | 'visible'): Promise<void> {
  return page.evaluate((isHidden) => {
    if (isHidden) Object.assign(globalThis, { isBehind: true });
    else Reflect.deleteProperty(globalThis, 'isBehind');
    document.dispatchEvent(new Event('visibilitychange'));
  }, to === 'hidden');
}

/** From now on windows of this browser are hidden while they are turned so. */
async function letTurn(page: Page): Promise<void> {
  await page.context().addInitScript(() => {
    Object.defineProperty(document, 'visibilityState', {
      get: () => ('isBehind' in globalThis ? 'hidden' : 'visible'),
    });
  });
}

inBrowser('a page', () => {
  test('says that its session is gone, once that is pruned, and the list goes on without it', async () => {
    const db = await storeOf('everything-stdio', 'modern-http');
    const ui = await startUi(db);
    const page = await openPage(ui, '/s/everything-stdio', { expected: /status of 404/ });
    await rowWith(page, 'tools/call', 'echo').waitFor();
    const list = await openPage(ui, '/');
    await rowWith(list, 'everything-stdio').waitFor();
    const filter = ['--filter', 'name=everything-stdio'];
    const { code, stderr } = await tapedeckInProcess(['prune', ...filter, '--db', db]);
    expect([code, stderr]).toEqual([0, '']);
    await page.getByRole('heading', { name: 'This session is gone' }).waitFor();
    await expect.poll(() => rowWith(list, 'everything-stdio').count()).toBe(0);
    await rowWith(list, 'modern-http').waitFor();
  });

  inFull('whose store is removed says so, or shows that it is empty', async () => {
    const db = await storeOf('everything-stdio');
    const page = await openPage(await startUi(db), '/', { expected: /status of (?:404|500|503)/ });
    await rowWith(page, 'everything-stdio').waitFor();
    for (const end of ['', '-wal', '-shm']) rmSync(db + end, { force: true });
    await page.reload();
    await page.getByRole('heading', { name: 'Nothing is recorded yet' }).waitFor();
  });

  inFull('that was cut off shows what came meanwhile', async () => {
    const db = await storeOf('everything-stdio');
    const page = await openPage(await startUi(db), '/', { expected: /ERR_INTERNET_DISCONNECTED/ });
    await rowWith(page, 'everything-stdio').waitFor();
    await page.context().setOffline(true);
    const run = record(db, ['counter.js'], ['--name', 'meanwhile']);
    run.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
    await run.ended;
    await page.context().setOffline(false);
    await rowWith(page, 'meanwhile', 'exit 0').waitFor();
  });

  inFull(
    'says that its viewer has ended, and shows what came meanwhile once another one is there',
    async () => {
      const db = await storeOf('everything-stdio');
      const first = await startUi(db);
      const page = await openPage(first, '/', { expected: /ERR_(?:CONNECTION|INCOMPLETE|EMPTY)/ });
      await rowWith(page, 'everything-stdio').waitFor();
      const live = await openPage(first, '/live', { expected: /ERR_(?:CONNECTION|INCOMPLETE|EMPTY)/ });
      await live.getByRole('heading', { name: 'Nothing is being recorded' }).waitFor();
      first.run.child.kill('SIGTERM');
      await first.run.ended;
      await page.getByText('The viewer does not answer').waitFor();
      const run = record(db, ['counter.js'], ['--name', 'meanwhile']);
      run.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
      await startUi(db, [], first.port);
      await rowWith(page, 'meanwhile', 'recording').waitFor();
      await expect.poll(() => page.getByText('Cut off').count()).toBe(0);
      await rowWith(live, 'meanwhile', 'tools/list').waitFor();
      run.child.stdin.end();
      await run.ended;
      await rowWith(page, 'meanwhile', 'exit 0').waitFor();
    },
  );

  inFull('goes on where it was paused, with what came meanwhile', async () => {
    const db = await storeOf('everything-stdio');
    const page = await openPage(await startUi(db), '/live');
    const run = record(db, ['counter.js'], ['--name', 'long']);
    const ask = (id: number) => run.child.stdin.write(`{"jsonrpc":"2.0","id":${id},"method":"m/${id}"}\n`);
    ask(1);
    await rowWith(page, 'm/1', 'ok').waitFor();
    const pause = page.getByRole('button', { name: 'Pause' });
    for (const id of [2, 3]) {
      await pause.click();
      ask(id);
      await pause.click();
      await rowWith(page, `m/${id}`, 'ok').waitFor();
    }
    run.child.stdin.end();
    await run.ended;
  });

  inFull(
    'says in words that its store is of another version, and reads one that a writer holds',
    async () => {
      const db = await storeOf('everything-stdio');
      const ui = await startUi(db);
      const page = await openPage(ui, '/', { expected: /status of (?:409|500)/ });
      const holder = start(process.execPath, [fixture('hold-lock.js'), db]);
      await until('it is locked', () => holder.stdout().length > 0);
      await page.goto(`${ui.origin}/s/latest/f/13`);
      await page.getByText('"tools/call"').first().waitFor();
      holder.child.kill('SIGKILL');
      await holder.ended;
      for (const [by, words] of [
        [1, /written by a newer tapedeck/],
        [-1, /tapedeck list/],
      ] as const) {
        const other = await storeOf('everything-stdio');
        const store = new Database(other);
        store.pragma(`user_version = ${MIGRATIONS.length + by}`);
        store.close();
        for (const end of ['-wal', '-shm']) rmSync(db + end, { force: true });
        renameSync(other, db);
        await page.goto(ui.origin);
        await page.getByRole('heading', { name: 'There is no answer' }).waitFor();
        await page.getByText(words).waitFor();
      }
    },
  );

  inFull('is one of ten tabs, of which each knows what came when it is looked at', async () => {
    const db = await storeOf('everything-stdio');
    const ui = await startUi(db);
    const first = await openPage(ui, '/');
    await letTurn(first);
    const tabs: Page[] = [];
    for (let i = 0; i < 10; i += 1) {
      const tab = await first.context().newPage();
      await tab.goto(ui.origin);
      await rowWith(tab, 'everything-stdio').waitFor();
      await turn(tab, 'hidden');
      tabs.push(tab);
    }
    const run = record(db, ['counter.js'], ['--name', 'another']);
    run.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
    await run.ended;
    for (const tab of tabs) {
      await turn(tab, 'visible');
      await rowWith(tab, 'another', 'exit 0').waitFor();
      await turn(tab, 'hidden');
    }
  });

  inFull(
    'is one of eight windows that are all seen, and each shows what comes, also after one is closed',
    async () => {
      const db = await storeOf('everything-stdio');
      const ui = await startUi(db);
      const first = await openPage(ui, '/');
      await letTurn(first);
      const windows = [first];
      while (windows.length < 8) {
        const one = await first.context().newPage();
        await one.goto(ui.origin);
        windows.push(one);
      }
      const showAll = async (name: string) => {
        const run = record(db, ['counter.js'], ['--name', name]);
        run.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
        await run.ended;
        for (const one of windows) await rowWith(one, name, 'exit 0').waitFor();
      };
      for (const one of windows) await rowWith(one, 'everything-stdio').waitFor();
      await showAll('another');
      // The first one has had the stream of changes.
      await windows.shift()?.close();
      await showAll('third');
      const hidden = windows.splice(0, 2);
      for (const one of hidden) await turn(one, 'hidden');
      await showAll('fourth');
      windows.push(...hidden);
      for (const one of hidden) await turn(one, 'visible');
      await showAll('fifth');
      for (const one of hidden) await rowWith(one, 'fourth', 'exit 0').waitFor();
    },
  );
});
