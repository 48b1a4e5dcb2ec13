import { describe, test } from 'vitest';
import { canonicalText } from '../../src/protocol/json/canonical.ts';
import { pointerAt, skipValue } from '../../src/protocol/json/read.ts';
import { createConversation } from '../../src/protocol/message/conversation.ts';
import { parseMessages } from '../../src/protocol/message/message.ts';
import { redactHeader, redactUrl } from '../../src/protocol/redact/heads.ts';
import { escapeText } from '../../src/protocol/text.ts';
import type { Frame } from '../../src/protocol/wire/frame.ts';
import { createLineSplitter } from '../../src/protocol/wire/lines.ts';
import { createSseSplitter, linesOf, readSse } from '../../src/protocol/wire/sse.ts';
import { expectLinear } from '../support/growth.ts';

const MAX_BYTES = 16 * 1024 * 1024;

const none = () => {};

/** By what it reads: the reader, and the pieces that its grammar is made of. Each must take time by the length alone. */
const READERS: Readonly<Record<string, { units: readonly string[]; read(bytes: Buffer): void }>> = {
  lines: {
    units: [
      '\n',
      '\r',
      '\r\n',
      'Content-Length: 1\r\n\r\na',
      'Content-Length: 9999999\n',
      'a: b\r\n',
      '{"a":1}\n',
      'a',
    ],
    read(bytes) {
      for (const size of [bytes.length, 7]) {
        const splitter = createLineSplitter({
          channel: 'stdout',
          maxBytes: MAX_BYTES,
          onFrame: none,
          onSkip: none,
        });
        for (let i = 0; i < bytes.length; i += size) splitter.feed(bytes.subarray(i, i + size), 1);
        splitter.end();
      }
    },
  },
  'event streams': {
    units: [
      '\n',
      '\r',
      ': \n',
      'data: a\n',
      'data: a\n\n',
      'data\n',
      'id: 1\nevent: a\ndata: {}\r\n\r\n',
      ':',
      'a',
    ],
    read(bytes) {
      const all = { maxBytes: MAX_BYTES, onOversize: none, onSkip: none };
      for (const size of [bytes.length, 7]) {
        const splitter = createSseSplitter({ ...all, onBlock: ({ payload }) => readSse(payload) });
        for (let i = 0; i < bytes.length; i += size) splitter.feed(bytes.subarray(i, i + size), 1);
      }
      for (const _line of linesOf(bytes));
    },
  },
  JSON: {
    units: [
      '[',
      '{"a":',
      '[]',
      '"\\',
      '\\u0041',
      '"a",',
      '{"a":1},',
      '1e1,',
      ' ',
      '-',
      'true,',
      '"é",',
      '"a":1,',
      '"__proto__":{},',
    ],
    read(bytes) {
      for (const [before, after] of ['', '[', '{', '"', '[{'].map((text, i) => [
        text,
        ['', '0]', '"z":0}', '"', '"z":0}]'][i],
      ])) {
        const json = Buffer.concat([Buffer.from(before ?? ''), bytes, Buffer.from(after ?? '')]);
        const end = skipValue(json, 0);
        parseMessages(json);
        if (end < 0) continue;
        canonicalText(json, { start: 0, end, type: 'array' });
        pointerAt(json, end - 2);
      }
    },
  },
  messages: {
    units: [
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}},',
      '{"jsonrpc":"2.0","id":1,"result":{}},',
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}},',
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}},',
      '{"id":1,"id":1,"error":{}},',
      '0,',
    ],
    read(bytes) {
      const end = bytes.lastIndexOf(',');
      const payload = Buffer.concat([Buffer.from('['), bytes.subarray(0, end), Buffer.from(']')]);
      const size = payload.length;
      const frame: Frame = {
        ...{
          channel: 'stdin',
          at: 1,
          payload,
          size,
          lineEnd: '\n',
          truncated: false,
          part: 'line',
          http: null,
        },
      };
      const conversation = createConversation();
      for (let seq = 1; seq <= 4; seq += 1)
        conversation.add({ ...frame, channel: seq % 2 === 0 ? 'stdout' : 'stdin' }, seq);
      conversation.facts();
    },
  },
  'heads of HTTP': {
    units: ['?', '&', '&token=', '=', ';', '; a=', '//', '@', '%', ',', ' ', 'Bearer ', 'x-', 'key'],
    read(bytes) {
      const text = bytes.toString();
      const placeholder = () => 'masked';
      redactUrl(`https://example.com/${text}`, placeholder);
      redactUrl(`/?${text}`, placeholder);
      for (const name of ['Cookie', 'Set-Cookie', 'Authorization', 'Location', text])
        redactHeader(name, text, placeholder);
    },
  },
  'texts for people': {
    units: ['\u001b[31m', '\u202e', '\n', '"', 'é', 'a'],
    read: (bytes) => void escapeText(bytes.toString()),
  },
};

describe.each(Object.entries(READERS))('%s', (_what, { units, read }) => {
  test.each(units)('%j, again and again, costs no more than its length', (unit) => expectLinear(unit, read));
});
