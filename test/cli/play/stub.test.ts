/** `replay --stub`: real servers are asked, and official clients talk to what stands in their place. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client as SecondClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as FirstHttpTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import { PROVIDER_RULES } from '../../../src/inspect/check/beyond/provider-rules.ts';
import { readBody, startServer } from '../../support/http.ts';
import { recordUrlInProcess } from '../../support/http-record.ts';
import { startInProcess } from '../../support/in-process.ts';
import { inFull, sample } from '../../support/scale.ts';
import { EVERYTHING, startDualEra, startDualEraServer } from '../../support/servers.ts';
import {
  BIN,
  fixture,
  listSessions,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const NODE = process.execPath;

const MARK = { 'mcp-tapedeck/invented': true };

/** Writes lines that are no messages, until its client has gone. */
const NONSENSE =
  'setInterval(() => console.log("hello"), 20); process.stdin.resume().on("end", () => process.exit())';

const lists = (given: object) => ['--', NODE, fixture('lists.js'), JSON.stringify(given)];

const OF_BUSY_MACHINES = new Set(['handshake-slow', 'tool-schema-unchecked']);

/** What `check` finds against the server. What the client did wrong, it did on purpose; what providers refuse is in the real server's list. */
async function faultsOfServer(db: string): Promise<object[]> {
  const { stdout } = await tapedeckInProcess(['check', '--severity', 'note', '--json', '--db', db]);
  const findings = stdout
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  return findings.filter(
    ({ side, rule }) => side === 'server' && !(rule in PROVIDER_RULES) && !OF_BUSY_MACHINES.has(rule),
  );
}

/** A stub that listens, and where. */
async function listening(words: readonly string[]): Promise<{ url: URL; stderr: () => string }> {
  const { stderr } = startInProcess(['replay', '--stub', '--listen', '127.0.0.1:0', ...words]);
  await until('the stub listens', () => /listening on \S+;/.test(stderr()));
  return { url: new URL(/listening on (\S+);/.exec(stderr())?.[1] ?? ''), stderr };
}

/** Says lines to a stub, and gives its answers and how it ended. */
async function talk(words: readonly string[], messages: readonly object[]) {
  const { child, ended } = startInProcess(['replay', '--stub', ...words]);
  child.stdin.end(messages.map((one) => `${JSON.stringify({ jsonrpc: '2.0', ...one })}\n`).join(''));
  const { code, stdout, stderr } = await ended;
  const answers = stdout
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  return { code, stderr, answers };
}

const call = (id: number, name: string, args: object) => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

/** What a client of 1.x does with a stub of server-everything. */
async function useEverything(transport: Transport): Promise<void> {
  const client = new Client({ name: 'tester', version: '1.0.0' });
  await client.connect(transport);
  expect(client.getServerVersion()).toMatchObject({ name: 'mcp-servers/everything' });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain('get-structured-content');
  await client.ping();
  await client.setLoggingLevel('debug');
  await client.listPrompts();
  await client.listResourceTemplates();
  // The client itself checks structured content against the tool's schema.
  const called = await client.callTool({
    name: 'get-structured-content',
    arguments: { location: 'Chicago' },
  });
  expect(called).toMatchObject({ _meta: MARK, structuredContent: { temperature: expect.any(Number) } });
  const again = await client.callTool({ name: 'get-structured-content', arguments: { location: 'Chicago' } });
  expect(again).toEqual(called);
  expect(await client.callTool({ name: 'echo', arguments: { message: 'x' } })).toMatchObject({ _meta: MARK });
  expect(await client.callTool({ name: 'get-sum', arguments: { a: 'one' } })).toMatchObject({
    isError: true,
  });
  await expect(client.callTool({ name: 'none' })).rejects.toThrow('Unknown tool: none');
  expect(await client.getPrompt({ name: 'simple-prompt' })).toMatchObject({ _meta: MARK });
  const { resources } = await client.listResources();
  expect(await client.readResource({ uri: resources[0]?.uri ?? '' })).toMatchObject({ _meta: MARK });
  if (transport instanceof FirstHttpTransport) await transport.terminateSession();
  await client.close();
}

