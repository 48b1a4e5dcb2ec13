import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import { BIN, latestSession, ROOT, showFrames, tempStore } from '../support/tapedeck.ts';

const SERVER = [
  process.execPath,
  join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'),
  'stdio',
];

/** Everything that a session with the official server gave, as the official client saw it. */
async function converse([command = '', ...args]: readonly string[]) {
  const client = new Client({ name: 'tester', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: `${params.messages.length} message` },
  }));
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
  const seen = {
    server: client.getServerVersion(),
    tools: await client.listTools(),
    prompts: await client.listPrompts(),
    echo: await client.callTool({ name: 'echo', arguments: { message: 'héllo\n"wörld"' } }),
    sum: await client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 } }),
    failed: await client.callTool({ name: 'get-sum', arguments: { a: 'x' } }).catch((error) => String(error)),
    unknown: await client.getPrompt({ name: 'no-such-prompt' }).catch((error) => String(error)),
    long: await client.callTool(
      { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 4 } },
      undefined,
      // What the client shows of it is left to chance: it drops progress that it reads together with the answer.
      { onprogress: () => {} },
    ),
    sampled: await client.callTool({
      name: 'trigger-sampling-request',
      arguments: { prompt: 'p', maxTokens: 5 },
    }),
  };
  await client.close();
  return seen;
}

test('the official client sees the same of the official server, directly and through tapedeck', async () => {
  const db = tempStore();
  const direct = await converse(SERVER);
  const recorded = await converse([process.execPath, BIN, 'record', '--db', db, '--', ...SERVER]);
  expect(recorded).toEqual(direct);
  expect(JSON.stringify(direct.sampled)).toContain('1 message');

  const session = await latestSession(db);
  expect(session).toMatchObject({
    client: { name: 'tester', version: '1.0.0' },
    dropped: 0,
    unanswered: 0,
    endReason: 'client-closed',
  });
  const frames = (await showFrames(db)).filter(({ channel }) => channel !== 'stderr');
  const messages = frames.flatMap((frame) =>
    frame.messages.map((message) => ({ ...message, from: frame.direction })),
  );
  expect(messages.filter(({ problem }) => problem !== null)).toEqual([]);
  const methods = messages.map(({ method }) => method);
  expect(methods.filter((method) => method === 'notifications/progress')).toHaveLength(4);
  expect(messages.find(({ method }) => method === 'sampling/createMessage')?.from).toBe('server-to-client');
  const requests = messages.filter(({ kind }) => kind === 'request');
  const replies = messages.filter(({ replyTo }) => replyTo !== null);
  expect(replies).toHaveLength(requests.length);
  expect(session.exchanges).toBe(requests.length);
});
