import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listenOn } from '../support/http.ts';
import { connectByPost, HANDSHAKE, listen, recordOnce, say, toolCall } from '../support/modes.ts';
import { inFull } from '../support/scale.ts';
import { fixture, isRunning, until } from '../support/tapedeck.ts';

const NODE = process.execPath;
const DIES = ['--', NODE, fixture('dies.js')];

const recordFine = recordOnce([...HANDSHAKE, toolCall(1, 'fine')], DIES);

const ask = (file: string, name: string, ...options: string[]) =>
  say([file, '--mode', 'new_episodes', ...options, ...DIES], [...HANDSHAKE, toolCall(1, name)]);

test.each([
  ['fails', 'tool-error', { result: { isError: true } }],
  ['refuses', 'error', { error: { code: -32602 } }],
])('a call that the server itself %s is added, since that is its answer', async (name, outcome, answer) => {
  const file = await recordFine();
  const { answers, stderr, code } = await ask(file, name);
  expect(stderr).toContain(`added: tools/call "${name}": ${outcome}`);
  expect(code).toBe(0);
  const again = await say([file], [...HANDSHAKE, toolCall(5, name)]);
  expect([answers[1], again.answers[1]]).toMatchObject([
    { id: 1, ...answer },
    { id: 5, ...answer },
  ]);
});

test.each([
  ['exits', 'the server has ended (exit 7)', []],
  ['breaks off', 'the server has ended (exit 0)', []],
  ['silent', 'nothing was heard of it for 1.5 s', ['--timeout', '1.5']],
  ['no json-rpc', 'no valid message (no-jsonrpc)', []],
])(
  'a call is withheld where the server is one that %s, and its client told why',
  async (name, why, options) => {
    const file = await recordFine();
    const before = readFileSync(file, 'utf8');
    const { answers, stderr, code } = await ask(file, name, ...options);
    expect(answers[1]).toMatchObject({ id: 1, error: { code: 1404, data: { reason: 'never-recorded' } } });
    expect(answers[1].error.data.live).toContain(why);
    expect(stderr).toContain(`withheld: tools/call "${name}"`);
    expect(code).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe(before);

    const asked = await ask(file, name, ...options, '--record-failures', '--fail-on-miss');
    expect(asked.stderr).toContain(`added: tools/call "${name}": unanswered`);
    expect(asked.code).toBe(1);
    const [, played] = (await say([file], [...HANDSHAKE, toolCall(1, name)])).answers;
    expect(played.error.data.reason).toBe('never-answered');
  },
);

test('an error that is a server’s last word is its end, not its answer', async () => {
  const file = await recordFine();
  const before = readFileSync(file, 'utf8');
  const name = 'says so and exits';
  const { answers, stderr } = await ask(file, name);
  expect(answers[1]).toMatchObject({ id: 1, error: { code: -32603, message: 'shutting down' } });
  expect(stderr).toContain('withheld: tools/call "says so and exits": error');
  expect(readFileSync(file, 'utf8')).toBe(before);
  await ask(file, name, '--record-failures');
  const [, played] = (await say([file], [...HANDSHAKE, toolCall(1, name)])).answers;
  expect(played.error.message).toBe('shutting down');
});

inFull('a server that has ended is started anew for the next call', async () => {
  const file = await recordFine();
  const calls = [toolCall(1, 'exits'), toolCall(2, 'refuses')];
  const { answers, stderr } = await say([file, '--mode', 'new_episodes', ...DIES], [...HANDSHAKE, ...calls]);
  expect(answers[2]).toMatchObject({ id: 2, error: { code: -32602 } });
  expect(stderr).toContain('1 call added');
});

