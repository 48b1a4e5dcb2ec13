import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { CLIENTS } from '../../src/clients/clients.ts';
import { readConfig } from '../../src/clients/config.ts';
import { makeHome, type TestHome } from '../support/configs.ts';
import { query } from '../support/http-record.ts';
import { sample } from '../support/scale.ts';
import { fixture } from '../support/tapedeck.ts';

const NODE = JSON.stringify(process.execPath);
const ECHO = JSON.stringify(fixture('echo.js'));
const JSON_ENTRY = `{ "command": ${NODE}, "args": [${ECHO}], "env": { "MARK": "1" } }`;

/** A config of each client with one server that runs, and where the client has it. */
const CONFIGS: [client: string, path: string, content: string][] = [
  ['claude-desktop', '.config/Claude/claude_desktop_config.json', `{"mcpServers":{"echo":${JSON_ENTRY}}}`],
  ['claude-code', '.claude.json', `{"projects":{"/p":{"mcpServers":{"echo":${JSON_ENTRY}}}}}`],
  ['claude-code', 'project/.mcp.json', `{"mcpServers":{"echo":${JSON_ENTRY}}}`],
  ['cursor', '.cursor/mcp.json', `\ufeff{\r\n"mcpServers":{\r\n"echo":${JSON_ENTRY}}}`],
  ['vscode', 'project/.vscode/mcp.json', `{ // c\n "servers":{"echo":${JSON_ENTRY},},}`],
  ['windsurf', '.codeium/windsurf/mcp_config.json', `{"mcpServers":{"echo":${JSON_ENTRY}}}`],
  ['cline', '.cline/data/settings/cline_mcp_settings.json', `{"mcpServers":{"echo":${JSON_ENTRY}}}`],
  ['zed', '.config/zed/settings.json', `{"context_servers":{"echo":${JSON_ENTRY},},}`],
  [
    'zed',
    'project/.zed/settings.json',
    `{"context_servers":{"echo":{"command":{"path":${NODE},"args":[${ECHO}],"env":{}},"settings":{}}}}`,
  ],
  ['gemini', '.gemini/settings.json', `{"mcpServers":{"echo":${JSON_ENTRY}}}`],
  ['codex', '.codex/config.toml', `[mcp_servers.echo]\ncommand = ${NODE} # c\nargs = [\n  ${ECHO},\n]\n`],
  ['codex', 'project/.codex/config.toml', `mcp_servers.echo = { command = ${NODE}, args = [${ECHO}] }\n`],
];

/** What the client would start: the words of its entry. */
function wordsIn(clientId: string, file: string): readonly string[] {
  const client = CLIENTS.find(({ id }) => id === clientId);
  if (client === undefined) throw new Error(`no client ${clientId}`);
  const text = readFileSync(file, 'utf8').replace(/^\ufeff/, '');
  const [entry] = readConfig(text, client.format, client.sections).entries;
  if (entry?.server.kind !== 'stdio') throw new Error(`no server in ${file}`);
  return entry.server.words;
}

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

/** Starts it as a client would, with this environment alone; gives the answer to `initialize`. */
async function initialize([command = '', ...args]: readonly string[], env: Record<string, string>) {
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
  const [line] = await new Promise<string[]>((resolve, reject) => {
    child.once('error', reject);
    createInterface({ input: child.stdout }).once('line', (text) => resolve([text]));
  });
  child.stdin.end();
  expect(await ended).toBe(0);
  return JSON.parse(line ?? '');
}

async function wrap(home: TestHome, ...args: string[]): Promise<void> {
  const { code, stderr } = await home.runInProcess('wrap', ...args);
  expect(code, stderr).toBe(0);
}

test.each(sample(CONFIGS))(
  'a wrapped server of %s (%s) starts without a PATH, and is recorded by its name',
  async (client, path, content) => {
    const home = makeHome();
    const file = home.put(path, content);
    await wrap(home, client);
    const env = { HOME: home.home, XDG_DATA_HOME: `${home.home}/data` };
    const answer = await initialize(wordsIn(client, file), env);
    expect(answer).toMatchObject({ id: 1, result: { serverInfo: { name: 'echo' } } });
    const db = `${home.home}/data/tapedeck/recordings.db`;
    expect(query(db, 'SELECT name, server_name FROM session')).toEqual([
      { name: 'echo', server_name: 'echo' },
    ]);
  },
);

test('--db goes into the entries, as an absolute path', async () => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', `{"mcpServers":{"echo":${JSON_ENTRY}}}`);
  await wrap(home, 'cursor', '--db', 'here.db');
  await initialize(wordsIn('cursor', file), {});
  expect(query(`${home.project}/here.db`, 'SELECT name FROM session')).toEqual([{ name: 'echo' }]);
});

test('a store that cannot be used is no trouble of the client', async () => {
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', `{"mcpServers":{"echo":${JSON_ENTRY}}}`);
  const db = home.put('no.db', 'this is not a database, but something else of some length'.repeat(20));
  await wrap(home, 'cursor', '--db', db);
  expect(await initialize(wordsIn('cursor', file), {})).toMatchObject({ id: 1 });
});

test.each(sample(['ünï "q" \\ $x', '-dash', 'two words', '', '--', 'record']))(
  'a server named %j starts',
  async (name) => {
    const home = makeHome();
    const file = home.put('.cursor/mcp.json', `{"mcpServers":{${JSON.stringify(name)}:${JSON_ENTRY}}}`);
    const before = readFileSync(file);
    await wrap(home, 'cursor', '--db', 'named.db');
    expect(await initialize(wordsIn('cursor', file), {})).toMatchObject({ id: 1 });
    const names = query(`${home.project}/named.db`, 'SELECT name FROM session');
    expect(names).toEqual([{ name: name === '' ? null : name }]);
    await home.runInProcess('unwrap', 'cursor');
    expect(readFileSync(file).equals(before)).toBe(true);
  },
);

test('a wrapped server that was edited keeps the edits when it is unwrapped', async () => {
  const home = makeHome();
  const file = home.put(
    '.cursor/mcp.json',
    '{\n  "mcpServers": {\n    "a": {"command": "npx", "args": ["-y", "a"]},\n    "b": {"command": "b"}\n  }\n}\n',
  );
  await wrap(home, 'cursor');
  const edited = readFileSync(file, 'utf8')
    .replace('"-y", "a"]', '"-y", "a@2", "--flag"], "env": {"K": "v"}')
    .replace('{\n', '{\n  // mine\n');
  writeFileSync(file, edited);
  expect((await home.runInProcess('unwrap', 'cursor')).code).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe(
    '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "npx", "args": ["-y", "a@2", "--flag"], "env": {"K": "v"}},\n    "b": {"command": "b"}\n  }\n}\n',
  );
  expect(existsSync(`${home.home}/data/tapedeck/wrapped/mcp.json`)).toBe(false);
});

test('a config that its client has written anew is unwrapped too', async () => {
  const home = makeHome();
  const value = {
    numStartups: 1,
    mcpServers: { a: { command: 'npx', args: ['-y', 'a'] }, b: { url: 'https://b.example/mcp' } },
  };
  const file = home.put('.claude.json', JSON.stringify(value));
  await wrap(home, 'claude-code');
  const wrapped = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, JSON.stringify({ ...wrapped, numStartups: 2 }, null, 2));
  await wrap(home, 'claude-code');
  expect((await home.runInProcess('unwrap', 'claude-code')).code).toBe(0);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ ...value, numStartups: 2 });
});
