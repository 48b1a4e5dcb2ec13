/** Headers that repeat the body of a POST, and the `x-mcp-header` of tools. */
import { expect, test } from 'vitest';
import { asked, got, headersFor, list, listed, queried, region, tool } from '../cases-modern.ts';
import { cacheable, fail, give, HTTP, note, post, type Step } from '../session.ts';
import { found, rulesOf, seenBy } from './found.ts';

const annotated = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name });
const inner = (keyword: string, schema: unknown) => tool({ type: 'array', [keyword]: schema });

test.each([
  ['one of a string', tool(annotated('Region'))],
  ['one of an integer', tool(annotated('Level', 'integer'))],
  ['one of choices without a type', tool({ enum: ['a', 'b'], 'x-mcp-header': 'Zone' })],
  ['one within an object', tool({ type: 'object', properties: { b: annotated('Region') } })],
  [
    'an argument of that name',
    { name: 'a', inputSchema: { type: 'object', properties: { 'x-mcp-header': {} } } },
  ],
  ['a default that looks like one', tool({ type: 'object', default: { 'x-mcp-header': '' } })],
])('a tool may have %s', (_, definition) => {
  expect(rulesOf('header', listed(definition), HTTP)).toEqual([]);
});

test.each([
  ['no text', tool(annotated(7)), /^7 at "\/properties\/a", of type "string" of "query"$/],
  ['empty', tool(annotated('')), /^"" at/],
  ['no name for a header', tool(annotated('My Region')), /^"My Region" at/],
  ['a line end', tool(annotated('A\r\nB')), /^"A\\r\\nB" at/],
  ['of a number', tool(annotated('A', 'number')), /of type "number"/],
  ['of an object', tool(annotated('A', 'object')), /of type "object"/],
  ['of nothing certain', tool({ 'x-mcp-header': 'A' }), /without a type/],
  ['in a list', inner('items', annotated('A')), /at "\/properties\/a\/items"/],
  ['in a choice', inner('anyOf', [annotated('A')]), /at "\/properties\/a\/anyOf\/0"/],
  ['in a definition', { name: 'a', inputSchema: { type: 'object', $defs: { d: annotated('A') } } }, /\$defs/],
  ['at the root', { name: 'a', inputSchema: { type: 'object', 'x-mcp-header': 'A' } }, /^"A" at "\/"/],
  [
    'there twice, but for case',
    {
      name: 'a',
      inputSchema: { type: 'object', properties: { a: annotated('Zone'), b: annotated('zONE') } },
    },
    /^"zONE" at "\/properties\/b"/,
  ],
])('an annotation is not legal that is %s, over any transport', (_, definition, seen) => {
  expect(seenBy('header', listed(definition), HTTP)).toEqual([expect.stringMatching(seen)]);
  expect(seenBy('header', list(1, { tools: [definition] }))).toEqual([expect.stringMatching(seen)]);
});

test('over stdio there are no headers to miss', () => {
  const called = got(
    2,
    'tools/call',
    { name: 'query', arguments: { a: 'x' } },
    { resultType: 'complete', content: [] },
  );
  expect(found([...list(1, { tools: [region] }), ...called])).toEqual([]);
});

const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

test.each<[value: unknown, header: string | undefined, type?: string]>([
  ['eu', 'eu'],
  ['eu', base64('eu')],
  ['Hello, 世界', base64('Hello, 世界')],
  [' padded ', base64(' padded ')],
  ['line1\nline2', base64('line1\nline2')],
  ['=?base64?literal?=', base64('=?base64?literal?=')],
  ['', ''],
  ['[redacted:github-token:0123456789ab]', base64('unknown')],
  [42, '42', 'integer'],
  [42, '42.0', 'integer'],
  [-7, '-7', 'integer'],
  [false, 'false', 'boolean'],
  [null, undefined],
  [undefined, undefined],
])('the argument %j may be sent as %j', (value, header, type = 'string') => {
  const headers: Record<string, string> = header === undefined ? {} : { 'mcp-param-region': header };
  const steps = [...listed(tool(annotated('Region', type))), ...queried({ a: value }, headers)];
  expect([...rulesOf('param', steps, HTTP), ...rulesOf('header', steps, HTTP)]).toEqual([]);
});

