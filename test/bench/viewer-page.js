// The viewer's page in a browser: how soon it shows a list, a session, a search and a large frame, what scrolling costs, how
// much memory a tab takes. Whatever is timed is timed in the page, from the start of its navigation to a frame that was painted.
import { chromium } from 'playwright-core';
import { findBrowser } from '../support/find-browser.js';
import { figureRow, median, percentile } from './figures.js';
import { longestTask, MARK, traced, workBetween } from './viewer-trace.js';

const SIZE = { width: 1440, height: 900 };
const NAVIGATIONS = 7;
const FRAMES = 180;
const JUMPS = 40;
const ROW = 24;
const [FEW_ROWS, MANY_ROWS] = [10, 400];

/** Calls back with a page, and the browser around it; returns no rows where there is none. `link` has the viewer's token. */
async function withPage(link, act) {
  const executablePath = findBrowser();
  if (executablePath === undefined) return [];
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath, args });
  try {
    const context = await browser.newContext({ viewport: SIZE });
    await context.addInitScript(watch);
    const page = await context.newPage();
    // Leaves the token with the browser.
    await page.goto(link);
    await rowsOf(page).nth(3).waitFor();
    return await act(page, browser);
  } finally {
    await browser.close();
  }
}

function rowsOf(page) {
  return page.getByRole('treegrid').getByRole('row');
}

/** Rows of the speed table; none where there is no browser. `session` has `frames` frames; `word` stands in few frames. */
export function pageRows({ link, session, frames, word }) {
  const { origin } = new URL(link);
  const count = frames.toLocaleString('en-US');
  return withPage(link, async (page, browser) => {
    const list = await visits(page, `${origin}/`, 'j');
    const conversation = await visits(page, `${origin}/s/${session}`);
    const whole = await wholeVisits(page, `${origin}/s/${session}`);
    const heap = await heapMb(page);
    const scrolled = await scroll(browser, page, '[role=treegrid]');
    const blank = await page.evaluate(jump, { selector: '[role=treegrid]', count: JUMPS, row: ROW });
    const plain = await (await browser.newContext({ viewport: SIZE })).newPage();
    await plain.setContent('<div id="list" style="height:800px;overflow:auto;position:relative"></div>');
    await plain.evaluate(fillByHand, { count: frames, row: ROW });
    const byHand = await scroll(browser, plain, '#list');
    const hit = await searches(page, word);
    const against = (what, p) => `${what(byHand, p).toFixed(2)} ms, a page by hand`;
    const workOf = ({ work }, p) => percentile(work, p);
    const frameOf = ({ frames: all }, p) => percentile(all, p);
    return [
      figureRow('viewer: the list of sessions painted', median(list.painted), { atMost: 500 }),
      figureRow('viewer: the list usable, a key answered', median(list.usable), { atMost: 1000 }),
      figureRow(`viewer: first rows of a session of ${count} frames`, median(conversation.painted), {
        atMost: 700,
      }),
      figureRow('viewer: the same, opened for the first time', conversation.painted[0], { atMost: 700 }),
      figureRow('viewer: all of its rows', median(whole), { atMost: 3000 }),
      figureRow('viewer: memory of that tab', heap, { atMost: 150, unit: 'MB' }),
      figureRow('viewer: script and layout of a frame of scrolling, p95', workOf(scrolled, 0.95), {
        atMost: 8,
        against: against(workOf, 0.95),
      }),
      figureRow(
        'viewer: a frame of scrolling, p95, against a page by hand',
        frameOf(scrolled, 0.95) / frameOf(byHand, 0.95),
        { atMost: 1.5, unit: '×', against: against(frameOf, 0.95) },
      ),
      figureRow('viewer: blank after a jump, longest', Math.max(...blank), { atMost: 100 }),
      figureRow('viewer: first hit of an indexed search, on the page', median(hit), { atMost: 300 }),
    ];
  });
}

/** Rows of a frame of many megabytes, which is opened at this path. */
export function largeFramePageRows(link, path) {
  return withPage(link, async (page, browser) => {
    const trace = await traced(browser, page, async () => {
      await page.evaluate(openPath, { path, mark: MARK });
      await page.getByRole('treegrid', { name: 'Values' }).getByRole('row').nth(3).waitFor();
    });
    return [figureRow('viewer: its longest task in the page', longestTask(trace), { atMost: 50 })];
  });
}

/** In each page: when rows stood on the screen, and when a key moved among them; milliseconds since its navigation began. */
function watch() {
  const afterPaint = (note) =>
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = note;
      port2.postMessage(null);
    });
  const when = (isThere) =>
    new Promise((done) => {
      const observer = new MutationObserver(() => {
        if (!isThere()) return;
        observer.disconnect();
        afterPaint(() => done(performance.now()));
      });
      const attributeFilter = ['aria-selected'];
      observer.observe(document, { childList: true, subtree: true, attributes: true, attributeFilter });
    });
  const rows = '[role=treegrid] [role=row]';
  const painted = when(() => document.querySelectorAll(rows).length > 3);
  const press = (key) => {
    const moved = when(() => document.querySelector('[aria-selected=true]') !== null);
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    return moved;
  };
  globalThis.bench = { when, afterPaint, painted, press };
}

