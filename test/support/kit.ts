/** The checked-in recordings, and clients of both generations of the official SDK to talk to them. */
import { join } from 'node:path';
import { Client as SecondClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';
import { type Deck, type DeckOptions, openRecording } from '../../src/index.ts';
import { ROOT } from './tapedeck.ts';

export const EVERYTHING_STDIO = join(ROOT, 'recordings/everything-stdio.ndjson');
export const EVERYTHING_HTTP = join(ROOT, 'recordings/everything-http.ndjson');
export const MODERN_HTTP = join(ROOT, 'recordings/modern-http.ndjson');

/** A deck that is closed after the test. */
export async function openDeck(recording: string, options?: DeckOptions): Promise<Deck> {
  const deck = await openRecording(recording, { mode: 'none', ...options });
  onTestFinished(() => deck.close());
  return deck;
}

/** A client that samples as the recorded one did. */
export async function connect(transport: Transport): Promise<Client> {
  const client = new Client({ name: 'tester', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Forty-two.' },
  }));
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

export function createSecondClient(mode: 'legacy' | 'auto'): SecondClient {
  const client = new SecondClient(
    { name: 'second', version: '2.0.0' },
    { capabilities: { sampling: {}, elicitation: {} }, versionNegotiation: { mode } },
  );
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Forty-two.' },
  }));
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const content = params.message.includes('name') ? { name: 'Ada', ok: true } : { color: 'blue', ok: true };
    return { action: 'accept', content };
  });
  onTestFinished(() => client.close());
  return client;
}

type Caller = {
  callTool(
    params: { name: string; arguments?: Record<string, unknown> },
    schema?: undefined,
    options?: { onprogress?: (progress: { progress: number }) => void },
  ): Promise<unknown>;
  listTools(): Promise<{ tools: unknown[] }>;
};

export const echo = (client: Caller, message: string) =>
  client.callTool({ name: 'echo', arguments: { message } });