test.each<[value: unknown, header: string | undefined, expected: string, type?: string]>([
  ['eu', undefined, '`Mcp-Param-Region: eu`'],
  ['eu', 'us', '`Mcp-Param-Region: eu`'],
  ['eu', 'EU', '`Mcp-Param-Region: eu`'],
  ['007', '7', '`Mcp-Param-Region: 007`'],
  ['é', 'é', '`Mcp-Param-Region: =?base64?w6k=?=`'],
  ['é', Buffer.from('é').toString('latin1'), '`Mcp-Param-Region: =?base64?w6k=?=`'],
  ['é', '=?base64?w6k?=', '`Mcp-Param-Region: =?base64?w6k=?=`'],
  ['é', '=?BASE64?w6k=?=', '`Mcp-Param-Region: =?base64?w6k=?=`'],
  ['=?base64?literal?=', '=?base64?literal?=', `\`Mcp-Param-Region: ${base64('=?base64?literal?=')}\``],
  [42, '43', '`Mcp-Param-Region: 42`', 'integer'],
  [false, 'False', '`Mcp-Param-Region: false`', 'boolean'],
  [null, 'null', 'no `Mcp-Param-Region`, as there is no such argument'],
  [undefined, '', 'no `Mcp-Param-Region`, as there is no such argument'],
])('the argument %j may not be sent as %j', (value, header, expected, type = 'string') => {
  const headers: Record<string, string> = header === undefined ? {} : { 'mcp-param-region': header };
  const steps = [...listed(tool(annotated('Region', type))), ...queried({ a: value }, headers)];
  const findings = found(steps, HTTP);
  expect(findings).toMatchObject([
    { rule: 'param-header', side: 'client', http: 2, expected },
    { rule: 'header-unchecked', side: 'server', seen: 'status 200 and a result' },
  ]);
  const refused = [
    ...listed(tool(annotated('Region', type))),
    ...queried({ a: value }, headers, { status: 400 }),
  ];
  expect(rulesOf('param', refused, HTTP)).toEqual(['param-header']);
  expect(rulesOf('header', refused, HTTP)).toEqual([]);
});

test('an integer that no double holds is none that a header can repeat', () => {
  const called = queried({ a: 2 ** 53 }, { 'mcp-param-level': '9007199254740992' });
  expect(rulesOf('', [...listed(tool(annotated('Level', 'integer'))), ...called], HTTP)).toEqual([
    'param-header',
  ]);
});

test('a tool that was not listed, or not since the tools changed, may have any headers', () => {
  const changed: Step = {
    ...{ channel: 'sse', afterMs: 1, exchange: 9 },
    text: `data: ${JSON.stringify(note('notifications/tools/list_changed'))}\n\n`,
  };
  expect(rulesOf('', [...listed(region), changed, ...queried({ a: 'x' }, {})], HTTP)).toEqual([]);
  expect(rulesOf('', queried({ a: 'x' }, { 'mcp-param-region': 'y' }), HTTP)).toEqual([]);
});

test.each([
  ['name', { 'mcp-name': 'other' }, 'name-header'],
  ['method', { 'mcp-method': 'Tools/call' }, 'method-header'],
  ['version', { 'mcp-protocol-version': '2025-11-25' }, 'version-header'],
])('a server refuses a request whose headers give another %s', (_, headers, rule) => {
  expect(rulesOf('', queried({}, headers), HTTP)).toEqual([rule, 'header-unchecked']);
});

test('a method is repeated as the body spells it', () => {
  const steps = post(1, asked(1, 'Tools/List'), [fail(1, -32601)], {
    status: 404,
    request: headersFor('Tools/List'),
  });
  expect(rulesOf('method-header', steps, HTTP)).toEqual([]);
});

test('a name beyond ASCII stands in base64', () => {
  const named = (value: string) =>
    post(1, asked(1, 'resources/read', { uri: 'a:é' }), [give(1, cacheable({ contents: [] }))], {
      request: headersFor('resources/read', { 'mcp-name': value }),
    });
  expect(seenBy('name-header', named('a:é'), HTTP)).toEqual(['"a:é" (characters that belong into base64)']);
  expect(rulesOf('', named(base64('a:é')), HTTP)).toEqual([]);
});
