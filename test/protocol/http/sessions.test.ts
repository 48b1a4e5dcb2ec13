import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RequestFacts } from '../../../src/protocol/http/session-choice.ts';
import {
  createHttpSessions,
  type HttpSessionsOptions,
  type SessionChange,
} from '../../../src/protocol/http/sessions.ts';
import { type Message, parseMessages } from '../../../src/protocol/message/message.ts';
import { bytesOf, modernMeta } from '../../support/messages.ts';
import { scale } from '../../support/scale.ts';

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;

type More = {
  on?: string;
  to?: string;
  by?: string;
  id?: string | null;
  token?: string | null;
  agent?: string | null;
  version?: string | null;
};
type Answer = { status?: number; gives?: string | null };

const message = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });
const initialize = (name = 'c', version = '1') =>
  message('initialize', { protocolVersion: '2025-06-18', clientInfo: { name, version } });
const INITIALIZED = { jsonrpc: '2.0', method: 'notifications/initialized' };
const CALL = message('tools/call', { name: 'x' });
const modern = (name = 'c', method = 'tools/list') =>
  message(method, { _meta: modernMeta({ 'io.modelcontextprotocol/clientInfo': { name, version: '1' } }) });
const probe = (name = 'c') => modern(name, 'server/discover');

const messagesOf = (body: object): Message[] => parseMessages(bytesOf(body));

function textOf(change: SessionChange): string {
  switch (change.type) {
    case 'basis':
      return `${change.session} is ${change.basis} by ${change.transport}`;
    case 'ended':
      return `${change.session} ended: ${change.reason}`;
    default:
      return `${change.session} ${change.type}`;
  }
}

/** A proxy run. Exchanges take a millisecond each, one after the other, unless they are left open. */
function createRun(options: Partial<HttpSessionsOptions> = {}) {
  const all: SessionChange[] = [];
  const unnamed: number[] = [];
  const onChange = (change: SessionChange) =>
    change.type === 'unnamed' ? unnamed.push(change.session) : all.push(change);
  const sessions = createHttpSessions({ ...options, onChange });
  let count = 0;
  let at = 0;
  let told = 0;

  /** A request whose answer has still to come. */
  function begin(body: object | null, more: More = {}) {
    const { on = 'a', to = '/mcp', by = 'POST', id = null, token = null, version = null } = more;
    const { agent = null } = more;
    count += 1;
    at += 1000;
    const exchange = count;
    const facts: RequestFacts = {
      exchange,
      at,
      connection: on,
      method: by,
      target: to,
      sessionId: id,
      credentials: token,
      agent,
      protocolVersion: version,
      // As clients of MCP do; a browser that fetches an icon does not.
      acceptsEvents: by === 'POST' || (by === 'GET' && !to.includes('.')),
    };
    const session = sessions.assign(facts, body === null ? null : messagesOf(body));
    const respond = ({ status = 200, gives = null }: Answer = {}) => {
      at += 1000;
      sessions.responded(exchange, { at, status, sessionId: gives });
    };
    const end = (closedBy: 'server' | 'client' | 'proxy' = 'server') =>
      sessions.ended(exchange, at, closedBy);
    const read = (late: object) => sessions.read(exchange, messagesOf(late));
    const announce = (target: string) => sessions.endpoint(exchange, target);
    return { session, respond, end, read, announce };
  }

  /** A whole exchange. Gives its session. */
  function say(body: object | null, more: More & Answer = {}): number {
    const exchange = begin(body, more);
    exchange.respond(more);
    exchange.end();
    return exchange.session;
  }

  /** A legacy SSE stream that stays open. */
  function stream(more: More, announced: string) {
    const exchange = begin(null, { by: 'GET', to: '/sse', ...more });
    exchange.respond();
    exchange.announce(announced);
    return exchange;
  }

  function wait(micros: number): void {
    at += micros;
    sessions.tick(at);
  }

  /** The changes since the last time. */
  function changes(): string[] {
    const texts = all.slice(told).map(textOf);
    told = all.length;
    return texts;
  }

  return { begin, say, stream, wait, changes, all, unnamed, open: sessions.open, sessions };
}

const get = (to = '/mcp') => ({ by: 'GET', to });

test('a session id names its session from the answer to initialize until DELETE', () => {
  const { say, begin, changes, open } = createRun();
  expect(say(initialize(), { gives: 'H' })).toBe(1);
  expect(changes()).toEqual(['1 opened', '1 is session-header by http']);
  expect(say(INITIALIZED, { id: 'H', status: 202 })).toBe(1);
  const listening = begin(null, { ...get(), id: 'H', on: 'b' });
  listening.respond();
  expect(say(CALL, { id: 'H', on: 'c', gives: 'H' })).toBe(1);
  expect(open()).toEqual([1]);
  expect(say(null, { by: 'DELETE', id: 'H' })).toBe(1);
  listening.end('client');
  expect([listening.session, changes(), open()]).toEqual([1, ['1 ended: deleted'], []]);
});

