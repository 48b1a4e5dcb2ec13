import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { expect, test } from 'vitest';
import { startServer } from '../../support/http.ts';
import { recordUrl } from '../../support/http-record.ts';
import { inFull, sample } from '../../support/scale.ts';
import { EVERYTHING, startDualEraServer, startEverything } from '../../support/servers.ts';
import {
  fixture,
  isRunning,
  ROOT,
  record,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const NODE = process.execPath;
const STDIO = join(ROOT, 'recordings/everything-stdio.ndjson');
const HTTP = join(ROOT, 'recordings/everything-http.ndjson');
const MODERN = join(ROOT, 'recordings/modern-http.ndjson');

async function verify(...args: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess(['verify', ...args]);
  return { code, stderr, text: stdout.toString(), lines: stdout.toString().split('\n').slice(0, -1) };
}

async function verifyJson(...args: string[]) {
  const { code, lines } = await verify(...args);
  const items = lines.map((line) => JSON.parse(line));
  return {
    code,
    items,
    named: (wanted: string) => items.find(({ target, name }) => (target ?? name) === wanted),
  };
}

const initialize = {
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {} },
};
const initialized = { method: 'notifications/initialized' };
const call = (id: number, name: string) => ({ id, method: 'tools/call', params: { name, arguments: {} } });
const ROOTS = { roots: [{ uri: 'file:///a' }] };

/** Records a conversation with the old version of the server. Each request waits for its answer. */
async function recordOld(...messages: object[]): Promise<string> {
  const db = tempStore();
  const { child, stdout, ended } = record(db, ['versions.js', '1'], ['--name', 'old']);
  const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  for (const message of [initialize, initialized, ...messages]) {
    say(message);
    if (!('id' in message)) continue;
    await until('an answer or a question', () => {
      const last = stdout().toString().trim().split('\n').at(-1) ?? '';
      if (last.includes('roots/list')) say({ id: JSON.parse(last).id, result: ROOTS });
      return last.includes(`"id":${message.id},`);
    });
  }
  child.stdin.end();
  await ended;
  return db;
}

const old = (db: string) => ['old', '--db', db];
const server = (version: string, ...more: string[]) => ['--', NODE, fixture('versions.js'), version, ...more];

test('the server that was recorded is equal over stdio, with its sampling request answered', async () => {
  const { code, lines } = await verify(STDIO, '--', NODE, EVERYTHING, 'stdio');
  expect(lines.filter((line) => !line.startsWith('equal'))).toEqual([]);
  expect(lines).toContain('equal    asked by the server: sampling/createMessage');
  expect(lines).toContain('equal    notifications/progress trigger-long-running-operation');
  expect(lines).toContain('equal    notifications/tools/list_changed');
  expect(lines.at(-1)).toBe('equal: 11 equal, 0 drifted');
  expect(code).toBe(0);
});

inFull('it is equal over HTTP, whichever transport the recording has', async () => {
  const url = await startEverything('streamableHttp');
  for (const [recording, summary] of [
    [HTTP, /^equal: 8 equal, 0 drifted/],
    // What belongs to no call comes by other ways.
    [STDIO, /^equal: 1[01] equal, 0 drifted(?:, 1 not compared)?$/],
  ] as const) {
    const { code, lines } = await verify(recording, url);
    expect(lines.at(-1)).toMatch(summary);
    expect(code).toBe(0);
  }
});

test('a server of 2026-07-28 is equal, and gets back the request states that it gave', async () => {
  const { code, lines } = await verify(MODERN, await startDualEraServer());
  expect(lines.at(-1)).toBe('equal: 9 equal, 0 drifted');
  expect(code).toBe(0);
});

