/** A run of a client in the viewer. */
import { expect, test } from 'vitest';
import { inBrowser, LOOKS, openPage, rowWith, violationsOn } from '../../support/browser.ts';
import { runOfThree } from '../../support/run-store.ts';
import { inFull, sample } from '../../support/scale.ts';
import { startUi } from '../../support/ui.ts';

inBrowser('a run in the viewer', () => {
  test('three servers stand on one clock, from the sessions to a call’s frame, by keyboard alone', async () => {
    const ui = await startUi(await runOfThree());
    const page = await openPage(ui, '/?group=run');
    await rowWith(page, '3 sessions').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Run of demo' }).waitFor();
    // The latest stretch is shown first.
    await rowWith(page, 'tools/call', 'later').waitFor();
    await page
      .getByRole('navigation', { name: 'Stretches of the run' })
      .getByRole('link')
      .first()
      .press('Enter');
    await rowWith(page, 'tools/call', 'query').waitFor();
    const calls = page.getByRole('treegrid', { name: 'Calls of all servers' }).getByRole('row');
    const shown = async () =>
      (await calls.allInnerTexts()).slice(1).map((text) => text.replaceAll(/\s+/g, ' '));
    await expect
      .poll(shown)
      .toEqual([
        '0.000 files tools/call read ok 100 ms',
        '1.000 search tools/call search tool error 500 ms the same again after 500 ms',
        '2.000 search tools/call search ok 250 ms',
        '2.100 database tools/call query ok 900 ms',
      ]);
    const lanes = page.getByRole('list', { name: 'Servers' }).getByRole('listitem');
    expect(await lanes.count()).toBe(3);
    expect(await page.locator('body').textContent()).toMatch(/Waiting 1\.60 s\s*Thinking 1\.40 s/);

    await page.locator('body').click({ position: { x: 400, y: 20 } });
    await page.keyboard.press('n');
    const chosen = page.getByRole('row', { selected: true }).filter({ hasText: 'tool error' });
    await chosen.waitFor();
    await page.keyboard.press('+');
    await expect.poll(() => page.url()).toMatch(/[?&]t=\d/);
    const shared = page.url();
    await page.keyboard.press('Enter');
    await page.getByRole('tab', { name: 'Pretty' }).waitFor();
    await expect.poll(() => page.url()).toMatch(/\/s\/\w+\/f\/1$/);
    await page.goBack();
    await rowWith(page, 'tool error', 'the same again').waitFor();
    expect(page.url()).toBe(shared);
    await page.reload();
    await chosen.waitFor();
  });

  inFull('a gap may be chosen, which makes one stretch of two', async () => {
    const ui = await startUi(await runOfThree());
    const page = await openPage(ui, '/run/demo');
    await page.getByRole('combobox', { name: 'Divide where nothing is asked for' }).selectOption('60');
    await rowWith(page, 'tools/call', 'read').waitFor();
    await rowWith(page, 'tools/call', 'later').waitFor();
    expect(await page.getByRole('navigation', { name: 'Stretches of the run' }).count()).toBe(0);
  });

  inFull('what a highlight selects is marked among all calls, in its address', async () => {
    const ui = await startUi(await runOfThree());
    const page = await openPage(ui, '/run/demo?stretch=1&hl=status~error');
    await rowWith(page, 'tools/call', 'query').waitFor();
    const marked = page.locator('[role=row][data-tone=marked]');
    await marked.filter({ hasText: 'tool error' }).waitFor();
    expect(await marked.count()).toBe(1);
    await page.getByRole('button', { name: 'Highlight' }).click();
    await rowWith(page, 'tools/call', 'query').waitFor({ state: 'detached' });
    await rowWith(page, 'tool error').waitFor();
    expect(page.url()).toMatch(/[?&]filter=status/);
  });

  inFull('axe finds nothing on a run, in any scheme and width', async () => {
    const ui = await startUi(await runOfThree());
    for (const { scheme, width } of sample(LOOKS)) {
      const page = await openPage(ui, '/run/demo?stretch=1', { scheme, width });
      await rowWith(page, 'tools/call', 'query').waitFor();
      expect(await violationsOn(page), `${scheme}, ${width}`).toEqual([]);
    }
  });
});