test('what names a session is told with its basis; that nothing will, once a message was answered', () => {
  const { say, begin, all, unnamed } = createRun();
  const opening = begin(initialize());
  expect([all.length, unnamed]).toEqual([1, []]);
  opening.respond({ gives: 'H' });
  expect([all.at(-1), unnamed]).toMatchObject([{ type: 'basis', key: 'H' }, []]);
  const refused = begin(modern(), { on: 'b' });
  refused.respond({ status: 401 });
  expect(unnamed).toEqual([]);
  say(modern(), { on: 'b' });
  say(modern(), { on: 'b' });
  expect(unnamed).toEqual([refused.session]);
});

test('late traffic about a deleted session belongs to it and does not reopen it', () => {
  const { say, changes } = createRun();
  say(initialize(), { gives: 'H' });
  say(null, { by: 'DELETE', id: 'H' });
  changes();
  expect(say(CALL, { id: 'H', status: 404 })).toBe(1);
  expect(changes()).toEqual([]);
});

test('a DELETE that the server refuses ends nothing', () => {
  const { say, open } = createRun();
  say(initialize(), { gives: 'H' });
  say(null, { by: 'DELETE', id: 'H', status: 405 });
  expect(open()).toEqual([1]);
});

test('two clients that connect at the same moment get two sessions', () => {
  const { begin, say, changes } = createRun();
  const one = begin(initialize(), { on: 'a' });
  const two = begin(initialize(), { on: 'b' });
  two.respond({ gives: 'H2' });
  one.respond({ gives: 'H1' });
  expect([one.session, two.session]).toEqual([1, 2]);
  expect(changes()).toEqual([
    '1 opened',
    '2 opened',
    '2 is session-header by http',
    '1 is session-header by http',
  ]);
  expect(say(CALL, { id: 'H1', on: 'b' })).toBe(1);
  expect(say(CALL, { id: 'H2', on: 'a' })).toBe(2);
});

test('a client that connects on a connection of another session gets its own', () => {
  const { say } = createRun();
  expect(say(initialize(), { gives: 'H1' })).toBe(1);
  expect(say(initialize(), { gives: 'H2' })).toBe(2);
});

test('a session id may come with any answer to a POST, and a later one names the session too', () => {
  const { say, changes } = createRun();
  say(initialize());
  expect(say(INITIALIZED, { status: 202, gives: 'H1' })).toBe(1);
  expect(say(CALL, { id: 'H1', gives: 'H2' })).toBe(1);
  expect(say(CALL, { id: 'H2', on: 'b' })).toBe(1);
  expect(say(CALL, { id: 'H1', on: 'c' })).toBe(1);
  expect(changes()).toEqual(['1 opened', '1 is session-header by http']);
});

test('after 404 the session is gone, and initialize opens a new one', () => {
  const { say, changes } = createRun();
  say(initialize(), { gives: 'H1' });
  changes();
  expect(say(CALL, { id: 'H1', status: 404 })).toBe(1);
  expect(say(initialize(), { gives: 'H2' })).toBe(2);
  expect(changes()).toEqual(['1 ended: gone', '2 opened', '2 is session-header by http']);
});

test('404 to a GET says that there are no streams, not that the session is gone', () => {
  const { say, open } = createRun();
  say(initialize(), { gives: 'H' });
  expect(say(null, { ...get(), id: 'H', status: 404 })).toBe(1);
  expect(open()).toEqual([1]);
});

test('initialize with the id of a session stays in it', () => {
  const { say } = createRun();
  say(initialize(), { gives: 'H' });
  expect(say(initialize(), { id: 'H', status: 400 })).toBe(1);
});

test('an unknown session id opens a session that is known by it', () => {
  const { say, changes } = createRun();
  expect(say(CALL, { id: 'H', on: 'a' })).toBe(1);
  expect(say(null, { ...get(), id: 'H', on: 'b' })).toBe(1);
  expect(say(CALL, { id: 'other', on: 'a' })).toBe(2);
  expect(changes()).toEqual([
    '1 opened',
    '1 is session-header by http',
    '2 opened',
    '2 is session-header by http',
  ]);
});

test('an empty session id names nothing', () => {
  const { say, changes } = createRun();
  expect(say(initialize(), { id: '', gives: '' })).toBe(1);
  expect(say(CALL, { id: '' })).toBe(1);
  expect(changes()).toEqual(['1 opened']);
});

test('of sessions that the server named alike, the latest open one is meant', () => {
  const { say } = createRun();
  say(initialize(), { gives: 'same' });
  say(initialize(), { gives: 'same' });
  expect(say(CALL, { id: 'same' })).toBe(2);
  expect(say(null, { by: 'DELETE', id: 'same' })).toBe(2);
  expect(say(CALL, { id: 'same' })).toBe(1);
});

test('401, discovery, token and initialize of one client stand in one session', () => {
  const { say, changes, wait } = createRun();
  const flow = [
    say(initialize(), { status: 401 }),
    say(null, get('/.well-known/oauth-protected-resource/mcp')),
    say(null, { ...get('/.well-known/oauth-authorization-server'), on: 'b', status: 404 }),
    say({ client_name: 'c', redirect_uris: [] }, { to: '/register', status: 201 }),
  ];
  wait(9 * MINUTE);
  flow.push(say(null, { to: '/token', on: 'c', token: 'Basic client' }));
  flow.push(say(initialize(), { on: 'c', token: 'Bearer t', gives: 'H' }));
  flow.push(say(INITIALIZED, { on: 'c', token: 'Bearer t', id: 'H', status: 202 }));
  expect(flow).toEqual([1, 1, 1, 1, 1, 1, 1]);
  expect(changes()).toEqual(['1 opened', '1 is session-header by http']);
});