test('a changed server drifts: by pointer, by kind of answer, by tool', async () => {
  const db = await recordOld(
    { id: 1, method: 'tools/list' },
    call(2, 'greet'),
    call(3, 'gone'),
    call(4, 'delete'),
  );
  expect((await verify(...old(db), ...server('1'))).code).toBe(0);

  const { code, items } = await verifyJson(...old(db), '--json', ...server('2'));
  expect(code).toBe(1);
  const verdicts = items.filter(({ type }) => type === 'exchange').map(({ verdict, why }) => [verdict, why]);
  expect(verdicts).toEqual([
    ['equal', null],
    ['drift', '4 tools changed (2 breaking)'],
    ['drift', 'the result differs in 1 place'],
    ['drift', 'recorded result, live tool error'],
    ['equal', null],
  ]);
  expect(items[2].differences).toEqual([
    { change: 'changed', pointer: '/content/0/text', recorded: '"Hello"', live: '"Good day"' },
  ]);
  const tools = items.filter(({ type }) => type === 'list');
  expect(tools.map(({ name, change, breaking }) => [name, change, breaking])).toEqual([
    ['greet', 'changed', true],
    ['gone', 'removed', true],
    ['mood', 'changed', false],
    ['new', 'added', false],
  ]);
  expect(tools[0].reasons).toEqual(['/inputSchema/required: "language" is required now']);
  expect(items.at(-1)).toMatchObject({
    type: 'summary',
    drift: 3,
    changed: 4,
    breaking: 2,
    isEqual: false,
  });

  const { text } = await verify(...old(db), ...server('2'));
  expect(text).toContain('/content/0/text changed: recorded "Hello", live "Good day"');
  expect(text).toContain('drift: 2 equal, 3 drifted, 4 tools changed (2 breaking)');
});

test('questions of the server get the recorded answers; one that is not asked any more is drift', async () => {
  const db = await recordOld(call(1, 'roots'));
  const same = await verify(...old(db), ...server('2'));
  expect(same.lines).toContain('equal    tools/call roots');
  expect(same.code).toBe(0);
  const { code, text } = await verify(...old(db), ...server('3'));
  expect(text).toContain('DRIFT    asked by the server: roots/list: the server did not ask this');
  expect(code).toBe(1);
});

inFull('cursors of this run take the place of the recorded ones', async () => {
  const db = await recordOld(
    { id: 1, method: 'pages/list' },
    { id: 2, method: 'pages/list', params: { cursor: 'x' } },
  );
  expect((await verify(...old(db), ...server('1'))).code).toBe(0);
});

inFull('what differs in every run does not count, nor what is ignored', async () => {
  const db = await recordOld(call(1, 'clock'));
  const { items } = await verifyJson(...old(db), '--json', ...server('1'));
  expect(items[1].differences.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
    '/content/0/text',
  ]);
  for (const path of ['$.content[*].text', 'clock:$.content', 'clock:$'])
    expect((await verify(...old(db), '--ignore-result', path, ...server('1'))).code).toBe(0);
  expect((await verify(...old(db), '--ignore-result', 'greet:$', ...server('1'))).code).toBe(1);
});

inFull('only what is wanted is called', async () => {
  const db = await recordOld(
    { id: 1, method: 'tools/list' },
    call(2, 'greet'),
    call(3, 'delete'),
    call(4, 'gone'),
  );
  const calledWith = async (...options: string[]) => {
    const log = join(tempFolder(), 'called');
    await verify(...old(db), ...options, ...server('2', log));
    return existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  };
  expect(await calledWith()).toEqual(['greet', 'delete', 'gone']);
  expect(await calledWith('--read-only')).toEqual(['greet']);
  expect(await calledWith('--only', 'delete')).toEqual(['delete']);
  expect(await calledWith('--skip', 'delete')).toEqual(['greet', 'gone']);
  expect(await calledWith('--skip', 'tools/call')).toEqual([]);
  const { code, stderr } = await verify(...old(db), '--only', 'grete', ...server('2'));
  expect(stderr).toMatch(/no method or tool `grete`\. It has: initialize, tools\/list, tools\/call, greet/);
  expect(code).toBe(2);
});

inFull(
  'a call without an answer in time is drift, and so is all that a server that ended was not asked',
  async () => {
    const slow = await recordOld(call(1, 'slow'), call(2, 'delete'));
    const late = await verify(...old(slow), '--timeout', '1.5', ...server('2'));
    expect(late.text).toContain('DRIFT    tools/call slow: no answer within 1.5 s');
    expect(late.text).toContain('equal    tools/call delete');
    expect(late.code).toBe(1);

    const crashing = await recordOld(call(1, 'crash'), call(2, 'delete'));
    const ended = await verify(...old(crashing), ...server('2'));
    expect(ended.text).toContain('DRIFT    tools/call crash: the server has ended (exit 3)');
    expect(ended.text).toContain('DRIFT    tools/call delete: not asked: the server has ended (exit 3)');
    expect(ended.code).toBe(1);
  },
);