inFull(
  'a client of 1.x takes a stub over stdio for the server, and `check` finds no fault of it',
  async () => {
    const db = tempStore();
    const stub = [BIN, 'replay', '--stub', '--', NODE, EVERYTHING, 'stdio'];
    const args = [BIN, 'record', '--db', db, '--', NODE, ...stub];
    await useEverything(new StdioClientTransport({ command: NODE, args, stderr: 'ignore' }));
    await until('the session ends', async () => (await listSessions(db))[0]?.endedAt !== null);
    expect(await faultsOfServer(db)).toEqual([]);
  },
);

inFull('a client of 1.x takes one over HTTP for it', async () => {
  const { url } = await listening(['--', NODE, EVERYTHING, 'stdio']);
  await useEverything(new FirstHttpTransport(url) as Transport);
});

test.each(sample(['auto', 'legacy'] as const))(
  'a client of 2.x, mode %s, takes a stub of a server of both eras for it',
  async (mode) => {
    const { url, stderr } = await listening([await startDualEraServer()]);
    expect(stderr()).toContain('in 2025-11-25 and 2026-07-28');
    const recording = await recordUrlInProcess(url);
    const client = new SecondClient({ name: 'second', version: '2.0.0' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(recording.url));
    expect(client.getNegotiatedProtocolVersion()).toBe(mode === 'auto' ? '2026-07-28' : '2025-11-25');
    expect((await client.listTools()).tools.length).toBeGreaterThan(10);
    expect(await client.callTool({ name: 'test_simple_text' })).toMatchObject({ _meta: MARK });
    const region = { region: 'süd', level: 2 };
    expect(await client.callTool({ name: 'test_x_mcp_header', arguments: region })).toMatchObject({
      _meta: MARK,
    });
    expect(await client.readResource({ uri: 'test://static-text' })).toMatchObject({ _meta: MARK });
    await expect(client.readResource({ uri: 'test://none' })).rejects.toThrow(/not found/i);
    if (mode === 'auto') await (await client.listen({ toolsListChanged: true })).close();
    if (mode === 'legacy' && client.transport instanceof StreamableHTTPClientTransport)
      await client.transport.terminateSession();
    await client.close();
    await recording.stop();
    expect(await faultsOfServer(recording.db)).toEqual([]);
  },
);

test('the live server is asked for its lists once, and for no call', async () => {
  const tools = [{ name: 'one', inputSchema: { type: 'object' } }];
  const { code, stderr, answers } = await talk(lists({ tools }), [
    { id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {} } },
    { id: 1, method: 'tools/list' },
    { id: 2, method: 'tools/list' },
    call(3, 'one', {}),
  ]);
  expect(code).toBe(0);
  expect(answers.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
  expect(answers[1].result).toEqual({ tools });
  const asked = stderr.split('\n').filter((line) => /^\w+\/\w+$|^initialize$/.test(line));
  expect(asked).toEqual(['initialize', 'notifications/initialized', 'tools/list', 'server/discover']);
  expect(stderr).toContain('the live server offers 1 tool, in 2025-11-25; what answers a call is invented');
});

inFull('a server of both eras over HTTP is asked for no call either', async () => {
  const server = await startDualEra();
  const { url } = await listening([server.url.href]);
  const client = new SecondClient(
    { name: 'second', version: '2.0.0' },
    { versionNegotiation: { mode: 'auto' } },
  );
  await client.connect(new StreamableHTTPClientTransport(url));
  const before = server.requests().length;
  await client.callTool({ name: 'test_simple_text' });
  await client.close();
  expect(server.requests()).toHaveLength(before);
});

inFull('a server that takes its time is waited for', async () => {
  const { code, answers } = await talk(lists({ ms: 300 }), [{ id: 1, method: 'ping' }]);
  expect(answers).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
  expect(code).toBe(0);
});

test.each([
  [
    'dies at once',
    ['--', NODE, fixture('exit.js'), '3'],
    /answers neither `initialize` \(the server has ended/,
  ],
  ['is not there', ['--', '/no/such/program'], /answers neither `initialize` \(.*\/no\/such\/program/],
  ['speaks nonsense', ['--timeout', '0.5', '--', NODE, '-e', NONSENSE], /no answer within 0\.5 s/],
])('a live server that %s ends the command with 2 and the reason', async (_, words, why) => {
  const { code, stderr, answers } = await talk(words, []);
  expect({ code, answers }).toEqual({ code: 2, answers: [] });
  expect(stderr).toMatch(why);
});

test('a live server that wants credentials gets those of --header', async () => {
  const token = ['Bearer', 'open', 'sesame'].join(' ');
  const { url } = await startServer(async (request, response) => {
    const isOpen = request.headers.authorization === token;
    const body = await readBody(request);
    if (!isOpen || request.method !== 'POST') return void response.writeHead(isOpen ? 405 : 401).end();
    const { id, method } = JSON.parse(body.toString());
    if (id === undefined) return void response.writeHead(202).end();
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        serverInfo: { name: 's', version: '1' },
      },
      'tools/list': { tools: [{ name: 'one', inputSchema: { type: 'object' } }] },
    };
    const answer =
      method in results ? { result: results[method] } : { error: { code: -32601, message: 'no' } };
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
  const shut = await talk([url], []);
  expect(shut.code).toBe(2);
  expect(shut.stderr).toContain('it wants credentials. Try --header');
  const { answers } = await talk([url, '--header', `Authorization: ${token}`], [call(1, 'one', {})]);
  expect(answers[0].result._meta).toEqual(MARK);
});

inFull('what a server offers can be saved, and a stub of the file needs no server', async () => {
  const folder = tempFolder();
  const file = join(folder, 'offer.json');
  const tools = [
    { name: 'one', inputSchema: { type: 'object' }, outputSchema: { type: 'object', required: ['a'] } },
  ];
  const messages = [{ id: 1, method: 'tools/list' }, call(2, 'one', { x: 1 })];
  const live = await talk(lists({ tools }), messages);
  const saved = await talk(['--save', file, ...lists({ tools })], []);
  expect(saved).toMatchObject({ code: 0, answers: [] });
  expect(saved.stderr).toContain(`saved in ${file}, for: tapedeck replay --stub ${file}`);
  expect(await talk([file], messages)).toMatchObject({ code: 0, answers: live.answers });
  // A file of that name is replaced if it is one of ours.
  const other = join(folder, 'package.json');
  writeFileSync(other, '{}');
  expect(await talk(['--save', other, ...lists({})], [])).toMatchObject({ code: 2 });
  expect(readFileSync(other, 'utf8')).toBe('{}');
  expect(await talk(['--save', file, ...lists({})], [])).toMatchObject({ code: 0 });
});

test.each([
  [['demo', '--', 'x'], /Expected no recording with `--stub`, got `demo`: .*never mixed/],
  [['a.ndjson', 'https://example.com'], /Expected no recording with `--stub`, got `a.ndjson`/],
  [[], /Expected the server’s URL, or its command after `--`/],
  [
    ['offer.json', '--', 'x'],
    /Expected a saved offer or a live server with `--stub`, got `offer.json` and more/,
  ],
  [['offer.json', '--save', 'other.json'], /Expected a saved offer or a live server/],
  [['offer.json', 'demo'], /Expected no recording with `--stub`, got `demo`/],
  [['none.json'], /none\.json cannot be read/],
  [['--mode', 'all', '--', 'x'], /Expected no `--mode all` with `--stub`/],
  [['--prune-unused', '--', 'x'], /Expected no `--prune-unused` with `--stub`/],
  [['--suggest-ignore', 'y', '--', 'x'], /Expected/],
])('what a stub has no use for is refused: %j', async (words, why) => {
  const { code, stderr } = await talk(words, []);
  expect(code).toBe(2);
  expect(stderr).toMatch(why);
});

test('--calls tells what a stub was asked', async () => {
  const file = `${tempStore()}.calls`;
  const tools = [{ name: 'one', inputSchema: { type: 'object', required: ['a'] } }];
  await talk(['--calls', file, ...lists({ tools })], [call(1, 'one', { a: 1 }), call(2, 'one', {})]);
  const parts = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(parts.flatMap(({ outcome }) => outcome ?? [])).toEqual(['ok', 'tool-error']);
});