test('a client does not take the place of another that is about to authorize', () => {
  const { say } = createRun();
  expect(say(initialize('one'), { status: 401, on: 'a' })).toBe(1);
  expect(say(initialize('two'), { status: 401, on: 'b' })).toBe(2);
  expect(say(initialize('one'), { token: 't', gives: 'H1', on: 'c' })).toBe(1);
  expect(say(initialize('two'), { token: 't', gives: 'H2', on: 'd' })).toBe(2);
});

test('a step-up in mid-session stays in the session', () => {
  const { say, changes } = createRun();
  say(initialize(), { token: 'low', gives: 'H' });
  const flow = [
    say(CALL, { id: 'H', token: 'low', status: 403 }),
    say(null, get('/.well-known/oauth-protected-resource')),
    say(null, { to: '/token', on: 'b' }),
    say(CALL, { id: 'H', token: 'high', on: 'b' }),
  ];
  expect(flow).toEqual([1, 1, 1, 1]);
  expect(changes()).toEqual(['1 opened', '1 is session-header by http']);
});

test('a CORS preflight stands in the session that it is for', () => {
  const { say } = createRun();
  expect(say(null, { by: 'OPTIONS', status: 204 })).toBe(1);
  expect(say(initialize(), { gives: 'H1' })).toBe(1);
  expect(say(initialize(), { on: 'b', gives: 'H2' })).toBe(2);
  expect(say(null, { by: 'OPTIONS', status: 204 })).toBe(1);
  expect(say(null, { by: 'OPTIONS', status: 204, on: 'b' })).toBe(2);
});

test('a refused probe and the initialize after it stand in one session', () => {
  const { say, changes } = createRun();
  expect(say(probe(), { status: 400 })).toBe(1);
  expect(say(initialize(), { on: 'b', gives: 'H' })).toBe(1);
  expect(changes()).toEqual(['1 opened', '1 is session-header by http']);
});

test('a client may turn to initialize after a probe that was answered, another client may not', () => {
  const { say } = createRun();
  expect(say(probe('one'))).toBe(1);
  expect(say(initialize('two'), { gives: 'H2' })).toBe(2);
  expect(say(initialize('one'), { on: 'b', gives: 'H1' })).toBe(1);
  expect(say(probe('three'))).toBe(3);
  expect(say(modern('three'))).toBe(3);
  expect(say(initialize('three'))).toBe(4);
});

test('a client does not turn to initialize while its probes are in flight', () => {
  const { say, begin } = createRun();
  say(probe());
  expect(begin(probe()).session).toBe(1);
  expect(say(initialize(), { on: 'b' })).toBe(2);
});

test('a stream that was asked for in vain is the beginning of its own client’s session alone', () => {
  for (const second of [initialize(), CALL, modern()]) {
    const { say } = createRun();
    expect(say(null, { ...get(), agent: 'one', status: 405 })).toBe(1);
    expect(say(second, { agent: 'other', on: 'b' })).toBe(2);
    expect(say(initialize(), { agent: 'one', on: 'c' })).toBe(1);
  }
});

test('a client that does not always say what it is has one session', () => {
  const { say } = createRun();
  expect(say(null, { ...get(), status: 405 })).toBe(1);
  expect(say(initialize(), { agent: 'one', status: 401 })).toBe(1);
  expect(say(null, { ...get('/.well-known/oauth-protected-resource'), agent: 'its browser' })).toBe(1);
  expect(say(initialize())).toBe(1);
});

test('a refused POST, the legacy stream after it and its POSTs stand in one session', () => {
  const { say, begin, changes } = createRun();
  expect(say(initialize(), { status: 405 })).toBe(1);
  const stream = begin(null, { ...get(), on: 'b' });
  stream.respond();
  expect(changes()).toEqual(['1 opened']);
  stream.announce('/messages?sessionId=1');
  expect(changes()).toEqual(['1 is sse-endpoint by sse']);
  expect(stream.session).toBe(1);
  expect(say(initialize(), { to: '/messages?sessionId=1', status: 202 })).toBe(1);
  expect(say(CALL, { to: '/messages?sessionId=1', status: 202, on: 'c' })).toBe(1);
  stream.end('client');
  expect(changes()).toEqual(['1 ended: client-closed']);
  expect(say(CALL, { to: '/messages?sessionId=1', status: 404 })).toBe(1);
  expect(changes()).toEqual([]);
});

