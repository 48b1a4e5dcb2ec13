/** For each rule of the base a session that breaks it, and one that keeps it. */
import type { BASE_RULES } from '../../../src/inspect/check/rules.ts';
import {
  ask,
  cacheable,
  client,
  fail,
  give,
  HTTP,
  headersOf,
  hello,
  helloHttp,
  modern,
  note,
  post,
  type Script,
  server,
} from './session.ts';

export type Case = { breaks: Script; keeps: Script };

const steps = (...all: (Script['steps'][number] | Script['steps'])[]): Script => ({ steps: all.flat() });
const http = (...all: (Script['steps'][number] | Script['steps'])[]): Script => ({
  steps: all.flat(),
  facts: HTTP,
});

/** The blocks of a stream of the older HTTP+SSE transport. */
const legacyStream = (...blocks: string[]): Script => ({
  steps: blocks.map((text) => ({ channel: 'sse', text, afterMs: 1, exchange: 1, part: 'block' })),
  facts: { transport: 'http', basis: 'sse-endpoint' },
});
const form = { message: 'x', requestedSchema: { type: 'object', properties: {} } };
const ENDPOINT = 'event: endpoint\ndata: /messages?sessionId=1\n\n';
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
const ping = (id: unknown) => ask(id, 'ping');
const pings = (id: unknown) => [client(ping(id)), server(give(id))];
/** A whole session in which nothing is wrong. */
const fine = steps(hello(), pings(1), pings(2));
const modernPost = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
const complete = (more: object = {}) => ({ resultType: 'complete', ...more });
const modernList = ask(1, 'tools/list', { _meta: modern() });
const modernFine = steps(client(modernList), server(give(1, cacheable({ tools: [] }))));
const modernHttpFine = http(
  post(1, modernList, [give(1, cacheable({ tools: [] }))], { request: modernPost }),
);

const exchange = (method: string): Script['steps'][number] => ({
  ...{ end: 9, method, status: 200, request: {}, response: {}, bytes: 0, how: null },
});

