/** A session over HTTP whose client was refused, found the way to a token and came back with it. */
import { expect } from 'vitest';
import { inBrowser, openPage, rowWith } from '../../support/browser.ts';
import { recordUrlInProcess } from '../../support/http-record.ts';
import { CLIENT_SECRET, converse, METADATA, startProtected } from '../../support/oauth.ts';
import { inFull } from '../../support/scale.ts';
import { payloadOf, showFrames } from '../../support/tapedeck.ts';
import { startUi } from '../../support/ui.ts';

inBrowser('a session that needs a token', () => {
  inFull('shows the refusal, where a token was to be had, the stream of events, and no secret', async () => {
    const server = await startProtected();
    // The token is asked for by the same way, as behind a gateway: all of it is recorded.
    const recording = await recordUrlInProcess(server.url);
    await converse(recording.url, server.authorization.url);
    const gate = await recordUrlInProcess(server.authorization.url, {
      db: recording.db,
      args: ['--name', 'gate'],
    });
    const sent = new URLSearchParams({ grant_type: 'client_credentials', client_secret: CLIENT_SECRET });
    await fetch(new URL('/.well-known/oauth-authorization-server', gate.url));
    await fetch(new URL('/token', gate.url), { method: 'POST', body: sent });
    await gate.stop();
    await recording.stop();
    const { tokens } = server.authorization;
    expect(tokens).toHaveLength(2);
    const hasNoSecret = (text: string | null) => {
      for (const secret of [...tokens, CLIENT_SECRET]) expect(text).not.toContain(secret);
    };

    const ui = await startUi(recording.db);
    const { sessions } = await ui.json('/api/sessions?filter=server%3Dprotected');
    const id = sessions[0].session;
    const page = await openPage(ui, `/s/${id}/http`);
    await rowWith(page, 'POST', '401').click();
    const pane = page.getByRole('complementary', { name: 'HTTP exchange' });
    await pane.getByText('401 Unauthorized').waitFor();
    await pane.getByRole('row', { name: 'WWW-Authenticate Bearer resource_metadata=' }).waitFor();
    hasNoSecret(await page.locator('body').textContent());

    await rowWith(page, 'GET', METADATA).first().click();
    await pane.getByText('200 OK').waitFor();
    const metadata = (await showFrames(recording.db, id)).find((frame) =>
      payloadOf(frame).includes('authorization_servers'),
    );
    await pane.getByRole('link', { name: `#${metadata?.seq}` }).click();
    // What the proxy changed so that the client came back through it stands beside what the server had sent.
    await page.getByText('edited', { exact: true }).first().waitFor();
    await page.getByRole('tab', { name: 'Bytes' }).click();
    const tab = page.getByRole('tabpanel');
    await tab.getByText(`"resource":"${server.url}"`).waitFor();
    const path = `/api/sessions/${id}/frames/${metadata?.seq}/original`;
    const original = await (await ui.get(path)).text();
    expect(JSON.parse(original).resource).toBe(server.url.href);
    const part = await ui.get(path, { Range: 'bytes=2-9' });
    expect([part.status, await part.text()]).toEqual([206, original.slice(2, 10)]);
    expect(part.headers.get('content-range')).toBe(`bytes 2-9/${original.length}`);
    const beyond = await ui.get(path, { Range: `bytes=${original.length}-` });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, `bytes */${original.length}`]);
    const firstSeq = path.replace(/\d+\/original$/, '1/original');
    expect((await ui.get(firstSeq)).status).toBe(404);

    await page.goto(`${ui.origin}/s/${id}/http`);
    await rowWith(page, 'POST', '200').first().click();
    await pane.getByRole('row', { name: /^authorization Bearer masked-[0-9a-f]+ ?masked/i }).waitFor();
    await pane.getByText('event message').first().waitFor();
    hasNoSecret(await page.locator('body').textContent());

    await page.goto(`${ui.origin}/s/gate/http`);
    await rowWith(page, 'POST', '/token', '200').click();
    const links = pane.getByRole('list').getByRole('link');
    await expect.poll(() => links.count()).toBe(2);
    hasNoSecret(await page.locator('body').textContent());
    await pane
      .getByText(/masked-[0-9a-f]{8}|\[redacted:/)
      .first()
      .waitFor();
  });
});
