/** Recorded text is hostile: wherever it may stand, it is shown, and never run, followed or believed. */
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { inBrowser, openFile, openPage } from '../../support/browser.ts';
import { fillWithPayloads, HTTP_SESSIONS, PAYLOADS, STDIO_SESSIONS } from '../../support/hostile.ts';
import { storeOnce } from '../../support/once.ts';
import { IS_FULL, inFull, sample } from '../../support/scale.ts';
import { listSessions, tapedeckInProcess, tempFolder } from '../../support/tapedeck.ts';
import { startUi } from '../../support/ui.ts';

/** For a hang: on a slow machine the longest of these takes four minutes. */
const LONG_MS = 600_000;

/** One that has a bit of all: where none begins a text, it makes no difference what stands before it. */
const ALL_IN_ONE = PAYLOADS.map((text) => text.slice(0, 60)).join(' ');

/** The ids of the sessions that are called by a payload each, the last one by all of them. */
let named: readonly string[] = [];

const hostileStore = storeOnce(async (db) => {
  named = await fillWithPayloads(db, IS_FULL ? [...PAYLOADS, ALL_IN_ONE] : PAYLOADS.slice(0, 5));
});

/** In the page: whatever is there that recorded text alone can have brought. */
function traces(): string[] {
  const told: string[] = [];
  if ('wasRun' in globalThis) told.push('a script was run');
  const strange =
    'main :is(script, iframe, object, embed, base, meta, link, style, math, video, template, form[action], [autofocus]:not([type=search]))';
  for (const element of document.querySelectorAll(strange)) told.push(element.outerHTML.slice(0, 200));
  for (const element of document.querySelectorAll('*'))
    for (const { name } of element.attributes)
      if (/^on|^srcdoc$/.test(name)) told.push(`${name} of ${element.outerHTML.slice(0, 200)}`);
  for (const { protocol, origin, href, rel } of document.querySelectorAll('a'))
    if (!/^(?:https?|file|blob):$/.test(protocol) || (origin !== location.origin && rel !== 'noreferrer'))
      told.push(`a link to ${href.slice(0, 200)}`);
  for (const { src } of document.images) if (!src.startsWith('blob:')) told.push(`an image of ${src}`);
  const unseen =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode())
    if (node.parentElement?.closest('script') === null && unseen.test(node.nodeValue ?? ''))
      told.push(`unseen characters in ${node.parentElement?.outerHTML.slice(0, 200)}`);
  for (const element of document.querySelectorAll('[title], [aria-label]'))
    if (unseen.test(`${element.getAttribute('title')}${element.getAttribute('aria-label')}`))
      told.push(`unseen characters in the title of ${element.outerHTML.slice(0, 200)}`);
  if (unseen.test(document.title)) told.push('unseen characters in the title of the page');
  return told;
}

/** In the page: goes from place to place without loading it anew, until what it `brings` is there, and looks at each. */
async function walkThrough({
  paths,
  brings,
}: {
  paths: readonly string[];
  brings: string;
}): Promise<string[]> {
  const told: string[] = [];
  const isFile = location.protocol === 'file:';
  // Nothing is drawn for the waiting itself: it would take as long as what is waited for.
  const comes = (selector: string) =>
    new Promise<boolean>((done) => {
      const look = () => document.querySelector(selector) !== null && requestAnimationFrame(() => end(true));
      const observer = new MutationObserver(look);
      const timer = setTimeout(() => end(false), 120_000);
      const end = (isThere: boolean) => {
        clearTimeout(timer);
        observer.disconnect();
        done(isThere);
      };
      observer.observe(document.body, { subtree: true, childList: true });
      look();
    });
  for (const path of paths) {
    for (const old of document.querySelectorAll(brings)) old.setAttribute('data-old', '');
    history.pushState(null, '', isFile ? `#${path}` : path);
    dispatchEvent(new PopStateEvent('popstate'));
    if (!(await comes(`:is(${brings}):not([data-old])`))) return [...told, `${path} does not come`];
    for (const trace of Reflect.get(globalThis, 'traces')()) told.push(`${path}: ${trace}`);
  }
  return told;
}