export const BASE_CASES: Record<keyof typeof BASE_RULES, Case> = {
  'http2-unread': { breaks: http(exchange('PRI')), keeps: http(exchange('OPTIONS')) },
  'not-json': { breaks: steps(hello(), client('{"jsonrpc":"2.0"')), keeps: fine },
  'not-object': { breaks: steps(hello(), client('42')), keeps: fine },
  'jsonrpc-version': {
    breaks: steps(hello(), client({ jsonrpc: '1.0', id: 1, method: 'ping' })),
    keeps: fine,
  },
  'result-and-error': {
    breaks: steps(hello(), client(ping(1)), server({ ...give(1), error: { code: 1, message: 'x' } })),
    keeps: steps(hello(), client(ping(1)), server(fail(1, 7))),
  },
  'call-and-answer': { breaks: steps(hello(), client({ ...ping(1), result: {} })), keeps: fine },
  'empty-envelope': { breaks: steps(hello(), client({ jsonrpc: '2.0', id: 1 })), keeps: fine },
  'method-type': { breaks: steps(hello(), client({ jsonrpc: '2.0', id: 1, method: 7 })), keeps: fine },
  'params-type': {
    breaks: steps(hello(), client({ ...ping(1), params: [1] })),
    keeps: steps(hello(), client({ ...ping(1), params: {} }), server(give(1))),
  },
  'result-type': { breaks: steps(hello(), client(ping(1)), server(give(1, 'pong'))), keeps: fine },
  'error-shape': {
    breaks: steps(
      hello(),
      client(ping(1)),
      server({ jsonrpc: '2.0', id: 1, error: { code: 'E', message: 'x' } }),
    ),
    keeps: steps(hello(), client(ping(1)), server(fail(1, -32603))),
  },
  'extra-member': { breaks: steps(hello(), client({ ...ping(1), trace: 1 }), server(give(1))), keeps: fine },
  'duplicate-member': {
    breaks: steps(hello(), client('{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}'), server(give(1))),
    keeps: fine,
  },
  encoding: {
    breaks: steps(hello(), client(Buffer.from('{"jsonrpc":"2.0","id":"\xff","method":"ping"}', 'latin1'))),
    keeps: steps(hello(), pings('ÿ')),
  },
  'byte-order-mark': {
    breaks: steps(
      hello(),
      client(Buffer.concat([BOM, Buffer.from(JSON.stringify(ping(1)))])),
      server(give(1)),
    ),
    keeps: fine,
  },
  batch: {
    breaks: steps(hello('2025-06-18'), client([ping(1), ping(2)]), server(give(1)), server(give(2))),
    keeps: steps(hello('2025-03-26'), client([ping(1), ping(2)]), server([give(1), give(2)])),
  },
  'batch-empty': { breaks: steps(hello('2025-03-26'), client('[]')), keeps: fine },
  'batch-initialize': {
    breaks: steps(
      client([
        ask(1, 'initialize', {
          protocolVersion: '2025-03-26',
          capabilities: {},
          clientInfo: { name: 'c', version: '1' },
        }),
      ]),
    ),
    keeps: fine,
  },

  'id-null': { breaks: steps(hello(), client(ping(null))), keeps: fine },
  'id-fractional': {
    breaks: steps(hello(), client(ping(1.5))),
    keeps: steps(hello(), client('{"jsonrpc":"2.0","id":1.0,"method":"ping"}'), server(give(1))),
  },
  'id-scalar': { breaks: steps(hello(), client(ping({ a: 1 }))), keeps: fine },
  'id-in-use': {
    breaks: steps(hello(), client(ping(1)), client(ping(1)), server(give(1)), server(give(1))),
    keeps: steps(hello(), client(ping(1)), client(ping('1')), server(give(1)), server(give('1'))),
  },
  'id-reused': {
    breaks: steps(hello(), pings(1), pings(1)),
    // Of the other sender, and of the era that allows it.
    keeps: steps(hello(), pings(1), server(ping(1)), client(give(1))),
  },
  'id-changed-type': { breaks: steps(hello(), client(ping(1)), server(give('1'))), keeps: fine },
  'answer-unknown': { breaks: steps(hello(), server(give(9))), keeps: fine },
  'answer-twice': { breaks: steps(hello(), pings(1), server(give(1))), keeps: fine },
  'answer-without-id': {
    breaks: steps(hello(), server({ jsonrpc: '2.0', error: { code: 7, message: 'x' } })),
    keeps: steps(hello(), server({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'x' } })),
  },
  unanswered: {
    breaks: steps(hello(), client(ping(1))),
    keeps: steps(hello(), client(ping(1)), client(note('notifications/cancelled', { requestId: 1 }))),
  },

  'initialize-missing': {
    breaks: steps(client(ask(1, 'tools/list')), server(give(1, { tools: [] }))),
    // A proxy may come later than the handshake.
    keeps: http(post(3, ping(1), [give(1)], { request: headersOf() })),
  },
  'initialize-twice': {
    breaks: steps(
      hello(),
      { ...hello()[0], text: (hello()[0] as { text: string }).text.replace('"hello"', '2') } as never,
      server(
        give(2, { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }),
      ),
    ),
    keeps: fine,
  },
  'initialized-missing': {
    breaks: steps(hello().slice(0, 2), client(ask(1, 'tools/list')), server(give(1, { tools: [] }))),
    keeps: steps(hello(), client(ask(1, 'tools/list')), server(give(1, { tools: [] }))),
  },
  'initialized-early': {
    breaks: steps(hello()[0] ?? [], hello()[2] ?? [], hello()[1] ?? []),
    keeps: fine,
  },
  'before-answer': {
    breaks: steps(
      hello().slice(0, 1),
      client(ask(1, 'tools/list')),
      hello().slice(1),
      server(give(1, { tools: [] })),
    ),
    keeps: steps(hello().slice(0, 1), pings(1), hello().slice(1)),
  },
  'before-initialized': {
    breaks: steps(
      hello('2025-11-25', { roots: {} }).slice(0, 2),
      server(ask(1, 'roots/list')),
      client(give(1, { roots: [] })),
      hello().slice(2),
    ),
    keeps: steps(
      hello().slice(0, 2),
      server(note('notifications/message', { level: 'info', data: 'x' })),
      hello().slice(2),
    ),
  },
  'initialize-cancelled': {
    breaks: steps(hello().slice(0, 1), client(note('notifications/cancelled', { requestId: 'hello' }))),
    keeps: steps(hello(), client(ping(1)), client(note('notifications/cancelled', { requestId: 1 }))),
  },
  'version-format': { breaks: steps(hello('1.0')), keeps: steps(hello('2024-10-07')) },
  'version-refused': {
    breaks: steps(
      hello('2024-11-05').slice(0, 1),
      server(
        give('hello', {
          protocolVersion: '2025-11-25',
          capabilities: {},
          serverInfo: { name: 's', version: '1' },
        }),
      ),
      hello().slice(2),
    ),
    // An older version is one that the client may know.
    keeps: steps(
      hello('2025-11-25').slice(0, 1),
      server(
        give('hello', {
          protocolVersion: '2024-11-05',
          capabilities: {},
          serverInfo: { name: 's', version: '1' },
        }),
      ),
      hello().slice(2),
    ),
  },
  'handshake-slow': {
    breaks: steps(hello().slice(0, 1), { ...hello()[1], afterMs: 11_000 } as never, hello().slice(2)),
    keeps: steps(hello().slice(0, 1), { ...hello()[1], afterMs: 9000 } as never, hello().slice(2)),
  },

  'method-variant': { breaks: steps(hello().slice(0, 2), client(note('initialized'))), keeps: fine },
  'method-direction': {
    breaks: steps(
      hello(),
      client(ask(1, 'sampling/createMessage', { messages: [], maxTokens: 1 })),
      server(fail(1, -32601)),
    ),
    keeps: steps(
      hello('2025-11-25', { sampling: {} }),
      server(ask(1, 'sampling/createMessage', { messages: [], maxTokens: 1 })),
      client(give(1, { role: 'assistant', content: {}, model: 'm' })),
    ),
  },
  'method-revision': {
    breaks: steps(
      hello('2025-03-26', { elicitation: {} }),
      server(ask(1, 'elicitation/create', form)),
      client(give(1, { action: 'decline' })),
    ),
    keeps: steps(
      hello('2025-06-18', { elicitation: {} }),
      server(ask(1, 'elicitation/create', form)),
      client(give(1, { action: 'decline' })),
    ),
  },
  'method-kind': {
    breaks: steps(hello(), client(ask(1, 'notifications/roots/list_changed')), server(give(1))),
    keeps: fine,
  },
  'method-reserved': {
    breaks: steps(hello(), client(ask(1, 'rpc.discover')), server(fail(1, -32601))),
    keeps: steps(hello(), client(ask(1, 'vendor/thing')), server(fail(1, -32601))),
  },
  'params-shape': {
    breaks: steps(hello(), client(ask(1, 'resources/read', { url: 'x' })), server(fail(1, -32602))),
    keeps: steps(
      hello(),
      client(ask(1, 'resources/read', { uri: 'x' })),
      server(give(1, { contents: [{ uri: 'x', text: '' }] })),
    ),
  },
  'result-shape': {
    breaks: steps(hello(), client(ask(1, 'tools/call', { name: 'a' })), server(give(1, { content: 'text' }))),
    keeps: steps(
      hello(),
      client(ask(1, 'tools/call', { name: 'a' })),
      server(give(1, { content: [{ type: 'text', text: '' }] })),
    ),
  },
  'empty-result': {
    breaks: steps(hello(), client(ping(1)), server(give(1, { ok: true }))),
    keeps: steps(hello(), client(ping(1)), server(give(1, { _meta: {} }))),
  },
  'log-level': {
    breaks: steps(hello(), server(note('notifications/message', { level: 'warn', data: 'x' }))),
    keeps: steps(hello(), server(note('notifications/message', { level: 'warning', data: 'x' }))),
  },
  'result-type-missing': {
    breaks: steps(client(modernList), server(give(1, { tools: [] }))),
    keeps: modernFine,
  },
  'result-type-unknown': {
    breaks: steps(client(modernList), server(give(1, { resultType: 'whole', tools: [] }))),
    keeps: modernFine,
  },

  'code-reserved': {
    breaks: steps(hello(), client(ping(1)), server(fail(1, -32500))),
    keeps: steps(hello(), client(ping(1)), server(fail(1, -32603))),
  },
  'code-invented': {
    breaks: steps(client(modernList), server(fail(1, -32050))),
    keeps: steps(client(modernList), server(fail(1, -32022))),
  },
  'code-legacy': {
    breaks: steps(client(modernList), server(fail(1, -32001))),
    keeps: steps(hello(), client(ping(1)), server(fail(1, -32001))),
  },
  'code-revision': {
    breaks: steps(client(ask(1, 'resources/read', { uri: 'x', _meta: modern() })), server(fail(1, -32002))),
    keeps: steps(hello(), client(ask(1, 'resources/read', { uri: 'x' })), server(fail(1, -32002))),
  },

  'meta-type': {
    breaks: steps(hello(), client({ ...ping(1), params: { _meta: 'x' } }), server(give(1))),
    keeps: fine,
  },
  'meta-key': {
    breaks: steps(hello(), client({ ...ping(1), params: { _meta: { 'a b': 1 } } }), server(give(1))),
    keeps: steps(
      hello(),
      client({ ...ping(1), params: { _meta: { 'com.example/a_b': 1, traceparent: 'x' } } }),
      server(give(1)),
    ),
  },
  'meta-reserved': {
    breaks: steps(hello(), client({ ...ping(1), params: { _meta: { 'dev.mcp/mine': 1 } } }), server(give(1))),
    keeps: steps(
      hello(),
      client({ ...ping(1), params: { _meta: { 'com.example.mcp/mine': 1 } } }),
      server(give(1)),
    ),
  },
  'meta-missing': {
    breaks: steps(
      client(ask(1, 'tools/list', { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } })),
      server(give(1, complete({ tools: [] }))),
    ),
    keeps: modernFine,
  },

  'stdout-pollution': { breaks: steps(hello(), server('Server is running')), keeps: fine },
  'exit-late': {
    breaks: { ...modernFine, facts: { lingeredMs: 5000 } },
    keeps: { ...modernFine, facts: { lingeredMs: 1000 } },
  },
  framing: {
    breaks: steps(
      hello(),
      { channel: 'stdin', text: JSON.stringify(ping(1)), afterMs: 1, exchange: null, part: 'lsp-body' },
      server(give(1)),
    ),
    keeps: fine,
  },
  'content-type': {
    breaks: http(helloHttp(), {
      channel: 'request',
      text: JSON.stringify(ping(1)),
      afterMs: 1,
      exchange: 3,
      marks: ['wrong-type'],
    }),
    keeps: http(helloHttp(), post(3, ping(1), [give(1)], { request: headersOf() })),
  },
  'endpoint-first': {
    breaks: legacyStream('event: message\ndata: {}\n\n', ENDPOINT),
    keeps: legacyStream(': ping\n\n', ENDPOINT, 'event: message\ndata: {}\n\n'),
  },
  accept: {
    breaks: http(
      helloHttp(),
      post(3, ping(1), [give(1)], { request: { ...headersOf(), accept: 'application/json' } }),
    ),
    keeps: http(helloHttp(), post(3, ping(1), [give(1)], { request: { ...headersOf(), accept: '*/*' } })),
  },
  'session-header': {
    breaks: http(helloHttp(), post(3, ping(1), [give(1)], { request: headersOf('2025-11-25', null) })),
    keeps: http(
      helloHttp('2025-11-25', null),
      post(3, ping(1), [give(1)], { request: headersOf('2025-11-25', null) }),
    ),
  },
  'version-header': {
    breaks: http(helloHttp(), post(3, ping(1), [give(1)], { request: headersOf('2025-03-26') })),
    keeps: http(helloHttp(), post(3, ping(1), [give(1)], { request: headersOf() })),
  },
  'method-header': {
    breaks: http(
      post(1, modernList, [give(1, complete({ tools: [] }))], {
        request: { ...modernPost, 'mcp-method': 'tools/call' },
      }),
    ),
    keeps: modernHttpFine,
  },
  'name-header': {
    breaks: http(
      post(1, ask(1, 'tools/call', { name: 'é', _meta: modern() }), [give(1, complete({ content: [] }))], {
        request: { ...modernPost, 'mcp-method': 'tools/call', 'mcp-name': 'e' },
      }),
    ),
    keeps: http(
      post(1, ask(1, 'tools/call', { name: 'é', _meta: modern() }), [give(1, complete({ content: [] }))], {
        request: {
          ...modernPost,
          'mcp-method': 'tools/call',
          'mcp-name': `=?base64?${Buffer.from('é').toString('base64')}?=`,
        },
      }),
    ),
  },
  'status-accepted': {
    breaks: http(
      helloHttp(),
      post(3, note('notifications/roots/list_changed'), [], { status: 200, request: headersOf() }),
    ),
    keeps: http(helloHttp()),
  },
  'status-error': {
    breaks: http(post(1, modernList, [fail(1, -32601)], { request: modernPost })),
    keeps: http(post(1, modernList, [fail(1, -32601)], { request: modernPost, status: 404 })),
  },
};
