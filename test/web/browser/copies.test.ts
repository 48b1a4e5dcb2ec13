/** What the menus put on the clipboard and into files, used as people use it. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { inBrowser, openPage } from '../../support/browser.ts';
import { startHttpMock } from '../../support/http-mock.ts';
import { inFull } from '../../support/scale.ts';
import { ROOT, showFrames, tapedeckInProcess } from '../../support/tapedeck.ts';
import { startUi, storeOf } from '../../support/ui.ts';

/** Rejects where the program fails. */
const run = promisify(execFile);

/** By the keyboard. */
async function copied(page: Page, label: string): Promise<string> {
  await page.keyboard.press('c');
  await page.getByRole('menuitem', { name: new RegExp(`^${label}`) }).click();
  await page.getByText(`Copied: ${label}`).waitFor();
  return page.evaluate(() => navigator.clipboard.readText());
}

inBrowser('a copy', () => {
  test('of a frame is a link, its text, and the command that asks the server again', async () => {
    const db = await storeOf('everything-stdio');
    const ui = await startUi(db);
    const frame = (await showFrames(db)).find(({ text }) => text?.includes('Hello, tape'));
    const page = await openPage(ui, `/s/latest/f/${frame?.seq}`);
    await page.getByRole('button', { name: 'Copy as' }).waitFor();
    expect(await copied(page, 'Link')).toBe(`${ui.origin}/s/${frame?.session}/f/${frame?.seq}`);
    expect(await copied(page, 'Raw')).toBe(frame?.text);
    expect(JSON.parse(await copied(page, 'JSON'))).toEqual(frame);
    const line = JSON.parse(await copied(page, 'NDJSON line'));
    expect(line).toMatchObject({ channel: frame?.channel, message: JSON.parse(frame?.text ?? '') });
    expect(await copied(page, 'tapedeck verify')).toContain(`tapedeck verify ${frame?.session} --only echo`);
    await page.keyboard.press('c');
    await page.getByRole('menu').waitFor();
    expect(await page.getByRole('menuitem', { name: 'curl' }).count()).toBe(0);
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Copy as' }).waitFor();
  });

  inFull('as curl gets the recorded answer from the replayed server', async () => {
    const db = await storeOf('everything-http');
    const ui = await startUi(db);
    const answer = (await showFrames(db)).find(
      ({ text, channel }) => channel === 'sse' && text?.includes('Echo: Hello'),
    );
    const page = await openPage(ui, `/s/latest/f/${answer?.seq}`);
    await page.getByRole('button', { name: 'Copy as' }).waitFor();
    const script = await copied(page, 'curl');
    const { url } = await startHttpMock(db);
    const { origin } = new URL(/http:\/\/127\.0\.0\.1:\d+/.exec(script)?.[0] ?? '');
    const { stdout, stderr } = await run('sh', ['-c', script.replaceAll(origin, url.origin)], {
      timeout: 30_000,
    });
    expect(stderr).toBe('');
    expect(stdout).toContain('"text":"Echo: Hello, tape."');
  });

  inFull('as a test passes in vitest', async () => {
    const db = await storeOf('everything-stdio');
    const frame = (await showFrames(db)).find(({ text }) => text?.includes('Hello, tape'));
    const page = await openPage(await startUi(db), `/s/latest/f/${frame?.seq}`);
    await page.getByRole('button', { name: 'Copy as' }).waitFor();
    const folder = join(dirname(db), 'project');
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    symlinkSync(ROOT, join(folder, 'node_modules/mcp-tapedeck'));
    for (const name of ['vitest', '@modelcontextprotocol'])
      symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
    writeFileSync(join(folder, 'copied.test.ts'), await copied(page, 'vitest test'));
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
    const { stdout } = await run(process.execPath, [vitest, 'run', '--root', folder], { timeout: 60_000 });
    expect(stdout).toMatch(/1 passed/);
  });
});

inBrowser('an export', () => {
  inFull('is the file that `export` writes', async () => {
    const db = await storeOf('everything-stdio');
    const page = await openPage(await startUi(db), '/s/latest?filter=tool%3Decho');
    await page.getByRole('button', { name: 'Export what the filter leaves' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'Text recording' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^\w+\.ndjson$/);
    const { stdout } = await tapedeckInProcess(['export', 'latest', '--filter', 'tool=echo', '--db', db]);
    const file = `${db}.exported`;
    await download.saveAs(file);
    expect(readFileSync(file, 'utf8')).toBe(stdout.toString());
  });
});
