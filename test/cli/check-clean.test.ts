/** Sessions of the official SDKs that go well: no rule fires on them. */
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CreateMessageRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import { PROVIDER_RULES } from '../../src/inspect/check/beyond/provider-rules.ts';
import type { RuleId } from '../../src/inspect/check/rules.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { firstHttp } from '../support/official-clients.ts';
import { inFull, sample } from '../support/scale.ts';
import { EVERYTHING, startDualEra, startEverything } from '../support/servers.ts';
import { BIN, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';

/** Everything that a client of 1.x can do with the official server, without a mistake. */
async function converse(transport: Transport): Promise<void> {
  const client = new Client(
    { name: 'tester', version: '1.0.0' },
    { capabilities: { sampling: {}, roots: { listChanged: true } } },
  );
  let isAskedForRoots = false;
  client.setRequestHandler(ListRootsRequestSchema, () => {
    isAskedForRoots = true;
    return { roots: [{ uri: 'file:///tmp' }] };
  });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'hi' },
  }));
  await client.connect(transport);
  await client.ping();
  await client.listTools();
  await client.listPrompts();
  await client.listResources();
  await client.listResourceTemplates();
  await client.setLoggingLevel('debug');
  await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
  await client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 } });
  await client.callTool({ name: 'get-structured-content', arguments: { location: 'Chicago' } });
  const steps: number[] = [];
  await client.callTool(
    { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 3 } },
    undefined,
    { onprogress: ({ progress }) => void steps.push(progress) },
  );
  expect(steps.length).toBeGreaterThan(0);
  await client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'x', maxTokens: 5 } });
  await client.getPrompt({ name: 'simple-prompt' });
  // The server asks some time after the handshake. Who leaves in that moment owes it an answer.
  await until('the server has asked for the roots', () => isAskedForRoots);
  await client.ping();
  if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
  await client.close();
}

/** `skipped`: rules that the session cannot but break. */
async function expectClean(db: string, sessions = 1, skipped: readonly RuleId[] = []): Promise<void> {
  const { stdout } = await tapedeckInProcess(['list', '--json', '--db', db]);
  const ids = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).session as string);
  expect(ids).toHaveLength(sessions);
  // What providers refuse is nothing against the protocol: the fixtures show all that it allows.
  const skips = [...Object.keys(PROVIDER_RULES), ...skipped].flatMap((rule) => ['--skip', rule]);
  const checked = await tapedeckInProcess([
    'check',
    ...ids,
    ...skips,
    '--severity',
    'note',
    '--json',
    '--db',
    db,
  ]);
  expect(checked.stdout.toString()).toBe('');
  expect(checked).toMatchObject({ code: 0, stderr: '' });
}

async function ended(db: string): Promise<boolean> {
  const { stdout } = await tapedeckInProcess(['list', '--json', '--db', db]);
  return stdout
    .toString()
    .trim()
    .split('\n')
    .every((line) => JSON.parse(line).endedAt !== null);
}

inFull('a session of the 1.x client over stdio is clean', async () => {
  const db = tempStore();
  const args = [BIN, 'record', '--db', db, '--', process.execPath, EVERYTHING, 'stdio'];
  await converse(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
  await until('the session ends', () => ended(db));
  await expectClean(db);
});

inFull('a session of the 1.x client over Streamable HTTP is clean', async () => {
  const recording = await recordUrlInProcess(await startEverything('streamableHttp'));
  await converse(firstHttp(recording.url) as Transport);
  await recording.stop();
  await expectClean(recording.db);
});

inFull('a session of the 1.x client over HTTP with SSE is clean, but for its transport', async () => {
  const recording = await recordUrlInProcess(await startEverything('sse'));
  await converse(new SSEClientTransport(recording.url));
  await recording.stop();
  await expectClean(recording.db, 1, ['deprecated']);
});

test.each(sample(['auto', 'legacy'] as const))(
  'a session of the 2.x client, mode %s, is clean',
  async (mode) => {
    const server = await startDualEra();
    const recording = await recordUrlInProcess(server.url);
    const client = new Client2(
      { name: 'tester', version: '2.0.0' },
      { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
    );
    client.setRequestHandler('elicitation/create', ({ params }) => {
      const asksName = 'message' in params && params.message.includes('name');
      return {
        action: 'accept',
        content: asksName ? { name: 'Ada', ok: true } : { color: 'blue', ok: true },
      };
    });
    await client.connect(new Transport2(recording.url));
    await client.listTools();
    await client.callTool({ name: 'test_simple_text' });
    await client.callTool({ name: 'test_x_mcp_header', arguments: { region: 'süd', level: 2 } });
    await client.callTool({ name: 'test_error_handling' });
    await client.readResource({ uri: 'test://static-text' });
    await client.callTool({ name: 'test_tool_with_progress' }, { onprogress: () => {} });
    await client.callTool({ name: 'test_input_required_result_multi_round' });
    if (client.transport instanceof Transport2 && mode === 'legacy')
      await client.transport.terminateSession();
    await client.close();
    await recording.stop();
    await expectClean(recording.db);
  },
);
