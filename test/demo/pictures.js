// `npm run pictures`: the pictures of the README and of docs/viewer.md. The viewer shows the recordings of `recordings`, a browser
// takes pictures of it, and they are written as docs/<name>-<light|dark>.png.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import { withPalette } from './png.js';

const ROOT = join(import.meta.dirname, '../..');
const BIN = join(ROOT, 'bin/tapedeck.js');

/** What each shows: a path of the viewer, and what is there when it is ready. */
export const PICTURES = [
  {
    name: 'conversation',
    path: '/s/everything-stdio/f/21?open=15%2C21',
    ready: 'text=tool-arguments',
  },
  { name: 'frame', path: '/s/everything-http/f/10?tab=headers', ready: 'text=content-type' },
  { name: 'compare', path: '/diff/everything-stdio/everything-http?all=1&at=5', ready: 'text=The answers' },
  { name: 'statistics', path: '/stats', ready: '[role=treegrid]' },
];

const SCHEMES = ['light', 'dark'];

const SIZE = { width: 1400, height: 640 };

const MOST_BYTES = 200_000;

if (process.argv[1] === import.meta.filename) await takeAll();

async function takeAll() {
  const folder = mkdtempSync(join(tmpdir(), 'tapedeck-pictures-'));
  const db = join(folder, 'recordings.db');
  try {
    for (const file of readdirSync(join(ROOT, 'recordings')).filter((name) => name.endsWith('.ndjson')))
      runTapedeck('import', join(ROOT, 'recordings', file), '--db', db);
    const viewer = await startViewer(db);
    await takePictures(viewer.link);
    await viewer.stop();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function runTapedeck(...args) {
  const { status, stderr } = spawnSync(process.execPath, [BIN, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

async function startViewer(db) {
  const child = spawn(process.execPath, [BIN, 'ui', '--no-open', '--listen', '127.0.0.1:0', '--db', db]);
  process.once('exit', () => child.kill());
  for await (const line of createInterface({ input: child.stdout })) {
    const [link] = /http:\S+/.exec(line) ?? [];
    if (link === undefined) continue;
    const stop = async () => {
      child.kill('SIGINT');
      await once(child, 'close');
    };
    return { link: new URL(link), stop };
  }
  throw new Error('the viewer has not started');
}

async function takePictures({ origin, hash }) {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const executablePath = process.env.TAPEDECK_TEST_BROWSER ?? '/usr/bin/chromium';
  const browser = await chromium.launch({ executablePath, args });
  for (const colorScheme of SCHEMES) {
    const look = { colorScheme, viewport: SIZE, deviceScaleFactor: 2, timezoneId: 'UTC', locale: 'en-US' };
    const page = await (await browser.newContext(look)).newPage();
    await page.goto(origin + hash);
    for (const { name, path, ready } of PICTURES) {
      await page.goto(origin + path);
      await page.locator(ready).first().waitFor();
      // Charts are drawn with the next frame.
      await page.waitForTimeout(500);
      const file = `docs/${name}-${colorScheme}.png`;
      const picture = withPalette(await page.screenshot({ animations: 'disabled', caret: 'hide' }));
      writeFileSync(join(ROOT, file), picture);
      const size = picture.length;
      process.stdout.write(`${file}  ${Math.round(size / 1000)} kB\n`);
      if (size > MOST_BYTES) throw new Error(`Expected at most ${MOST_BYTES} bytes, got ${size}: ${file}`);
    }
  }
  await browser.close();
}
