import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, onTestFinished, test } from 'vitest';
import { makeConfig, makeHome, type TestHome } from '../support/configs.ts';
import { startServer } from '../support/http.ts';
import { query } from '../support/http-record.ts';
import { inFull } from '../support/scale.ts';
import { startEverything } from '../support/servers.ts';
import { type Run, until } from '../support/tapedeck.ts';

/** The URL entries of a JSON config, by name. */
function urlsIn(file: string): Record<string, string> {
  const { mcpServers } = JSON.parse(readFileSync(file, 'utf8'));
  const entries = Object.entries(mcpServers as Record<string, Record<string, string>>);
  return Object.fromEntries(
    entries.map(([name, { url, httpUrl, serverUrl }]) => [name, url ?? httpUrl ?? serverUrl ?? '']),
  );
}

async function wrap(home: TestHome, ...args: string[]): Promise<void> {
  const { code, stderr } = await home.runInProcess('wrap', ...args);
  expect(code, stderr).toBe(0);
}

/** Settles once so many listeners have said that they listen. */
async function serve(home: TestHome, count: number, ...args: string[]): Promise<Run> {
  const run = home.run('record', '--wrapped', ...args);
  await until('all listen', () => run.stderr().split('listening on').length === count + 1);
  return run;
}

async function stop(run: Run): Promise<void> {
  run.child.kill('SIGTERM');
  const { code, signal, stderr } = await run.ended;
  expect({ code, signal }, stderr).toEqual({ code: 0, signal: null });
}

function rows(home: TestHome, sql: string) {
  return query(join(home.home, 'recordings.db'), sql);
}

inFull(
  'wrapped URL servers of several clients are served by one process, each session under its name',
  async () => {
    const [first, second] = [
      await startEverything('streamableHttp'),
      await startEverything('streamableHttp'),
    ];
    const home = makeHome();
    const cursor = home.put('.cursor/mcp.json', JSON.stringify({ mcpServers: { one: { url: first } } }));
    const gemini = home.put(
      '.gemini/settings.json',
      JSON.stringify({ mcpServers: { two: { httpUrl: second, headers: { Authorization: 'Bearer t' } } } }),
    );
    await wrap(home, 'all');
    const urls = { ...urlsIn(cursor), ...urlsIn(gemini) };
    expect(urls['one']).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    expect(new Set(Object.values(urls)).size).toBe(2);

    const run = await serve(home, 2);
    expect(run.stderr().split('\n').slice(0, -1)).toEqual([
      `tapedeck: listening on ${new URL(urls['one'] ?? '').origin} for one at ${new URL(first).origin} (${cursor})`,
      `tapedeck: listening on ${new URL(urls['two'] ?? '').origin} for two at ${new URL(second).origin} (${gemini})`,
    ]);
    for (const [name, url] of Object.entries(urls)) {
      const client = new Client({ name, version: '1.0.0' });
      const transport = new StreamableHTTPClientTransport(new URL(url));
      await client.connect(transport as Transport);
      await client.callTool({ name: 'echo', arguments: { message: name } });
      await transport.terminateSession();
      await client.close();
    }
    await stop(run);
    const sessions = rows(
      home,
      'SELECT name, client_name, target, end_reason, dropped FROM session ORDER BY name',
    );
    expect(sessions).toEqual([
      { name: 'one', client_name: 'one', target: first, end_reason: 'deleted', dropped: 0 },
      { name: 'two', client_name: 'two', target: second, end_reason: 'deleted', dropped: 0 },
    ]);

    expect((await home.runInProcess('unwrap', 'all')).code).toBe(0);
    expect([urlsIn(cursor), urlsIn(gemini)]).toEqual([{ one: first }, { two: second }]);
  },
);

