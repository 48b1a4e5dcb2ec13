/** What results say of how long they may be kept, and clients that ask again all the same. */
import { expect, test } from 'vitest';
import { asked, got, headersFor, list } from '../cases-modern.ts';
import {
  ask,
  cacheable,
  client,
  fail,
  give,
  HTTP,
  hello,
  modern,
  note,
  post,
  type Step,
  server,
} from '../session.ts';
import { found, rulesOf, seenBy } from './found.ts';

const LATER = 1000;
const tools = (id: unknown, result: object = {}, afterMs = LATER) => list(id, result, {}, afterMs);
const read = (id: unknown, uri: string, result: object = {}) =>
  got(id, 'resources/read', { uri }, cacheable({ contents: [], ...result }), LATER);

test.each([
  ['server/discover', { supportedVersions: ['2026-07-28'], capabilities: {} }],
  ['tools/list', { tools: [] }],
  ['prompts/list', { prompts: [] }],
  ['resources/list', { resources: [] }],
  ['resources/templates/list', { resourceTemplates: [] }],
  ['resources/read', { contents: [] }],
])('%s is answered with both hints', (method, result) => {
  const answered = (more: object) => found(got(1, method, { uri: 'a:b' }, { ...result, ...more }));
  expect(answered(cacheable())).toEqual([]);
  expect(answered({ resultType: 'complete', ttlMs: 5 })).toMatchObject([
    { rule: 'cache-hint', side: 'server', expected: `\`cacheScope\` in the answer to ${method}` },
  ]);
  expect(answered({ resultType: 'complete' })).toMatchObject([
    { expected: `\`ttlMs\` and \`cacheScope\` in the answer to ${method}` },
  ]);
});

test('other results need no hints, nor do those of older revisions, errors and tools', () => {
  const calls = got(1, 'tools/call', { name: 'a' }, { resultType: 'complete', content: [] });
  const failed = [client(asked(2, 'tools/list')), server(fail(2, -32603))];
  const legacy = [...hello(), client(ask(3, 'tools/list')), server(give(3, { tools: [], ttlMs: -1 }))];
  for (const steps of [calls, failed, legacy]) expect(rulesOf('cache', steps)).toEqual([]);
});

test.each([
  [{ ttlMs: -1 }, '-1'],
  [{ ttlMs: 1.5 }, '1.5'],
  [{ ttlMs: '60000' }, '"60000"'],
  [{ ttlMs: null }, 'null'],
  [{ cacheScope: 'shared' }, '"shared"'],
  [{ cacheScope: true }, 'true'],
])('%j is no hint', (hint, seen) => {
  expect(seenBy('cache', tools(1, hint))).toEqual([seen]);
});

test('a list is of one scope over all its pages, and another list of another', () => {
  const page = (id: number, cacheScope: string, cursor?: string, nextCursor?: string) =>
    list(id, { cacheScope, ...(nextCursor && { nextCursor }) }, cursor === undefined ? {} : { cursor });
  const first = page(1, 'private', undefined, 'b');
  const pages = [...first, ...page(2, 'public', 'b', 'c'), ...page(3, 'private', 'c')];
  expect(seenBy('cache', pages)).toEqual(['"public"']);
  expect(seenBy('cache', [...first, ...page(2, 'private', 'b'), ...page(3, 'public')])).toEqual([]);
});

test('a client that asks again for what is fresh is told of once, with what it cost', () => {
  const findings = found([...tools(1), ...tools(2), ...tools(3)]);
  expect(findings).toMatchObject([
    {
      rule: 'fetched-again',
      side: 'client',
      place: { seq: 3, n: 0 },
      expected: '#2 to serve for its `ttlMs` of 60000',
      seen: expect.stringMatching(/^tools\/list again after 1\.0 s; 2 times in all, for 2\d\d B$/),
    },
  ]);
  expect(seenBy('fetched', [...read(1, 'a:b'), ...read(2, 'a:b')])).toEqual([
    expect.stringMatching(/^resources\/read "a:b" again after 1\.0 s, for \d+ B$/),
  ]);
});

const changed = (what: string, params?: object) => server(note(`notifications/${what}`, params));
const mine = { name: 'a', _meta: modern() };

