import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createConversation } from '../../../src/protocol/message/conversation.ts';
import {
  INVALID,
  type InvalidReason,
  parseMessages,
  problemText,
  REMARK,
  type Remark,
} from '../../../src/protocol/message/message.ts';
import type { Frame } from '../../../src/protocol/wire/frame.ts';
import { brokenJson } from '../../support/json-text.ts';
import { bytesOf, ERROR, frameOf, httpFrameOf, parseOne } from '../../support/messages.ts';
import { scale } from '../../support/scale.ts';

test('a method with an id is a request', () => {
  expect(parseOne({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'echo' } })).toMatchObject({
    kind: 'request',
    id: { type: 'number', text: '7' },
    method: 'tools/call',
    canonical: 'tools/call',
    details: { target: 'echo' },
    remarks: [],
  });
});

test('a request may have the id zero or an empty string', () => {
  expect(parseOne({ jsonrpc: '2.0', id: 0, method: 'ping' })).toMatchObject({
    kind: 'request',
    id: { text: '0' },
  });
  expect(parseOne({ jsonrpc: '2.0', id: '', method: 'ping' })).toMatchObject({
    kind: 'request',
    id: { text: '' },
  });
});

test('a method without an id is a notification, under its own name and the canonical one', () => {
  expect(parseOne({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 3 } })).toMatchObject({
    kind: 'notification',
    method: '$/cancelRequest',
    canonical: 'notifications/cancelled',
    details: { cancels: 'n3' },
    remarks: [],
  });
});

test('a method that MCP does not know is a message like any other', () => {
  expect(parseOne({ jsonrpc: '2.0', id: 'x', method: 'vendor/thing', params: {} })).toMatchObject({
    kind: 'request',
    canonical: 'vendor/thing',
    remarks: [],
  });
});

test('a result with an id is a result, whatever its value', () => {
  for (const result of [{}, { content: [] }, null, 0, false, 'text', []]) {
    expect(parseOne({ jsonrpc: '2.0', id: 1, result })).toMatchObject({
      kind: 'result',
      id: { text: '1' },
      remarks: [],
    });
  }
});

test('an error has a code', () => {
  expect(parseOne({ jsonrpc: '2.0', id: 'a', error: ERROR })).toMatchObject({
    kind: 'error',
    id: { type: 'string', text: 'a' },
    code: -32601,
    remarks: [],
  });
});

test('an error may have the id null or no id: it names no request', () => {
  for (const envelope of [{ id: null }, {}]) {
    expect(parseOne({ jsonrpc: '2.0', ...envelope, error: ERROR })).toMatchObject({
      kind: 'error',
      id: null,
      code: -32601,
      remarks: ['error-without-id'],
    });
  }
});

test('an error of another shape is still an error', () => {
  const shapes: [error: unknown, code: number | null][] = [
    [null, null],
    ['broken', null],
    [[], null],
    [{}, null],
    [{ code: -32000 }, -32000],
    [{ code: '-32000', message: 'x' }, null],
    [{ code: 1.5, message: 'x' }, null],
    [{ code: 1e300, message: 'x' }, null],
    [{ code: -32000, message: 5 }, -32000],
  ];
  for (const [error, code] of shapes) {
    expect(parseOne({ jsonrpc: '2.0', id: 1, error })).toMatchObject({
      kind: 'error',
      code,
      remarks: ['error-shape'],
    });
  }
});

test('an id keeps its source text', () => {
  expect(parseOne('{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}')).toMatchObject({
    kind: 'request',
    id: { type: 'number', text: '12345678901234567890' },
  });
});

test('blank payloads hold no messages', () => {
  for (const payload of ['', ' ', '\t \r', '\uFEFF', '\uFEFF \n']) {
    expect(parseMessages(Buffer.from(payload))).toEqual([]);
  }
});

test('white space and the order of members do not matter', () => {
  const message = parseOne('  { "params" : {} ,\t"method":"ping", "id": 1 , "jsonrpc" :"2.0" } \r');
  expect(message).toMatchObject({ kind: 'request', method: 'ping', remarks: [] });
});

test('escaped keys and values are read like plain ones', () => {
  const message = parseOne('{"\\u006asonrpc":"2\\u002e0","i\\u0064":"\\u0041","method":"tools\\/list"}');
  expect(message).toMatchObject({
    kind: 'request',
    id: { text: '\\u0041', key: 'sA' },
    method: 'tools/list',
  });
});

