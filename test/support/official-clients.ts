/** Conversations of the official clients with the official servers, and what the clients see of them. */
import { Client as SecondClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstHttpTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { until } from './tapedeck.ts';

/**
 * The 1.x client takes an error for no answer: where events have ids it asks for the stream again, a second later. Here it does
 * not, so that what passes is the same on a machine where a second is nothing.
 */
export function firstHttp(url: URL): FirstHttpTransport {
  const delays = {
    initialReconnectionDelay: 1000,
    maxReconnectionDelay: 1000,
    reconnectionDelayGrowFactor: 1,
  };
  return new FirstHttpTransport(url, { reconnectionOptions: { ...delays, maxRetries: 0 } });
}

type SecondTransport = Parameters<SecondClient['connect']>[0];

export type Seen = { progress: number[]; asked: unknown[]; results: unknown[] };

/** What an official client sees of server-everything: plain answers, progress, being asked, an error. */
export async function talkToEverything(transport: Transport): Promise<Seen> {
  const client = new Client({ name: 'tester', version: '1.0.0' }, { capabilities: { sampling: {} } });
  const seen: Seen = { progress: [], asked: [], results: [] };
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    seen.asked.push(params.messages);
    return { role: 'assistant', model: 'none', content: { type: 'text', text: 'Forty-two.' } };
  });
  await client.connect(transport);
  // The client forgets progress that arrives together with the answer, so it is counted as it arrives.
  const { onmessage } = transport;
  transport.onmessage = (message, ...more) => {
    if ('method' in message && message.method === 'notifications/progress')
      seen.progress.push(Number(message.params?.['progress']));
    onmessage?.(message, ...more);
  };
  const onprogress = () => {};
  const call = (name: string, args: object, options = {}) =>
    client.callTool({ name, arguments: { ...args } }, undefined, options);
  seen.results = [
    client.getServerVersion(),
    client.getInstructions(),
    await client.listTools(),
    await call('echo', { message: 'hällo' }),
    await call('trigger-long-running-operation', { duration: 0.1, steps: 3 }, { onprogress }),
    await call('trigger-sampling-request', { prompt: 'The answer?', maxTokens: 20 }),
    await call('get-sum', { a: 'one' }),
    await client.getPrompt({ name: 'no-such-prompt' }).catch(String),
  ];
  if (transport instanceof FirstHttpTransport) await transport.terminateSession();
  await client.close();
  return seen;
}

/** What a client of the second generation sees of the server of both eras. */
export async function talkToDualEra(transport: SecondTransport, mode: 'legacy' | 'auto'): Promise<unknown> {
  const client = new SecondClient(
    { name: 'second', version: '2.0.0' },
    { capabilities: { sampling: {}, elicitation: {}, roots: {} }, versionNegotiation: { mode } },
  );
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Forty-two.' },
  }));
  client.setRequestHandler('elicitation/create', () => ({
    action: 'accept',
    content: { name: 'Ada', color: 'blue', ok: true },
  }));
  await client.connect(transport);
  const progress: number[] = [];
  const onprogress = (one: { progress: number }) => void progress.push(one.progress);
  const results: unknown[] = [
    client.getServerVersion(),
    client.getNegotiatedProtocolVersion(),
    (await client.listTools()).tools.length,
    await client.callTool({ name: 'test_simple_text', arguments: {} }),
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress }),
    await client.callTool({ name: 'test_sampling', arguments: { prompt: 'The answer?' } }),
    await client.callTool({ name: 'test_input_required_result_elicitation', arguments: {} }),
    await client.callTool({ name: 'no_such_tool', arguments: {} }).catch(String),
    await client.readResource({ uri: 'test://nothing-here' }).catch(String),
    await client.callTool({ name: 'test_input_required_result_multi_round', arguments: {} }),
    await client.callTool({ name: 'test_tool_with_logging', arguments: {} }),
  ];
  if (mode === 'auto') results.push(await hearOfChanges(client));
  if (mode === 'legacy' && transport instanceof StreamableHTTPClientTransport)
    await transport.terminateSession();
  await client.close();
  return { results, progress };
}

/** Opens a subscription, makes the server change, and gives what came of it. */
async function hearOfChanges(client: SecondClient): Promise<number> {
  let changes = 0;
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    changes += 1;
  });
  const subscription = await client.listen({ toolsListChanged: true });
  await client.callTool({ name: 'test_trigger_tool_change' });
  await until('the client hears of the change', () => changes > 0);
  await subscription.close();
  return changes;
}
