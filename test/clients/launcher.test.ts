import { join } from 'node:path';
import { expect, test } from 'vitest';
import { countOwnWords, goneFile, launcherFor, wrappedWords } from '../../src/clients/launcher.ts';
import { LAUNCHER, makeConfig } from '../support/configs.ts';
import { BIN, tempFolder } from '../support/tapedeck.ts';

const VERSION = '1.2.3';

test.each([
  '/home/me/.npm/_npx/0123456789abcdef/node_modules/mcp-tapedeck/bin/tapedeck.js',
  'C:\\Users\\me\\AppData\\Local\\npm-cache\\_npx\\0123\\node_modules\\mcp-tapedeck\\bin\\tapedeck.js',
  '/home/me/.cache/pnpm/dlx/abc/node_modules/mcp-tapedeck/bin/tapedeck.js',
  '/home/me/.local/share/pnpm/dlx-123/node_modules/mcp-tapedeck/bin/tapedeck.js',
  '/tmp/bunx-1000-mcp-tapedeck/node_modules/mcp-tapedeck/bin/tapedeck.js',
])('run from a folder that is gone one day (%s), entries fetch this version', (bin) => {
  const words = launcherFor({ platform: 'linux', node: process.execPath, bin, version: VERSION });
  expect(words).toEqual(['npx', '-y', 'mcp-tapedeck@1.2.3']);
  expect(countOwnWords(wrappedWords(words, 'n', null, ['a']))).toBe(7);
  const onWindows = launcherFor({ platform: 'win32', node: process.execPath, bin, version: VERSION });
  expect(onWindows).toEqual(['cmd', '/c', ...words]);
  expect(countOwnWords(wrappedWords(onWindows, 'n', null, ['a']))).toBe(9);
});

test('installed, entries have absolute paths', () => {
  const bin = '/usr/lib/node_modules/mcp-tapedeck/bin/tapedeck.js';
  expect(launcherFor({ platform: 'linux', node: '/opt/node-20/bin/node', bin, version: VERSION })).toEqual([
    '/opt/node-20/bin/node',
    bin,
  ]);
});

const OWN: [own: number, words: string[]][] = [
  [3, ['tapedeck', 'record', '--', 'npx']],
  [5, ['/usr/local/bin/tapedeck', 'record', '--name', 'n', '--', 'npx', '--', 'x']],
  [4, ['C:\\node\\node.exe', 'C:\\npm\\mcp-tapedeck\\bin\\tapedeck.js', 'record', '--', 'a']],
  [5, ['npx', '-y', 'mcp-tapedeck', 'record', '--', 'a']],
  [5, ['npx.cmd', '-y', 'mcp-tapedeck@0.1.0', 'record', '--', 'a']],
  [7, ['cmd', '/c', 'npx', '-y', 'mcp-tapedeck@latest', 'record', '--', 'a']],
  [4, ['node', 'bin/tapedeck.js', 'record', '--', 'a']],
  [0, ['npx', '-y', 'a']],
  [0, ['record', '--', 'a']],
  [0, ['recorder', 'record', '--', 'a']],
  [0, ['tapedeck', 'record', '--']],
  [0, ['tapedeck', 'record', 'https://a.example']],
  [0, ['tapedeck', 'replay', 'a']],
  [0, ['tapedeck', 'replay', '--', 'tapedeck', 'record', 'a']],
  [0, ['my-tapedeck-server', 'record', '--', 'a']],
  [0, []],
];

test.each(OWN)('%i own words in %j', (own, words) => {
  expect(countOwnWords(words)).toBe(own);
});

test('an entry whose node or tapedeck is gone is wrapped again, with its options', async () => {
  const gone = join(tempFolder(), 'node');
  for (const launcher of [
    [gone, BIN],
    [process.execPath, join(gone, 'tapedeck.js')],
    [join(gone, 'tapedeck')],
  ]) {
    const config = makeConfig(
      'cursor',
      '{"mcpServers":{"a":{"command":"npx","args":["-y", "a"]},"b":{"command":"b"}}}',
    );
    const before = config.read();
    await config.wrap();
    const words = JSON.stringify([...launcher, 'record', '--label', 'a=b', '--', 'npx', '-y', 'a']);
    const [command = '', ...args] = JSON.parse(words) as string[];
    config.write(JSON.stringify({ mcpServers: { a: { command, args }, b: { command: 'b' } } }, null, 2));
    const missing = launcher.find((word) => word.startsWith(gone)) ?? '';
    expect(goneFile([command, ...args])).toBe(missing);
    const { rows } = await config.wrap(['a']);
    expect(rows.map(({ outcome, note }) => [outcome, note])).toEqual([
      ['wrapped', `again, because ${missing} is gone`],
    ]);
    const { a } = JSON.parse(config.read().toString()).mcpServers;
    expect([a.command, ...a.args]).toEqual([...LAUNCHER, 'record', '--label', 'a=b', '--', 'npx', '-y', 'a']);
    config.unwrap();
    expect(JSON.parse(config.read().toString())).toEqual(JSON.parse(before.toString()));
  }
});