inFull('one port that is taken does not stop the others; where all are, it says so and ends', async () => {
  const upstream = await startServer((_request, response) => void response.end('fine'));
  const home = makeHome();
  const file = home.put(
    '.cursor/mcp.json',
    JSON.stringify({ mcpServers: { a: { url: `${upstream.url}/a` }, b: { url: `${upstream.url}/b` } } }),
  );
  await wrap(home, 'cursor');
  const { a = '', b = '' } = urlsIn(file);
  const blocker = createServer().listen(Number(new URL(a).port), '127.0.0.1');
  onTestFinished(() => void blocker.close());
  const run = await serve(home, 1, 'cursor');
  expect(run.stderr()).toMatch(/^tapedeck: a is not served: something else listens on port \d+\. /);
  expect(await (await fetch(b)).text()).toBe('fine');

  const second = await home.run('record', '--wrapped').ended;
  expect(second.code).toBe(2);
  expect(second.stderr.match(/is not served/g)).toHaveLength(2);
  const strict = await home.run('record', '--wrapped', '--strict').ended;
  expect(strict.code).toBe(1);
  await stop(run);
});

test('with --strict all are served or none is', async () => {
  const upstream = await startServer((_request, response) => void response.end('fine'));
  const home = makeHome();
  const urls = { a: { url: `${upstream.url}/a` }, b: { url: `${upstream.url}/b` } };
  const file = home.put('.cursor/mcp.json', JSON.stringify({ mcpServers: urls }));
  await wrap(home, 'cursor');
  const blocker = createServer().listen(Number(new URL(urlsIn(file)['b'] ?? '').port), '127.0.0.1');
  onTestFinished(() => void blocker.close());
  expect((await home.run('record', '--wrapped', '--strict').ended).code).toBe(1);
});

test('a web page elsewhere cannot use the ports', async () => {
  const upstream = await startServer((_request, response) => void response.end('fine'));
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', JSON.stringify({ mcpServers: { a: { url: upstream.url } } }));
  await wrap(home, 'cursor');
  const run = await serve(home, 1);
  const { a = '' } = urlsIn(file);
  expect((await fetch(a)).status).toBe(200);
  expect((await fetch(a, { headers: { Origin: 'https://evil.example' } })).status).toBe(403);
  await stop(run);
});

inFull('the store is the one that was named when it was wrapped, unless another one is named', async () => {
  const upstream = await startServer((_request, response) => void response.end('fine'));
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', JSON.stringify({ mcpServers: { a: { url: upstream.url } } }));
  await wrap(home, 'cursor', '--db', 'own.db');
  for (const options of [[], ['--db', 'other.db']]) {
    const run = await serve(home, 1, ...options);
    await fetch(urlsIn(file)['a'] ?? '');
    await stop(run);
  }
  for (const name of ['own.db', 'other.db'])
    expect(query(join(home.project, name), 'SELECT name FROM session')).toEqual([{ name: 'a' }]);
  expect(existsSync(join(home.home, 'recordings.db'))).toBe(false);
});

test('an entry that is unwrapped and wrapped again keeps its port, and no two have the same', async () => {
  const servers = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`s${i}`, { url: 'https://same.example/mcp' }]),
  );
  const config = makeConfig('cursor', JSON.stringify({ mcpServers: servers }));
  await config.wrap();
  const ports = urlsIn(config.target.file);
  expect(new Set(Object.values(ports)).size).toBe(40);
  config.unwrap(['s7']);
  await config.wrap(['s7']);
  expect(urlsIn(config.target.file)).toEqual(ports);
  config.unwrap();
  await config.wrap();
  expect(urlsIn(config.target.file)).toEqual(ports);
});

test('the path is kept as it is written, and a change of it survives the unwrapping', async () => {
  const content = `{"mcpServers":{"a":{"url":"https:\\/\\/a.example:8443/x/\${KEY}?q=1#f"},"b":{"url":"http://b.example"}}}`;
  const config = makeConfig('cursor', content);
  await config.wrap();
  const { a = '', b = '' } = urlsIn(config.target.file);
  expect(a.replace(/:\d+/, '')).toBe(`http://127.0.0.1/x/\${KEY}?q=1#f`);
  expect(b.replace(/:\d+/, '')).toBe('http://127.0.0.1');
  config.write(config.read().toString().replace('?q=1', '?q=2'));
  config.unwrap();
  expect(urlsIn(config.target.file)).toEqual({
    a: `https://a.example:8443/x/\${KEY}?q=2#f`,
    b: 'http://b.example',
  });
});

