/** What holds on every screen: who can use it, at what size and in which colours, and that its address is all of it. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { inBrowser, LOOKS, openPage, rowWith, violationsOn } from '../../support/browser.ts';
import { IS_FULL, inFull } from '../../support/scale.ts';
import { PLACES, storeOfScreens, waitForPlace } from '../../support/screens.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { startUi, type Ui } from '../../support/ui.ts';

const LONG_MS = 300_000;

/** On a busy machine a filter takes its time. */
const MARK_MS = 30_000;

/** Inside the page, as its links do it. */
async function goInside(page: Page, path: string): Promise<void> {
  await page.evaluate((href) => {
    const link = Object.assign(document.createElement('a'), { href });
    document.body.append(link);
    link.click();
    link.remove();
  }, path);
}

/** A name of a session becomes its id. */
async function addressOf(page: Page): Promise<string> {
  await expect.poll(() => page.url()).not.toMatch(/\/everything-/);
  return page.url();
}

inBrowser('every screen', () => {
  for (const [i, look] of LOOKS.entries()) {
    (i === 0 ? test : inFull)(
      `can be used by all: axe finds nothing, ${look.scheme}, ${look.width} pixels`,
      async () => {
        const ui = await startUi(await storeOfScreens());
        const page = await openPage(ui, '/', look);
        for (const place of IS_FULL ? PLACES : PLACES.slice(15, 17)) {
          await goInside(page, place[0]);
          await waitForPlace(page, place);
          expect(await violationsOn(page), place[0]).toEqual([]);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          expect(wide, `${place[0]} is wider than the window`).toBeLessThanOrEqual(0);
        }
        if (IS_FULL) await lookAtWhatOpens(page, ui);
      },
      LONG_MS,
    );
  }

  inFull('a store without a session is usable too', async () => {
    const ui = await startUi(tempStore());
    for (const look of LOOKS) {
      const page = await openPage(ui, '/', look);
      await page.getByRole('heading', { name: 'Nothing is recorded yet' }).waitFor();
      expect(await violationsOn(page), look.scheme).toEqual([]);
    }
  });

  inFull(
    'is in its address: for links, back, forward, reload and others',
    async () => {
      const ui = await startUi(await storeOfScreens());
      const page = await openPage(ui, '/stats?by=method');
      const addresses: string[] = [];
      const places = PLACES.slice(0, -1);
      for (const place of places) {
        await goInside(page, place[0]);
        await waitForPlace(page, place);
        addresses.push(await addressOf(page));
      }
      for (let at = places.length - 2; at >= 0; at -= 1) {
        await page.goBack();
        await expect.poll(() => page.url()).toBe(addresses[at]);
        await waitForPlace(page, places[at] ?? ['', '']);
      }
      for (const [at, place] of places.entries()) {
        if (at > 0) await page.goForward();
        await waitForPlace(page, place);
        await page.reload();
        await waitForPlace(page, place);
        expect(page.url()).toBe(addresses[at]);
      }
      const other = await openPage(ui, '/live');
      for (const [at, place] of places.entries()) {
        await other.goto(addresses[at] ?? '');
        await waitForPlace(other, place);
        expect(other.url()).toBe(addresses[at]);
      }
    },
    LONG_MS,
  );

  inFull(
    'has room at a zoom of 200 %: nothing is cut, and nothing has to be scrolled sideways',
    async () => {
      const ui = await startUi(await storeOfScreens());
      const page = await openPage(ui, '/', { width: 640, height: 400, zoom: 2 });
      for (const place of PLACES) {
        await goInside(page, place[0]);
        await waitForPlace(page, place);
        expect(await page.evaluate(outOfReach), place[0]).toEqual([]);
        expect(await violationsOn(page), place[0]).toEqual([]);
      }
    },
    LONG_MS,
  );

  for (const scheme of ['light', 'dark'] as const)
    inFull(
      `tells by lines what it tells by colours, where these are forced, and shows the focus: ${scheme}`,
      async () => {
        const ui = await startUi(await storeOfScreens());
        const page = await openPage(ui, '/', { scheme, forcedColors: true });
        for (const place of PLACES) {
          await goInside(page, place[0]);
          await waitForPlace(page, place);
          expect(await page.evaluate(onlyByColour), place[0]).toEqual([]);
          expect(await unseenFocusOn(page), place[0]).toEqual([]);
        }
        await page.goto(`${ui.origin}/s/everything-stdio?hl=tool%3Decho`);
        const lineAround = (...texts: string[]) =>
          rowWith(page, ...texts)
            .first()
            .evaluate(lineOf);
        // What is to be marked is asked for once the rows are there.
        await expect
          .poll(async () => (await lineAround('tools/call', 'echo')) !== (await lineAround('initialize')), {
            timeout: MARK_MS,
          })
          .toBe(true);
      },
      LONG_MS,
    );
});

