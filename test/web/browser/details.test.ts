/** What stands beside the messages and the screens: colours that are explained, edits, addresses by a beginning, words that were used before. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { enterFilter, inBrowser, openFile, openPage, rowWith } from '../../support/browser.ts';
import { runOfThree } from '../../support/run-store.ts';
import { inFull } from '../../support/scale.ts';
import { showFrames, tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';
import { startUi, storeOf } from '../../support/ui.ts';

const ASKED = { method: 'GET', path: '/mcp', version: '1.1', client: '127.0.0.1:1', headers: [] };

/** A stream that stays open for a while, a redirect that was edited, and a body that was. */
const LINES = [
  { ms: 0, http: 1, request: { ...ASKED, path: '/stream' } },
  { ms: 10, http: 1, response: { status: 200, statusText: 'OK', headers: [], bytes: 0 } },
  { ms: 20, http: 2, request: { ...ASKED, path: '/moved' } },
  {
    ...{ ms: 10, http: 2 },
    response: {
      ...{ status: 302, statusText: 'Found', headers: [['location', 'http://proxy.test/']], bytes: 0 },
      edits: [{ header: 'location', original: 'http://upstream.test/' }],
    },
  },
  { ms: 1, http: 2, end: { closedBy: 'server' } },
  { ms: 9, http: 3, request: { ...ASKED, path: '/.well-known/oauth-protected-resource' } },
  { ms: 5, http: 3, response: { status: 200, statusText: 'OK', headers: [], bytes: 31 } },
  {
    ...{ ms: 1, http: 3, channel: 'response', text: '{"resource":"http://proxy.test/"}' },
    original: { text: '{"resource":"http://upstream.test/"}' },
  },
  { ms: 1, http: 3, end: { closedBy: 'server' } },
  { ms: 100, http: 4, request: { ...ASKED, path: '/denied' } },
  { ms: 5, http: 4, response: { status: 401, statusText: 'Unauthorized', headers: [], bytes: 0 } },
  { ms: 1, http: 4, end: { closedBy: 'server' } },
  { ms: 100, http: 1, channel: 'sse', sse: { event: 'message' }, text: '{}' },
  { ms: 737, http: 1, end: { closedBy: 'client' } },
];

