import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];

/** The Chromium of this machine: the one that `TAPEDECK_TEST_BROWSER` names, else the first of the usual names; or undefined. */
export function findBrowser() {
  const named = process.env['TAPEDECK_TEST_BROWSER'];
  if (named) return named;
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(existsSync);
}
