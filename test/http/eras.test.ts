import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
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
import { type DualEra, startDualEra } from '../support/servers.ts';
import { until } from '../support/tapedeck.ts';

async function connect(url: URL, mode: 'legacy' | 'auto'): Promise<Client> {
  const client = new Client(
    { name: 'tester', version: '2.0.0' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const asksName = 'message' in params && params.message.includes('name');
    return { action: 'accept', content: asksName ? { name: 'Ada', ok: true } : { color: 'blue', ok: true } };
  });
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

/** What works alike in both eras. */
async function converse(url: URL, mode: 'legacy' | 'auto') {
  const client = await connect(url, mode);
  const progress: number[] = [];
  const seen = {
    era: client.getProtocolEra(),
    version: client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion(),
    tools: await client.listTools(),
    text: await client.callTool({ name: 'test_simple_text' }),
    header: await client.callTool({ name: 'test_x_mcp_header', arguments: { region: 'süd', level: 2 } }),
    failed: await client.callTool({ name: 'test_error_handling' }),
    unknown: await client.callTool({ name: 'nothing' }).catch(String),
    resource: await client.readResource({ uri: 'test://static-text' }),
    prompt: await client.getPrompt({ name: 'test_simple_prompt' }),
    long: (
      await client.callTool(
        { name: 'test_tool_with_progress' },
        { onprogress: ({ progress: step }) => void progress.push(step) },
      )
    ).content.length,
    rounds: await client.callTool({ name: 'test_input_required_result_multi_round' }),
  };
  const { transport } = client;
  if (transport instanceof StreamableHTTPClientTransport && mode === 'legacy') {
    await transport.terminateSession();
  }
  await client.close();
  return { ...seen, progress };
}

/** All headers but those that name a connection or one run of a server. */
function told(requests: string[][]): string[] {
  const own = /^(?:host|connection|mcp-session-id|last-event-id|content-length)$/i;
  return requests
    .filter(([method]) => method !== 'GET')
    .map(([method, ...raw]) => {
      const pairs = raw.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${raw[i + 1]}`] : []));
      return [method, ...pairs.filter((pair) => !own.test(pair.split(':')[0] ?? ''))].join('\n');
    });
}

/** A call that the client gives up once the server works on it. */
async function callAndAbort(client: Client): Promise<unknown> {
  const abort = new AbortController();
  return client
    .callTool(
      { name: 'wait_for_cancellation' },
      { signal: abort.signal, onprogress: () => abort.abort(new Error('enough')) },
    )
    .catch(String);
}

let server: DualEra;
let recording: Recording;
beforeEach(async () => {
  server = await startDualEra();
  recording = await recordUrlInProcess(server.url);
});

const CALLS = [
  'tools/list ok',
  'tools/call test_simple_text ok',
  'tools/call test_x_mcp_header ok',
  'tools/call test_error_handling tool-error',
  'tools/call nothing error',
  'resources/read test://static-text ok',
  'prompts/get test_simple_prompt ok',
  'tools/call test_tool_with_progress ok',
];

test('a client of the 2026-07-28 era sees the same, and the server gets the same headers', async () => {
  const direct = await converse(server.url, 'auto');
  const before = server.requests().length;
  const recorded = await converse(recording.url, 'auto');
  const requests = server.requests();
  expect(recorded).toEqual(direct);
  expect(recorded).toMatchObject({ era: 'modern', version: '2026-07-28' });
  expect(told(requests.slice(before))).toEqual(told(requests.slice(0, before)));
  const headers = requests.slice(before).flat().join('\n');
  expect(headers).toMatch(/^mcp-method\ntools\/call$/im);
  expect(headers).toMatch(/^mcp-name\ntest_x_mcp_header$/im);
  expect(headers).toMatch(/^mcp-param-region\n=\?base64\?.+\?=$/im);
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  expect(sessionsOf(recording)).toEqual([
    {
      basis: 'stateless',
      transport: 'http',
      era: 'modern',
      version: '2026-07-28',
      client: 'tester',
      server: 'dual-era',
      ended: 'stopped',
      errors: 2,
      unanswered: 0,
    },
  ]);
  const call = 'tools/call test_input_required_result_multi_round';
  expect(exchangesOf(recording)).toEqual([
    'server/discover ok',
    ...CALLS,
    `${call} input-required`,
    `${call} input-required`,
    `${call} ok`,
  ]);
  expect(new Set(requestsOf(recording))).toEqual(new Set(['POST /mcp 200']));
});

test('the rounds of a call that asks back are linked, each to the one before', async () => {
  const client = await connect(recording.url, 'auto');
  await client.callTool({ name: 'test_input_required_result_multi_round' });
  await client.close();
  await recording.stop();
  const rounds = recording.rows<{ seq: number; to_seq: number | null; relation: string | null }>(
    `SELECT seq, to_seq, relation FROM message
     WHERE target = 'test_input_required_result_multi_round' AND kind = 'request' ORDER BY seq`,
  );
  const [first, second] = rounds;
  expect(rounds).toMatchObject([
    { relation: null },
    { relation: 'round', to_seq: first?.seq },
    { relation: 'round', to_seq: second?.seq },
  ]);
});

inFull('what comes on a subscription belongs to it, and its client ends it by leaving', async () => {
  const client = await connect(recording.url, 'auto');
  let changes = 0;
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    changes += 1;
  });
  const subscription = await client.listen({ toolsListChanged: true });
  await client.callTool({ name: 'test_trigger_tool_change' });
  await until('the client hears of the change', () => changes === 1);
  await subscription.close();
  await until(
    'the end of the stream is recorded',
    () =>
      recording.rows("SELECT 1 FROM http_exchange WHERE closed_by = 'client' AND ended_at > 0").length === 1,
  );
  await client.close();
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  expect(sessionsOf(recording)).toMatchObject([{ era: 'modern', errors: 0, unanswered: 0 }]);
  expect(exchangesOf(recording)).toEqual([
    'server/discover ok',
    'subscriptions/listen cancelled',
    'tools/call test_trigger_tool_change ok',
  ]);
  const related = "SELECT method, relation, to_seq FROM message WHERE relation = 'subscription' ORDER BY seq";
  const [listen] = recording.rows("SELECT seq FROM message WHERE method = 'subscriptions/listen'");
  expect(recording.rows(related)).toEqual([
    { method: 'notifications/subscriptions/acknowledged', relation: 'subscription', to_seq: listen?.['seq'] },
    { method: 'notifications/tools/list_changed', relation: 'subscription', to_seq: listen?.['seq'] },
  ]);
});

inFull(
  'a client of the 2026-07-28 era cancels by closing its exchange: the call is not left unanswered',
  async () => {
    const client = await connect(recording.url, 'auto');
    expect(await callAndAbort(client)).toContain('enough');
    await until(
      'the end of the exchange is recorded',
      () =>
        recording.rows("SELECT 1 FROM http_exchange WHERE closed_by = 'client' AND ended_at > 0").length ===
        1,
    );
    expect(await client.callTool({ name: 'test_simple_text' })).toMatchObject({
      content: [{ type: 'text' }],
    });
    await client.close();
    await recording.stop();

    expectWhole(recording);
    await expectSameReindexed(recording);
    expect(sessionsOf(recording)).toMatchObject([{ era: 'modern', errors: 0, unanswered: 0 }]);
    expect(exchangesOf(recording)).toEqual([
      'server/discover ok',
      'tools/call wait_for_cancellation cancelled',
      'tools/call test_simple_text ok',
    ]);
    expect(recording.rows("SELECT error FROM http_exchange WHERE closed_by = 'client'")).toEqual([
      { error: 'the client closed the connection' },
    ]);
  },
);

inFull('the same client in the older era: a session, whose end it says', async () => {
  const direct = await converse(server.url, 'legacy');
  const recorded = await converse(recording.url, 'legacy');
  expect(recorded).toEqual(direct);
  expect(recorded).toMatchObject({ era: 'legacy', version: '2025-11-25' });
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
      server: 'dual-era',
      ended: 'deleted',
      errors: 2,
      unanswered: 0,
    },
  ]);
  expect(exchangesOf(recording)).toEqual([
    'initialize ok',
    ...CALLS,
    'tools/call test_input_required_result_multi_round ok',
    '← elicitation/create ok',
    '← elicitation/create ok',
  ]);
});

test('a client of the older era cancels by a message, and its call is not left unanswered', async () => {
  const client = await connect(recording.url, 'legacy');
  expect(await callAndAbort(client)).toContain('enough');
  expect(await client.callTool({ name: 'test_simple_text' })).toMatchObject({ content: [{ type: 'text' }] });
  await client.close();
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  expect(sessionsOf(recording)).toMatchObject([
    { era: 'legacy', errors: 0, unanswered: 0, ended: 'stopped' },
  ]);
  expect(exchangesOf(recording)).toEqual([
    'initialize ok',
    'tools/call wait_for_cancellation cancelled',
    'tools/call test_simple_text ok',
  ]);
});

inFull('a client of each era at once: a session each', async () => {
  await Promise.all([converse(recording.url, 'auto'), converse(recording.url, 'legacy')]);
  await recording.stop();
  expectWhole(recording);
  await expectSameReindexed(recording);
  const sessions = sessionsOf(recording).map(({ basis, era, unanswered }) => ({ basis, era, unanswered }));
  expect(sessions).toHaveLength(2);
  expect(sessions).toContainEqual({ basis: 'stateless', era: 'modern', unanswered: 0 });
  expect(sessions).toContainEqual({ basis: 'session-header', era: 'legacy', unanswered: 0 });
});

inFull(
  'two clients that nothing tells apart, at once: each answer belongs to the request on its own exchange',
  async () => {
    await Promise.all([converse(recording.url, 'auto'), converse(recording.url, 'auto')]);
    await recording.stop();
    expectWhole(recording);
    await expectSameReindexed(recording);
    expect(sessionsOf(recording)).toMatchObject([
      { basis: 'stateless', era: 'modern', errors: 4, unanswered: 0 },
    ]);
    expect(exchangesOf(recording)).toHaveLength(24);
    expect(
      recording.rows(`SELECT asked.http FROM message JOIN frame AS said USING (session, seq)
      JOIN frame AS asked ON asked.session = message.session AND asked.seq = message.to_seq
      WHERE relation IN ('reply', 'progress') AND asked.http <> said.http`),
    ).toEqual([]);
  },
);
