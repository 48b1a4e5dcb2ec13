/** What people do with the viewer, by the real command line, store and browser. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { enterFilter, inBrowser, openPage, rowWith, storeOfLines } from '../../support/browser.ts';
import { inFull } from '../../support/scale.ts';
import { payloadOf, record, showFrames, tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';
import { startUi, storeOf } from '../../support/ui.ts';

function clipboard(page: Page): Promise<string> {
  return page.evaluate(() => navigator.clipboard.readText());
}

inBrowser('the viewer', () => {
  test('a store without a session says how to record, and shows the session that then begins', async () => {
    const db = tempStore();
    const page = await openPage(await startUi(db));
    await page.getByRole('heading', { name: 'Nothing is recorded yet' }).waitFor();
    await page.getByRole('button', { name: 'Copy tapedeck wrap all' }).click();
    await expect.poll(() => clipboard(page)).toBe('tapedeck wrap all');

    const run = record(db, ['counter.js'], ['--name', 'first']);
    run.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
    await rowWith(page, 'first', 'recording').waitFor();
    run.child.stdin.end();
    await run.ended;
    await rowWith(page, 'first', 'exit 0').waitFor();
  });

  test('a call opens onto what came up in it, and its frame says what answers it', async () => {
    const ui = await startUi(await storeOf('everything-stdio'));
    const page = await openPage(ui, '/s/latest');
    const call = rowWith(page, 'trigger-long-running-operation');
    await call.click();
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => rowWith(page, 'notifications/progress').count()).toBe(2);
    expect(await rowWith(page, 'notifications/progress').first().getAttribute('aria-level')).toBe('2');
    await rowWith(page, 'trigger-sampling-request').click();
    await page.keyboard.press('ArrowRight');
    await rowWith(page, 'sampling/createMessage', 'ok').waitFor();
    await expect.poll(() => page.url()).toContain('open=');
    const opened = page.url();

    await rowWith(page, 'tools/call', 'echo').click();
    await page.getByRole('link', { name: 'answered by #10' }).click();
    await page.getByRole('link', { name: 'answers #9' }).waitFor();
    await page.keyboard.press('[');
    await page.getByRole('link', { name: 'answered by #10' }).waitFor();

    await page.goto(opened);
    await rowWith(page, 'sampling/createMessage').waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'answered by #10' }).waitFor();
  });

  inFull('on a phone the row of a progress says how far it is', async () => {
    const page = await openPage(await startUi(await storeOf('everything-stdio')), '/s/latest?open=15', {
      width: 390,
    });
    const text = rowWith(page, 'progress', '1/2').getByText('1/2');
    await text.waitFor();
    const isWhole = () =>
      text.evaluate((element) => element.clientWidth > 0 && element.scrollWidth <= element.clientWidth);
    await expect.poll(isWhole).toBe(true);
  });

  inFull('a text of a megabyte is cut where a row names it, and whole in its frame', async () => {
    const name = 'long '.repeat(200_000);
    const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } });
    const ui = await startUi(await storeOfLines([{ ms: 1, channel: 'stdin', text: call }]));
    const page = await openPage(ui, '/s/latest');
    await rowWith(page, 'tools/call', '1,000,000 characters in all').click();
    const copied = page.getByRole('treegrid', { name: 'Values' }).getByText('1.00 MB');
    await copied.first().waitFor();
    expect((await page.locator('body').textContent())?.length).toBeLessThan(20_000);
  });

  inFull('a call without an answer says in its frame and its row who lost it', async () => {
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}';
    const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}';
    const db = await storeOfLines([
      { ms: 1, channel: 'stdin', text: call },
      { ms: 30_000, channel: 'stdin', text: cancel },
    ]);
    const page = await openPage(await startUi(db), '/s/latest/f/1');
    const sentence = 'the client cancelled it after 30.0 s, before an answer';
    await page.getByText(sentence).waitFor();
    await rowWith(page, 'tools/call', 'slow', 'cancelled').getByTitle(sentence).waitFor();
  });

  inFull('numbers, keys and bytes are shown as they passed', async () => {
    const exact = '{"jsonrpc":"2.0","id":12345678901234567890123,"method":"a","params":{"k":1.0,"k":1e2}}';
    const broken = Buffer.from([0x7b, 0xff, 0x41, 0x7d]);
    const db = await storeOfLines([
      { ms: 1, channel: 'stdin', text: exact },
      { ms: 1, channel: 'stdout', base64: broken.toString('base64') },
    ]);
    const ui = await startUi(db);
    const page = await openPage(ui, '/s/latest/f/1');
    const values = page.getByRole('treegrid', { name: 'Values' });
    await values.getByText('12345678901234567890123').waitFor();
    expect(await values.getByText('"k":').count()).toBe(2);
    await values.getByText('1e2').waitFor();
    await values.getByText('1.0').click();
    await page.getByRole('button', { name: 'Value' }).click();
    await expect.poll(() => clipboard(page)).toBe('1e2');
    await page.getByRole('button', { name: 'Path' }).click();
    await expect.poll(() => clipboard(page)).toBe('/params/k');

    await page.getByRole('tab', { name: 'Raw' }).click();
    await page.getByRole('button', { name: 'Raw', exact: true }).click();
    await expect.poll(() => clipboard(page)).toBe(exact);
    const [frame] = await showFrames(db);
    expect(frame && payloadOf(frame).toString()).toBe(exact);

    await page.goto(`${ui.origin}/s/latest/f/2?tab=raw`);
    await page.getByText('\\xFF').waitFor();
    await page.getByRole('tab', { name: 'Hex' }).click();
    await page.getByText('7b ff 41 7d').waitFor();
  });
});

/** One pixel. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

inBrowser('content', () => {
  inFull('is shown by kind, and a drawing that could run scripts is not', async () => {
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>').toString('base64');
    const content = [
      { type: 'text', text: 'two\nlines \u202e and <b>marks</b>' },
      { type: 'image', mimeType: 'image/png', data: PNG },
      { type: 'image', mimeType: 'image/svg+xml', data: svg },
      { type: 'resource', resource: { uri: 'javascript:alert(1)', text: 'inside' } },
    ];
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content } });
    const ui = await startUi(await storeOfLines([{ ms: 1, channel: 'stdout', text }]));
    const page = await openPage(ui, '/s/latest/f/1');
    const parts = page.getByRole('region', { name: 'Content' });
    await parts.getByText('<b>marks</b>').waitFor();
    await parts.getByText('U+202E').waitFor();
    await parts.getByText('javascript:alert(1)').waitFor();
    const width = () => parts.getByRole('img').evaluate((image: HTMLImageElement) => image.naturalWidth);
    await expect.poll(width).toBe(1);
    expect(await parts.getByRole('img').count()).toBe(1);
    expect(await parts.getByRole('link').count()).toBe(0);
  });
});

inBrowser('the filter box', () => {
  inFull('completes by keyboard alone, and says what is wrong at its column', async () => {
    const ui = await startUi(await storeOf('everything-stdio'));
    const page = await openPage(ui, '/s/latest', { expected: /status of 400/ });
    await rowWith(page, 'tools/call', 'echo').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('tool');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const box = page.getByRole('combobox', { name: 'Filter messages' });
    await expect.poll(() => box.inputValue()).toMatch(/^tool./);
    await enterFilter(box, 'tool=echo');
    await expect.poll(() => rowWith(page, 'tools/call').count()).toBe(1);
    expect(page.url()).toContain('filter=tool%3Decho');

    const slip = 'tool=echo nosuch=1';
    await enterFilter(box, slip);
    await page.getByRole('alert').getByText('Expected a field at column 11').waitFor();
    const told = await page.getByRole('alert').textContent();
    expect(told).toMatch(/^ {10}\^/);
    const { stderr } = await tapedeckInProcess([
      'show',
      'latest',
      '--filter',
      slip,
      '--db',
      await storeOf('everything-stdio'),
    ]);
    const sentence = (told ?? '').replace(/^\s*\^/, '').trim();
    expect(sentence).not.toBe('');
    expect(stderr).toContain(sentence);
  });
});