async function storeOfHttp(): Promise<string> {
  const db = tempStore();
  const file = join(dirname(db), 'http.ndjson');
  const session = {
    ...{ name: 'http', basis: 'stateless', transport: 'http', target: 'http://upstream.test/mcp' },
    ...{ startedAt: '2026-01-02T03:04:05.000000Z', endedAt: '2026-01-02T03:04:06.000000Z' },
    endReason: 'stopped',
  };
  writeFileSync(
    file,
    [{ tapedeck: 1, session }, ...LINES].map((line) => `${JSON.stringify(line)}\n`).join(''),
  );
  const { code, stderr } = await tapedeckInProcess(['import', file, '--db', db]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return db;
}

inBrowser('beside the messages', () => {
  test('plain HTTP has bars, and edits rows that lead to what its sender had sent', async () => {
    const page = await openPage(await startUi(await storeOfHttp()), '/s/latest');
    const stream = rowWith(page, 'GET /stream');
    await stream.waitFor();
    const bar = stream.locator('[aria-hidden] > span').last();
    const [wide = 0, short = 0] = await Promise.all(
      [bar, rowWith(page, 'GET /moved', '302').locator('[aria-hidden] > span').last()].map(
        async (one) => (await one.boundingBox())?.width,
      ),
    );
    expect(wide).toBeGreaterThan(short * 10);
    await rowWith(page, 'edited', 'location had been http://upstream.test/').click();
    await page.keyboard.press('Enter');
    await page.getByText('edited; its sender had sent http://upstream.test/').waitFor();
    expect(await page.getByRole('list', { name: 'Colours of the bars' }).textContent()).toMatch(
      /request\s*waiting\s*answer/,
    );
    await page.keyboard.press('n');
    await page.locator('[role=row][aria-selected=true]', { hasText: '401' }).waitFor();
    await rowWith(page, '/stream').click();
    await page.getByText('until the first event of its body came').waitFor();
    await page.goto(page.url().replace(/\/h\/.*/, ''));
    // The rows of plain HTTP come last, and move the others.
    await stream.waitFor();
    await rowWith(page, 'edited', '#1 was changed on its way').click();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'What its sender had sent' }).waitFor();
    const panel = page.getByRole('tabpanel');
    await panel.getByText('http://upstream.test/').first().waitFor();
    await panel.getByText('http://proxy.test/').first().waitFor();
  });

  inFull('a report copies a frame as JSON and as its text', async () => {
    const db = await storeOf('everything-stdio');
    const file = join(dirname(db), 'report.html');
    await tapedeckInProcess(['export', '--format', 'html', '--output', file, '--db', db]);
    const frame = (await showFrames(db)).find(({ seq }) => seq === 3);
    const page = await openFile(file);
    await rowWith(page, 'initialize').first().click();
    for (const [label, text] of [
      ['JSON', JSON.stringify(frame)],
      ['Raw', frame?.text],
    ] as const) {
      await page.getByRole('link', { name: /answered by #3/ }).waitFor();
      await page.keyboard.press(']');
      await page.getByRole('link', { name: /answers #1/ }).waitFor();
      await page.keyboard.press('c');
      await expect.poll(() => page.getByRole('menuitem').count()).toBe(2);
      await page.getByRole('menuitem', { name: new RegExp(`^${label}`) }).click();
      await page.getByText(`Copied: ${label}`).waitFor();
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(text);
      await page.keyboard.press('[');
    }
  });

  inFull('the beginning of an id becomes the id on every screen of sessions', async () => {
    const ui = await startUi(await storeOf('everything-stdio', 'everything-http'));
    const { sessions } = await ui.json('/api/sessions');
    const [b, a] = sessions.map(({ session }: { session: string }) => session);
    const page = await openPage(ui, '/');
    await rowWith(page, 'everything-stdio').waitFor();
    for (const [given, full] of [
      [`/s/${a.slice(0, 7)}/check?side=server`, `/s/${a}/check?side=server`],
      [`/s/${b.slice(0, 7)}/http`, `/s/${b}/http`],
      [`/diff/${a.slice(0, 7)}/latest`, `/diff/${a}/${b}`],
      [`/s/${a.slice(0, 7)}/f/3?tab=raw`, `/s/${a}/f/3?tab=raw`],
    ]) {
      await page.goto(ui.origin + given);
      await expect.poll(() => page.url()).toBe(ui.origin + full);
    }
  });

  inFull('sessions are sorted without a mouse', async () => {
    const page = await openPage(await startUi(await storeOf('everything-stdio', 'everything-http')), '/');
    await rowWith(page, 'everything-http').waitFor();
    const names = async () =>
      (await page.getByRole('row').allInnerTexts()).slice(1).map((text) => /everything-\w+/.exec(text)?.[0]);
    await expect.poll(names).toEqual(['everything-http', 'everything-stdio']);
    await page.getByRole('combobox', { name: 'Sort by' }).selectOption('frames');
    await expect.poll(() => page.url()).toContain('sort=-frames');
    await expect.poll(names).toEqual(['everything-http', 'everything-stdio']);
    await page.goto(page.url().replace('-frames', 'frames'));
    await expect.poll(names).toEqual(['everything-stdio', 'everything-http']);
  });

  inFull('the last twenty filters are offered again, the newest first', async () => {
    const page = await openPage(await startUi(await storeOf('everything-stdio')), '/s/latest');
    await rowWith(page, 'initialize').first().waitFor();
    const box = page.getByRole('combobox', { name: 'Filter messages' });
    const offered = page.getByRole('option');
    const chosen = page.getByRole('option', { selected: true });
    for (let i = 1; i <= 21; i += 1) await enterFilter(box, `dur>${i}s`);
    await enterFilter(box, '');
    await box.press('ArrowDown');
    await expect.poll(() => offered.count()).toBe(20);
    await expect.poll(() => chosen.textContent()).toMatch(/^dur>21s.*used before$/);
    await box.press('ArrowUp');
    await expect.poll(() => chosen.textContent()).toMatch(/^dur>2s(?!\d)/);

    // Whether the list is open already makes no difference: the first arrow chooses the first.
    for (const isOpen of [true, false]) {
      await page.goto(new URL('/s/latest', page.url()).href);
      await box.focus();
      await offered.first().waitFor();
      if (!isOpen) await box.press('Escape');
      await expect.poll(() => offered.count()).toBe(isOpen ? 20 : 0);
      await box.press('ArrowDown');
      await box.press('Enter');
      await expect.poll(() => box.inputValue()).toBe('dur>21s');
    }
  });

  inFull('keys in the filter box do what they do, whenever the words that it offers come', async () => {
    const page = await openPage(await startUi(await storeOf('everything-stdio')), '/s/latest');
    await rowWith(page, 'initialize').first().waitFor();
    const box = page.getByRole('combobox', { name: 'Filter messages' });
    const offered = page.getByRole('option');
    let letGo = () => {};
    const held = async () => {
      await page.unroute(/\/api\/complete/);
      const gate = new Promise<void>((settled) => {
        letGo = settled;
      });
      await page.route(/\/api\/complete/, (route) => gate.then(() => route.continue()));
    };
    // Two arrows and Enter, all before there is anything to choose from, are the second word; a further arrow is as late.
    await held();
    await box.fill('tool=e');
    const words = page.waitForResponse(/complete\?filter=tool%3De&/);
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'Enter']) await box.press(key);
    letGo();
    const [first] = (await (await words).json()).words;
    await expect.poll(() => box.inputValue()).toBe(`tool=${first.text.replace(/^tool=/, '')}`);

    // Enter without an arrow takes nothing, and Escape closes once, whether anything was there to close.
    await held();
    await box.fill('tool=e');
    await box.press('Escape');
    expect(await box.evaluate((input) => input === document.activeElement)).toBe(true);
    await box.fill('tool=ec');
    await box.press('Enter');
    await expect.poll(() => new URL(page.url()).searchParams.get('filter')).toBe('tool=ec');
    letGo();
    await expect.poll(() => offered.count()).toBe(0);
    await box.press('Escape');
    expect(await box.evaluate((input) => input === document.activeElement)).toBe(false);
  });

  inFull('what a highlight selects is marked among all rows, also of sessions', async () => {
    const page = await openPage(
      await startUi(await storeOf('everything-stdio', 'everything-http')),
      '/s/latest',
    );
    await rowWith(page, 'initialize').first().waitFor();
    const all = await page.getByRole('row').count();
    await page.getByRole('button', { name: 'Highlight' }).click();
    await enterFilter(page.getByRole('combobox', { name: 'Highlight messages' }), 'tool=echo');
    await expect.poll(() => page.locator('[role=row][data-tone=marked]').count()).toBe(1);
    // Other rows stay. How many are drawn depends on what there is room for.
    expect(await page.getByRole('row').count()).toBeGreaterThanOrEqual(all);
    expect(page.url()).toContain('hl=tool%3Decho');
    await page.goto(new URL('/?hl=transport%3Dstdio', page.url()).href);
    await expect.poll(() => page.locator('[role=row][data-tone=marked]').count()).toBe(1);
    await expect.poll(() => page.getByRole('row').count()).toBe(3);
  });

  inFull('a stretch of very many calls comes page by page, and a filter leaves some of them', async () => {
    const page = await openPage(await startUi(await runOfThree()), '/');
    await rowWith(page, 'files').waitFor();
    await page.goto(new URL('/?group=run', page.url()).href);
    await rowWith(page, 'demo ', '3 sessions').getByRole('link').waitFor();
    await page.goto(new URL('/?group=client', page.url()).href);
    await rowWith(page, 'no client', '3 sessions').waitFor();
    await rowWith(page, 'files').waitFor();
    await page.route(/\/api\/runs\/demo/, (route) =>
      route.continue({ url: `${route.request().url()}&limit=1` }),
    );
    await page.goto(new URL('/run/demo?stretch=1', page.url()).href);
    await rowWith(page, 'tools/call', 'query').waitFor();
    await expect.poll(() => page.getByRole('treegrid').getByRole('row').count()).toBe(5);
    await enterFilter(page.getByRole('combobox', { name: 'Filter calls' }), 'status=tool-error');
    await expect.poll(() => page.getByRole('treegrid').getByRole('row').count()).toBe(2);
  });
});
