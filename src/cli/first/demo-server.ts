/**
 * The demo's server, a program of its own: two tools over stdio, in revision 2025-11-25. One fault is planted in it, where its
 * comment says so.
 */

import { createInterface } from 'node:readline';

type Id = string | number;

type Message = { id?: Id; method?: string; params?: Params };

type Params = { protocolVersion?: string; name?: string; arguments?: { port?: string } };

const HIGH_WATER: Readonly<Record<string, string>> = { Bergen: '04:12', Brest: '07:48', Cork: '06:31' };

/** So long the tide table takes to answer. */
const TABLE_MS = 40;

const TOOLS = [
  {
    name: 'ports',
    description: 'Lists the ports that the tide table has',
    inputSchema: { type: 'object' },
  },
  {
    name: 'tide',
    description: 'Says when the water is highest in a port',
    inputSchema: { type: 'object', properties: { port: { type: 'string' } }, required: ['port'] },
  },
];

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

function text(words: string): object {
  return { content: [{ type: 'text', text: words }] };
}

/** Questions for the tide table, by the id of the call that waits for each. */
const waiting: Record<string, string> = {};

function askTable(id: Id, port: string): void {
  waiting[id] = port;
  setTimeout(answerFromTable, TABLE_MS);
}

function answerFromTable(): void {
  for (const [id, port] of Object.entries(waiting)) {
    delete waiting[id];
    // The planted fault: a key of an object is a string, so the answer to the call 4 has the id "4". No client takes it.
    send({ id, result: text(`High water in ${port}: ${HIGH_WATER[port] ?? 'unknown'}`) });
    process.stderr.write(`tides: tide ${port}: answered\n`);
  }
}

function answer(id: Id, method: string, params: Params): void {
  const { protocolVersion, name, arguments: { port = '' } = {} } = params;
  if (method === 'initialize') {
    const serverInfo = { name: 'tides', version: '1.0.0' };
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === 'tools/list') send({ id, result: { tools: TOOLS } });
  else if (method === 'tools/call' && name === 'tide') askTable(id, port);
  else if (method === 'tools/call' && name === 'ports')
    send({ id, result: text(Object.keys(HIGH_WATER).join(', ')) });
  else send({ id, error: { code: -32601, message: `No such method: ${method}` } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line) as Message;
  if (id !== undefined && method !== undefined) answer(id, method, params);
});
