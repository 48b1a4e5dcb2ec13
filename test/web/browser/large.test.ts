import { expect, test } from 'vitest';
import { inBrowser, openPage, rowWith, storeOfLines } from '../../support/browser.ts';
import { scale } from '../../support/scale.ts';
import { showFrames } from '../../support/tapedeck.ts';
import { startUi } from '../../support/ui.ts';

const CALLS = scale(50_000);
const nameOf = (id: number) => `tool-${String(id).padStart(6, '0')}`;

/** Over the minute that such a session has. */
const STEP_MS = 30_000 / CALLS;

/** Large recordings are stored, and looked at, in this time on any machine. */
const LONG_MS = 240_000;
const FRAME_MB = scale(64, 4);

type Place = { path: string; name: string };

/** In the page: goes from place to place, and gives the text of each row once it is in sight. */
async function goThrough(places: readonly Place[]): Promise<string[]> {
  const list = document.querySelector('[role=treegrid][aria-label=Messages]');
  const texts: string[] = [];
  for (const { path, name } of places) {
    history.pushState(null, '', path);
    dispatchEvent(new PopStateEvent('popstate'));
    for (;;) {
      const row = list?.querySelector('[aria-selected=true]');
      const text = row?.textContent ?? '';
      const [box, around] = [row?.getBoundingClientRect(), list?.getBoundingClientRect()];
      const isInSight = box && around && box.top >= around.top && box.bottom <= around.bottom;
      if (isInSight && text.includes(name)) {
        texts.push(text);
        break;
      }
      await new Promise(requestAnimationFrame);
    }
  }
  return texts;
}

inBrowser('a large recording', () => {
  test(
    'is gone through by End, Home, a part of its times and its address, and every row is that of show',
    async () => {
      const db = await storeOfLines(
        Array.from({ length: CALLS }, (_, id) => [
          {
            ms: STEP_MS,
            channel: 'stdin',
            text: `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${nameOf(id)}"}}`,
          },
          { ms: STEP_MS, channel: 'stdout', text: `{"jsonrpc":"2.0","id":${id},"result":{}}` },
        ]).flat(),
      );
      const ui = await startUi(db);
      const page = await openPage(ui, '/s/latest');
      await rowWith(page, nameOf(0)).first().waitFor();
      await page
        .getByText(`${new Intl.NumberFormat('en-US').format(CALLS + 1)} rows`, { exact: true })
        .first()
        .waitFor();
      await page.keyboard.press('End');
      await rowWith(page, nameOf(CALLS - 1))
        .first()
        .waitFor();
      await page.keyboard.press('Home');
      await rowWith(page, nameOf(0)).first().waitFor();

      const strip = (await page.locator('canvas').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
      const y = strip.y + strip.height / 2;
      await page.mouse.move(strip.x + strip.width / 2, y);
      await page.mouse.down();
      await page.mouse.move(strip.x + strip.width / 2 + 20, y, { steps: 4 });
      await page.mouse.up();
      await expect.poll(() => page.url()).toMatch(/[?&]t=\d+-\d+/);
      await rowWith(page, nameOf(Math.round(CALLS / 2) + 1))
        .first()
        .waitFor();

      const frames = await showFrames(db);
      const asked = Array.from({ length: scale(200) }, (_, n) => frames[((n * 7919) % CALLS) * 2]);
      const [session = ''] = /\/s\/\w+/.exec(page.url()) ?? [];
      const places = asked.map((frame) => ({
        path: `${session}/f/${frame?.seq}`,
        seq: String(frame?.seq),
        name: String(JSON.parse(frame?.text ?? '{}').params.name),
      }));
      const texts = await page.evaluate(goThrough, places);
      for (const [i, { seq, name }] of places.entries()) {
        expect(texts[i]).toContain(name);
        expect(texts[i]?.startsWith(seq)).toBe(true);
      }
    },
    LONG_MS,
  );

  test(
    'has a frame of many megabytes, which opens without stopping the page',
    async () => {
      const long = 'x'.repeat(FRAME_MB * 1_000_000);
      const text = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${long}","last":1.0}}`;
      const ui = await startUi(await storeOfLines([{ ms: 1, channel: 'stdout', text }]));
      const page = await openPage(ui, '/s/latest');
      await rowWith(page, 'notifications/message').click();
      const values = page.getByRole('treegrid', { name: 'Values' });
      await values.getByText('1.0').waitFor();
      await values.getByText(`${FRAME_MB.toFixed(FRAME_MB < 10 ? 2 : 1)} MB`).waitFor();
      await page.getByRole('tab', { name: 'Hex' }).click();
      await page.getByRole('treegrid', { name: 'Bytes' }).press('End');
      const lastRow = text.slice(Math.floor((text.length - 1) / 16) * 16);
      await page.getByText(lastRow, { exact: true }).waitFor();
    },
    LONG_MS,
  );
});
