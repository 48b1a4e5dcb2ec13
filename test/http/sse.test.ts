import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
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
import { inFull } from '../support/scale.ts';
import { startEverything } from '../support/servers.ts';
import { until } from '../support/tapedeck.ts';

async function converse(url: URL, name: string, allStand: () => Promise<void> = async () => {}) {
  const client = new Client({ name, version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: name,
    content: { type: 'text', text: `an answer of ${name}` },
  }));
  await client.connect(new SSEClientTransport(url));
  await allStand();
  const progress: number[] = [];
  const seen = {
    server: client.getServerVersion(),
    tools: await client.listTools(),
    echo: await client.callTool({ name: 'echo', arguments: { message: `héllo ${name}` } }),
    failed: await client.callTool({ name: 'get-sum', arguments: { a: 'x' } }).catch(String),
    long: await client.callTool(
      { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } },
      undefined,
      { onprogress: ({ progress: step }) => void progress.push(step) },
    ),
    sampled: await client.callTool({
      name: 'trigger-sampling-request',
      arguments: { prompt: name, maxTokens: 5 },
    }),
  };
  await client.close();
  return { ...seen, progress };
}

const EXCHANGES = [
  'initialize ok',
  'tools/list ok',
  'tools/call echo ok',
  'tools/call get-sum tool-error',
  'tools/call trigger-long-running-operation ok',
  'tools/call trigger-sampling-request ok',
  '← sampling/createMessage ok',
];

function endedStreams({ rows }: Recording): number {
  return rows("SELECT 1 FROM http_exchange WHERE method = 'GET' AND ended_at > 0").length;
}

let upstream: URL;
let recording: Recording;
beforeEach(async () => {
  upstream = new URL(await startEverything('sse'));
  recording = await recordUrlInProcess(upstream);
});

test('a session over HTTP+SSE is recorded whole, ends with its stream, and is the same as without tapedeck', async () => {
  const direct = await converse(upstream, 'tester');
  expect(await converse(recording.url, 'tester')).toEqual(direct);
  await until('the end of the stream is recorded', () => endedStreams(recording) === 1);
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  expect(sessionsOf(recording)).toEqual([
    {
      basis: 'sse-endpoint',
      transport: 'sse',
      era: 'legacy',
      version: '2025-11-25',
      client: 'tester',
      server: 'mcp-servers/everything',
      ended: 'client-closed',
      errors: 1,
      unanswered: 0,
    },
  ]);
  expect(exchangesOf(recording)).toEqual(EXCHANGES);
});

inFull('answers come on the stream, and belong to the requests of other exchanges', async () => {
  await converse(recording.url, 'tester');
  await until('the end of the stream is recorded', () => endedStreams(recording) === 1);
  await recording.stop();

  const [stream, ...posts] = requestsOf(recording);
  expect(stream).toBe('GET /sse 200');
  for (const post of posts) expect(post).toMatch(/^POST \/message\?sessionId=masked-[0-9a-f]{12} 202$/);
  expect(new Set(posts)).toHaveLength(1);
  expect(
    recording.rows(`SELECT DISTINCT asked.channel AS asked, said.channel AS said, asked.http = 1 AS asked_on_stream,
        said.http = 1 AS said_on_stream FROM message JOIN frame AS said USING (session, seq)
      JOIN frame AS asked ON asked.session = message.session AND asked.seq = message.to_seq
      WHERE relation = 'reply' ORDER BY asked`),
  ).toEqual([
    { asked: 'request', said: 'sse', asked_on_stream: 0, said_on_stream: 1 },
    { asked: 'sse', said: 'request', asked_on_stream: 1, said_on_stream: 0 },
  ]);
  // The stream begins with where to post; the bodies of the posts' answers are for people.
  expect(
    recording.rows('SELECT seq, event, flags FROM sse_event JOIN frame USING (session, seq) LIMIT 1'),
  ).toEqual([{ seq: 1, event: 'endpoint', flags: 'block' }]);
  expect(recording.rows("SELECT DISTINCT text, flags FROM frame_text WHERE channel = 'response'")).toEqual([
    { text: 'Accepted', flags: 'foreign-body' },
  ]);
});

inFull('two clients at once are two sessions, and nothing of one is in the other', async () => {
  // Neither can stand in a random id of hexadecimal digits.
  const names = ['bob-9', 'zoe-7'];
  const bothStand = () =>
    until(
      'both streams stand',
      () => recording.rows("SELECT 1 FROM session WHERE basis = 'sse-endpoint'").length === 2,
    );
  const seen = await Promise.all(names.map((name) => converse(recording.url, name, bothStand)));
  await until('the ends of the streams are recorded', () => endedStreams(recording) === 2);
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  for (const [i, name] of names.entries())
    expect(JSON.stringify(seen[i]?.sampled)).toContain(`answer of ${name}`);
  expect(exchangesOf(recording, 1)).toEqual(EXCHANGES);
  expect(exchangesOf(recording, 2)).toEqual(EXCHANGES);
  const sessions = recording.rows<{ client: string }>(
    'SELECT client_name AS client FROM session ORDER BY number',
  );
  expect(sessions.map(({ client }) => client).toSorted()).toEqual(names);
  const strangers = `SELECT text FROM frame_text JOIN session ON session.id = frame_text.session
    WHERE number = ? AND instr(text, ?) > 0`;
  expect(recording.rows(strangers, 1, sessions[1]?.client)).toEqual([]);
  expect(recording.rows(strangers, 2, sessions[0]?.client)).toEqual([]);
});
