/** What holds for the page as a whole: its addresses, its keys, its token. */
import { expect, test } from 'vitest';
import { inBrowser, openPage, pressBoth, rowWith } from '../../support/browser.ts';
import { startServer } from '../../support/http.ts';
import { inFull } from '../../support/scale.ts';
import { startUi, storeOf, TOKEN } from '../../support/ui.ts';

inBrowser('the page', () => {
  inFull('keeps every state in its address, for back, forward, reload and others', async () => {
    const ui = await startUi(await storeOf('everything-stdio', 'everything-http'));
    const page = await openPage(ui, '/');
    await rowWith(page, 'everything-stdio').click();
    await rowWith(page, 'trigger-sampling-request').click();
    await page.getByRole('tab', { name: 'Raw' }).click();
    await page.getByRole('button', { name: 'Raw order' }).click();
    await expect.poll(() => page.url()).toMatch(/\/s\/[0-9a-f]{12}\/f\/21\?.*tab=raw/);
    await expect.poll(() => page.url()).toContain('raw=1');
    const here = page.url();
    await page.reload();
    await page.getByRole('tab', { name: 'Raw', selected: true }).waitFor();
    await page.goBack();
    await page.goBack();
    await page.goBack();
    await rowWith(page, 'everything-http').waitFor();
    await page.goForward();
    await page.goForward();
    await page.goForward();
    await page.getByRole('tab', { name: 'Raw', selected: true }).waitFor();
    expect(page.url()).toBe(here);

    const short = here.replace(/(\/s\/[0-9a-f]{6})[0-9a-f]+/, '$1');
    await page.goto(short);
    await expect.poll(() => page.url()).toBe(here);
    await page.goto(`${ui.origin}/s/latest?t=100-300&wf=0`);
    await page.getByRole('button', { name: 'Times' }).waitFor();
    await expect.poll(() => page.getByRole('columnheader', { name: 'Waterfall' }).count()).toBe(0);
  });

  test('takes the token out of its address, and says where the link is without one', async () => {
    const ui = await startUi(await storeOf('everything-stdio'));
    const page = await openPage(ui, '/');
    await rowWith(page, 'everything-stdio').waitFor();
    expect(page.url()).toBe(`${ui.origin}/`);
    const stranger = await openPage(ui, '/', { hasToken: false, expected: /status of 401/ });
    await stranger.getByRole('heading', { name: 'This page needs the link that was printed' }).waitFor();
  });

  inFull('answers no page of another port, whatever that page knows', async () => {
    const ui = await startUi(await storeOf('everything-stdio'));
    const { url } = await startServer((_, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end('<!doctype html><title>foreign</title><h1>foreign</h1>');
    });
    const page = await openPage({ origin: url }, '/', {
      hasToken: false,
      alsoAsks: ui.origin,
      expected: /CORS|ERR_|frame-ancestors|refused|status of 40[35]|Content Security|X-Frame|chrome-error/i,
    });
    const got = await page.evaluate(
      async ([origin, token]) => {
        const headers = { authorization: `Bearer ${token}` };
        const kinds: RequestInit[] = [
          { headers },
          { headers, mode: 'no-cors' },
          { method: 'POST', body: '{}' },
        ];
        const answers = kinds.map((how) =>
          fetch(`${origin}/api/sessions`, how).then(
            async (answer) => answer.text(),
            () => '',
          ),
        );
        const script = Object.assign(document.createElement('script'), { src: `${origin}/api/sessions` });
        const frame = Object.assign(document.createElement('iframe'), { src: `${origin}/` });
        document.body.append(script, frame);
        await new Promise((settled) => script.addEventListener('error', settled));
        const inFrame = () => {
          try {
            return frame.contentDocument?.body.textContent ?? '';
          } catch {
            return '';
          }
        };
        return [...(await Promise.all(answers)), inFrame()];
      },
      [ui.origin, TOKEN] as const,
    );
    expect(got).toEqual(['', '', '', '']);
  });

  test('is used from end to end without a mouse', async () => {
    const ui = await startUi(await storeOf('everything-stdio', 'everything-http'));
    const page = await openPage(ui, '/');
    await rowWith(page, 'everything-http').waitFor();
    const press = async (...keys: readonly string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await press('j', 'j', 'k', 'j');
    await press('Enter');
    await rowWith(page, 'initialize').first().waitFor();
    await press('n');
    await page.locator('[role=row][aria-selected=true]', { hasText: 'tool error' }).waitFor();
    await press('n', 'N', '2');
    await page.getByRole('tab', { name: 'Raw', selected: true }).waitFor();
    await page.getByRole('link', { name: /^answered by #/ }).waitFor();
    await press('1', ']');
    await page.getByRole('link', { name: /^answers #/ }).waitFor();
    await press('w');
    await expect.poll(() => page.getByRole('columnheader', { name: 'Waterfall' }).count()).toBe(0);
    await press('w', '+');
    await page.getByRole('button', { name: 'Times' }).waitFor();
    await press('0', 'Escape');
    await expect.poll(() => page.url()).toMatch(/\/s\/\w+(?:\?|$)/);
    await press('/');
    await page.keyboard.type('tool=echo');
    await press('Enter');
    await expect.poll(() => rowWith(page, 'tools/call').count()).toBe(1);
    await press('Escape', 'Escape');
    await pressBoth(page, 'g', 'l');
    await expect.poll(() => page.url()).toBe(`${ui.origin}/live`);
    await pressBoth(page, 'g', 's');
    await rowWith(page, 'everything-http').waitFor();
    // One stop of Tab for the whole list.
    await page.getByRole('treegrid', { name: 'Sessions' }).focus();
    await press('j', 'Tab');
    const hasFocus = () =>
      page.getByRole('treegrid').evaluate((list) => list.contains(document.activeElement));
    await expect.poll(hasFocus).toBe(false);
  });
});
