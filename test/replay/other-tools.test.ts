import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import { startHttpMock } from '../support/http-mock.ts';
import { OTHER_TOOLS, otherTool } from '../support/other-tools.ts';
import { BIN, tapedeckInProcess, tempStore } from '../support/tapedeck.ts';

/** Imports a fixture with the command, and gives the store and the first id it printed. */
async function imported(name: string): Promise<{ db: string; id: string }> {
  const db = tempStore();
  const { code, stdout } = await tapedeckInProcess(['import', otherTool(name), '--db', db]);
  const ids = stdout.toString().split('\n').slice(0, -1);
  expect([code, ids.every((id) => /^[0-9a-f]{12}$/.test(id))]).toEqual([0, true]);
  return { db, id: ids[0] ?? '' };
}

/** What the official client is told by the tools that the recordings have. */
async function converse(transport: Transport, tools: readonly string[]) {
  const client = new Client({ name: 'tester', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    ...{ role: 'assistant' as const, model: 'none' },
    content: { type: 'text' as const, text: 'Forty-two.' },
  }));
  const progress: number[] = [];
  const onprogress = () => {};
  await client.connect(transport);
  // The client forgets progress that arrives together with the answer, so it is counted as it arrives.
  const { onmessage } = transport;
  transport.onmessage = (message, ...more) => {
    if ('method' in message && message.method === 'notifications/progress')
      progress.push(Number(message.params?.['progress']));
    onmessage?.(message, ...more);
  };
  const server = client.getServerVersion()?.name;
  const listed = (await client.listTools()).tools.map(({ name }) => name);
  const told: string[] = [];
  for (const name of tools) {
    const answer = await client
      .callTool({ name, arguments: ARGUMENTS[name] ?? {} }, undefined, { onprogress })
      .catch((error: Error) => ({ content: [{ text: error.message }] }));
    told.push((answer.content as { text: string }[])[0]?.text ?? '');
  }
  await client.close();
  return { server, listed, told, progress };
}

const ARGUMENTS: Record<string, Record<string, unknown>> = {
  add: { a: 15, b: 27 },
  ask: { question: 'The answer?' },
  subtract: { a: 1 },
};
const TOLD: Record<string, string> = {
  add: '42',
  slow: 'done',
  ask: 'Forty-two.',
  subtract: 'MCP error -32602: Unknown tool: subtract',
};

/** agent-vcr keeps no questions of servers; the shortest fixture has one call. */
function toolsOf(name: string): string[] {
  const all = Object.keys(TOLD);
  if (name.includes('typescript')) return ['add'];
  return name.endsWith('.vcr') ? all.filter((tool) => tool !== 'ask') : all;
}

test.each(OTHER_TOOLS)('%s is played to the official client over stdio', async (name) => {
  const { db, id } = await imported(name);
  const args = [BIN, 'replay', id, '--db', db, '--fail-on-miss'];
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' });
  const { server, listed, told, progress } = await converse(transport, toolsOf(name));
  expect({ server, listed }).toEqual({ server: 'calculator', listed: ['add', 'ask', 'slow'] });
  expect(told).toEqual(toolsOf(name).map((tool) => TOLD[tool]));
  expect(progress).toEqual(toolsOf(name).includes('slow') ? [1, 2] : []);
});

test.each(['cassette-http.jsonl', 'mcpsnoop.jsonl'])(
  '%s is played to it over Streamable HTTP',
  async (name) => {
    const { db, id } = await imported(name);
    const { url, misses } = await startHttpMock(db, { sessions: [id] });
    const { told } = await converse(new StreamableHTTPClientTransport(url) as Transport, toolsOf(name));
    expect([told, misses]).toEqual([toolsOf(name).map((tool) => TOLD[tool]), []]);
  },
);
