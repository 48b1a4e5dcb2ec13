import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CreateMessageRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { beforeEach, expect, test } from 'vitest';
import {
  exchangesOf,
  expectSameReindexed,
  expectWhole,
  type Recording,
  recordUrlInProcess,
  requestsOf,
  sessionsOf,
} from '../support/http-record.ts';
import { firstHttp } from '../support/official-clients.ts';
import { startEverything } from '../support/servers.ts';
import { until } from '../support/tapedeck.ts';

type Seen = { progress: number[]; [what: string]: unknown };

/** Everything that a session gave, as the client saw it. `name` goes into all that the client says. */
async function converse(url: URL, name: string, streamStands: () => Promise<void>): Promise<Seen> {
  const client = new Client({ name, version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: 'assistant',
    model: name,
    content: { type: 'text', text: `${params.messages.length} message for ${name}` },
  }));
  let hasLogged = false;
  client.setNotificationHandler(LoggingMessageNotificationSchema, () => {
    hasLogged = true;
  });
  const transport = firstHttp(url);
  await client.connect(transport as Transport);
  await streamStands();
  const progress: number[] = [];
  const call = (tool: string, args: Record<string, unknown> = {}) =>
    client.callTool({ name: tool, arguments: args });
  const seen = {
    server: client.getServerVersion(),
    tools: await client.listTools(),
    prompts: await client.listPrompts(),
    resources: await client.listResources(),
    echo: await call('echo', { message: `héllo\n"${name}" 🎞` }),
    failed: await call('get-sum', { a: 'x' }).catch(String),
    unknown: await client.getPrompt({ name: 'no-such-prompt' }).catch(String),
    long: await client.callTool(
      { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 4 } },
      undefined,
      { onprogress: ({ progress: step }) => void progress.push(step) },
    ),
    sampled: await call('trigger-sampling-request', { prompt: name, maxTokens: 5 }),
    on: await call('toggle-simulated-logging'),
  };
  await until('a message on the GET stream', () => hasLogged);
  await call('toggle-simulated-logging');
  await transport.terminateSession();
  await client.close();
  return { ...seen, progress };
}

