/** The recordings as an MCP server, asked in this process by an official client. */

import { Client } from '@modelcontextprotocol/client';
import { InMemoryTransport } from '@modelcontextprotocol/server';
import { expect, onTestFinished } from 'vitest';
import { createReader } from '../../src/mcp/ask.ts';
import type { FenceOptions } from '../../src/mcp/read/scope.ts';
import { createServer } from '../../src/mcp/server.ts';
import { openStore } from '../../src/store/file/open.ts';
import { IS_FULL } from './scale.ts';
import { tempStore } from './tapedeck.ts';
import { importText } from './text-recording.ts';

const NO_FENCE: FenceOptions = {
  ...{ sessions: [], filter: null, since: null, now: Date.now() * 1000 },
  ...{ reveal: false, keepsIndex: false },
};

type ToolResult = {
  isError?: boolean;
  content: { type: string; text: string }[];
  structuredContent?: {
    note: string;
    recorded: Json;
    leftOut?: string[];
    cursor?: string;
    incomplete?: Json[];
  };
};

// biome-ignore lint/suspicious/noExplicitAny: an answer is JSON.
export type Json = Record<string, any>;

export type Agent = {
  client: Client;
  call(name: string, args?: Json): Promise<ToolResult>;
  /** What a tool says, where it is no error. */
  recorded(name: string, args?: Json): Promise<Json>;
};

/** The most that one answer may have, as the specification of the command says. */
const MOST_BYTES = 20_000;

/** A client of a store. Each answer that it gets is held to its size. */
export async function askStore(db: string, fence: Partial<FenceOptions> = {}): Promise<Agent> {
  const reader = createReader(db, { ...NO_FENCE, ...fence });
  const server = createServer(reader, { add: () => Promise.resolve(), remove() {} });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await server.connect(theirs);
  const client = new Client({ name: 'agent', version: '1.0.0' });
  await client.connect(ours as Parameters<Client['connect']>[0]);
  onTestFinished(async () => {
    await client.close();
    await reader.close();
  });
  return agentOf(client);
}

export function agentOf(client: Client): Agent {
  async function call(name: string, args: Json = {}): Promise<ToolResult> {
    const result = await client.callTool({ name, arguments: args });
    expect(Buffer.byteLength(JSON.stringify(result)), `${name} ${JSON.stringify(args)}`).toBeLessThanOrEqual(
      MOST_BYTES,
    );
    return result as ToolResult;
  }
  return {
    client,
    call,
    async recorded(name, args) {
      const { isError, content, structuredContent } = await call(name, args);
      expect(isError, content[0]?.text).toBeUndefined();
      return structuredContent?.recorded ?? {};
    },
  };
}

/** A store with these text recordings, in their order, none of them redacted. */
export async function storeOfTexts(...texts: readonly (string | Buffer)[]): Promise<string> {
  const db = tempStore();
  const store = openStore(db);
  for (const text of texts) await importText(store, text);
  store.close();
  return db;
}

/** Every question that an agent can ask about a session, with all pages of the answers, as one text; of few frames in the quick run. */
export async function everythingSaid({ client, call }: Agent, session: string): Promise<string> {
  const said: unknown[] = [];
  const pages = async (name: string, args: Json) => {
    let cursor: string | undefined;
    do {
      const result = await call(name, { ...args, ...(cursor === undefined ? {} : { cursor }) });
      said.push(result);
      cursor = result.structuredContent?.cursor;
    } while (cursor !== undefined);
    return said.at(-1) as ToolResult;
  };
  await pages('list_sessions', {});
  await pages('get_session', { session });
  await pages('list_calls', { session });
  await pages('stats', { session });
  await pages('stats', { all: true, by: 'session' });
  await pages('check', { session, severity: 'note' });
  await pages('diff', { a: session, b: session });
  await pages('search', { filter: 'size>=0', limit: 200 });
  for (let seq = 1; ; seq += 1) {
    const frame = await call('get_frame', { session, seq });
    said.push(frame);
    if (frame.isError) break;
    if (!IS_FULL && seq > 6) continue;
    said.push(await call('get_call', { session, seq }));
    const uri = `tapedeck://session/${session}/frame/${seq}`;
    said.push(await client.readResource({ uri }));
  }
  for (const end of ['', '/findings'])
    said.push(await client.readResource({ uri: `tapedeck://session/${session}${end}` }));
  said.push(await client.listResources(), await client.listPrompts());
  for (const value of ['', 's', 'g'])
    said.push(
      await client.complete({
        ref: { type: 'ref/resource', uri: 'tapedeck://session/{id}' },
        argument: { name: 'id', value },
      }),
    );
  said.push(await client.getPrompt({ name: 'why-did-it-fail', arguments: { session } }));
  return JSON.stringify(said);
}