test('legacy streams are told apart by the URL that they announced', () => {
  const { begin, say, changes } = createRun();
  const one = begin(null, { ...get('/sse'), on: 'a' });
  const two = begin(null, { ...get('/sse'), on: 'b' });
  for (const stream of [one, two]) stream.respond();
  two.announce('/messages?id=2');
  one.announce('/messages?id=1');
  expect([one.session, two.session]).toEqual([1, 2]);
  expect(say(initialize(), { to: '/messages?id=1', on: 'c', status: 202 })).toBe(1);
  expect(say(initialize(), { to: '/messages?id=2', on: 'c', status: 202 })).toBe(2);
  two.end('server');
  expect(changes().at(-1)).toBe('2 ended: server-closed');
});

test('of legacy streams that announced the same URL, the latest open one is meant, else the latest', () => {
  const { stream, say } = createRun();
  const post = () => say(CALL, { to: '/messages', on: 'c', status: 202 });
  const one = stream({ on: 'a' }, '/messages');
  expect(post()).toBe(1);
  const two = stream({ on: 'b' }, '/messages');
  expect([one.session, two.session, post()]).toEqual([1, 2, 2]);
  two.end('client');
  expect(post()).toBe(1);
  one.end('client');
  expect(post()).toBe(2);
});

test.each([
  ['http://server:3000/app/messages?id=1', '/app/sse', '/app/messages?id=1'],
  ['messages/?id=1', '/app/sse', '/app/messages/?id=1'],
  ['?id=1', '/app/sse?x=2', '/app/sse?id=1'],
  ['//server/messages?id=ä', '/sse', '/messages?id=%C3%A4'],
  ['/messages', 'http://proxy/sse', 'http://proxy/messages'],
  ['../messages', '//x/y/sse', '//x/messages'],
])('%s, announced by the stream at %s, is %s', (announced, at, target) => {
  const { stream, say } = createRun();
  stream({ to: at }, announced);
  stream({ to: at, on: 'b' }, '/elsewhere');
  expect(say(CALL, { to: target, on: 'c', status: 202 })).toBe(1);
});

test('a legacy stream whose GET needs authorization stays in one session', () => {
  const { say, stream, changes } = createRun();
  expect(say(null, { ...get('/sse'), status: 401 })).toBe(1);
  expect(say(null, get('/.well-known/oauth-protected-resource'))).toBe(1);
  expect(stream({ token: 't' }, '/messages').session).toBe(1);
  expect(changes()).toEqual(['1 opened', '1 is sse-endpoint by sse']);
});

test('a legacy stream that the proxy itself breaks off leaves its session open', () => {
  const { stream, open } = createRun();
  stream({}, '/messages').end('proxy');
  expect(open()).toEqual([1]);
});

test('a legacy stream at the URL that streams announce opens its own session', () => {
  const { stream, say } = createRun();
  stream({ on: 'a' }, '/sse');
  const two = stream({ on: 'b' }, '/sse');
  expect([two.session, say(CALL, { to: '/sse', status: 202 })]).toEqual([2, 2]);
});

test('a legacy stream in an established session keeps it, and what it announced is known', () => {
  const { say, stream, changes } = createRun();
  expect(say(initialize())).toBe(1);
  expect(stream({ to: '/mcp' }, '/messages?id=1').session).toBe(1);
  expect(say(CALL, { to: '/messages?id=1', on: 'z', status: 202 })).toBe(1);
  expect(changes()).toEqual(['1 opened']);
});

test('a server without session ids: initialize, its GET that is refused, and calls stand in one session', () => {
  const { say, begin, changes } = createRun();
  const version = '2025-06-18';
  expect(say(initialize(), { on: 'a' })).toBe(1);
  expect(say(INITIALIZED, { on: 'a', status: 202, version })).toBe(1);
  const call = begin(CALL, { on: 'a', version });
  expect(say(null, { ...get(), on: 'b', status: 405, version })).toBe(1);
  expect(say(CALL, { on: 'c', version })).toBe(1);
  expect(call.session).toBe(1);
  expect(changes()).toEqual(['1 opened']);
});

test('without session ids the connection, the version and the credentials tell clients apart', () => {
  const { say } = createRun();
  const old = { on: 'b', version: '2025-03-26' };
  expect(say(initialize('one'), { on: 'a' })).toBe(1);
  expect(say(initialize('two'), { on: 'b' })).toBe(2);
  expect(say(initialize('three'), { on: 'c', token: 't' })).toBe(3);
  expect(say(INITIALIZED, { on: 'a', version: '2025-06-18' })).toBe(1);
  expect(say(INITIALIZED, old)).toBe(2);
  expect(say(CALL, { on: 'd', version: '2025-06-18' })).toBe(1);
  expect(say(CALL, { on: 'e', version: '2025-03-26' })).toBe(2);
  expect(say(CALL, { on: 'a', token: 't' })).toBe(3);
  expect(say(CALL, { on: 'f', token: 'unknown' })).toBe(4);
  expect(say(CALL, { on: 'f', version: '2024-11-05' })).toBe(5);
});

test('without session ids and on a new connection, the session that was active last is meant', () => {
  const { say } = createRun();
  say(initialize('one'), { on: 'a' });
  say(initialize('two'), { on: 'b' });
  say(CALL, { on: 'a' });
  expect(say(CALL, { on: 'c' })).toBe(1);
});

