import { expect, test } from 'vitest';
import { createBatcher, eachItem } from '../../../src/store/record/batch.ts';
import {
  appendHttpItem,
  createHttpItemReader,
  type HttpItem,
  sizeOf,
} from '../../../src/store/record/http-items.ts';

const at = 1_700_000_000_000_123;
const exchange = 4_000_000_000;
const bytes = Buffer.from([0, 1, 255, 10, 13]);
const EVERY_KIND: HttpItem[] = [
  {
    type: 'request',
    exchange,
    at,
    method: 'POST',
    path: '/mcp?a="b"\u00e9',
    httpVersion: '1.1',
    rawHeaders: ['Host', 'a', 'X-Odd', '\u00ff\t"', 'host', ''],
    edits: [{ header: 'Host', original: 'b' }],
    clientAddress: '::1:5',
  },
  { type: 'request-body', exchange, at, bytes },
  { type: 'request-body', exchange, at, bytes: Buffer.alloc(0) },
  { type: 'request-end', exchange, at, rawTrailers: ['A', 'b'], isComplete: false },
  { type: 'information', exchange, at, status: 103, rawHeaders: ['Link', '</a>'] },
  { type: 'response', exchange, at, status: 200, statusMessage: '', rawHeaders: [], edits: [] },
  { type: 'response-body', exchange, at, bytes },
  { type: 'response-body', exchange, at, bytes, original: Buffer.from('other') },
  { type: 'response-body', exchange, at, bytes: Buffer.alloc(0), original: Buffer.alloc(0) },
  {
    type: 'response-body',
    exchange,
    at,
    bytes: Buffer.alloc(400_000, 1),
    original: Buffer.alloc(300_000, 2),
  },
  {
    type: 'end',
    exchange,
    at,
    closedBy: 'client',
    error: 'a\nb',
    isComplete: false,
    rawTrailers: ['C', 'd'],
  },
  {
    type: 'request',
    exchange,
    at,
    method: 'GET',
    path: '/\u00e9',
    httpVersion: '1.0',
    rawHeaders: ['X', '\u00ff\t"', 'x', ''],
    edits: [],
    clientAddress: '',
  },
  {
    type: 'request',
    exchange,
    at,
    method: 'GET',
    path: '*',
    httpVersion: '1.0',
    rawHeaders: [],
    edits: [],
    clientAddress: '',
  },
  { type: 'request-end', exchange, at, rawTrailers: [], isComplete: true },
  {
    type: 'response',
    exchange,
    at,
    status: 404,
    statusMessage: 'N\u00e4',
    rawHeaders: ['A', '', 'B', ''],
    edits: [],
  },
  {
    type: 'response',
    exchange,
    at,
    status: 302,
    statusMessage: 'F',
    rawHeaders: ['A', 'b'],
    edits: [{ header: 'A', original: 'c' }],
  },
  { type: 'end', exchange, at, closedBy: 'server', error: null, isComplete: true, rawTrailers: [] },
  { type: 'end', exchange, at, closedBy: 'proxy', error: 'no', isComplete: true, rawTrailers: [] },
  { type: 'lost', exchange, at, side: 'exchange', pieces: 3, bytes: 2 ** 40 },
];

/** With texts for bytes, which are compared in no time. */
const readable = (item: HttpItem) =>
  Object.fromEntries(
    Object.entries(item).map(([key, value]) => [
      key,
      Buffer.isBuffer(value) ? value.toString('latin1') : value,
    ]),
  );

test('every kind of news arrives as it was sent, and in its order', () => {
  const arrived: HttpItem[] = [];
  const newsOf = createHttpItemReader();
  const batcher = createBatcher((batch) => eachItem(batch, (item) => arrived.push(newsOf(item))));
  for (const news of EVERY_KIND) appendHttpItem(batcher.append, news);
  batcher.flush();
  expect(arrived.map(readable)).toEqual(EVERY_KIND.map(readable));
});

test('the size of news is that of its bytes, and something for the others', () => {
  const sizes = EVERY_KIND.filter(
    ({ type }) => type === 'request-body' || type === 'end' || type === 'lost',
  ).map(sizeOf);
  expect(sizes).toEqual([5, 0, 1024, 1024, 1024, 1024]);
});