/** What the client calls its session differs each time. */
function withoutIds(seen: unknown): unknown {
  return JSON.parse(JSON.stringify(seen).replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>'));
}

const EXCHANGES = [
  'initialize ok',
  'tools/list ok',
  'prompts/list ok',
  'resources/list ok',
  'tools/call echo ok',
  'tools/call get-sum tool-error',
  'prompts/get no-such-prompt error',
  'tools/call trigger-long-running-operation ok',
  'tools/call trigger-sampling-request ok',
  '← sampling/createMessage ok',
  'tools/call toggle-simulated-logging ok',
  'tools/call toggle-simulated-logging ok',
];

function streamsOf({ rows }: Recording): number {
  return rows("SELECT 1 FROM http_exchange WHERE method = 'GET' AND status = 200").length;
}

let upstream: URL;
beforeEach(async () => {
  upstream = new URL(await startEverything('streamableHttp'));
});

test('a session of the official client is recorded whole, and the client sees the same as without tapedeck', async () => {
  const recording = await recordUrlInProcess(upstream, {
    args: ['--name', 'stage', '--label', 'team=search'],
  });
  const direct = await converse(upstream, 'tester', async () => {});
  const recorded = await converse(recording.url, 'tester', () =>
    until('the GET stream stands', () => streamsOf(recording) === 1),
  );
  expect(withoutIds(recorded)).toEqual(withoutIds(direct));
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  expect(sessionsOf(recording)).toEqual([
    {
      basis: 'session-header',
      transport: 'http',
      era: 'legacy',
      version: '2025-11-25',
      client: 'tester',
      server: 'mcp-servers/everything',
      ended: 'deleted',
      errors: 2,
      unanswered: 0,
    },
  ]);
  expect(exchangesOf(recording)).toEqual(EXCHANGES);
  expect(recording.rows('SELECT name, target, command, cwd, exit_code, signal FROM session')).toEqual([
    { name: 'stage', target: upstream.href, command: null, cwd: null, exit_code: null, signal: null },
  ]);
  expect(recording.rows('SELECT session, key, value FROM label')).toEqual([
    { session: 1, key: 'team', value: 'search' },
  ]);
});

test('each message stands on the exchange that carried it', async () => {
  const recording = await recordUrlInProcess(upstream);
  await converse(recording.url, 'tester', () =>
    until('the GET stream stands', () => streamsOf(recording) === 1),
  );
  await recording.stop();

  const requests = requestsOf(recording);
  expect(requests.filter((request) => request === 'POST /mcp 202')).toHaveLength(2);
  expect(requests.filter((request) => request === 'GET /mcp 200')).toHaveLength(1);
  expect(requests.at(-1)).toBe('DELETE /mcp 200');
  const progress =
    recording.rows(`SELECT note.relation, asked.target, frame.http = sent.http AS is_same_exchange
    FROM message AS note JOIN frame USING (session, seq)
    JOIN message AS asked ON asked.session = note.session AND asked.seq = note.to_seq
    JOIN frame AS sent ON sent.session = asked.session AND sent.seq = asked.seq
    WHERE note.method = 'notifications/progress'`);
  expect(progress).toHaveLength(4);
  expect(new Set(progress.map((row) => JSON.stringify(row)))).toEqual(
    new Set(['{"relation":"progress","target":"trigger-long-running-operation","is_same_exchange":1}']),
  );
  // The server asks on the stream of the call, and is answered by a POST of its own.
  expect(
    recording.rows(`SELECT asking.channel AS asked_on, answering.channel AS answered_on, post.status,
        asking.http = calling.http AS is_on_call, asking.http = answering.http AS is_same_exchange
      FROM exchange JOIN session ON session.id = exchange.session
      JOIN frame AS asking ON asking.session = session.number AND asking.seq = exchange.request_seq
      JOIN frame AS answering ON answering.session = session.number AND answering.seq = exchange.answer_seq
      JOIN http_exchange AS post ON post.session = session.number AND post.number = answering.http
      JOIN exchange AS call ON call.target = 'trigger-sampling-request'
      JOIN frame AS calling ON calling.session = session.number AND calling.seq = call.request_seq
      WHERE exchange.asked_by = 'server'`),
  ).toEqual([{ asked_on: 'sse', answered_on: 'request', status: 202, is_on_call: 1, is_same_exchange: 0 }]);
  expect(
    recording.rows(`SELECT DISTINCT one.method FROM message JOIN frame USING (session, seq)
      JOIN http_exchange AS one ON one.session = frame.session AND one.number = frame.http
      WHERE message.method = 'notifications/message' AND one.method = 'GET'`),
  ).toEqual([{ method: 'GET' }]);
});

test('two clients at once are two sessions, and nothing of one is in the other', async () => {
  const recording = await recordUrlInProcess(upstream);
  const bothStand = () => until('both GET streams stand', () => streamsOf(recording) === 2);
  // Neither can stand in a random id of hexadecimal digits.
  const names = ['bob-9', 'zoe-7'];
  const seen = await Promise.all(names.map((name) => converse(recording.url, name, bothStand)));
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  for (const [i, name] of names.entries()) {
    expect(JSON.stringify(seen[i]?.['echo'])).toContain(name);
    expect(JSON.stringify(seen[i]?.['sampled'])).toContain(`1 message for ${name}`);
  }
  expect(sessionsOf(recording)).toMatchObject([
    { basis: 'session-header', ended: 'deleted', unanswered: 0 },
    { basis: 'session-header', ended: 'deleted', unanswered: 0 },
  ]);
  expect(exchangesOf(recording, 1)).toEqual(EXCHANGES);
  expect(exchangesOf(recording, 2)).toEqual(EXCHANGES);
  const clients = recording.rows<{ client: string }>(
    'SELECT client_name AS client FROM session ORDER BY number',
  );
  expect(clients.map(({ client }) => client).toSorted()).toEqual(names);
  const strangers =
    'SELECT text FROM frame_text JOIN session ON session.id = frame_text.session WHERE number = ? AND instr(text, ?) > 0';
  expect(recording.rows(strangers, 1, clients[1]?.client)).toEqual([]);
  expect(recording.rows(strangers, 2, clients[0]?.client)).toEqual([]);
});
