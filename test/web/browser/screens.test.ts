/** Search, comparison, statistics, findings and HTTP exchanges, by the real command line, store and browser. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { enterFilter, inBrowser, openPage, pressBoth, rowWith } from '../../support/browser.ts';
import { inFull } from '../../support/scale.ts';
import { SLOW, slowStoreWithCalls } from '../../support/slow-store.ts';
import { showFrames, tapedeckInProcess, tempStore, until } from '../../support/tapedeck.ts';
import { startUi, storeOf } from '../../support/ui.ts';

/** Slow readers give way to all that others do. */
const LONG_MS = 240_000;

const NAMES = ['everything-stdio', 'everything-http', 'modern-http'] as const;

async function seqsShown(page: Page): Promise<number[]> {
  const cells = await page.getByRole('row').locator('[aria-colindex="1"]').allTextContents();
  return cells.map(Number).filter((seq) => seq > 0);
}

async function seqsOf(db: string, name: string, filter: string): Promise<number[]> {
  const { stdout } = await tapedeckInProcess(['show', name, '--json', '--filter', filter, '--db', db]);
  const lines = stdout
    .toString()
    .split('\n')
    .filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line).seq);
}

inBrowser('a filter', () => {
  /** Of the README and docs, but for the one that shows a mistake. */
  const shown = ['README.md', ...readdirSync('docs').map((name) => `docs/${name}`)]
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => [...readFileSync(name, 'utf8').matchAll(/--filter '([^']+)'/g)])
    .map(([, filter = '']) => filter)
    .filter((filter) => filter !== 'tol=echo');
  const filters = [...new Set([...shown, 'dir=server', 'kind=request not tool=echo'])];

  inFull('shows the frames that `show --filter` shows: each of the README and docs', async () => {
    expect(filters.length).toBeGreaterThan(7);
    const db = await storeOf('everything-stdio');
    const page = await openPage(await startUi(db), '/s/latest?raw=1');
    for (const filter of filters) {
      const box = page.getByRole('combobox', { name: 'Filter messages' });
      await enterFilter(box, filter);
      await expect.poll(() => seqsShown(page)).toEqual(await seqsOf(db, 'latest', filter));
    }
  });
});

inBrowser('search', () => {
  test('finds in all sessions, leads to the frame, and is the same after a reload', async () => {
    const page = await openPage(await startUi(await storeOf(...NAMES)), '/');
    await rowWith(page, 'everything-http').waitFor();
    await pressBoth(page, 'g', 'f');
    await enterFilter(page.getByRole('searchbox'), 'Hello, tape');
    await rowWith(page, 'everything-http').waitFor();
    const marks = page.locator('mark');
    await expect.poll(() => marks.allTextContents()).toEqual(Array(4).fill('Hello, tape'));
    await page.reload();
    await expect.poll(() => page.locator('mark').count()).toBe(4);
    await rowWith(page, 'tools/call echo').first().click();
    await expect.poll(() => page.url()).toMatch(/\/s\/\w+\/f\/\d+\?hl=/);
    await page.getByRole('tab', { name: 'Raw' }).waitFor();
    await page.goBack();
    await rowWith(page, 'everything-stdio').waitFor();
  });

  inFull(
    'that is stopped keeps what it found, and its thread has no more work',
    async () => {
      const db = await slowStoreWithCalls();
      const ended: number[] = [];
      const watch = (worker: Worker) => void worker.on('exit', (code) => ended.push(code));
      process.on('worker', watch);
      onTestFinished(() => void process.off('worker', watch));
      const filter = encodeURIComponent(`tool=echo or ${SLOW}`);
      const page = await openPage(await startUi(db), `/search?index=no&filter=${filter}`);
      page.setDefaultTimeout(LONG_MS / 2);
      await rowWith(page, 'tools/call echo').first().waitFor();
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByText(/ in 1 session, then stopped$/).waitFor();
      await until('the thread ends in the middle of it', () => ended.length > 0);
      expect(await rowWith(page, 'tools/call echo').count()).toBeGreaterThan(0);
      await page.getByRole('button', { name: 'Search again' }).click();
      await page.getByRole('button', { name: 'Stop' }).waitFor();
      await rowWith(page, 'tools/call echo').first().waitFor();
    },
    LONG_MS,
  );

  inFull('says what is wrong with a filter', async () => {
    const page = await openPage(
      await startUi(await storeOf('everything-stdio')),
      '/search?filter=tol%3Decho',
      {
        expected: /status of 400/,
      },
    );
    await page
      .getByRole('alert')
      .getByText('Expected a field at column 1 of the filter, got `tol`. Nearest: `tool`.')
      .waitFor();
  });
});