test('without session ids a client that was refused may come back with other credentials', () => {
  const { say } = createRun();
  say(initialize(), { token: 'old' });
  expect(say(CALL, { token: 'old', status: 401 })).toBe(1);
  expect(say(CALL, { token: 'new', on: 'b' })).toBe(1);
  expect(say(CALL, { token: 'another', on: 'b' })).toBe(2);
});

test('a message does not join a session whose initialize is in flight', () => {
  const { begin, say } = createRun();
  begin(initialize(), { on: 'a' });
  expect(say(CALL, { on: 'b' })).toBe(2);
});

test('a refusal of other sorts than 401 and 403 leaves a session to the same credentials alone', () => {
  const { say } = createRun();
  expect(say(modern(), { token: 'one', status: 400 })).toBe(1);
  expect(say(modern(), { token: 'two', status: 400 })).toBe(2);
  expect(say(initialize(), { token: 'one', status: 405, to: '/x' })).toBe(2);
  expect(say(null, { ...get('/x'), token: 'three', status: 405 })).toBe(3);
});

test('a GET joins a session without an id only at the same URL and with the same credentials', () => {
  const { say, stream, wait } = createRun();
  say(initialize(), { on: 'a' });
  wait(2 * MINUTE);
  expect(say(null, { ...get(), on: 'a', status: 405 })).toBe(1);
  expect(stream({ to: '/sse', on: 'a' }, '/messages').session).toBe(2);
  expect(say(null, { ...get(), on: 'b', token: 'other', status: 405 })).toBe(3);
});

test('a stream long after the last message on another connection is of another client', () => {
  const { say, wait } = createRun();
  say(initialize(), { on: 'a' });
  wait(2 * MINUTE);
  expect(say(null, { ...get(), on: 'b', status: 405 })).toBe(2);
});

test('a stream during a long call is of the same client', () => {
  const { say, begin, wait } = createRun();
  say(initialize(), { on: 'a' });
  begin(CALL, { on: 'a' }).respond();
  wait(20 * MINUTE);
  expect(say(null, { ...get(), on: 'b', status: 405 })).toBe(1);
});

test('a stream does not join a 2026-07-28 session, which has none', () => {
  const { say, stream } = createRun();
  say(modern());
  expect(stream({ to: '/mcp' }, '/messages').session).toBe(2);
});

test('a stream that may yet be a legacy one has its session to itself', () => {
  const { say, begin } = createRun();
  const stream = begin(null, get('/sse'));
  stream.respond();
  expect(say(initialize(), { on: 'b', gives: 'H' })).toBe(2);
});

test('requests at once to a server without session ids, met in mid-session, stand together', () => {
  const { begin, say } = createRun();
  const one = begin(CALL, { on: 'a' });
  const two = begin(CALL, { on: 'b' });
  expect([one.session, two.session]).toEqual([1, 1]);
  expect(say(initialize(), { on: 'c' })).toBe(2);
});

test('2026-07-28 requests are told apart by client, version and credentials', () => {
  const { say, begin, changes } = createRun();
  const later = message('tools/list', {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2027-01-01',
      'io.modelcontextprotocol/clientInfo': { name: 'one', version: '1' },
    },
  });
  const first = begin(modern('one'), { on: 'a' });
  const second = begin(modern('one'), { on: 'b' });
  for (const exchange of [first, second]) exchange.respond();
  expect([first.session, second.session]).toEqual([1, 1]);
  expect(say(modern('two'), { on: 'a' })).toBe(2);
  expect(say(modern('one'), { on: 'a', token: 't' })).toBe(3);
  expect(say(later, { on: 'a' })).toBe(4);
  expect(say(modern('one'), { on: 'c' })).toBe(1);
  expect(changes()).toEqual(['1 opened', '2 opened', '3 opened', '4 opened']);
});

test('a 2026-07-28 client does not take the place of another that was refused', () => {
  const { say } = createRun();
  expect(say(modern('one'), { status: 401 })).toBe(1);
  expect(say(modern('two'), { status: 401 })).toBe(2);
});

test('404 to a 2026-07-28 request means an unknown method, and ends nothing', () => {
  const { say, open } = createRun();
  say(modern());
  expect(say(modern('c', 'nope'), { status: 404 })).toBe(1);
  say(modern(), { id: 'H', status: 404 });
  expect(open()).toEqual([1, 2]);
});

test('a session id in the answer to a 2026-07-28 request means nothing', () => {
  const { say, changes } = createRun();
  say(modern(), { gives: 'H1' });
  expect(say(modern(), { gives: 'H2' })).toBe(1);
  expect(changes()).toEqual(['1 opened']);
});

test('a 2026-07-28 client that was refused may come back with other credentials', () => {
  const { say, changes } = createRun();
  expect(say(modern(), { status: 401 })).toBe(1);
  expect(say(null, get('/.well-known/oauth-protected-resource'))).toBe(1);
  expect(say(modern(), { on: 'b', token: 'low' })).toBe(1);
  expect(say(modern(), { on: 'b', token: 'low', status: 403 })).toBe(1);
  expect(say(modern(), { on: 'c', token: 'high' })).toBe(1);
  expect(say(modern(), { on: 'c', token: 'another' })).toBe(2);
  expect(changes()).toEqual(['1 opened', '2 opened']);
});