test.each<[string, Step[]]>([
  ['the lifetime is over', [...tools(1, { ttlMs: 500 }), ...tools(2)]],
  ['the lifetime is 0', [...tools(1, { ttlMs: 0 }), ...tools(2)]],
  ['there is no lifetime', [...tools(1, { ttlMs: undefined }), ...tools(2)]],
  ['the lifetime is none', [...tools(1, { ttlMs: -1 }), ...tools(2)]],
  ['the answer was an error', [client(asked(1, 'tools/list')), server(fail(1, -32603)), ...tools(2)]],
  [
    'the answer to the second is an error',
    [...tools(1), client(asked(2, 'tools/list'), LATER), server(fail(2, 1))],
  ],
  [
    'the answer came after the second question',
    [
      ...[client(asked(1, 'tools/list')), client(asked(2, 'tools/list'), LATER)],
      ...[server(give(1, cacheable({ tools: [] }))), server(give(2, cacheable({ tools: [] })))],
    ],
  ],
  ['the two may have crossed', [...tools(1), ...tools(2, {}, 50)]],
  ['it is another page', [...tools(1, { nextCursor: 'b' }), ...list(2, {}, { cursor: 'b' }, LATER)]],
  ['it is another resource', [...read(1, 'a:b'), ...read(2, 'a:c')]],
  ['it is another list', [...tools(1), ...got(2, 'prompts/list', {}, cacheable({ prompts: [] }), LATER)]],
  [
    'the client can do something else by then',
    [
      ...tools(1),
      client(ask(2, 'tools/list', { _meta: modern() }), LATER),
      server(give(2, cacheable({ tools: [] }))),
    ],
  ],
  ['the tools have changed', [...tools(1), changed('tools/list_changed'), ...tools(2)]],
  [
    'the resource has changed',
    [...read(1, 'a:b'), changed('resources/updated', { uri: 'a:b' }), ...read(2, 'a:b')],
  ],
  [
    'something failed',
    [...tools(1), client(ask(8, 'tools/call', mine)), server(fail(8, -32602)), ...tools(2)],
  ],
  [
    'a tool failed',
    [
      ...[...tools(1), client(ask(8, 'tools/call', mine))],
      ...[server(give(8, { resultType: 'complete', content: [], isError: true })), ...tools(2)],
    ],
  ],
  [
    'a tool may have changed the resource',
    [...read(1, 'a:b'), client(ask(8, 'tools/call', mine)), ...read(2, 'a:b')],
  ],
  [
    'the tools have changed while the answer was under way',
    [
      ...[client(asked(1, 'tools/list')), changed('tools/list_changed')],
      ...[server(give(1, cacheable({ tools: [] }))), ...tools(2)],
    ],
  ],
  [
    'a call that ends only now may have changed the resource',
    [
      ...[client(ask(8, 'tools/call', mine)), ...read(1, 'a:b')],
      ...[server(give(8, { resultType: 'complete', content: [] })), ...read(2, 'a:b')],
    ],
  ],
  [
    'a subscription begins only now',
    [...tools(1), client(asked(8, 'subscriptions/listen', { notifications: {} })), ...tools(2)],
  ],
  [
    'the first answer was to a further round',
    [
      ...got(1, 'resources/read', { uri: 'a:b', requestState: 's' }, cacheable({ contents: [] })),
      ...read(2, 'a:b'),
    ],
  ],
])('nobody asks again where %s', (_, steps) => {
  expect(seenBy('fetched', steps)).toEqual([]);
});

test('a call of a tool is no reason to list the tools again, as no other request changes them', () => {
  const called = got(8, 'tools/call', { name: 'a' }, { resultType: 'complete', content: [] });
  expect(seenBy('fetched', [...tools(1), ...called, ...tools(2)])).toHaveLength(1);
});

test('over HTTP what is private is fresh for its own authorization only', () => {
  const exchange = (id: number, token: string, cacheScope: string) =>
    post(id, asked(id, 'tools/list'), [give(id, cacheable({ tools: [], cacheScope }))], {
      request: headersFor('tools/list', { authorization: `Bearer ${token}` }),
    });
  const wait: Step = { channel: 'sse', text: ': ping\n\n', afterMs: LATER, exchange: 9 };
  const twice = (scope: string, ...[first, second]: [string, string]) =>
    seenBy('fetched', [...exchange(1, first, scope), wait, ...exchange(2, second, scope)], HTTP);
  expect(twice('private', 'mine', 'mine')).toHaveLength(1);
  expect(twice('private', 'mine', 'yours')).toEqual([]);
  expect(twice('public', 'mine', 'yours')).toHaveLength(1);
});

test('where several clients may stand in a session it says so, and where frames may be missing nothing', () => {
  const steps = [...tools(1), ...tools(2)];
  expect(seenBy('fetched', steps, { basis: 'stateless' })).toEqual([
    expect.stringMatching(/^tools\/list again after 1\.0 s, perhaps by another client, for 1\d\d B$/),
  ]);
  expect(seenBy('fetched', steps, { mayMissFrames: true })).toEqual([]);
});
