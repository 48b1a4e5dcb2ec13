/** `wrap --with-mcp`: the entry of `tapedeck mcp` beside the wrapped servers. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeHome, type TestHome } from '../../support/configs.ts';
import { IS_FULL } from '../../support/scale.ts';
import { tapedeckInProcess } from '../../support/tapedeck.ts';

async function run(home: TestHome, ...args: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess(args, { env: home.env, cwd: home.project });
  return { code, said: stdout.toString() + stderr };
}

const SERVER = '"git": { "command": "git-server", "args": ["x"] }';

/** Each as its client, or an editor, may have written it. */
const CONFIGS: readonly (readonly [what: string, client: string, path: string, text: string])[] = [
  ['servers', 'cursor', '.cursor/mcp.json', `{\n  "mcpServers": {\n    ${SERVER}\n  }\n}\n`],
  ['a comma at the end', 'cursor', '.cursor/mcp.json', `{"mcpServers": {${SERVER}, }, /* c */ "a": 1.0}`],
  [
    'CRLF and a byte order mark',
    'cursor',
    '.cursor/mcp.json',
    `\ufeff{\r\n\t"mcpServers": {\r\n\t\t${SERVER}\r\n\t}\r\n}`,
  ],
  ['an empty map', 'cursor', '.cursor/mcp.json', '{ "mcpServers": { } }'],
  ['no map', 'cursor', '.cursor/mcp.json', '{"other": [1]}\n'],
  ['nothing', 'cursor', '.cursor/mcp.json', ''],
  ['TOML', 'codex', '.codex/config.toml', 'model = "x" # c\n\n[mcp_servers.git]\ncommand = "git-server"\n'],
  ['TOML without a line end', 'codex', '.codex/config.toml', '[mcp_servers.git]\r\ncommand = "git-server"'],
  ['an empty TOML', 'codex', '.codex/config.toml', ''],
];

test.each(IS_FULL ? CONFIGS : CONFIGS.filter((_, i) => i % 3 === 0))(
  'a config with %s gets the entry, and unwrap takes it out byte for byte',
  async (_, client, path, text) => {
    const home = makeHome();
    home.put(path, text);
    const file = join(home.home, path);
    const wrapped = await run(home, 'wrap', client, '--with-mcp');
    expect(wrapped.said).toContain('added, so that the client sees the recordings');
    const once = readFileSync(file, 'utf8');
    expect(once).toMatch(/tapedeck\.js",?\s*"mcp"/);
    expect(once.includes('git-server')).toBe(text.includes('git-server'));
    // Again, with and without: it is there once, and never wrapped itself.
    for (const more of [['--with-mcp'], []]) {
      await run(home, 'wrap', client, ...more);
      expect(readFileSync(file, 'utf8')).toBe(once);
    }
    await run(home, 'unwrap', client);
    expect(readFileSync(file, 'utf8')).toBe(text);
  },
);

const TWO = `{"mcpServers": {${SERVER}, "b": {"command": "b"}}}`;

test('a config to which nothing can be added is wrapped all the same', async () => {
  const home = makeHome();
  const text = 'mcp_servers = { git = { command = "git-server" } }\n';
  home.put('.codex/config.toml', text);
  expect((await run(home, 'wrap', 'codex', '--with-mcp')).said).toContain(
    'NOT added: no server can be added',
  );
  expect(readFileSync(join(home.home, '.codex/config.toml'), 'utf8')).toContain('"record"');
  await run(home, 'unwrap', 'codex');
  expect(readFileSync(join(home.home, '.codex/config.toml'), 'utf8')).toBe(text);
});

test('who unwraps one server keeps the entry, and who names the entry keeps the servers wrapped', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', TWO);
  const file = join(home.home, '.cursor/mcp.json');
  await run(home, 'wrap', 'cursor', '--with-mcp');
  await run(home, 'unwrap', 'cursor', 'git');
  const servers = () => JSON.parse(readFileSync(file, 'utf8')).mcpServers;
  expect(servers()).toMatchObject({
    git: { command: 'git-server' },
    tapedeck: {},
    b: { args: expect.arrayContaining(['record']) },
  });
  await run(home, 'unwrap', 'cursor', 'tapedeck');
  expect(Object.keys(servers())).toEqual(['git', 'b']);
  expect(servers().b.args).toContain('record');
  await run(home, 'unwrap', 'cursor');
  expect(readFileSync(file, 'utf8')).toBe(TWO);
});

test('an entry that its client has written anew is taken out too, and one of somebody else stays', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', TWO);
  const file = join(home.home, '.cursor/mcp.json');
  await run(home, 'wrap', 'cursor', '--with-mcp');
  writeFileSync(file, JSON.stringify(JSON.parse(readFileSync(file, 'utf8')), null, 8));
  await run(home, 'unwrap', 'cursor');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(TWO));
  const own = '{"mcpServers": {"tapedeck": {"command": "mine"}}}';
  home.put('.cursor/mcp.json', own);
  expect((await run(home, 'wrap', 'cursor', '--with-mcp')).said).toContain('there is such a server already');
  await run(home, 'unwrap', 'cursor');
  expect(readFileSync(file, 'utf8')).toBe(own);
});

/** Lines that a diff adds to a text, and those that it takes out. */
function changesOf(said: string) {
  const lines = said.split('\n').filter((line) => /^[+-](?![+-])/.test(line));
  const those = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1));
  return { added: those('+'), removed: those('-') };
}