inFull('a renamed server is still known by its port, and recorded by its new name', async () => {
  const upstream = await startServer((_request, response) => void response.end('fine'));
  const home = makeHome();
  const file = home.put('.cursor/mcp.json', JSON.stringify({ mcpServers: { old: { url: upstream.url } } }));
  await wrap(home, 'cursor');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"old"', '"new"'));
  const run = await serve(home, 1);
  await fetch(urlsIn(file)['new'] ?? '');
  await stop(run);
  expect(rows(home, 'SELECT name FROM session')).toEqual([{ name: 'new' }]);
  await home.runInProcess('unwrap', 'cursor');
  expect(urlsIn(file)).toEqual({ new: upstream.url });
});

inFull('a config that was moved or copied is still known by its ports', async () => {
  const upstream = await startServer((_request, response) => void response.end('fine'));
  const home = makeHome();
  const content = JSON.stringify({ mcpServers: { a: { url: upstream.url } } });
  const file = home.put('.cursor/mcp.json', content);
  await wrap(home, 'cursor');
  const moved = home.put('dotfiles/mcp.json', readFileSync(file));
  rmSync(file);
  symlinkSync(moved, file);
  const run = await serve(home, 1, 'cursor');
  expect(await (await fetch(urlsIn(file)['a'] ?? '')).text()).toBe('fine');
  await stop(run);
  expect((await home.runInProcess('unwrap', 'cursor')).code).toBe(0);
  expect(readFileSync(moved, 'utf8')).toBe(content);
});

test('a config that cannot be read does not stop the others', async () => {
  const upstream = await startServer((_request, response) => void response.end('fine'));
  const home = makeHome();
  home.put('.cursor/mcp.json', JSON.stringify({ mcpServers: { a: { url: upstream.url } } }));
  await wrap(home, 'cursor');
  const broken = home.put('.gemini/settings.json', '{');
  const run = await serve(home, 1);
  expect(run.stderr()).toContain(`tapedeck: ${broken} is not served: it is not valid JSON`);
  await stop(run);
});

test('a secret in a URL is on no screen, and in no file that others can read', async () => {
  const secret = `sk-${'FAKE'.padEnd(12, '-')}`;
  const home = makeHome();
  const content = JSON.stringify({
    mcpServers: { a: { url: `https://a.example/${secret}/mcp?key=${secret}` } },
  });
  const file = home.put('.cursor/mcp.json', content);
  const { stdout, stderr } = await home.runInProcess('wrap', 'cursor');
  const run = await serve(home, 1);
  await stop(run);
  const listed = await home.runInProcess('wrap', '--list');
  const said = [stdout.toString(), stderr, run.stderr(), listed.stdout.toString(), listed.stderr].join('');
  expect(said).toContain('https://a.example');
  expect(said).not.toContain(secret);
  const [, copies = ''] = /Copies: (\S+)/.exec(stdout.toString()) ?? [];
  expect(statSync(join(copies, 'wrapped.json')).mode & 0o777).toBe(0o600);
  await home.runInProcess('unwrap', file);
  expect(readFileSync(file, 'utf8')).toBe(content);
  expect(existsSync(copies)).toBe(false);
});

const WRONG: [args: string[], complaint: RegExp][] = [
  [[], /^tapedeck: No URL server is wrapped\. See: tapedeck wrap --list\n$/],
  [['nobody'], /Expected a client or a file, got `nobody`/],
  [['--listen', '8808'], /`--listen` does not go with `--wrapped`/],
  [['--name', 'n'], /`--name` does not go with `--wrapped`/],
  [['--', 'node'], /A command does not go with `--wrapped`/],
];

test.each(WRONG)('record --wrapped %j is refused in one line', async (args, complaint) => {
  const { code, stdout, stderr } = await makeHome().runInProcess('record', '--wrapped', ...args);
  expect({ code, stdout: stdout.toString() }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(complaint);
  expect(stderr).toMatch(/^tapedeck: [^\n]+\n$/);
});