test('a batch is as many messages as it has elements', () => {
  const batch = [
    { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 1, result: {} },
    { jsonrpc: '2.0', id: 2, error: ERROR },
    5,
    [],
    { id: 3 },
  ];
  const messages = parseMessages(bytesOf(batch));
  expect(messages.map((message) => (message.kind === 'invalid' ? message.reason : message.kind))).toEqual([
    'request',
    'notification',
    'result',
    'error',
    'not-object',
    'not-object',
    'no-jsonrpc',
  ]);
});

test('a batch that breaks off is one message that is not JSON', () => {
  expect(parseOne('[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc"')).toMatchObject({
    kind: 'invalid',
    reason: 'not-json',
  });
});

test('something after the message makes all of it no JSON', () => {
  for (const rest of ['x', '{}', ',', '\u0000']) {
    expect(parseOne(`{"jsonrpc":"2.0","method":"ping"}${rest}`)).toMatchObject({
      kind: 'invalid',
      reason: 'not-json',
    });
  }
});

test('an invalid message keeps what could be read of it', () => {
  expect(parseOne({ id: 4, method: 'logging/set_level', params: { level: 'info' } })).toMatchObject({
    kind: 'invalid',
    reason: 'no-jsonrpc',
    id: { text: '4' },
    method: 'logging/set_level',
    canonical: 'logging/setLevel',
    details: { target: 'info' },
  });
  expect(parseOne({ jsonrpc: '2.0', id: null, method: 'ping' })).toMatchObject({ id: null, method: 'ping' });
});

test('of a repeated member the last one counts', () => {
  expect(parseOne('{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"id":2,"method":"ping"}')).toMatchObject({
    kind: 'request',
    id: { text: '2' },
    remarks: ['duplicate-key'],
  });
});

const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' });

const INVALID_CASES: Record<InvalidReason, Frame> = {
  'not-json': frameOf('stdin', 'starting server…'),
  'not-object': frameOf('stdin', '"text"'),
  'empty-batch': frameOf('stdin', '[ ]'),
  'no-jsonrpc': frameOf('stdin', { id: 1, method: 'ping' }),
  'wrong-jsonrpc': frameOf('stdin', { jsonrpc: 2, id: 1, method: 'ping' }),
  'result-and-error': frameOf('stdin', { jsonrpc: '2.0', id: 1, result: {}, error: ERROR }),
  'method-and-answer': frameOf('stdin', { jsonrpc: '2.0', id: 1, method: 'ping', result: {} }),
  neither: frameOf('stdin', { jsonrpc: '2.0', id: 1 }),
  'method-not-string': frameOf('stdin', { jsonrpc: '2.0', id: 1, method: 5 }),
  'id-null': frameOf('stdin', { jsonrpc: '2.0', id: null, method: 'ping' }),
  'id-fractional': frameOf('stdin', { jsonrpc: '2.0', id: 1.5, method: 'ping' }),
  'id-not-scalar': frameOf('stdin', { jsonrpc: '2.0', id: {}, method: 'ping' }),
  'result-without-id': frameOf('stdin', { jsonrpc: '2.0', result: {} }),
  'params-array': frameOf('stdin', { jsonrpc: '2.0', id: 1, method: 'ping', params: [] }),
  'params-not-object': frameOf('stdin', { jsonrpc: '2.0', id: 1, method: 'ping', params: null }),
  truncated: frameOf('stdin', '{"jsonrpc":"2.0","id":1,', { truncated: true }),
};

const REMARK_CASES: Record<Remark, Frame[]> = {
  'invalid-utf8': [
    frameOf(
      'stdin',
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"caf\xe9"}}', 'latin1'),
    ),
  ],
  bom: [frameOf('stdin', `\uFEFF${JSON.stringify(ping(1))}`)],
  'lsp-framing': [frameOf('stdin', ping(1), { part: 'lsp-body' })],
  'duplicate-key': [frameOf('stdin', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}')],
  'extra-member': [frameOf('stdin', { ...ping(1), auth: 'x' })],
  'error-shape': [frameOf('stdout', ping(1)), frameOf('stdin', { jsonrpc: '2.0', id: 1, error: {} })],
  'error-without-id': [frameOf('stdin', { jsonrpc: '2.0', error: ERROR })],
  'id-in-use': [frameOf('stdin', ping(1)), frameOf('stdin', ping(1))],
  undecoded: [httpFrameOf('request', ping(1), { marks: ['undecoded'] })],
  'wrong-type': [httpFrameOf('request', ping(1), { marks: ['wrong-type'] })],
  incomplete: [httpFrameOf('request', ping(1), { marks: ['incomplete'] })],
  replayed: [httpFrameOf('sse', `data: ${JSON.stringify(ping(1))}\n\n`, { marks: ['replayed'] })],
  'no-open-request': [frameOf('stdin', { jsonrpc: '2.0', id: 1, result: {} })],
};