test('where there is nothing to compare with, it says so and exits with 2', async () => {
  for (const [args, complaint] of [
    [[STDIO, '--', 'no-such-command'], /cannot start `no-such-command`: no such command/],
    [[STDIO, '--', NODE, fixture('exit.js')], /the server has ended/],
    [[STDIO, 'http://127.0.0.1:1/mcp'], /the server cannot be reached: .*ECONNREFUSED/],
    [['no-such.ndjson', '--', NODE], /no-such.ndjson cannot be read/],
    [[STDIO], /Expected the server’s URL, or its command after `--`/],
    [[STDIO, '--timeout', '0', '--', NODE], /Expected a number of seconds above 0/],
    [[STDIO, '--ignore-result', 'x', '--', NODE], /expected <json-path> or <tool>:<json-path>/],
  ] as const) {
    const { code, stderr, text } = await verify(...args);
    expect(stderr).toMatch(complaint);
    expect([code, text]).toEqual([2, '']);
  }
});

inFull(
  'a server of the older HTTP+SSE is talked to in its own way, whatever the recording’s was',
  async () => {
    const url = await startEverything('sse');
    const { code, lines } = await verify(STDIO, url);
    expect(lines.filter((line) => line.startsWith('DRIFT'))).toEqual([]);
    expect(lines).toContain('equal    asked by the server: sampling/createMessage');
    expect(lines).toContain('equal    notifications/progress trigger-long-running-operation');
    expect(code).toBe(0);
  },
);

inFull('a recording of HTTP+SSE is verified over HTTP+SSE, Streamable HTTP and stdio', async () => {
  const db = tempStore();
  const url = await startEverything('sse');
  const recorder = await recordUrl(url, { db });
  const client = new Client({ name: 'tester', version: '1.0.0' });
  await client.connect(new SSEClientTransport(recorder.url));
  const echo = { name: 'echo', arguments: { message: 'hällo' } };
  const long = { name: 'trigger-long-running-operation', arguments: { duration: 0.1, steps: 2 } };
  await client.listTools();
  await client.callTool(echo);
  await client.callTool(long, undefined, { onprogress: () => {} });
  await client.close();
  await recorder.stop();
  for (const server of [
    [url],
    [await startEverything('streamableHttp')],
    ['--', NODE, EVERYTHING, 'stdio'],
  ]) {
    const { code, lines } = await verify('latest', '--db', db, ...server);
    expect(lines.filter((line) => line.startsWith('DRIFT'))).toEqual([]);
    expect(lines).toContain('equal    notifications/progress trigger-long-running-operation');
    expect(code).toBe(0);
  }
});

test('what is no MCP server is refused with the reason', async () => {
  const { url } = await startServer((_request, response) => void response.writeHead(404).end('<h1>no</h1>'));
  const { code, stderr } = await verify(STDIO, url);
  expect(stderr).toContain('no MCP there, neither Streamable HTTP nor the older HTTP+SSE');
  expect(code).toBe(2);
});

inFull('a server that refuses the handshake, and has no HTTP+SSE either, drifts by its refusal', async () => {
  const { url } = await startServer((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('data: {}\n\n');
      return;
    }
    const error = { code: -32600, message: 'not you' };
    response
      .writeHead(400, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
  });
  const { code, lines } = await verify(STDIO, url);
  expect(lines[0]).toBe('DRIFT    initialize: recorded result, live error: not you');
  expect(lines.join('\n')).not.toContain('has ended');
  expect(code).toBe(1);
});

const talk = { ...call(1, 'talk'), params: { name: 'talk', _meta: { progressToken: 'p' } } };

inFull(
  'what the server says by itself is compared: progress call by call, all else method by method',
  async () => {
    const db = await recordOld(talk);
    expect((await verify(...old(db), ...server('1'))).lines).toContain('equal    notifications/message');
    const { code, lines } = await verify(...old(db), ...server('2'));
    expect(lines).toEqual([
      'equal    initialize',
      'equal    tools/call talk',
      'DRIFT    notifications/progress talk: 2 recorded, 1 live',
      '           /1 removed: recorded {"progress":2,"progressToken":"p"}',
      'DRIFT    notifications/message: they differ',
      '           /0/data changed: recorded "one", live "three"',
      'drift: 2 equal, 2 drifted',
    ]);
    expect(code).toBe(1);

    const skipping = ['--skip', 'notifications/progress', '--skip', 'notifications/message'];
    expect((await verify(...old(db), ...skipping, ...server('2'))).lines.at(-1)).toBe(
      'equal: 2 equal, 0 drifted',
    );
    const ignoring = ['--ignore', '$.data', '--skip', 'notifications/progress'];
    expect((await verify(...old(db), ...ignoring, ...server('2'))).code).toBe(0);
    const { named } = await verifyJson(...old(db), '--json', ...server('2'));
    expect(named('talk')).toMatchObject({ type: 'exchange' });
  },
);

