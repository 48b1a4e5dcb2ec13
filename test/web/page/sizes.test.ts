import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/tapedeck.ts';

const DIST = join(ROOT, 'dist/web');

/** In thousands of bytes, as a browser gets them. */
function packed(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + gzipSync(readFileSync(join(DIST, file))).length, 0) / 1000;
}

const index = readFileSync(join(DIST, 'index.html'), 'utf8');
const first = [...index.matchAll(/(?:src|href)="\/?(assets\/[^"]+)"/g)].map(([, file = '']) => file);
const assets = readdirSync(join(DIST, 'assets')).map((file) => `assets/${file}`);

test('what the first page needs is small', () => {
  expect(first.length).toBeGreaterThan(1);
  expect(packed(first.filter((file) => file.endsWith('.js')))).toBeLessThanOrEqual(70);
  expect(packed(first.filter((file) => file.endsWith('.css')))).toBeLessThanOrEqual(12);
});

test('every style sheet begins with the order of the layers, whichever comes first', () => {
  const sheets = assets.filter((file) => file.endsWith('.css'));
  for (const file of sheets)
    expect(readFileSync(join(DIST, file), 'utf8').startsWith('@layer base,parts,states;'), file).toBe(true);
});

test('the whole page is small, and so is each part that comes later', () => {
  expect(packed(assets)).toBeLessThanOrEqual(130);
  for (const file of assets.filter((name) => !first.includes(name)))
    expect(packed([file]), file).toBeLessThanOrEqual(30);
});

test('the licences of all packages in the page come with it', () => {
  const licences = readFileSync(join(DIST, 'LICENSES.txt'), 'utf8');
  const names = [
    'preact',
    '@preact/signals',
    '@tanstack/virtual-core',
    'jsonc-parser',
    'lucide-static',
    'eventsource-parser',
  ];
  for (const name of names) expect(licences).toContain(`${name} `);
});
