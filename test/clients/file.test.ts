import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { readClientConfig, replaceClientConfig } from '../../src/clients/file.ts';
import { wrapConfig } from '../../src/clients/wrap.ts';
import { LAUNCHER, makeConfig, makeHome } from '../support/configs.ts';
import { inFull } from '../support/scale.ts';
import { tapedeck, tempFolder } from '../support/tapedeck.ts';

const SIMPLE = '{ "mcpServers": { "a": { "command": "npx", "args": ["-y", "a"] } } }\n';

test('the file keeps its mode, and what is kept of it is for its user alone', async () => {
  const config = makeConfig('cursor', SIMPLE);
  chmodSync(config.target.file, 0o640);
  await config.wrap();
  expect(statSync(config.target.file).mode & 0o777).toBe(0o640);
  const folder = config.keeper.folderOf(config.target.file);
  expect(statSync(config.keptIn).mode & 0o777).toBe(0o700);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  config.unwrap();
  expect(statSync(config.target.file).mode & 0o777).toBe(0o640);
  expect(readdirSync(dirname(config.target.file)).toSorted()).toEqual(['config.json', 'kept']);
});

test('a symbolic link stays one, and the file behind it is edited', async () => {
  const config = makeConfig('cursor', SIMPLE);
  const link = join(tempFolder(), 'link.json');
  symlinkSync(config.target.file, link);
  await wrapConfig(
    { ...config.target, file: link },
    { names: [], launcher: LAUNCHER, db: null, isDryRun: false },
    config.keeper,
  );
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(config.read().toString()).toContain('tapedeck');
  // It is one file, by whichever name.
  expect((await config.wrap()).rows[0]?.outcome).toBe('unchanged');
  config.unwrap();
  expect(config.read().toString()).toBe(SIMPLE);
});

test('what cannot be edited is refused with the reason, and nothing is written', async () => {
  const refused: [content: string | Buffer, reason: RegExp][] = [
    ['{ "mcpServers": ', /^it is not valid JSON: \w+ at line 1, column 17$/],
    ['{ "mcpServers": { "a": { "command": "b" } }\n}\n}\n', /EndOfFileExpected at line 3, column 1/],
    ['{ "mcpServers": {}, "mcpServers": {} }', /it has `mcpServers` twice/],
    ["{ 'mcpServers': {} }", /not valid JSON/],
    [Buffer.from('{ "mcpServers": { "a": { "command": "é" } } }', 'latin1'), /it is not UTF-8/],
    [Buffer.from('\ufeff{}', 'utf16le'), /it is not UTF-8/],
    ['['.repeat(200_000), /nested too deeply|not valid JSON/],
  ];
  for (const [content, reason] of refused) {
    const config = makeConfig('cursor', content);
    await expect(config.wrap()).rejects.toThrow(reason);
    expect(() => config.unwrap()).toThrow(reason);
    expect(config.read().equals(Buffer.from(content))).toBe(true);
    expect(existsSync(config.keptIn)).toBe(false);
  }
  const toml = makeConfig('codex', 'a = 1\na = 2\n');
  await expect(toml.wrap()).rejects.toThrow(/^it is not valid TOML: .+ at line 2, column \d+$/);
});

test('entries that cannot be wrapped are refused one by one, with the reason', async () => {
  const entries = {
    text: 'npx',
    nothing: {},
    both: { command: 'a', url: 'http://a' },
    words: { command: ['a', 'b'] },
    empty: { command: '' },
    numbers: { command: 'a', args: [1] },
    list: { command: 'a', args: 'b' },
    zed: { command: { args: [] } },
    socket: { url: 'ws://a/b' },
    host: { url: `https://\${HOST}/mcp` },
    whole: { url: `\${input:url}` },
    dollar: { url: '$URL' },
    user: { url: 'https://me:word@a.example/mcp' },
    port: { url: 'https://a.example:99999/mcp' },
    number: { url: 1 },
  };
  const config = makeConfig('cursor', JSON.stringify({ mcpServers: entries }));
  const before = config.read();
  const { rows } = await config.wrap();
  expect(rows.map(({ entry, outcome, note }) => [entry.name, outcome, note])).toEqual(
    Object.entries({
      text: 'it is no map of settings',
      nothing: 'it has neither a command nor a URL',
      both: 'it has both `command` and `url`, and clients differ on which one counts',
      words: 'its `command` names no command',
      empty: 'its `command` names no command',
      numbers: 'its `args` are no list of texts',
      list: 'its `args` are no list of texts',
      zed: 'its `command` has no `path`',
      socket: 'its URL does not begin with http:// or https://',
      host: 'the address in its URL is a variable, which only the client can resolve',
      whole: 'the address in its URL is a variable, which only the client can resolve',
      dollar: 'the address in its URL is a variable, which only the client can resolve',
      user: 'its URL has a user or a password in it; put them into its headers',
      port: 'its URL has no valid address',
      number: 'its `url` is no text',
    }).map(([name, note]) => [name, 'refused', note]),
  );
  expect(config.read().equals(before)).toBe(true);
  const twice = makeConfig(
    'cursor',
    '{"mcpServers":{"a":{"command":"x"},"a":{"command":"y","command":"z"}}}',
  );
  expect((await twice.wrap()).rows.map(({ note }) => note)).toEqual([
    'it is there twice',
    'it is there twice',
  ]);
});

test('files without servers are left alone', async () => {
  for (const content of [
    '',
    ' \n',
    '{}',
    '// only a comment\n',
    '[]',
    'null',
    '{"mcpServers":null}',
    '\ufeff',
  ]) {
    const config = makeConfig('cursor', content);
    expect((await config.wrap()).rows).toEqual([]);
    expect(config.read().toString()).toBe(content);
    expect(existsSync(config.keptIn)).toBe(false);
  }
});