/** What is requested, logged or asked fails by `openPage`. Pages share the way: one waits while another one draws. */
async function walk(pages: readonly Page[], brings: string, paths: readonly string[]): Promise<void> {
  const told = pages.map(async (page, k) => {
    await page.evaluate(`globalThis.traces = ${traces}`);
    const own = paths.filter((_, i) => i % pages.length === k);
    return page.evaluate(walkThrough, { paths: own, brings });
  });
  expect((await Promise.all(told)).flat()).toEqual([]);
}

/** In the page: settles once nothing has been drawn for a while, as then all that was asked for is there. */
function isDrawn(): Promise<void> {
  return new Promise((done) => {
    const enough = () => setTimeout(() => done(observer.disconnect()), 200);
    const observer = new MutationObserver(() => {
      clearTimeout(timer);
      timer = enough();
    });
    observer.observe(document.body, { subtree: true, childList: true, characterData: true });
    let timer = enough();
  });
}

async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole('heading', { level: 1 }).first().waitFor({ state: 'attached' });
  await page.locator('[role=treegrid], [role=tabpanel], main section').first().waitFor({ state: 'attached' });
  await page.evaluate(isDrawn);
  expect(await page.evaluate(traces), url).toEqual([]);
  expect(new URL(page.url()).origin).toBe(new URL(url).origin);
}

const TABS = ['?tab=raw', '?tab=hex', '?tab=bytes', '?tab=headers'];

/**
 * Every frame of these sessions as its tree or text, and every eighth in another way; one that is alone in its session in
 * all ways. Where not all is run, a few of them.
 */
async function framePaths(db: string, names: readonly string[]): Promise<string[]> {
  const sessions = await listSessions(db);
  return names.flatMap((name) => {
    const { session, frames = 0 } = sessions.find((one) => one.name === name) ?? {};
    expect(frames).toBeGreaterThan(0);
    const tabs = name.startsWith('http') ? TABS : TABS.slice(0, -1);
    const tabsAt = (k: number) => (name.endsWith('-long') ? tabs : [tabs[k % tabs.length]]);
    const seqs = Array.from({ length: frames }, (_, i) => i + 1);
    const shown = IS_FULL ? seqs : seqs.filter((_, i) => i % 80 === 5);
    return shown.flatMap((seq) => {
      const path = `/s/${session}/f/${seq}`;
      const isInOtherWays = IS_FULL && seq % 8 === 5;
      return [path, ...(isInOtherWays ? tabsAt((seq - 5) / 8).map((tab) => path + tab) : [])];
    });
  });
}

/** Every HTTP exchange, by the id of its session: of a name each visit would ask again. */
async function exchangePaths(db: string): Promise<string[]> {
  const sessions = (await listSessions(db)).filter(({ name }) => HTTP_SESSIONS.some((one) => one === name));
  const paths = sessions.flatMap(({ session, exchanges }) =>
    Array.from({ length: exchanges }, (_, i) => `/s/${session}/h/${i + 1}`),
  );
  expect(paths).toHaveLength(2 * PAYLOADS.length);
  return paths;
}

const FRAME = '[role=tabpanel] > *';