test('each reason to call a message invalid has its case', () => {
  expect(Object.keys(INVALID_CASES).sort()).toEqual(Object.keys(INVALID).sort());
  for (const [reason, frame] of Object.entries(INVALID_CASES)) {
    const messages = createConversation().add(frame, 1);
    expect([reason, messages.map(({ message }) => message)]).toMatchObject([
      reason,
      [{ kind: 'invalid', reason }],
    ]);
  }
});

test('each remark has its case, and leaves the kind as it is', () => {
  expect(Object.keys(REMARK_CASES).sort()).toEqual(Object.keys(REMARK).sort());
  for (const [remark, frames] of Object.entries(REMARK_CASES)) {
    const conversation = createConversation();
    const all = frames.flatMap((frame, i) => conversation.add(frame, i + 1));
    const last = all.at(-1);
    const remarks = [...(last?.message.remarks ?? []), last?.correlation.remark].filter(
      (one) => one !== null,
    );
    expect(remarks).toEqual([remark]);
    expect(last?.message.kind).not.toBe('invalid');
  }
});

test('a message with nothing wrong has no remarks', () => {
  expect(parseOne(ping(1)).remarks).toEqual([]);
});

test('each problem has a sentence, and an unknown code is its own', () => {
  for (const [code, sentence] of Object.entries({ ...INVALID, ...REMARK })) {
    expect(problemText(code)).toBe(sentence);
    expect(sentence).not.toBe('');
  }
  expect(problemText('from-a-later-version')).toBe('from-a-later-version');
});

test('one message may have several remarks, each once', () => {
  const text = '\uFEFF{"jsonrpc":"2.0","jsonrpc":"2.0","x":1,"y":2,"error":{},"error":{},"error":{}}';
  expect(parseOne(text).remarks).toEqual([
    'bom',
    'duplicate-key',
    'extra-member',
    'error-shape',
    'error-without-id',
  ]);
});

test('a member named like one of every JavaScript object is an extra member', () => {
  for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    expect(parseOne(`{"jsonrpc":"2.0","id":1,"method":"ping","${key}":{}}`)).toMatchObject({
      kind: 'request',
      remarks: ['extra-member'],
    });
  }
});

test('a message nested a million deep is read', () => {
  const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":${deep}}}`;
  expect(parseOne(text)).toMatchObject({ kind: 'request', details: { target: 'x' } });
});

test('no bytes whatever make the reader throw', () => {
  const members = fc.constantFrom(
    'jsonrpc',
    'id',
    'method',
    'params',
    'result',
    'error',
    '_meta',
    'task',
    'x',
  );
  const envelope = fc
    .dictionary(members, fc.jsonValue({ maxDepth: 2 }))
    .map((value) => JSON.stringify(value));
  const hostile = fc.oneof(fc.uint8Array(), fc.string({ unit: 'binary' }), brokenJson, envelope);
  fc.assert(
    fc.property(hostile, fc.boolean(), (payload, isVersioned) => {
      const bytes = bytesOf(payload);
      const text = bytes.toString('latin1').replace('{', '{"jsonrpc":"2.0",');
      for (const message of parseMessages(isVersioned ? Buffer.from(text, 'latin1') : bytes)) {
        expect(['request', 'notification', 'result', 'error', 'invalid']).toContain(message.kind);
      }
    }),
    { numRuns: scale(1000) },
  );
});

test('the params of a request are told from the first byte of its own message', () => {
  const one = '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}';
  const none = '{"jsonrpc":"2.0","id":2,"method":"m"}';
  for (const [before, after] of [
    ['', ''],
    ['\ufeff \n', ' '],
    [`[${none}, `, ']'],
  ] as const) {
    const payload = Buffer.from(before + one + after);
    const requests = parseMessages(payload).filter((message) => message.kind === 'request');
    const { start = 0, end = 0 } = requests.find(({ id }) => id.text === '1')?.params ?? {};
    expect(one.slice(start, end)).toBe('{"a":1}');
    for (const { id, params } of requests) if (id.text === '2') expect(params).toBeNull();
  }
});