inBrowser('statistics', () => {
  inFull('lead from a bar and from a row to exactly the calls that they count', async () => {
    const db = await storeOf('everything-stdio');
    const page = await openPage(await startUi(db), '/s/latest/stats');
    await rowWith(page, 'tools/call', 'echo').waitFor();
    const [latencies] = await page.locator('details').all();
    await latencies?.locator('summary').click();
    const row = latencies?.locator('tbody tr').first();
    const count = Number(await row?.locator('td').first().textContent());
    await row?.getByRole('link').click();
    await page.getByRole('treegrid', { name: 'Messages' }).waitFor();
    const chosen = () => new URL(page.url()).searchParams.get('filter') ?? '';
    await expect.poll(chosen).toMatch(/^dur>=\d+us dur<\d+us$/);
    const filter = chosen();
    expect(await seqsOf(db, 'latest', `${filter} kind=request`)).toHaveLength(count);

    await page.goBack();
    await rowWith(page, 'tools/call', 'get-sum').getByRole('link', { name: '2' }).click();
    await expect.poll(() => rowWith(page, 'tools/call').count()).toBe(2);
  });

  inFull('draw bars that are clicked', async () => {
    const page = await openPage(await startUi(await storeOf('everything-stdio')), '/s/latest/stats');
    const plot = page.getByRole('img', { name: 'Calls over time' });
    await plot.locator('canvas').waitFor();
    const box = await plot.locator('.u-over').boundingBox();
    if (box === null) throw new Error('the chart is not there');
    for (let x = 2; x < box.width && !page.url().includes('filter='); x += 3)
      await page.mouse.click(box.x + x, box.y + box.height - 4);
    const chosen = () => new URL(page.url()).searchParams.get('filter');
    await expect.poll(chosen).toMatch(/^kind=request since=\S+Z until=\S+Z$/);
  });
});

inBrowser('a comparison', () => {
  inFull('of two chosen sessions shows what differs, and forgets what is ignored', async () => {
    const db = await storeOf('everything-stdio');
    const file = `${db}.later.ndjson`;
    const { stdout } = await tapedeckInProcess(['export', 'latest', '--db', db]);
    writeFileSync(file, stdout.toString().replaceAll('Forty-two.', 'Forty-three.'));
    await tapedeckInProcess(['import', file, '--name', 'later', '--db', db]);
    const page = await openPage(await startUi(db), '/');
    for (const name of ['everything-stdio', 'later'])
      await page.getByRole('row').filter({ hasText: name }).getByRole('checkbox').check();
    await page.getByRole('link', { name: 'Compare the two' }).click();
    const row = rowWith(page, 'differs', 'trigger-sampling-request');
    await row.click();
    await page.getByText('Where the answers differ').waitFor();
    await page.getByRole('button', { name: /^Ignore \/content\/0\/text/ }).click();
    await page.getByText('trigger-sampling-request:$.content[0].text').waitFor();
    await expect.poll(() => row.count()).toBe(0);
    await page.getByRole('button', { name: /^Count .* again$/ }).click();
    await row.waitFor();
    await page.getByRole('button', { name: 'Times' }).click();
    await page.getByRole('cell', { name: /ms/ }).first().waitFor();
  });
});

/** A server that says something that is no message, and answers in a wrong form. */
async function storeOfFaults(): Promise<string> {
  const db = tempStore();
  const session = {
    ...{ name: 'faulty', basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'] },
    startedAt: '2026-11-20T10:00:00.000000Z',
  };
  const lines = ['{"jsonrpc":"1.0","id":1,"method":"ping"}', 'no JSON'];
  const all = [{ tapedeck: 1, session }, ...lines.map((text) => ({ ms: 1, channel: 'stdout', text }))];
  writeFileSync(`${db}.ndjson`, all.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await tapedeckInProcess(['import', `${db}.ndjson`, '--db', db]);
  return db;
}

inBrowser('findings', () => {
  inFull('are those of `check`, and lead to their frames', async () => {
    const db = await storeOfFaults();
    const page = await openPage(await startUi(db), '/s/latest/check');
    const box = page.getByRole('combobox', { name: 'Filter findings' });
    await rowWith(page, '#1').first().waitFor();
    await enterFilter(box, 'kind!=invalid text~"no JSON"');
    await expect.poll(() => rowWith(page, '#1').count()).toBe(0);
    await enterFilter(box, '');
    await rowWith(page, '#1').first().waitFor();
    await rowWith(page, '#2', 'text that is not JSON').click();
    await page.getByText('stdout-pollution').first().waitFor();
    await page.getByRole('link', { name: 'Go to #2' }).click();
    await expect.poll(() => page.url()).toContain('/f/2');
  });
});

inBrowser('HTTP exchanges', () => {
  inFull('stand in a waterfall, each with its headers as they were stored', async () => {
    const db = await storeOf('everything-http');
    const page = await openPage(await startUi(db), '/s/latest/http');
    await rowWith(page, 'DELETE').waitFor();
    const box = page.getByRole('combobox', { name: 'Filter exchanges' });
    await enterFilter(box, 'tool=echo');
    await expect.poll(() => rowWith(page, 'POST').count()).toBe(1);
    await page.getByRole('button', { name: 'Highlight' }).click();
    await page.locator('[role=row][data-tone=marked]').waitFor();
    await enterFilter(page.getByRole('combobox', { name: 'Highlight exchanges' }), '');
    await rowWith(page, 'POST', '202').click();
    const pane = page.getByRole('complementary', { name: 'HTTP exchange' });
    await pane.getByRole('row', { name: 'mcp-session-id masked-' }).first().waitFor();
    expect(await pane.getByRole('row', { name: 'X-Powered-By' }).count()).toBe(1);
    await rowWith(page, 'DELETE').click();
    await pane.getByRole('heading', { name: 'DELETE /mcp' }).waitFor();
    await page.keyboard.press('c');
    await page.getByRole('menuitem', { name: 'curl' }).click();
    await page.getByText('Copied: curl').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain("--request 'DELETE'");
    await rowWith(page, 'POST', '202').click();
    const [frame] = (await showFrames(db)).filter(({ http }) => http?.exchange === 2);
    await pane.getByRole('link', { name: `#${frame?.seq}` }).click();
    await expect.poll(() => page.url()).toContain(`/f/${frame?.seq}`);
  });
});
