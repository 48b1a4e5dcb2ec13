import { expect, test } from 'vitest';
import { inBrowser, openPage, rowWith } from '../../support/browser.ts';
import { inFull } from '../../support/scale.ts';
import { record, tempStore } from '../../support/tapedeck.ts';
import { startUi } from '../../support/ui.ts';

const ask = (id: number, method = 'tools/list') => `${JSON.stringify({ jsonrpc: '2.0', id, method })}\n`;

inBrowser('what is being recorded', () => {
  test('stands on the page as it passes, from two recorders, and one that is killed is cut off', async () => {
    const db = tempStore();
    const ui = await startUi(db);
    const page = await openPage(ui, '/live');
    await page.getByRole('heading', { name: 'Nothing is being recorded' }).waitFor();
    const runs = ['one', 'two'].map((name) => record(db, ['counter.js'], ['--name', name]));
    for (const [i, run] of runs.entries()) run.child.stdin.write(ask(i, `method/${i}`));
    await rowWith(page, 'one', 'method/0', 'ok').waitFor();
    await rowWith(page, 'two', 'method/1', 'ok').waitFor();

    await page.goto(`${ui.origin}/`);
    await rowWith(page, 'one', 'recording').waitFor();
    runs[0]?.child.kill('SIGKILL');
    await rowWith(page, 'one', 'cut off').waitFor();
    runs[1]?.child.stdin.end();
    await rowWith(page, 'two', 'exit 0').waitFor();
  });

  inFull('has its findings as marks already, and their number', async () => {
    const db = tempStore();
    const run = record(db, ['counter.js'], ['--name', 'faulty']);
    run.child.stdin.write(ask(1));
    const page = await openPage(await startUi(db), '/');
    await rowWith(page, 'faulty', 'recording').click();
    await rowWith(page, 'tools/list', 'ok').waitFor();
    run.child.stdin.write('{"jsonrpc":"1.0","id":2,"method":"ping"}\n');
    const mark = page.getByRole('treegrid', { name: 'Messages' }).locator('[title*="jsonrpc"]');
    await mark.first().waitFor();
    await page.getByRole('link', { name: /^Findings [1-9]/ }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    run.child.stdin.end();
    await run.ended;
  });

  inFull(
    'is narrowed by a filter and marked by a highlight, of what came before and of what comes',
    async () => {
      const db = tempStore();
      const ui = await startUi(db);
      const runs = ['one', 'two'].map((name) => record(db, ['counter.js'], ['--name', name]));
      for (const [i, run] of runs.entries()) run.child.stdin.write(ask(1, `method/${i}`));
      const page = await openPage(ui, '/live', { expected: /status of 400/ });
      await rowWith(page, 'two', 'method/1', 'ok').waitFor();
      const box = page.getByRole('combobox', { name: 'Filter messages' });
      await box.fill('method=method/1 or method~later');
      await box.press('Escape');
      await box.press('Enter');
      await rowWith(page, 'one', 'method/0').waitFor({ state: 'detached' });
      await rowWith(page, 'two', 'method/1', 'ok').waitFor();
      for (const run of runs) run.child.stdin.write(ask(2, 'other') + ask(3, 'later/1'));
      await rowWith(page, 'one', 'later/1', 'ok').waitFor();
      await rowWith(page, 'two', 'later/1', 'ok').waitFor();
      expect(await rowWith(page, 'other').count()).toBe(0);

      await page.getByRole('button', { name: 'Highlight' }).click();
      await rowWith(page, 'one', 'method/0').waitFor();
      const marked = page.locator('[role=row][data-tone=marked]');
      await expect.poll(() => marked.count(), { timeout: 45_000 }).toBe(3);
      expect(await marked.filter({ hasText: 'other' }).count()).toBe(0);

      await page.getByRole('combobox', { name: 'Highlight messages' }).fill('metod=x');
      await page.getByRole('combobox', { name: 'Highlight messages' }).press('Escape');
      await page.getByRole('combobox', { name: 'Highlight messages' }).press('Enter');
      await page.getByRole('alert').filter({ hasText: 'Nearest: `method`' }).waitFor();
      for (const run of runs) run.child.stdin.end();
      await Promise.all(runs.map((run) => run.ended));
    },
  );

  inFull('is followed until its user scrolls up, and says how much came since', async () => {
    const db = tempStore();
    const run = record(db, ['counter.js'], ['--name', 'long']);
    const send = (from: number, count: number) => {
      for (let id = from; id < from + count; id += 1) run.child.stdin.write(ask(id, `method/${id}`));
    };
    const ui = await startUi(db);
    send(0, 100);
    const page = await openPage(ui, '/');
    await rowWith(page, 'long', 'recording').click();
    await rowWith(page, 'method/99', 'ok').waitFor();
    send(100, 50);
    await rowWith(page, 'method/149', 'ok').waitFor();

    await page.getByRole('treegrid', { name: 'Messages' }).hover();
    const follow = page.getByRole('button', { name: 'Follow' });
    // A row that changes at that moment may bring the list to its end once more.
    await expect
      .poll(async () => {
        await page.mouse.wheel(0, -1500);
        return follow.getAttribute('aria-pressed');
      })
      .toBe('false');
    await expect.poll(() => rowWith(page, 'method/149').count()).toBe(0);
    send(150, 7);
    await page.getByRole('button', { name: '7 new rows' }).waitFor();
    expect(await rowWith(page, 'method/156').count()).toBe(0);
    await page.keyboard.press('f');
    await rowWith(page, 'method/156').waitFor();
    run.child.stdin.end();
    await run.ended;
  });
});
