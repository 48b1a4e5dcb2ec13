// The server that every client of the survey speaks with: over Streamable HTTP, or with the argument `stdio` over stdio. It speaks the
// revisions up to 2025-11-25, and 2026-07-28 to those who ask in it. By its tools it behaves badly, each once:
//   echo          answers at once
//   progress      tells of its progress on the way
//   ping          asks its client `ping` first
//   endless       never answers
//   fail          HTTP 500, the first time that it is called
//   drop          closes the connection without an answer, the first time
//   cut           closes its event stream before the answer, which a resumed stream would have
// Prints its URL, one line, on stdout.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const MODERN = '2026-07-28';
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const TOOLS = ['echo', 'progress', 'ping', 'endless', 'fail', 'drop', 'cut'];
const PAGE = 4;
const PROGRESS_STEPS = 2;
const RETRY_MS = 100;

const serverInfo = { name: 'survey', version: '1.0.0' };
const capabilities = { tools: {}, prompts: {}, resources: {} };
const seen = new Set();

/** Whether it is the first call of the tool. */
function isFirst(tool) {
  return !seen.has(tool) && Boolean(seen.add(tool));
}

const isModern = ({ params }) => params?._meta?.[VERSION_KEY] !== undefined;

/** The result of a request, or an error; undefined for a tool that never answers. */
function answerTo(request) {
  const result = resultOf(request);
  if (result === undefined) return undefined;
  if (result.error !== undefined) return { jsonrpc: '2.0', id: request.id, error: result.error };
  const hints = /list$|discover$/.test(request.method) ? { ttlMs: 0, cacheScope: 'private' } : {};
  const about = { _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo } };
  const modern = isModern(request) ? { resultType: 'complete', ...hints, ...about } : {};
  return { jsonrpc: '2.0', id: request.id, result: { ...result, ...modern } };
}

function resultOf({ method, params = {} }) {
  switch (method) {
    case 'initialize': {
      const asked = params.protocolVersion;
      const protocolVersion = LEGACY.includes(asked) ? asked : LEGACY.at(-1);
      return { protocolVersion, capabilities, serverInfo };
    }
    case 'server/discover':
      return { supportedVersions: [MODERN], capabilities };
    case 'ping':
      return {};
    case 'tools/list': {
      const from = Number(params.cursor ?? 0);
      const tools = TOOLS.slice(from, from + PAGE).map((name) => ({ name, inputSchema: { type: 'object' } }));
      return { tools, ...(from + PAGE < TOOLS.length ? { nextCursor: String(from + PAGE) } : {}) };
    }
    case 'prompts/list':
      return { prompts: [] };
    case 'resources/list':
      return { resources: [] };
    case 'resources/templates/list':
      return { resourceTemplates: [] };
    case 'tools/call':
      if (params.name === 'endless') return undefined;
      return { content: [{ type: 'text', text: `${params.name}, as asked` }] };
    default:
      return { error: { code: -32601, message: `Method not found: ${method}` } };
  }
}

/** What passes before the answer. `ask` settles with the client's answer to `ping`. */
async function* before(request, ask) {
  const tool = request.method === 'tools/call' ? request.params?.name : undefined;
  const progressToken = request.params?._meta?.progressToken;
  if (tool === 'progress' && progressToken !== undefined) {
    for (let progress = 1; progress <= PROGRESS_STEPS; progress += 1) {
      const params = { progressToken, progress, total: PROGRESS_STEPS };
      yield { jsonrpc: '2.0', method: 'notifications/progress', params };
    }
  }
  if (tool === 'ping' && !isModern(request)) {
    const id = `ping ${randomUUID()}`;
    yield { jsonrpc: '2.0', id, method: 'ping' };
    await ask(id);
  }
}

/** What waits for answers of the client, by the id of what it was asked. */
const waiting = new Map();

const ask = (id) => new Promise((resolve) => waiting.set(id, resolve));

function takeAnswer(message) {
  waiting.get(message.id)?.();
  waiting.delete(message.id);
}

if (process.argv[2] === 'stdio') serveStdio();
else serveHttp();

function serveStdio() {
  const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const message = JSON.parse(line);
    if (message.method === undefined) return takeAnswer(message);
    if (message.id === undefined) return;
    for await (const first of before(message, ask)) say(first);
    const answer = answerTo(message);
    if (answer !== undefined) say(answer);
  });
}

function serveHttp() {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    if (new URL(request.url, 'http://localhost').pathname !== '/mcp') response.writeHead(404).end();
    else if (request.method === 'POST') await post(request, response, JSON.parse(Buffer.concat(chunks)));
    else if (request.method === 'GET') openStream(request, response);
    else response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`http://127.0.0.1:${server.address().port}/mcp\n`);
  });
}

/** The answers of streams that were cut, by the id of the last event that came. */
const owed = new Map();

async function post(request, response, message) {
  if (message.method === undefined) takeAnswer(message);
  if (message.method === undefined || message.id === undefined) return void response.writeHead(202).end();
  const tool = message.method === 'tools/call' ? message.params?.name : undefined;
  if (tool === 'fail' && isFirst(tool)) return void response.writeHead(500).end('the server is out of order');
  if (tool === 'drop' && isFirst(tool)) return void request.socket.destroy();
  const session = message.method === 'initialize' ? { 'Mcp-Session-Id': randomUUID() } : {};
  const isStream = ['progress', 'ping', 'endless', 'cut'].includes(tool);
  if (!isStream) {
    response.writeHead(200, { 'Content-Type': 'application/json', ...session });
    return void response.end(JSON.stringify(answerTo(message)));
  }
  response.writeHead(200, { 'Content-Type': 'text/event-stream', ...session });
  if (tool === 'cut' && isFirst(tool)) {
    const id = randomUUID();
    owed.set(id, answerTo(message));
    response.write(`id: ${id}\nretry: ${RETRY_MS}\ndata: \n\n`, () => request.socket.destroy());
    return;
  }
  response.flushHeaders();
  for await (const first of before(message, ask)) response.write(eventOf(first));
  const answer = answerTo(message);
  if (answer !== undefined) response.end(eventOf(answer));
}

/** A stream that is resumed has what is owed on it; any other stays open and empty. */
function openStream(request, response) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
  const answer = owed.get(request.headers['last-event-id']);
  if (answer !== undefined) response.end(eventOf(answer));
}

function eventOf(message) {
  return `data: ${JSON.stringify(message)}\n\n`;
}