inFull('where calls are left out, what they would have made the server say is not missed', async () => {
  const db = await recordOld(talk, call(2, 'delete'));
  const { code, lines } = await verify(...old(db), '--skip', 'talk', ...server('1'));
  expect(lines.at(-2)).toBe(
    '-        notifications/message: 2 recorded, 0 live, but some calls were left out',
  );
  expect(lines.at(-1)).toBe('equal: 2 equal, 0 drifted, 1 skipped, 1 not compared');
  expect(code).toBe(0);
});

inFull('arguments that --ignore-tool names do not count where tools are compared', async () => {
  const db = await recordOld({ id: 1, method: 'tools/list' });
  const changed = async (...paths: string[]) => {
    const options = paths.flatMap((path) => ['--ignore-tool', path]);
    const { items } = await verifyJson(...old(db), ...options, '--json', ...server('2'));
    return items.filter(({ change }) => change === 'changed').map(({ name }) => name);
  };
  expect(await changed()).toEqual(['greet', 'mood']);
  expect(await changed('greet:$.language')).toEqual(['mood']);
  expect(await changed('greet:$', 'mood:$..mood')).toEqual([]);
  expect(await changed('greet:$.name', 'mood:$.other')).toEqual(['greet', 'mood']);
});

inFull('a tool whose arguments are repeated in headers is called with them', async () => {
  const db = tempStore();
  const recorder = await recordUrl(await startDualEraServer(), { db });
  const client = new ModernClient({ name: 'm', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new ModernTransport(recorder.url));
  await client.listTools();
  await client.callTool({ name: 'test_x_mcp_header', arguments: { region: 'süd' } });
  await client.close();
  await recorder.stop();
  const { code, lines } = await verify('latest', '--db', db, await startDualEraServer());
  expect(lines).toContain('equal    tools/call test_x_mcp_header');
  expect(code).toBe(0);
});

inFull('JUnit and Markdown reports have every exchange', async () => {
  const db = await recordOld(call(1, 'greet'), call(2, 'delete'));
  const [junit, markdown] = [join(tempFolder(), 'out.xml'), join(tempFolder(), 'out.md')];
  await verify(...old(db), '--junit', junit, '--markdown', markdown, ...server('2'));
  const xml = readFileSync(junit, 'utf8');
  expect(xml).toContain('tests="3" failures="1" errors="0" skipped="0"');
  expect(xml).toContain('recorded &quot;Hello&quot;, live &quot;Good day&quot;');
  expect(readFileSync(markdown, 'utf8')).toContain(
    '| drift | tools/call greet | the result differs in 1 place |',
  );
});

inFull(
  'no server is left behind when verification is stopped, not even one that ignores the end of its input',
  async () => {
    const deaf = 'console.error(process.pid); process.stdin.resume(); setInterval(() => {}, 60_000);';
    const run = tapedeck(['verify', STDIO, '--', NODE, '-e', deaf]);
    await until('the server runs', () => run.stderr().includes('\n'));
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(2);
    expect(isRunning(Number.parseInt(run.stderr(), 10))).toBe(false);
  },
);

/** Records a conversation with `offers.js`. A request may follow from the answers before it. */
async function recordOffers(
  options: object,
  ...requests: (object | ((results: Record<string, unknown>[]) => object))[]
): Promise<string[]> {
  const db = tempStore();
  const { child, stdout, ended } = record(db, ['offers.js', JSON.stringify(options)], ['--name', 'offers']);
  const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const results: Record<string, unknown>[] = [];
  for (const [i, request] of [{ ...initialize }, ...requests].entries()) {
    say({ ...(typeof request === 'function' ? request(results.slice(1)) : request), id: i });
    await until('an answer', () => stdout().toString().split('\n').length > i + 1);
    results.push(JSON.parse(stdout().toString().trim().split('\n').at(-1) ?? '').result);
    if (i === 0) say(initialized);
  }
  child.stdin.end();
  await ended;
  return ['offers', '--db', db];
}

const offers = (options: object = {}) => ['--', NODE, fixture('offers.js'), JSON.stringify(options)];
const LISTS = ['prompts/list', 'resources/list', 'resources/templates/list'];
const next = (method: string) => (results: Record<string, unknown>[]) => ({
  method,
  params: { cursor: results.at(-1)?.['nextCursor'] },
});

async function expectNoDrift(recording: readonly string[], live: object): Promise<void> {
  const { lines, code } = await verify(...recording, ...offers(live));
  expect(
    lines.filter((line) => line.startsWith('DRIFT')),
    JSON.stringify(live),
  ).toEqual([]);
  expect(code).toBe(0);
}

inFull('what servers list is compared by name, in any order and in any pages', async () => {
  const inOne = await recordOffers({}, ...LISTS.map((method) => ({ method })));
  const inTwo = await recordOffers(
    { size: 2 },
    ...LISTS.slice(0, 2).flatMap((method) => [{ method }, next(method)]),
  );
  const pairs: [recording: string[], live: object][] = [
    [inOne, { size: 1, isReversed: true }],
    [inTwo, { isReversed: true }],
    [inTwo, { size: 1 }],
    [inTwo, { size: 2, isCircular: true }],
  ];
  for (const [recording, live] of sample(pairs)) await expectNoDrift(recording, live);

  const changed = await verify(...inOne, ...offers({ size: 1, prompts: ['p3', 'p4', 'p1'] }));
  expect(changed.lines.slice(1)).toEqual([
    'DRIFT    prompts/list: 2 prompts changed (1 breaking)',
    'equal    resources/list',
    'equal    resources/templates/list',
    'prompt   p2 removed, breaking',
    '           the prompt is gone',
    'prompt   p4 added, not breaking',
    'drift: 3 equal, 1 drifted, 2 prompts changed (1 breaking)',
  ]);
  const fewer = await verify(...inTwo, ...offers({ prompts: ['p1'] }));
  expect(fewer.lines[1]).toBe('DRIFT    prompts/list: 1 prompt changed (1 breaking)');
  expect(fewer.lines[2]).toBe('DRIFT    prompts/list: 1 prompt changed (1 breaking)');
  const ignored = await verify(...inOne, '--ignore-result', '$.prompts', ...offers({ prompts: [] }));
  expect(ignored.lines[1]).toBe('equal    prompts/list');
});

inFull(
  'tasks of the very server are equal, however long they take now, and whatever other tasks it has',
  async () => {
    const about = (method: string) => (results: Record<string, unknown>[]) => {
      const [task] = results.map((one) => one['task'] as { taskId: string } | undefined);
      return { method, params: { taskId: task?.taskId } };
    };
    const call = { method: 'tools/call', params: { name: 'a', task: {} } };
    const poll = about('tasks/get');
    const list = { method: 'tasks/list' };
    const quick = await recordOffers({}, call, poll, about('tasks/result'), { ...call }, list);
    const slow = await recordOffers({ ms: 100 }, call, poll, about('tasks/result'), poll, list);
    const pairs: [recording: string[], live: object][] = [
      [quick, { ms: 100 }],
      [slow, {}],
      [slow, { ms: 30, own: 2 }],
    ];
    for (const [recording, live] of sample(pairs)) await expectNoDrift(recording, live);
    const limit = ['--timeout', '3', '--skip', 'tasks/result'];
    const { lines } = await verify(...quick, ...limit, ...offers({ ms: 100_000 }));
    expect(lines.filter((line) => line.startsWith('DRIFT'))).toEqual([
      expect.stringMatching(/^DRIFT {4}tasks\/get \S+: the result differs in 2 places$/),
    ]);
  },
);

test('over HTTP the header that names a task names the live one', async () => {
  const mine = 'mine-1';
  const status = (taskId: string, now: string) => ({ resultType: 'task', taskId, status: now });
  const named: unknown[] = [];
  const { url } = await startServer(async (request, response) => {
    const { id, method, params } = JSON.parse((await buffer(request)).toString());
    if (method === 'tasks/get') named.push([request.headers['mcp-name'], params.taskId]);
    const result = status(mine, method === 'tasks/get' ? 'completed' : 'working');
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const file = join(tempFolder(), 'tasks.ndjson');
  const said = [
    ['stdin', { id: 1, method: 'tools/call', params: { name: 'a', _meta } }],
    ['stdout', { id: 1, result: status('theirs', 'working') }],
    ['stdin', { id: 2, method: 'tasks/get', params: { taskId: 'theirs', _meta } }],
    ['stdout', { id: 2, result: status('theirs', 'completed') }],
  ] as const;
  const [header] = readFileSync(STDIO, 'utf8').split('\n', 1);
  const frames = said.map(([channel, message]) =>
    JSON.stringify({ ms: 1, channel, message: { jsonrpc: '2.0', ...message } }),
  );
  writeFileSync(file, [header, ...frames, ''].join('\n'));
  expect((await verify(file, `${url}/mcp`)).code).toBe(0);
  expect(named).toEqual([[mine, mine]]);
});