test.each(['wrap', 'unwrap'])(
  '%s --dry-run shows what becomes of the entry, and writes nothing',
  async (command) => {
    const home = makeHome();
    home.put('.cursor/mcp.json', `{\n  "mcpServers": {\n    ${SERVER}\n  }\n}\n`);
    const file = join(home.home, '.cursor/mcp.json');
    const more = command === 'wrap' ? ['--with-mcp'] : [];
    if (command === 'unwrap') await run(home, 'wrap', 'cursor', '--with-mcp');
    const before = readFileSync(file, 'utf8');
    const { said } = await run(home, command, 'cursor', ...more, '--dry-run');
    expect(readFileSync(file, 'utf8')).toBe(before);
    expect(said).toContain(command === 'wrap' ? 'added, so that the client' : 'tapedeck  taken out');
    const { added, removed } = changesOf(said);
    expect((command === 'wrap' ? added : removed).join('\n')).toMatch(/"tapedeck": \{ "command".*"mcp"\] \}/);
    await run(home, command, 'cursor', ...more);
    const after = readFileSync(file, 'utf8').split('\n');
    const had = before.split('\n');
    expect(after.filter((line) => !had.includes(line))).toEqual(added);
    expect(had.filter((line) => !after.includes(line))).toEqual(removed);
  },
);

const MINE = '"mine": { "command": "mine" }';
/** A config, an edit of it between `wrap` and `unwrap`, and what these leave. */
const EDITS: readonly (readonly [
  string,
  client: string,
  path: string,
  text: string,
  (text: string) => string,
  string,
])[] = [
  [
    'a server behind the entry',
    ...(['cursor', '.cursor/mcp.json', `{\n  "mcpServers": {\n    ${SERVER}\n  }\n}\n`] as const),
    (text) => text.replace(/("tapedeck": .*\})\n/, `$1,\n    ${MINE}\n`),
    `{\n  "mcpServers": {\n    ${SERVER},\n    ${MINE}\n  }\n}\n`,
  ],
  [
    'a server before the entry, and a comment',
    ...(['cursor', '.cursor/mcp.json', `{"mcpServers": {${SERVER}}}`] as const),
    (text) => `// mine\n${text.replace('{"mcpServers": {', `{"mcpServers": {${MINE}, `)}`,
    `// mine\n{"mcpServers": {${MINE}, ${SERVER}}}`,
  ],
  [
    'a server behind the entry where there was none',
    ...(['cursor', '.cursor/mcp.json', '{ "mcpServers": {} }'] as const),
    (text) => text.replace(/\]\s*\}/, (end) => `${end}, ${MINE}`),
    `{ "mcpServers": {${MINE}} }`,
  ],
  [
    'settings of the entry',
    ...(['cursor', '.cursor/mcp.json', `{"mcpServers": {${SERVER}}}`] as const),
    (text) => text.replace('"tapedeck": {', '"tapedeck": { "env": {"A": "b"},'),
    `{"mcpServers": {${SERVER}}}`,
  ],
  [
    'settings of the entry, and a table behind it',
    ...(['codex', '.codex/config.toml', '[mcp_servers.git]\ncommand = "git-server"\n'] as const),
    (text) => `${text}enabled = true\n[mcp_servers.tapedeck.env]\nA = "b"\n# mine\n[mine]\na = 1\n`,
    '[mcp_servers.git]\ncommand = "git-server"\n# mine\n[mine]\na = 1\n',
  ],
];

test.each(IS_FULL ? EDITS : EDITS.slice(2, 4))(
  'unwrap takes out the entry alone where somebody has added or edited %s',
  async (_, client, path, text, edit, expected) => {
    const home = makeHome();
    home.put(path, text);
    const file = join(home.home, path);
    await run(home, 'wrap', client, '--with-mcp');
    const edited = edit(readFileSync(file, 'utf8'));
    expect(edited).not.toBe(readFileSync(file, 'utf8'));
    writeFileSync(file, edited);
    await run(home, 'unwrap', client);
    expect(readFileSync(file, 'utf8')).toBe(expected);
  },
);

test.each([
  ['cursor', '.cursor/mcp.json', `{"mcpServers": {${SERVER}}}`, '"mcp"', '"mcp", "--session", "mine"'],
  [
    'codex',
    '.codex/config.toml',
    '[mcp_servers.git]\ncommand = "git-server"\n',
    '"mcp"',
    '"mcp", "--no-index"',
  ],
] as const)(
  'an entry of %s that somebody has edited stays so when servers are wrapped again, and is not put back where it was removed',
  async (client, path, text, from, to) => {
    const home = makeHome();
    home.put(path, text);
    const file = join(home.home, path);
    await run(home, 'wrap', client, '--with-mcp');
    const edited = readFileSync(file, 'utf8').replace(from, to);
    writeFileSync(file, edited);
    for (const more of [[], ['--with-mcp']]) {
      await run(home, 'wrap', client, ...more);
      expect(readFileSync(file, 'utf8')).toBe(edited);
    }
    await run(home, 'unwrap', client);
    expect(readFileSync(file, 'utf8')).toBe(text);
    await run(home, 'wrap', client, '--with-mcp');
    writeFileSync(file, text);
    await run(home, 'wrap', client);
    expect(readFileSync(file, 'utf8')).not.toContain('"mcp"');
  },
);
