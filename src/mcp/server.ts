/** The recordings as an MCP server, by the official SDK: its tools, resources and prompts. One server answers one client. */

import {
  type CallToolResult,
  completable,
  McpServer,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import { TapedeckError } from '../errors.ts';
import { VERSION } from '../version.ts';
import type { AskName, Reader } from './ask.ts';
import { PROMPTS, SESSION_ARGUMENT } from './prompts.ts';
import type { ToolArguments } from './read/asked.ts';
import { SERVER_NAME } from './read/scope.ts';
import { FILTER_HELP, filterHelp, SENTENCE, TOOLS } from './tools.ts';
import type { Subscriptions } from './watch.ts';

const INSTRUCTIONS = `Recorded sessions of MCP clients and servers, to look into: what was sent, what came back, what failed and why. Nothing here changes anything. Begin with list_sessions; get_session names the calls that failed, get_call shows one. ${SENTENCE} Secrets stand as placeholders such as [redacted:github-token:…]; equal ones are equal secrets.`;

/** All tools only read the store. */
const ANNOTATIONS = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

/**
 * `subscriptions`: those of a client of the eras before 2026-07-28; later ones come as a request that the transport answers. Null: this
 * client cannot be told of anything between its requests.
 */
export function createServer(
  reader: Reader,
  subscriptions: Pick<Subscriptions, 'add' | 'remove'> | null,
): McpServer {
  const server = new McpServer(
    { name: SERVER_NAME, title: 'tapedeck: recorded MCP sessions', version: VERSION },
    {
      capabilities: {
        // None of these lists is announced when it changes: tools and prompts never do.
        tools: { listChanged: false },
        prompts: { listChanged: false },
        resources: { listChanged: false, ...(subscriptions === null ? {} : { subscribe: true }) },
        completions: {},
      },
      instructions: INSTRUCTIONS,
    },
  );
  addTools(server, reader);
  addResources(server, reader);
  addPrompts(server, reader);
  if (subscriptions !== null) {
    server.server.setRequestHandler('resources/subscribe', async ({ params }) => {
      await subscriptions.add(params.uri);
      return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      subscriptions.remove(params.uri);
      return {};
    });
  }
  return server;
}

function addTools(server: McpServer, reader: Reader): void {
  for (const [name, { title, description, input, output }] of Object.entries(TOOLS))
    server.registerTool(
      name,
      {
        title,
        description,
        inputSchema: input,
        outputSchema: output,
        annotations: { title, ...ANNOTATIONS },
      },
      (args, { mcpReq }) => answered(reader, name as AskName, args as ToolArguments, mcpReq.signal),
    );
  const { title, description, output } = FILTER_HELP;
  server.registerTool(
    'filter_help',
    {
      title,
      description,
      inputSchema: z.object({}),
      outputSchema: output,
      annotations: { title, ...ANNOTATIONS },
    },
    () => {
      const help = filterHelp();
      return { structuredContent: help, content: [{ type: 'text', text: JSON.stringify(help) }] };
    },
  );
}

/** What a question comes to, or what was expected of it, as the result of a tool. */
async function answered(
  reader: Reader,
  name: AskName,
  args: ToolArguments,
  signal: AbortSignal,
): Promise<CallToolResult> {
  try {
    const structuredContent = await told(reader, name, args, signal);
    const { note, ...rest } = structuredContent;
    const content = [{ type: 'text' as const, text: `${note}\n${JSON.stringify(rest)}` }];
    return { structuredContent, content };
  } catch (error) {
    if (!(error instanceof TapedeckError)) throw error;
    return { isError: true, content: [{ type: 'text', text: error.message }] };
  }
}

type Told = { note: string; recorded?: unknown; leftOut?: unknown };

/** With the sentence in front. */
async function told(reader: Reader, name: AskName, args: ToolArguments, signal: AbortSignal): Promise<Told> {
  const { leftOut, ...answer } = (await reader.ask(name, args, signal)) as Partial<Told>;
  const isAll = !Array.isArray(leftOut) || leftOut.length === 0;
  return { note: SENTENCE, ...answer, ...(isAll ? {} : { leftOut }) };
}

const JSON_TYPE = 'application/json';

type ResourceRow = {
  name: string;
  uri: string;
  title: string;
  description: string;
  work: AskName;
};

const RESOURCES: readonly ResourceRow[] = [
  {
    name: 'session',
    uri: 'tapedeck://session/{id}',
    title: 'A recorded session',
    description: 'What get_session tells of a session, by its id, the beginning of one, its name or latest',
    work: 'get_session',
  },
  {
    name: 'frame',
    uri: 'tapedeck://session/{id}/frame/{seq}',
    title: 'A frame of a session',
    description: 'What get_frame shows of a frame, by its number',
    work: 'get_frame',
  },
  {
    name: 'findings',
    uri: 'tapedeck://session/{id}/findings',
    title: 'What breaks the protocol in a session',
    description: 'What check finds in a session',
    work: 'check',
  },
];

function addResources(server: McpServer, reader: Reader): void {
  for (const { name, uri, title, description, work } of RESOURCES) {
    const template = new ResourceTemplate(uri, {
      list: name === 'session' ? () => listResources(reader) : undefined,
      complete: { id: (value: string) => names(reader, value) },
    });
    const about = { title, description, mimeType: JSON_TYPE };
    server.registerResource(name, template, about, async ({ href }, { id, seq }, { mcpReq }) => {
      const args = { session: String(id), ...(seq === undefined ? {} : { seq: Number(seq) }) };
      const answer = await told(reader, work, args, mcpReq.signal).catch((error) => {
        throw isMissing(error) ? new ResourceNotFoundError(href, error.message) : error;
      });
      return { contents: [{ uri: href, mimeType: JSON_TYPE, text: JSON.stringify(answer) }] };
    });
  }
}

function isMissing(error: unknown): error is TapedeckError {
  return error instanceof TapedeckError && error.code === 'not-found';
}

async function listResources(reader: Reader) {
  const { sessions } = (await reader.ask('resources', {})) as {
    sessions: { id: string; at: string; transport: string }[];
  };
  return {
    resources: sessions.map(({ id, at, transport }) => ({
      uri: `tapedeck://session/${id}`,
      name: id,
      title: `Session ${id}`,
      description: `Recorded over ${transport} at ${at}`,
      mimeType: JSON_TYPE,
    })),
  };
}

async function names(reader: Reader, value: string): Promise<string[]> {
  const { names } = (await reader.ask('names', { value })) as { names: string[] };
  return names;
}

function addPrompts(server: McpServer, reader: Reader): void {
  const argument = (what: string) => {
    const isRequired = !what.includes('by default');
    const checked = SESSION_ARGUMENT.describe(what);
    return completable(isRequired ? checked : checked.optional(), (value) => names(reader, value ?? ''));
  };
  for (const [name, { title, description, args, text }] of Object.entries(PROMPTS)) {
    const shape = Object.fromEntries(Object.entries(args).map(([key, what]) => [key, argument(what)]));
    server.registerPrompt(name, { title, description, argsSchema: z.object(shape) }, (given) => {
      const known = Object.keys(args).map((key) => [key, given[key] ?? 'latest']);
      const content = { type: 'text' as const, text: text(Object.fromEntries(known)) };
      return { description, messages: [{ role: 'user', content }] };
    });
  }
}
