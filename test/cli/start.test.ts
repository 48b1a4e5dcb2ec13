/** What comes before a command: its version at once, and what Node keeps to start sooner. */
import { existsSync, statSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { VERSION } from '../../src/version.ts';
import { tapedeck, tempFolder } from '../support/tapedeck.ts';

const keepsCompiled = 'enableCompileCache' in module;
const COMMAND = ['list', '--help'];
const UNSET = { NODE_COMPILE_CACHE: '', NODE_DISABLE_COMPILE_CACHE: '' };

test.each(['--version', '-v'])('%s prints the version, and nothing else', async (option) => {
  const { code, stdout, stderr } = await tapedeck([option]).ended;
  expect([code, stdout.toString(), stderr]).toEqual([0, `${VERSION}\n`, '']);
});

test('what Node compiles is kept in a folder that is the user’s alone, unless Node is told not to', async () => {
  const cache = join(tempFolder(), 'caches');
  const env = { ...UNSET, XDG_CACHE_HOME: cache, LOCALAPPDATA: cache, HOME: cache };
  await tapedeck(COMMAND, { env: { ...env, NODE_DISABLE_COMPILE_CACHE: '1' } }).ended;
  expect(existsSync(cache)).toBe(false);
  const { code } = await tapedeck(COMMAND, { env }).ended;
  expect(code).toBe(0);
  if (process.platform !== 'linux') return;
  expect(existsSync(join(cache, 'tapedeck'))).toBe(keepsCompiled);
  if (keepsCompiled) expect(statSync(join(cache, 'tapedeck')).mode & 0o777).toBe(0o700);
});

test('where that folder cannot be, a command runs all the same', async () => {
  const file = join(tempFolder(), 'file');
  writeFileSync(file, '');
  for (const folder of [file, '/proc']) {
    const { code, stderr } = await tapedeck(COMMAND, { env: { ...UNSET, XDG_CACHE_HOME: folder } }).ended;
    expect([code, stderr]).toEqual([0, '']);
  }
});
