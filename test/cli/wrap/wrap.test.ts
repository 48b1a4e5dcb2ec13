import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeHome, type TestHome } from '../../support/configs.ts';
import { tapedeckInProcess } from '../../support/tapedeck.ts';

const SECRET = `ghp_${'FAKE'.padEnd(12, '-')}`;
const CURSOR = `{
  "mcpServers": {
    "git": {
      "command": "npx",
      "args": [
        "-y",
        "git-server",
        "--token=${SECRET}"
      ],
      "env": { "TOKEN": "${SECRET}" }
    },
    "off": { "command": "off", "disabled": true },
    "docs": { "url": "https://docs.example/mcp", "headers": { "Authorization": "Bearer ${SECRET}" } },
    "odd": {}
  }
}
`;

async function run(home: TestHome, ...args: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess(args, { env: home.env, cwd: home.project });
  return {
    code,
    stdout: stdout.toString().replaceAll(home.home, '~'),
    stderr: stderr.replaceAll(home.home, '~'),
  };
}

test('--list shows the clients found, their servers and which are wrapped, and no secret', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', CURSOR);
  home.put('project/.mcp.json', '{"mcpServers": {}}');
  home.put('.claude.json', '{"projects": {"/srv/apps": {"mcpServers": {"db": {"command": "db"}}}}}');
  home.put('.codex/config.toml', 'a = 1\nbroken = \n');
  await run(home, 'wrap', 'cursor', 'git', 'docs');
  const { code, stdout, stderr } = await run(home, 'wrap', '--list');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
    'Claude Code: ~/.claude.json',
    '  db (/srv/apps)  stdio  not wrapped',
    'Claude Code: ~/project/.mcp.json',
    '  no servers',
    'Cursor: ~/.cursor/mcp.json',
    '  git             stdio  wrapped',
    '  off             stdio  not wrapped; disabled',
    '  docs            http   wrapped',
    '  odd                    cannot be wrapped; it has neither a command nor a URL',
    'Codex: ~/.codex/config.toml',
    expect.stringMatching(/^ {2}it is not valid TOML: .* at line 3, column 1$/),
    '',
  ]);
  expect((await run(home, 'wrap')).stdout).toBe(stdout);
  const json = await run(home, 'wrap', '--list', 'cursor', '--json');
  expect(
    json.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))[0],
  ).toEqual({
    client: 'cursor',
    file: '~/.cursor/mcp.json',
    scope: 'user',
    server: 'git',
    path: ['mcpServers', 'git'],
    transport: 'stdio',
    wrapped: true,
    disabled: false,
    problem: null,
  });
  expect(stdout + json.stdout).not.toContain(SECRET);
});

test('without any client --list says what can be done', async () => {
  const { code, stdout } = await run(makeHome(), 'wrap', '--list');
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: 'No config of a known client was found. A file is wrapped by its path: tapedeck wrap <file>\n',
  });
});

test('wrap says what became of each server, and what is to be done next', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', CURSOR);
  home.put('project/.cursor/mcp.json', '{"mcpServers": {"own": {"command": "own"}}}');
  const { code, stdout, stderr } = await run(home, 'wrap', 'cursor');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).not.toContain(SECRET);
  const lines = stdout
    .replaceAll(/:\d{5}/g, ':PORT')
    .replaceAll(/json-\w{12}/g, 'json-ID')
    .split('\n');
  expect(lines).toEqual([
    'Cursor: ~/.cursor/mcp.json',
    '  git   wrapped',
    '  off   wrapped',
    '  docs  wrapped: http://127.0.0.1:PORT leads to https://docs.example',
    '  odd   NOT wrapped: it has neither a command nor a URL',
    'Cursor: ~/project/.cursor/mcp.json',
    '  own  wrapped',
    '',
    'Restart Cursor, so that the servers are started anew.',
    '`tapedeck unwrap cursor` puts it back; do that before you remove tapedeck. Copies: ~/data/tapedeck/wrapped/mcp.json-ID, ~/data/tapedeck/wrapped/mcp.json-ID',
    'The URL servers can be reached only while this runs: tapedeck record --wrapped cursor',
    '~/project/.cursor/mcp.json belongs to a project: do not commit it while it is wrapped',
    '',
  ]);
  const again = await run(home, 'wrap', 'cursor');
  expect(again.stdout).toContain('  git   already wrapped\n');
  expect(again.stdout).not.toContain('Restart');
});

test('--dry-run shows the lines that change, no others, and writes nothing', async () => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', CURSOR);
  const { code, stdout } = await run(home, 'wrap', 'cursor', 'git', '--dry-run');
  expect(code).toBe(0);
  const diff = stdout.slice(stdout.indexOf('---')).split('\n');
  expect(diff.slice(0, 5)).toEqual([
    '--- ~/.cursor/mcp.json',
    '+++ ~/.cursor/mcp.json',
    '@@ -4,1 +4,1 @@',
    '-      "command": "npx",',
    expect.stringMatching(/^\+ {6}"command": ".*node.*",$/),
  ]);
  expect(diff).toContain('+        "git",');
  expect(diff.slice(-3)).toEqual(['', 'Nothing was written: --dry-run', '']);
  expect(stdout).not.toContain(SECRET);
  expect(readFileSync(file, 'utf8')).toBe(CURSOR);
  expect(existsSync(join(home.home, 'data'))).toBe(false);

  await run(home, 'wrap', 'cursor');
  const wrapped = readFileSync(file);
  const back = await run(home, 'unwrap', 'cursor', '--dry-run');
  expect(back.stdout).toContain('+      "command": "npx",\n');
  expect(readFileSync(file).equals(wrapped)).toBe(true);
});