test('a server that cannot be started is said to the client, and by the exit code', async () => {
  const file = await recordFine();
  const options = [file, '--mode', 'new_episodes'];
  const command = await say(
    [...options, '--', 'tapedeck-test-no-such-command'],
    [...HANDSHAKE, toolCall(1, 'new')],
  );
  expect(command.answers[1].error.data.live).toContain('no such command');
  expect(command.code).toBe(2);
  const url = await say([...options, 'http://127.0.0.1:9/mcp'], [...HANDSHAKE, toolCall(1, 'new')]);
  expect(url.answers[1].error.data.live).toContain('cannot be reached');
  expect(url.code).toBe(2);
  // What is recorded is answered all the same.
  const none = await say(
    [...options, '--', 'tapedeck-test-no-such-command'],
    [...HANDSHAKE, toolCall(1, 'fine')],
  );
  expect([none.answers[1].id, none.code]).toEqual([1, 0]);
});

test('an HTTP answer that tells of the moment is passed on and withheld', async () => {
  const file = await recordFine();
  const before = readFileSync(file, 'utf8');
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes) => {
      body += bytes;
    });
    request.on('end', () => {
      const { id, method } = body === '' ? { id: null, method: '' } : JSON.parse(body);
      if (method === 'initialize') {
        const result = {
          protocolVersion: '2025-11-25',
          capabilities: {},
          serverInfo: { name: 's', version: '1' },
        };
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      } else if (method === 'tools/call') {
        response.writeHead(503, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: 'overloaded' } }));
      } else response.writeHead(method === '' ? 405 : 202).end();
    });
  });
  const port = await listenOn(server);
  onTestFinished(() => void server.close());
  const { answers, stderr } = await say(
    [file, '--mode', 'new_episodes', `http://127.0.0.1:${port}/mcp`],
    [...HANDSHAKE, toolCall(1, 'new')],
  );
  expect(answers[1].error.message).toBe('overloaded');
  expect(stderr).toContain('its answer was HTTP 503');
  expect(readFileSync(file, 'utf8')).toBe(before);
});

test('no server is reached where nothing is missing, and none at all in mode none', async () => {
  const file = await recordFine();
  let connections = 0;
  const server = createServer();
  server.on('connection', () => {
    connections += 1;
  });
  const port = await listenOn(server);
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${port}/mcp`;
  const lines = [...HANDSHAKE, toolCall(1, 'fine')];
  await say([file, '--mode', 'new_episodes', url], lines);
  const once = await say([file, '--mode', 'once', url], [...lines, toolCall(2, 'new')]);
  expect(once.answers[2].error.data.reason).toBe('never-recorded');
  for (const given of [[url], DIES, ['--header', 'a: b']]) {
    const { code, stderr } = await say([file, ...given], []);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--mode new_episodes')]);
  }
  expect(connections).toBe(0);
});

test('a mode that may ask a server wants one', async () => {
  const file = await recordFine();
  for (const mode of ['once', 'new_episodes', 'all']) {
    const { code, stderr } = await say([file, '--mode', mode], []);
    expect([code, stderr]).toEqual([2, expect.stringContaining('Expected the server’s URL, or its command')]);
  }
});

test('a call that its client takes back is withheld, and taken back from the server', async () => {
  const file = await recordFine();
  const { run, url } = await listen([file, '--mode', 'new_episodes', ...DIES]);
  const post = await connectByPost(url);
  const silent = await post(toolCall(4, 'silent'));
  await post({ method: 'notifications/cancelled', params: { requestId: 4 } });
  await until('the server knows', () => run.stderr().includes('cancelled '));
  await silent.body?.cancel();
  run.child.kill('SIGTERM');
  const { stderr, code } = await run.ended;
  expect(stderr).toContain('withheld: tools/call "silent": unanswered; the client has cancelled it');
  expect(code).toBe(0);
});

inFull('a server that does not end by itself does not stay behind a replay that is stopped', async () => {
  const file = await recordFine();
  const { run, url } = await listen([file, '--mode', 'new_episodes', ...DIES, 'stubborn']);
  const post = await connectByPost(url);
  const silent = await post(toolCall(4, 'silent'));
  await until('the server runs', () => /pid \d+\n/.test(run.stderr()));
  const pid = Number(/pid (\d+)/.exec(run.stderr())?.[1]);
  expect(isRunning(pid)).toBe(true);
  run.child.kill('SIGTERM');
  await silent.text().catch(() => '');
  await run.ended;
  expect(isRunning(pid)).toBe(false);
});
