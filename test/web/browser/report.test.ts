/** A report, opened as its reader opens it: from the disk, without a server or a network. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inBrowser, LOOKS, openFile, rowWith, violationsOn } from '../../support/browser.ts';
import { inFull, sample } from '../../support/scale.ts';
import { showFrames, tapedeckInProcess, tempFolder, tempStore } from '../../support/tapedeck.ts';
import { storeOf } from '../../support/ui.ts';

async function exportReport(db: string, ...args: readonly string[]): Promise<string> {
  const file = join(tempFolder(), 'report.html');
  const { code, stderr } = await tapedeckInProcess([
    'export',
    '--format',
    'html',
    '-o',
    file,
    '--db',
    db,
    ...args,
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return file;
}

inBrowser('a report', () => {
  test('it opens from the disk, says what it is, and shows every frame', async () => {
    const db = await storeOf('everything-http');
    const page = await openFile(await exportReport(db));
    await page.getByText('A report, not a live view').waitFor();
    const about = page.getByRole('complementary', { name: 'About this report' });
    for (const said of [
      /made \d{4}-\d\d-\d\d .* by tapedeck/,
      /the whole session/,
      /nothing is redacted/,
      /tapedeck import/,
    ])
      await about.getByText(said).waitFor();
    await rowWith(page, 'tools/call', 'get-sum').first().click();
    await page.getByRole('tab', { name: 'Raw' }).click();
    await expect.poll(() => page.url()).toContain('tab=raw');
    const [, seq] = /\/f\/(\d+)/.exec(page.url()) ?? [];
    const frame = (await showFrames(db)).find((one) => one.seq === Number(seq));
    await expect
      .poll(() => page.getByRole('tabpanel').textContent())
      .toContain(frame?.text?.slice(0, 60) ?? '?');
    for (const tab of ['Hex', 'Bytes', 'Headers', 'Pretty'])
      await page.getByRole('tab', { name: tab }).click();
    await expect.poll(() => page.url()).not.toContain('tab=');
    const before = page.url();
    await page.keyboard.press('n');
    await expect.poll(() => page.url()).not.toBe(before);
    const there = page.url();
    await page.reload();
    expect(page.url()).toBe(there);
    await page.getByRole('tab', { name: 'Pretty' }).waitFor();
    await page.getByRole('link', { name: 'Findings' }).click();
    await page.getByText('tool-arguments').first().waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'HTTP', exact: true }).click();
    await rowWith(page, 'DELETE').first().waitFor();
    for (const gone of ['Search', 'Statistics', 'Sessions', 'Export'])
      expect(await page.getByRole('link', { name: gone, exact: true }).count(), gone).toBe(0);
  });

  test('it is imported as what it was made of: the same NDJSON', async () => {
    const file = await exportReport(await storeOf('modern-http'));
    const other = tempStore();
    await tapedeckInProcess(['import', file, '--db', other]);
    const { stdout } = await tapedeckInProcess(['export', '--db', other]);
    expect(stdout.toString()).toBe(readFileSync('recordings/modern-http.ndjson', 'utf8'));
  });

  inFull('a filtered one says by what, and holds no more', async () => {
    const page = await openFile(
      await exportReport(await storeOf('everything-stdio'), '--filter', 'tool=echo'),
    );
    await page.getByText('only what matches tool=echo').waitFor();
    await rowWith(page, 'tools/call', 'echo').waitFor();
    const messages = page.getByRole('treegrid', { name: 'Messages' });
    // The head, the call, and how the session ended.
    expect(await messages.getByRole('row').count()).toBeLessThanOrEqual(3);
  });

  inFull('axe finds nothing on its first screen, in any scheme and width', async () => {
    const file = await exportReport(await storeOf('everything-stdio'));
    for (const { scheme, width } of sample(LOOKS)) {
      const page = await openFile(file, { scheme, width });
      await rowWith(page, 'tools/call', 'echo').waitFor();
      expect(await violationsOn(page), `${scheme}, ${width}`).toEqual([]);
    }
  });
});