test('unwrap finds the projects that were wrapped, wherever it is called', async () => {
  const home = makeHome();
  const file = home.put('project/.cursor/mcp.json', '{"mcpServers": {"own": {"command": "own"}}}');
  const other = home.put('elsewhere/servers.json', '{"mcpServers": {"own": {"command": "own"}}}');
  await run(home, 'wrap', 'cursor');
  await run(home, 'wrap', other);
  home.put('sub/x', '');
  const { code, stdout } = await tapedeckInProcess(['unwrap', 'all'], {
    env: home.env,
    cwd: join(home.home, 'sub'),
  });
  expect(code).toBe(0);
  expect(stdout.toString()).toContain(`${other}\n  own  unwrapped\n`);
  for (const one of [file, other])
    expect(readFileSync(one, 'utf8')).toBe('{"mcpServers": {"own": {"command": "own"}}}');
});

test('a file that is refused does not stop the others', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', '{');
  const file = home.put('project/.cursor/mcp.json', '{"mcpServers": {"own": {"command": "own"}}}');
  const { code, stderr } = await run(home, 'wrap', 'cursor');
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^tapedeck: ~\/\.cursor\/mcp\.json: it is not valid JSON: \w+ at line 1, column 2\. Nothing was written\n$/,
  );
  expect(readFileSync(file, 'utf8')).toContain('record');
});

test('a server that was named and cannot be wrapped is exit 2', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', CURSOR);
  expect(await run(home, 'wrap', 'cursor', 'odd')).toMatchObject({ code: 2 });
});

const WRONG: [args: string[], complaint: RegExp][] = [
  [['wrap', 'cursor', 'gti'], /Expected a server of .*, got `gti`; there are: git, off, docs, odd/],
  [
    ['wrap', 'curser'],
    /Expected a client or a file, got `curser`: no such file\. The clients: claude-desktop, /,
  ],
  [['wrap', 'zed'], /No config of Zed was found\. Looked for: ~\/\.config\/zed\/settings\.json, /],
  [['wrap', '--dry-run'], /Expected a client or a file to wrap\. Example: tapedeck wrap cursor/],
  [['wrap', 'cursor', '--json'], /`--json` goes with `--list`/],
  [['wrap', 'cursor', '--db', ''], /Expected a value after `--db`/],
  [['unwrap'], /Not enough non-option arguments.*See: tapedeck unwrap --help/],
];

test.each(WRONG)('tapedeck %j is one clear line, exit 2, and changes nothing', async (args, complaint) => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', CURSOR);
  const { code, stdout, stderr } = await run(home, ...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(complaint);
  expect(stderr).toMatch(/^tapedeck: [^\n]+\n$/);
  expect(readFileSync(file, 'utf8')).toBe(CURSOR);
});

test('hostile names cannot command the terminal', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', '{"mcpServers": {"\\u001b[31mred\\u0007": {"command": "x"}}}');
  for (const args of [
    ['wrap', '--list'],
    ['wrap', 'cursor', 'other'],
    ['wrap', 'cursor', '--dry-run'],
    ['wrap', 'cursor'],
  ]) {
    const { stdout, stderr } = await run(home, ...args);
    for (const control of ['\u001b', '\u0007']) expect(stdout + stderr).not.toContain(control);
    expect(stdout + stderr).toContain('[31mred');
  }
});

test('the reader of the output may leave early', async () => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', CURSOR);
  const { child, ended } = home.run('wrap', 'all');
  child.stdout.destroy();
  expect(await ended).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(file, 'utf8')).toContain('record');
});

test('a server is found by a name that looks like a number', async () => {
  const home = makeHome();
  const file = home.put(
    '.cursor/mcp.json',
    '{"mcpServers": {"007": {"command": "x"}, "7": {"command": "y"}}}',
  );
  expect(await run(home, 'wrap', 'cursor', '007')).toMatchObject({ code: 0 });
  expect(readFileSync(file, 'utf8')).toContain('"7": {"command": "y"}');
});

test('where there is no client, wrap and unwrap say so', async () => {
  for (const command of ['wrap', 'unwrap']) {
    const { code, stderr } = await run(makeHome(), command, 'all');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'tapedeck: No config of a known client was found. A file is wrapped by its path: tapedeck wrap <file>\n',
    });
  }
});

test('a wrapped file that is gone is named with its copy, and is in nobody’s way', async () => {
  const home = makeHome();
  home.put('.cursor/mcp.json', CURSOR);
  const file = home.put('elsewhere/servers.json', '{"mcpServers": {"own": {"command": "own"}}}');
  await run(home, 'wrap', file);
  rmSync(file);
  const { code, stderr } = await run(home, 'wrap', '--list');
  expect(code).toBe(0);
  const [, copies = ''] =
    /^tapedeck: .*servers\.json was wrapped, and is gone\. Its copy: ~(\S+)\n$/.exec(stderr) ?? [];
  expect(readFileSync(join(home.home, copies, 'original.json'), 'utf8')).toContain('"own"');
  expect(await run(home, 'unwrap', 'all')).toMatchObject({ code: 0, stderr: '' });
});