/** Goes there several times; the browser has the files of the page already. With `key`, also tells when a row was chosen by it. */
async function visits(page, url, key = null) {
  const times = { painted: [], usable: [] };
  for (let i = 0; i < NAVIGATIONS; i += 1) {
    await page.goto(url, { waitUntil: 'commit' });
    const [painted, usable] = await page.evaluate(async (pressed) => {
      const first = await globalThis.bench.painted;
      return [first, pressed === null ? first : await globalThis.bench.press(pressed)];
    }, key);
    times.painted.push(painted);
    times.usable.push(usable);
  }
  return times;
}

const WHOLE_VISITS = 3;

/** When all rows are there, in a browser that keeps nothing of what it had. */
async function wholeVisits(page, url) {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  const times = [];
  for (let i = 0; i < WHOLE_VISITS; i += 1) {
    await page.goto(url, { waitUntil: 'commit' });
    times.push(await page.evaluate(whenWhole));
  }
  await session.detach();
  return times;
}

/** In the page: when the count of its rows is final. */
function whenWhole() {
  const isWhole = () =>
    [...document.querySelectorAll('header span')].some((one) => /^[\d,]+ rows$/.test(one.textContent));
  return new Promise((done) => {
    const look = () => {
      if (isWhole()) globalThis.bench.afterPaint(() => done(performance.now()));
      else setTimeout(look, 10);
    };
    look();
  });
}

async function heapMb(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return usedSize / 1e6;
}

/** Goes down by few rows a frame, then by many. `work`: milliseconds of script, style and layout; `frames`: between frames. */
async function scroll(browser, page, selector) {
  const few = Math.round(FRAMES * 0.66);
  const parts = [
    { selector, count: few, by: FEW_ROWS * ROW, mark: MARK },
    { selector, count: FRAMES - few, by: MANY_ROWS * ROW, mark: MARK },
  ];
  let frames = [];
  const trace = await traced(browser, page, async () => {
    for (const part of parts) frames = [...frames, ...(await page.evaluate(framesOf, part))];
  });
  return { work: workBetween(trace), frames };
}

/** In the page: scrolls with each frame. Returns the times between them. */
function framesOf({ selector, count, by, mark }) {
  const list = document.querySelector(selector);
  const times = [];
  return new Promise((done) => {
    const next = (before) => (now) => {
      performance.mark(mark);
      if (before > 0) times.push(now - before);
      if (times.length === count) return done(times);
      list.scrollTop += by;
      requestAnimationFrame(next(now));
    };
    requestAnimationFrame(next(0));
  });
}

/** In the page: goes far away again and again. Returns how long it took each time until rows stood where one looks. */
async function jump({ selector, count, row }) {
  const list = document.querySelector(selector);
  const { left, top, bottom } = list.getBoundingClientRect();
  const heights = [top + 2.5 * row, (top + bottom) / 2, bottom - 1.5 * row];
  const isRowAt = (y) => {
    const found = document.elementFromPoint(left + 200, y)?.closest('[role=row]');
    return found != null && found.textContent !== '';
  };
  const times = [];
  for (let i = 0; i < count; i += 1) {
    const began = performance.now();
    list.scrollTop = ((i * 7919) % count) * (list.scrollHeight / count);
    do await new Promise(globalThis.bench.afterPaint);
    while (!heights.every(isRowAt));
    times.push(performance.now() - began);
  }
  return times;
}

/** In the page: goes to a screen as a link inside it does. */
function openPath({ path, mark }) {
  performance.mark(mark);
  history.pushState(null, '', path);
  dispatchEvent(new PopStateEvent('popstate'));
}

/** From asking to the first hit on the screen, after the screen has come. */
async function searches(page, word) {
  await page.evaluate(openPath, { path: '/search', mark: MARK });
  await page.getByRole('search').waitFor();
  const times = [];
  // One letter of another case each time: the page still has what it found before.
  for (let i = 0; i < NAVIGATIONS; i += 1)
    times.push(await page.evaluate(search, word.slice(0, i) + word.slice(i).toUpperCase()));
  return times;
}

async function search(text) {
  const isThere = () => document.querySelectorAll('[role=treegrid] [role=row]').length > 2;
  history.pushState(null, '', '/search');
  dispatchEvent(new PopStateEvent('popstate'));
  await new Promise(globalThis.bench.afterPaint);
  const began = performance.now();
  const first = globalThis.bench.when(isThere);
  history.pushState(null, '', `/search?q=${encodeURIComponent(text)}`);
  dispatchEvent(new PopStateEvent('popstate'));
  return (await first) - began;
}

/** The least that shows so many rows of seven cells: those in sight, used again and again. */
function fillByHand({ count, row }) {
  const list = document.querySelector('#list');
  const inner = list.appendChild(document.createElement('div'));
  inner.style.height = `${count * row}px`;
  const rows = Array.from({ length: 60 }, () => {
    const one = inner.appendChild(document.createElement('div'));
    one.style.cssText = `position:absolute;inset:0 0 auto;height:${row}px;display:grid;grid-template-columns:repeat(7,1fr)`;
    for (let i = 0; i < 7; i += 1) one.appendChild(document.createElement('span')).append('');
    return one;
  });
  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / row) - 12);
    for (let at = first; at < first + rows.length; at += 1) {
      const one = rows[at % rows.length];
      one.style.transform = `translateY(${at * row}px)`;
      for (const [i, cell] of [...one.children].entries()) cell.firstChild.data = `${at} cell ${i}`;
    }
  };
  list.addEventListener('scroll', draw);
  draw();
}
