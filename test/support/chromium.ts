/** Set up once for all tests of the page: one browser, which each of their files connects to. */
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { findBrowser } from './find-browser.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser listens; null where there is none. */
    chromium: string | null;
  }
}

/** Without a browser the tests are skipped; with `REQUIRE_BROWSER` they fail. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const executablePath = findBrowser();
  if (executablePath === undefined) {
    if (process.env['REQUIRE_BROWSER'] === '1')
      throw new Error(
        'No Chromium was found, and REQUIRE_BROWSER=1 asks for one. Name it in TAPEDECK_TEST_BROWSER.',
      );
    process.stderr.write('Tests of the page are skipped: no Chromium. Name one in TAPEDECK_TEST_BROWSER.\n');
    project.provide('chromium', null);
    return undefined;
  }
  const isRoot = process.getuid?.() === 0;
  // It reaches this machine and nothing else, whatever a page asks for.
  const alone = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1';
  const args = [alone, ...(isRoot ? ['--no-sandbox'] : [])];
  const server = await chromium.launchServer({ executablePath, args });
  project.provide('chromium', server.wsEndpoint());
  return () => server.close();
}