test('a legacy message is not put into a 2026-07-28 session', () => {
  const { say } = createRun();
  say(modern());
  expect(say(INITIALIZED, { version: '2026-07-28', status: 202 })).toBe(1);
  expect(say(CALL)).toBe(2);
});

test('what is not JSON-RPC goes along with the connection, else with the only session', () => {
  const { say } = createRun();
  say(initialize(), { gives: 'H1', on: 'a' });
  expect(say(null, { to: '/token', on: 'x' })).toBe(1);
  say(initialize(), { gives: 'H2', on: 'b' });
  expect(say(null, { to: '/token', on: 'a' })).toBe(1);
  expect(say(null, { to: '/token', on: 'b' })).toBe(2);
  expect(say(null, { to: '/token', on: 'y' })).toBe(3);
});

test('what is not JSON-RPC on a new connection is of the client that is being set up', () => {
  const { say } = createRun();
  say(initialize(), { gives: 'H1', on: 'a' });
  say(initialize('other'), { status: 401, on: 'b' });
  expect(say(null, { to: '/token', on: 'c' })).toBe(2);
});

test('a body that is read late founds the session that it was put into', () => {
  const { begin, say, changes } = createRun();
  const late = begin(null);
  expect(say(initialize('two'), { on: 'b', gives: 'H2' })).toBe(2);
  late.read(initialize('one'));
  expect(say(initialize('three'), { on: 'c', gives: 'H3' })).toBe(3);
  late.respond({ gives: 'H1' });
  expect(say(CALL, { id: 'H1' })).toBe(1);
  expect(changes()).toContain('1 is session-header by http');
});

test('a body that is read late in an established session does not change what it is known by', () => {
  const { begin, say } = createRun();
  say(initialize(), { token: 't' });
  begin(null).read(CALL);
  expect(say(CALL, { token: 't', on: 'b' })).toBe(1);
});

test('a body may be read after its answer has begun', () => {
  const { begin, say } = createRun();
  const late = begin(null);
  late.respond();
  late.read(initialize());
  late.end();
  expect(say(initialize())).toBe(2);
  expect(say(CALL)).toBe(2);
});

test('an initialize that never gets an answer leaves its session to the next', () => {
  const { begin, say } = createRun();
  begin(initialize()).end('client');
  expect(say(initialize(), { on: 'b' })).toBe(1);
});

test('what has been idle for too long ends, each sort after its time', () => {
  const { say, wait, changes, all } = createRun();
  say(initialize(), { gives: 'H' });
  say(modern());
  say(initialize('other'), { status: 401 });
  changes();
  wait(5 * MINUTE - SECOND);
  expect(changes()).toEqual([]);
  wait(SECOND);
  expect(changes()).toEqual(['2 ended: idle']);
  expect(all.at(-1)).toMatchObject({ at: 4000 + 5 * MINUTE });
  wait(6 * MINUTE);
  expect(changes()).toEqual(['3 ended: idle']);
  wait(20 * MINUTE);
  expect(changes()).toEqual(['1 ended: idle']);
});

test('a session with an exchange in flight is not idle', () => {
  const { say, begin, wait, changes } = createRun();
  say(initialize(), { gives: 'H' });
  const listening = begin(null, { ...get(), id: 'H' });
  listening.respond();
  changes();
  wait(60 * MINUTE);
  listening.end('client');
  wait(29 * MINUTE);
  expect(changes()).toEqual([]);
  wait(MINUTE);
  expect(changes()).toEqual(['1 ended: idle']);
});

test('a session that is named again after idleness is reopened', () => {
  const { say, wait, changes, open } = createRun();
  say(initialize(), { gives: 'H' });
  wait(31 * MINUTE);
  changes();
  expect(say(CALL, { id: 'H' })).toBe(1);
  expect([changes(), open()]).toEqual([['1 reopened'], [1]]);
  wait(31 * MINUTE);
  expect(changes()).toEqual(['1 ended: idle']);
});

test('a browser that fetches an icon opens no session of its own', () => {
  const { say } = createRun();
  expect(say(initialize(), { gives: 'H' })).toBe(1);
  expect(say(null, { ...get('/favicon.ico'), on: 'b' })).toBe(1);
});

test('a session that nothing names is not reopened, whether or not its end was told yet', () => {
  const { say, wait, sessions } = createRun();
  say(modern());
  wait(6 * MINUTE);
  expect(say(modern())).toBe(2);
  const facts = { connection: 'a', method: 'POST', target: '/mcp', sessionId: null };
  const late = {
    ...facts,
    exchange: 99,
    at: 60 * MINUTE,
    credentials: null,
    agent: null,
    protocolVersion: null,
    acceptsEvents: true,
  };
  expect(sessions.assign(late, messagesOf(modern()))).toBe(3);
});

test('what is told of a session that is forgotten changes nothing', () => {
  const { begin, say, changes } = createRun({ maxRemembered: 1 });
  const listening = begin(null, { ...get(), id: 'H1' });
  say(null, { by: 'DELETE', id: 'H1' });
  say(null, { by: 'DELETE', id: 'H2' });
  changes();
  listening.announce('/messages');
  expect([say(CALL, { to: '/messages' }), changes()]).toEqual([3, ['3 opened']]);
});