inBrowser('hostile text', () => {
  test(
    'is shown and never run, wherever in a session it stands',
    async () => {
      expect(PAYLOADS.length).toBeGreaterThanOrEqual(60);
      const db = await hostileStore();
      const ui = await startUi(db);
      const pages = await Promise.all([
        openPage(ui, '/s/stdio'),
        ...(IS_FULL ? [openPage(ui, '/s/stdio')] : []),
      ]);
      for (const page of pages) await page.getByRole('treegrid').waitFor();
      await walk(pages, FRAME, await framePaths(db, STDIO_SESSIONS));
      await walk(
        pages,
        'aside dl',
        sample(named).map((id) => `/s/${id}?facts=1`),
      );
      if (!IS_FULL) return;
      await walk(pages, FRAME, await framePaths(db, HTTP_SESSIONS));
      await walk(pages, 'aside section', await exchangePaths(db));
    },
    LONG_MS,
  );

  inFull(
    'is shown and never run on every screen, in every list and every answer',
    async () => {
      const db = await hostileStore();
      const ui = await startUi(db);
      const page = await openPage(ui, '/', { expected: /status of 400/ });
      const { runs } = await ui.json('/api/runs');
      expect(runs.length).toBeGreaterThan(PAYLOADS.length / 2);
      const asked = sample(
        PAYLOADS.map((text) => encodeURIComponent(Buffer.from(text).toString().slice(0, 300))),
      );
      const paths = [
        ...[
          '/',
          '/?group=name',
          '/?group=client',
          '/?group=server',
          '/?group=run',
          '/live',
          '/stats?by=session',
        ],
        ...STDIO_SESSIONS.flatMap((name) =>
          ['', '?raw=1', '?open=all', '/stats', '/check?at=1'].map((rest) => `/s/${name}${rest}`),
        ),
        ...HTTP_SESSIONS.flatMap((name) => ['', '/check?at=1', '/http'].map((rest) => `/s/${name}${rest}`)),
        ...['/search?q=globalThis', '/diff/stdio/http?all=1&at=2', '/diff/stdio-long/http-long?all=1&at=2'],
        ...named.slice(1, 4).map((id, i) => `/diff/${named[i]}/${id}?all=1&at=1`),
        ...runs.slice(0, 6).map(({ run }: { run: string }) => `/run/${run}`),
        ...asked
          .filter((_, i) => i % 15 === 0)
          .flatMap((text) => [`/search?q=${text}`, `/s/stdio?filter=${text}`]),
      ];
      const pages = [page, await openPage(ui, '/', { expected: /status of 400/ })];
      const visitAll = async (one: Page) => {
        for (let path = paths.shift(); path !== undefined; path = paths.shift())
          await visit(one, ui.origin + path);
      };
      await Promise.all(pages.map(visitAll));
    },
    LONG_MS,
  );
});

/** A report of a session, opened from the disk. */
async function openReport(db: string, session: string): Promise<Page> {
  const file = join(tempFolder(), 'report.html');
  const args = ['export', session, '--format', 'html', '-o', file, '--db', db];
  const { code, stderr } = await tapedeckInProcess(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const page = await openFile(file);
  await page.getByText('A report, not a live view').waitFor();
  return page;
}

inBrowser('hostile text in a report', () => {
  inFull(
    'is shown and never run, wherever in a session it stands',
    async () => {
      const db = await hostileStore();
      const walkReport = async (session: string) => {
        const page = await openReport(db, session);
        // It is drawn by what draws the page, which is taken through all of them: a sixth shows that this holds here.
        const paths = await framePaths(db, [session]);
        const isLong = session.endsWith('-long');
        await walk(
          [page],
          FRAME,
          paths.filter((_, i) => isLong || i % 6 === 0),
        );
        await page.close();
      };
      for (const sessions of [STDIO_SESSIONS, HTTP_SESSIONS]) await Promise.all(sessions.map(walkReport));
    },
    LONG_MS,
  );

  inFull(
    'is shown and never run, whatever the session is called',
    async () => {
      const db = await hostileStore();
      // Every twelfth alone, and all of them in one.
      for (const id of named.filter((_, i) => i % 12 === 0 || i === named.length - 1)) {
        const page = await openReport(db, id);
        expect(await page.evaluate(traces)).toEqual([]);
        await page.close();
      }
    },
    LONG_MS,
  );
});
