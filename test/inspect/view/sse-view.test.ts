import { expect, test } from 'vitest';
import { blockText } from '../../../src/inspect/view/conversation.ts';

test.each([
  [': keepalive\n\n', 'comment keepalive'],
  [':\n\n', 'comment'],
  [': one\r\n:two\r\n\r\n', 'comment one two'],
  ['id: 5\nretry: 1000\ndata:\n\n', 'event stream: id 5, retry 1000'],
  ['id:\ndata\n\n', 'event stream: id (empty)'],
  ['event: endpoint\ndata: /messages?sessionId=a\n\n', 'endpoint /messages?sessionId=a'],
  ['event: ping\ndata: now\n: odd\n\n', 'event stream: event ping, data now, comment odd'],
  ['\n\n', 'event stream: nothing'],
])('a block without a message in few words: %j', (block, text) => {
  expect(blockText(Buffer.from(block))).toBe(text);
});