test('the place of a client that never came back is not taken after a long time', () => {
  const { say, wait } = createRun();
  say(initialize(), { status: 401 });
  wait(11 * MINUTE);
  expect(say(initialize())).toBe(2);
});

test('of ended sessions the oldest are forgotten, open ones never', () => {
  const { say } = createRun({ maxRemembered: 2 });
  for (const id of ['H1', 'H2', 'H3', 'H4']) say(initialize(), { gives: id });
  for (const id of ['H2', 'H3', 'H4']) say(null, { by: 'DELETE', id });
  expect(say(CALL, { id: 'H1' })).toBe(1);
  expect(say(CALL, { id: 'H3' })).toBe(3);
  expect(say(CALL, { id: 'H4' })).toBe(4);
  expect(say(CALL, { id: 'H2' })).toBe(5);
});

test('of those that a client or the server has ended fewer are remembered than of idle ones, which may go on', () => {
  const { say, wait, changes } = createRun({ maxFinished: 2 });
  say(initialize(), { gives: 'idle' });
  wait(31 * MINUTE);
  for (const id of ['H1', 'H2', 'H3', 'H4']) say(initialize(), { gives: id });
  for (const id of ['H1', 'H2']) say(null, { by: 'DELETE', id });
  // A straggler: of these two it is the last that is forgotten.
  expect(say(CALL, { id: 'H1' })).toBe(2);
  changes();
  for (const id of ['H3', 'H4']) say(null, { by: 'DELETE', id });
  expect(changes()).toEqual(['4 ended: deleted', '3 forgotten', '5 ended: deleted', '2 forgotten']);
  expect([say(CALL, { id: 'idle' }), say(CALL, { id: 'H4' })]).toEqual([1, 5]);
});

test('of too many open sessions the one idle for longest ends, and goes on once it is named again', () => {
  const { say, begin, changes, open } = createRun({ maxOpen: 2 });
  say(initialize(), { gives: 'H1' });
  say(initialize(), { gives: 'H2' });
  const listening = begin(null, { ...get(), id: 'H1' });
  changes();
  say(initialize(), { gives: 'H3' });
  expect(changes()).toEqual(['3 opened', '2 ended: crowded-out', '3 is session-header by http']);
  expect(say(CALL, { id: 'H2' })).toBe(2);
  expect(changes()).toEqual(['2 reopened', '3 ended: crowded-out']);
  const other = begin(CALL, { id: 'H2' });
  // Nothing is idle: then more than two are open.
  const third = begin(initialize('d'), { on: 'd' });
  expect([third.session, open(), changes()]).toEqual([4, [1, 2, 4], ['4 opened']]);
  for (const one of [listening, other, third]) one.end();
});

test('what is forgotten is told, so that nobody keeps more of it', () => {
  const { say, changes } = createRun({ maxRemembered: 1 });
  for (const id of ['H1', 'H2']) say(null, { by: 'DELETE', id });
  expect(changes()).toEqual([
    '1 opened',
    '1 is session-header by http',
    '1 ended: deleted',
    '2 opened',
    '2 is session-header by http',
    '2 ended: deleted',
    '1 forgotten',
  ]);
});

/** Milliseconds that so many new clients take. Each has its own connection, and leaves without a word. */
function timeOfNew(
  run: ReturnType<typeof createRun>,
  from: number,
  count: number,
  how: 'named' | 'nameless',
) {
  const began = performance.now();
  for (let n = from; n < from + count; n += 1) {
    const on = `c${n}`;
    if (how === 'named') {
      run.say(initialize(), { on, gives: `H${n}` });
      run.say(INITIALIZED, { on, id: `H${n}`, status: 202 });
    } else {
      // Of a server without sessions, by clients that have names and credentials of their own.
      run.say(modern(`c${n}`), { on, token: `t${n}` });
      run.say(initialize(`d${n}`), { on: `d${n}`, token: `t${n}` });
      run.say(INITIALIZED, { on: `e${n}`, token: `t${n}` });
    }
    run.all.length = 0;
  }
  return performance.now() - began;
}

test.each(['named', 'nameless'] as const)(
  'beside any number of open sessions that are %s a new one takes constant time',
  (how) => {
    const run = createRun({ maxOpen: 20_000 });
    const count = scale(5000);

    const alone = timeOfNew(createRun(), 0, count, how);
    timeOfNew(run, count, scale(25_000, 5000), how);
    expect(run.open().length).toBeGreaterThanOrEqual(scale(10_000, 5000));
    // Looking at each of them takes a hundred times as long.
    expect(timeOfNew(run, 100_000, count, how)).toBeLessThan(10 * alone + 200);
  },
);

test('of connections the one that was used longest ago is forgotten', () => {
  const { say } = createRun({ maxRemembered: 2 });
  say(initialize(), { gives: 'H1', on: 'a' });
  say(initialize(), { gives: 'H2', on: 'b' });
  say(CALL, { id: 'H1', on: 'a' });
  say(CALL, { id: 'H2', on: 'c' });
  expect(say(null, { by: 'OPTIONS', on: 'a' })).toBe(1);
  expect(say(null, { by: 'OPTIONS', on: 'b' })).toBe(3);
});