/** The dialogs, menus and words of trouble, which no address has. */
async function lookAtWhatOpens(page: Page, ui: Ui): Promise<void> {
  await page.goto(`${ui.origin}/s/everything-stdio/f/13`);
  await page.getByRole('button', { name: 'Copy as' }).click();
  await page.getByRole('menu').waitFor();
  // What it covers is hard to hit as long as it is open.
  expect(await violationsOn(page, '[role=menu]'), 'the copy menu').toEqual([]);
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  expect(await violationsOn(page), 'the help').toEqual([]);
  await page.keyboard.press('Escape');
  await page.goto(ui.origin);
  await page.getByRole('combobox', { name: 'Filter sessions' }).fill('tool');
  await page.getByRole('listbox').waitFor();
  expect(await violationsOn(page), 'the completions').toEqual([]);
}

/**
 * In the page: what can be used but is cut off, covered, or out of the window sideways. A list has to have room for some rows.
 */
function outOfReach(): string[] {
  const told: string[] = [];
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) told.push(`the page is ${page.scrollWidth} wide`);
  for (const list of document.querySelectorAll('[role=treegrid]')) {
    const { height, width } = list.getBoundingClientRect();
    if (width > 0 && height < 72) told.push(`a list of ${Math.round(height)} pixels`);
  }
  const usable = 'a[href], button:not(:disabled), input, select, summary, [tabindex="0"]';
  for (const element of document.querySelectorAll<HTMLElement>(usable)) {
    if (!element.checkVisibility() || element.closest('[aria-hidden=true]') !== null) continue;
    element.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    const { left, top, width, height } = element.getBoundingClientRect();
    const [x, y] = [left + Math.min(width, innerWidth) / 2, top + Math.min(height, innerHeight) / 2];
    const hit = document.elementFromPoint(x, y);
    const isThere = hit !== null && (element.contains(hit) || hit.contains(element));
    const label = element.closest('label');
    if (!isThere && !(label?.contains(hit) ?? false))
      told.push(`${element.outerHTML.slice(0, 120)} at ${Math.round(x)}, ${Math.round(y)}`);
  }
  return told;
}

/** In the page: states that look like the opposite one but for colours of our own, which are gone. */
function onlyByColour(): string[] {
  const lookOf = (element: Element) => {
    const style = getComputedStyle(element);
    const edge = ['Top', 'Right', 'Bottom', 'Left'].map(
      (side) =>
        `${style.getPropertyValue(`border-${side.toLowerCase()}-width`)} ${style.getPropertyValue(`border-${side.toLowerCase()}-color`)}`,
    );
    return [
      style.outlineStyle,
      style.outlineColor,
      style.textDecorationLine,
      style.fontWeight,
      ...edge,
    ].join();
  };
  const states = [
    ['button[aria-pressed=true]', 'button[aria-pressed=false]'],
    ['[role=tab][aria-selected=true]', '[role=tab][aria-selected=false]'],
    ['[role=row][aria-selected=true]', '[role=row][aria-selected=false]'],
    ['nav a[aria-current]', 'nav a:not([aria-current])'],
  ] as const;
  return states.flatMap(([on, off]) => {
    const other = document.querySelector(off);
    return [...document.querySelectorAll(on)]
      .filter((element) => other !== null && lookOf(element) === lookOf(other))
      .map((element) => element.outerHTML.slice(0, 120));
  });
}

function lineOf(element: Element): string {
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  return `${outlineStyle} ${outlineWidth}`;
}

/** More stops of Tab than these are more rows of the same. */
const STOPS = 40;

/** Goes through the page by Tab; where nothing shows that the focus is there. */
async function unseenFocusOn(page: Page): Promise<string[]> {
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  const unseen: string[] = [];
  for (let stop = 0; stop < STOPS; stop += 1) {
    await page.keyboard.press('Tab');
    const told = await page.evaluate(() => {
      const focused = document.activeElement;
      if (focused === null || focused === document.body) return { isOver: true, unseen: '' };
      const chosen = focused.querySelector('[role=row][aria-selected=true]');
      const has = (element: Element | null) => {
        if (element === null) return false;
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0;
      };
      const isSeen = [focused, chosen, focused.parentElement].some(has);
      return { isOver: false, unseen: isSeen ? '' : focused.outerHTML.slice(0, 120) };
    });
    if (told.isOver) break;
    if (told.unseen !== '') unseen.push(told.unseen);
  }
  return unseen;
}