test('a read-only file is refused, and no copy stays behind', async () => {
  const config = makeConfig('cursor', SIMPLE);
  chmodSync(config.target.file, 0o444);
  await expect(config.wrap()).rejects.toThrow(/^it is read-only$/);
  expect(config.read().toString()).toBe(SIMPLE);
  expect(config.keeper.all()).toEqual([]);
  chmodSync(config.target.file, 0o644);
  await config.wrap();
  const wrapped = config.read();
  chmodSync(config.target.file, 0o444);
  expect(() => config.unwrap()).toThrow(/^it is read-only$/);
  expect(config.read().equals(wrapped)).toBe(true);
  chmodSync(config.target.file, 0o644);
  config.unwrap();
  expect(config.read().toString()).toBe(SIMPLE);
});

test('where wrapping more is refused, what is kept stays as it was', async () => {
  const config = makeConfig(
    'cursor',
    '{"mcpServers":{"a":{"url":"https://a.example"},"b":{"url":"https://b.example"}}}',
  );
  const before = config.read();
  await config.wrap(['a']);
  const kept = config.keeper.all();
  chmodSync(config.target.file, 0o444);
  await expect(config.wrap()).rejects.toThrow(/^it is read-only$/);
  expect(config.keeper.all()).toEqual(kept);
  chmodSync(config.target.file, 0o644);
  config.unwrap();
  expect(config.read().equals(before)).toBe(true);
});

test('a folder, a missing file and a link to nothing are refused', () => {
  const folder = tempFolder();
  expect(() => readClientConfig(folder)).toThrow(/^it is not a file$/);
  expect(() => readClientConfig(join(folder, 'no'))).toThrow(/^it cannot be read: there is no such file$/);
  symlinkSync(join(folder, 'no'), join(folder, 'link'));
  expect(() => readClientConfig(join(folder, 'link'))).toThrow(/there is no such file/);
});

test('a file that its client has changed meanwhile is not overwritten', () => {
  const { target, read, write } = makeConfig('cursor', SIMPLE);
  const file = readClientConfig(target.file);
  write('{}');
  expect(() => replaceClientConfig(file, Buffer.from('{"mcpServers":{}}'))).toThrow(
    /its client has just changed it/,
  );
  expect(read().toString()).toBe('{}');
  expect(readdirSync(dirname(target.file))).toEqual(['config.json']);
});

inFull('many that wrap and unwrap at once leave one of the two, whole', async () => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', SIMPLE);
  const runs = Array.from({ length: 6 }, (_, i) => home.run(i % 3 === 2 ? 'unwrap' : 'wrap', 'cursor').ended);
  for (const { code, stderr } of await Promise.all(runs)) expect(code, stderr).toBe(0);
  const text = readFileSync(file, 'utf8');
  expect(text === SIMPLE || text.split('"record"').length === 2, text).toBe(true);
  expect((await home.runInProcess('wrap', 'cursor')).code).toBe(0);
  expect(readFileSync(file, 'utf8').split('"record"').length).toBe(2);
  expect((await home.runInProcess('unwrap', 'cursor')).code).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe(SIMPLE);
});

/** Kills the process at the moment when it would put the new file in the old one's place, or right after that. */
const KILLER = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { renameSync } = fs;
fs.renameSync = (from, to) => {
  const isIt = to.endsWith(process.env.KILL_AT);
  if (isIt && process.env.KILL_WHEN === 'before') process.kill(process.pid, 'SIGKILL');
  renameSync(from, to);
  if (isIt) process.kill(process.pid, 'SIGKILL');
};
syncBuiltinESMExports();
`;

test.each([
  ['wrap', '.cursor/mcp.json', 'before'],
  ['wrap', '.cursor/mcp.json', 'after'],
  ['wrap', 'original.json', 'before'],
  ['wrap', 'original.json', 'after'],
  ['wrap', 'wrapped.json', 'before'],
  ['wrap', 'wrapped.json', 'after'],
  ['unwrap', '.cursor/mcp.json', 'before'],
  ['unwrap', '.cursor/mcp.json', 'after'],
])(
  'killed while it would %s, at %s, %s: the file is whole and can be put back',
  async (command, at, when) => {
    const home = makeHome();
    const content =
      '{ "mcpServers": { "a": { "command": "npx" }, "b": { "url": "https:\\/\\/b.example/mcp" } } }\n';
    const file = home.put('.cursor/mcp.json', content);
    if (command === 'unwrap') expect((await home.runInProcess('wrap', 'cursor')).code).toBe(0);
    const killer = home.put('killer.mjs', KILLER);
    const env = { ...home.env, NODE_OPTIONS: `--import ${killer}`, KILL_AT: at, KILL_WHEN: when };
    const killed = await tapedeck([command, 'cursor'], { env, cwd: home.project }).ended;
    expect(killed.signal).toBe('SIGKILL');
    expect(() => JSON.parse(readFileSync(file, 'utf8'))).not.toThrow();
    expect((await home.runInProcess('wrap', 'cursor')).code).toBe(0);
    expect(readFileSync(file, 'utf8')).toContain('127.0.0.1');
    expect((await home.runInProcess('unwrap', 'cursor')).code).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe(content);
    expect(readdirSync(dirname(file))).toEqual(['mcp.json']);
  },
);

test('a copy that cannot be kept is a refusal', async () => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', SIMPLE);
  home.put('data/tapedeck', 'in the way');
  const { code, stderr } = await home.runInProcess('wrap', 'cursor');
  expect(code).toBe(2);
  expect(stderr).toMatch(/^tapedeck: Cannot use .*wrapped: .+\n$/);
  expect(readFileSync(file, 'utf8')).toBe(SIMPLE);
});