test('a server that gives an id with every answer cannot fill the memory', () => {
  const { say } = createRun();
  say(initialize(), { gives: 'first' });
  for (let n = 0; n < 200; n += 1) say(CALL, { id: n === 0 ? 'first' : `H${n - 1}`, gives: `H${n}` });
  expect(say(CALL, { id: 'H199' })).toBe(1);
  expect(say(CALL, { id: 'H100' })).toBe(1);
  expect(say(CALL, { id: 'H99' })).toBe(2);
});

test('what is told of an unknown exchange is ignored', () => {
  const { sessions, all } = createRun();
  sessions.read(7, []);
  sessions.responded(7, { at: 1, status: 200, sessionId: 'H' });
  sessions.endpoint(7, '/messages');
  sessions.ended(7, 1, 'client');
  expect(all).toEqual([]);
});

/** Checks each change against those before it. */
function createAudit() {
  const states = new Map<number, string>();
  const bases = new Map<number, string>();
  const unnamed = new Set<number>();
  function take(change: SessionChange): void {
    const state = states.get(change.session);
    switch (change.type) {
      case 'opened':
        expect([state, change.session]).toEqual([undefined, states.size + 1]);
        states.set(change.session, 'open');
        break;
      case 'basis':
        expect([state, bases.has(change.session)]).toEqual(['open', false]);
        bases.set(change.session, change.basis);
        break;
      case 'unnamed':
        expect([state, bases.has(change.session), unnamed.has(change.session)]).toEqual([
          'open',
          false,
          false,
        ]);
        unnamed.add(change.session);
        break;
      case 'ended':
        expect(state).toBe('open');
        states.set(change.session, change.reason);
        break;
      case 'reopened':
        expect(state).toMatch(/^(?:idle|crowded-out)$/);
        states.set(change.session, 'open');
        break;
      case 'forgotten':
        expect(state).not.toBe('open');
        states.set(change.session, 'forgotten');
    }
  }
  const open = () => [...states].filter(([, state]) => state === 'open').map(([number]) => number);
  return { take, states, open };
}

const BODIES = [
  null,
  initialize('one'),
  initialize('two'),
  INITIALIZED,
  CALL,
  modern('one'),
  modern('two'),
  probe(),
];
const maybe = (...values: string[]) => fc.constantFrom(null, ...values);

const anyRequest = fc.record({
  body: fc.constantFrom(...BODIES),
  on: fc.constantFrom('a', 'b', 'c'),
  by: fc.constantFrom('POST', 'POST', 'GET', 'DELETE', 'OPTIONS'),
  to: fc.constantFrom('/mcp', '/sse', '/messages?id=1', '/messages?id=2', '/.well-known/x'),
  id: maybe('H1', 'H2'),
  token: maybe('t'),
  version: maybe('2025-06-18', '2026-07-28'),
});
/** What happens to the exchange that began `back` exchanges ago. */
const anyStep = fc.record({
  back: fc.nat(4),
  what: fc.constantFrom('respond', 'respond', 'endpoint', 'read', 'end', 'tick'),
  status: fc.constantFrom(200, 202, 400, 401, 404, 405),
  gives: maybe('H1', 'H2', 'H3'),
  closedBy: fc.constantFrom('server' as const, 'client' as const, 'proxy' as const),
  wait: fc.constantFrom(0, SECOND, 6 * MINUTE, 40 * MINUTE),
});

const anyLimit = fc.constantFrom(1, 2, 10_000);

test('whatever comes, every exchange gets a session that is open or had ended, and changes are consistent', () => {
  const anyRun = fc.array(fc.tuple(anyRequest, fc.array(anyStep, { maxLength: 4 })), { maxLength: 40 });
  fc.assert(
    fc.property(anyRun, anyLimit, anyLimit, (run, maxRemembered, maxOpen) => {
      const { begin, wait, all, open } = createRun({ maxRemembered, maxOpen });
      const audit = createAudit();
      const begun: ReturnType<typeof begin>[] = [];
      for (const [{ body, ...request }, steps] of run) {
        const exchange = begin(request.by === 'POST' ? body : null, request);
        begun.push(exchange);
        for (const change of all.splice(0)) audit.take(change);
        const state = audit.states.get(exchange.session);
        expect(state).toBeDefined();
        expect(state).not.toMatch(/^(?:idle|crowded-out|forgotten)$/);
        if (state !== 'open') expect(request.id ?? request.to).toMatch(/^H|messages/);
        for (const { back, what, status, gives, closedBy, wait: micros } of steps) {
          const earlier = begun.at(-1 - back);
          if (what === 'respond') earlier?.respond({ status, gives });
          if (what === 'endpoint') earlier?.announce(`messages?id=${1 + (back % 2)}`);
          if (what === 'read') earlier?.read(body ?? CALL);
          if (what === 'end') earlier?.end(closedBy);
          if (what === 'tick') wait(micros);
        }
        for (const change of all.splice(0)) audit.take(change);
        expect(open()).toEqual(audit.open());
      }
    }),
  );
});
