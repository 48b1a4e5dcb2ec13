/** Pages of the viewer in a real browser. Whatever is wrong in a page fails its test. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { describe, expect, inject, onTestFinished } from 'vitest';
import { tapedeckInProcess, tempStore } from './tapedeck.ts';
import { TOKEN, type Ui } from './ui.ts';

const endpoint = inject('chromium');

/** A group of tests that need a browser. */
export const inBrowser: (name: string, tests: () => void) => void = (name, tests) =>
  describe.skipIf(endpoint === null)(endpoint === null ? `${name} (skipped: no Chromium)` : name, tests);

let browser: Promise<Browser> | undefined;

type PageOptions = {
  scheme?: 'light' | 'dark';
  width?: number;
  height?: number;
  /** Errors in the console that the test is about. */
  expected?: RegExp;
  /** Whether it comes with the token. */
  hasToken?: boolean;
  /** How many pixels of the screen one of the page has: 2 at a zoom of 200 %. */
  zoom?: number;
  forcedColors?: boolean;
  /** Another origin that it may ask. */
  alsoAsks?: string;
};

type OpenOptions = PageOptions & { isOffline?: boolean };

/**
 * Opens a path of the viewer in a browser that knows nothing yet. The test fails on any error in the console, violation of
 * the content policy, dialog, or request to another origin.
 */
export function openPage(
  { origin }: Pick<Ui, 'origin'>,
  path = '/',
  options: PageOptions = {},
): Promise<Page> {
  const url = (options.hasToken ?? true) ? `${origin}${path}#token=${TOKEN}` : origin + path;
  return open(url, (asked) => asked.origin === origin || asked.origin === options.alsoAsks, options);
}

/** Opens a file from the disk, in a browser without a network. The test fails as with `openPage`, and on any request at all. */
export function openFile(file: string, options: PageOptions = {}): Promise<Page> {
  const { href } = pathToFileURL(file);
  return open(href, (asked) => asked.href.split('#')[0] === href, { ...options, isOffline: true });
}

async function open(url: string, isOwn: (asked: URL) => boolean, options: OpenOptions): Promise<Page> {
  const { scheme = 'light', width = 1280, height = 800, zoom = 1, expected, isOffline = false } = options;
  browser ??= chromium.connect(endpoint ?? '');
  const context = await (await browser).newContext({
    colorScheme: scheme,
    viewport: { width, height },
    deviceScaleFactor: zoom,
    forcedColors: options.forcedColors === true ? 'active' : 'none',
    offline: isOffline,
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const page = await context.newPage();
  const wrong: string[] = [];
  page.setDefaultTimeout(120_000);
  page.on('console', (message) => {
    if (message.type() !== 'error' || expected?.test(message.text())) return;
    wrong.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => wrong.push(`error: ${error.stack}`));
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const asked = new URL(request.url());
    if (!isOwn(asked) && !/^(?:blob|data):$/.test(asked.protocol)) wrong.push(`request: ${request.url()}`);
  });
  onTestFinished(async () => {
    await context.close();
    expect(wrong).toEqual([]);
  });
  await page.goto(url);
  return page;
}

/** The row of a list whose text has all of these words. */
export function rowWith(page: Page, ...words: readonly string[]) {
  return words.reduce(
    (rows, word) => rows.filter({ hasText: word }),
    page.getByRole('treegrid').getByRole('row'),
  );
}

/** Types a filter into a box and enters it: no key waits for what the box offers. */
export async function enterFilter(box: Locator, filter: string): Promise<void> {
  await box.fill(filter);
  await box.press('Enter');
}

/** Two keys of which the second must come soon after the first, however busy the machine is. */
export async function pressBoth(page: Page, first: string, second: string): Promise<void> {
  await Promise.all([page.keyboard.press(first), page.keyboard.press(second)]);
}

/** A store with one session, `made`, of these lines of a text recording. */
export async function storeOfLines(lines: readonly object[]): Promise<string> {
  const db = tempStore();
  const file = join(dirname(db), 'made.ndjson');
  const session = {
    ...{ name: 'made', basis: 'stdio-process', transport: 'stdio', target: 'made', command: ['made'] },
    ...{ startedAt: '2026-01-02T03:04:05.000000Z', endedAt: '2026-01-02T03:05:05.000000Z' },
    ...{ endReason: 'client-closed', exitCode: 0, recordedWith: '0.1.0' },
  };
  const all = [{ tapedeck: 1, session }, ...lines];
  writeFileSync(file, all.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const { code, stderr } = await tapedeckInProcess(['import', file, '--db', db]);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return db;
}

/** How a screen is looked at by axe; the first of them always. */
export const LOOKS = [
  { scheme: 'dark', width: 360 },
  { scheme: 'light', width: 1440 },
] as const;

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** What axe finds against WCAG 2.2 AA on a page, or in what a selector names; each with the first place. */
export async function violationsOn(page: Page, within = ':root'): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults, [string, string[]]>(
    ([selector, values]) =>
      Reflect.get(globalThis, 'axe').run(selector, { runOnly: { type: 'tag', values } }),
    [within, RULES],
  );
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join('\n')}`,
  );
}
