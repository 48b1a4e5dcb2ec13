import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSseSplitter, isMessageEvent, readSse, type SseBlock } from '../../../src/protocol/wire/sse.ts';
import { cutAt, cutsOf } from '../../support/lines.ts';
import { scale } from '../../support/scale.ts';

const KB = 1024;
const MB = 1024 * KB;

/** A splitter whose blocks, oversize pieces, skipped bytes and calls can be looked at one by one. */
function createProbe(maxBytes = MB) {
  const blocks: SseBlock[] = [];
  const oversize: Buffer[] = [];
  const skipped: number[] = [];
  const splitter = createSseSplitter({
    maxBytes,
    onBlock: (block) => blocks.push(block),
    onOversize: (bytes) => oversize.push(bytes),
    onSkip: (bytes) => skipped.push(bytes),
  });
  const feed = (text: string, at = 0) => splitter.feed(Buffer.from(text), at);
  const texts = () => blocks.map(({ payload }) => payload.toString());
  const held = () => splitter.held().map((bytes) => bytes.toString());
  const skippedBytes = () => skipped.reduce((sum, bytes) => sum + bytes, 0);
  return { blocks, oversize, splitter, feed, texts, held, skippedBytes };
}

/** A block without its time. The payload's bytes stand as latin1 text, so that differences can be read. */
type PlainBlock = { payload: string; size: number; truncated: boolean; isComplete: boolean };

function plainBlock(text: string, isComplete = true): PlainBlock {
  const payload = Buffer.from(text).toString('latin1');
  return { payload, size: payload.length, truncated: false, isComplete };
}

function splitBlocks(chunks: readonly Uint8Array[], maxBytes = MB): PlainBlock[] {
  const { blocks, splitter, skippedBytes } = createProbe(maxBytes);
  for (const chunk of chunks) splitter.feed(Buffer.from(chunk), 0);
  splitter.end();
  expect(skippedBytes()).toBe(0);
  return blocks.map(({ at: _at, payload, ...rest }) => ({ payload: payload.toString('latin1'), ...rest }));
}

/** Puts an LF that was cut off the CR before it back to the block that the CR ended. */
function mendCuts(blocks: readonly PlainBlock[]): PlainBlock[] {
  const mended: PlainBlock[] = [];
  for (const block of blocks) {
    const last = mended.at(-1);
    if (last?.payload.endsWith('\r') && block.payload.startsWith('\n')) {
      mended.splice(-1, 1, { ...last, payload: `${last.payload}\n`, size: last.size + 1 });
      const rest = { ...block, payload: block.payload.slice(1), size: block.size - 1 };
      if (rest.size > 0) mended.push(rest);
    } else mended.push(block);
  }
  return mended;
}

function splitsCrLf(bytes: Uint8Array, cuts: readonly number[]): boolean {
  return cuts.some((cut) => bytes[cut - 1] === 0x0d && bytes[cut] === 0x0a);
}

/** Asserts the same blocks for the bytes as a whole, byte by byte and cut in two at every place. */
function feedEveryWay(input: string, expected: PlainBlock[], maxBytes?: number): void {
  const bytes = Buffer.from(input);
  expect(splitBlocks([bytes], maxBytes), 'as a whole').toEqual(expected);
  expect(mendCuts(splitBlocks(cutAt(bytes, [...bytes.keys()]), maxBytes)), 'byte by byte').toEqual(expected);
  for (let at = 0; at <= bytes.length; at += 1) {
    expect(mendCuts(splitBlocks(cutAt(bytes, [at]), maxBytes)), `cut at ${at}`).toEqual(expected);
  }
}

function read(text: string) {
  const { data, ...rest } = readSse(Buffer.from(text));
  return { ...rest, data: data?.toString() ?? null };
}

const NOTHING = { event: null, id: null, retry: null, data: null, hasComment: false };

/** Bytes in which line ends of every kind come close together, and where to cut them. */
const anyBytes = fc
  .array(fc.constantFrom('\n', '\r', '\r\n', '\n\n', 'a', ':', 'data: x', 'id: 1', 'ä', '\uFEFF', ''), {
    maxLength: 24,
  })
  .map((pieces) => Buffer.from(pieces.join('')));
const cutBytes = anyBytes.chain((bytes) => fc.tuple(fc.constant(bytes), cutsOf(bytes.length)));

/** Counts the bytes that `indexOf` looks at in these chunks. */
function countSearched(chunks: readonly Buffer[]): () => number {
  let searched = 0;
  for (const chunk of chunks) {
    const search = chunk.indexOf.bind(chunk);
    chunk.indexOf = (byte: string | number | Uint8Array, from = 0) => {
      const found = search(byte, Number(from));
      searched += (found === -1 ? chunk.length : found + 1) - Number(from);
      return found;
    };
  }
  return () => searched;
}

test('an empty line ends a block', () => {
  feedEveryWay('data: a\n\ndata: b\ndata: c\n\n', [
    plainBlock('data: a\n\n'),
    plainBlock('data: b\ndata: c\n\n'),
  ]);
});

test('no bytes are no blocks', () => {
  feedEveryWay('', []);
});

test('lines end with LF, CR LF or CR, also mixed', () => {
  feedEveryWay('a\r\n\r\nb\r\rc\n\r\nd\r\n\re\r\n\n', [
    plainBlock('a\r\n\r\n'),
    plainBlock('b\r\r'),
    plainBlock('c\n\r\n'),
    plainBlock('d\r\n\r'),
    plainBlock('e\r\n\n'),
  ]);
});

test('further empty lines stand at the front of the next block', () => {
  feedEveryWay('\n\na\n\n\r\n\r\rb\n\n\n', [
    plainBlock('\n\na\n\n'),
    plainBlock('\r\n\r\rb\n\n'),
    plainBlock('\n'),
  ]);
});

test('a comment is a block', () => {
  feedEveryWay(': ping\n\n:\r\n\r\n', [plainBlock(': ping\n\n'), plainBlock(':\r\n\r\n')]);
});

test('a block that the stream breaks off is not complete', () => {
  for (const rest of ['d', 'data: b', 'data: b\n', 'data: b\r\n', 'data: b\r', '\n\ndata: b']) {
    feedEveryWay(`data: a\n\n${rest}`, [plainBlock('data: a\n\n'), plainBlock(rest, false)]);
  }
});

test('line ends alone at the end of the stream are complete', () => {
  feedEveryWay('\n', [plainBlock('\n')]);
  feedEveryWay('a\r\r\r\r\n', [plainBlock('a\r\r'), plainBlock('\r\r\n')]);
});

test('a character of several bytes may be cut anywhere', () => {
  feedEveryWay('data: ä € 😀 \u2028 \u0085\n\ndata: 😀\n\n', [
    plainBlock('data: ä € 😀 \u2028 \u0085\n\n'),
    plainBlock('data: 😀\n\n'),
  ]);
});

test('a block is given out at its empty line, even if its CR is the last byte of a chunk', () => {
  const { feed, texts, held, splitter } = createProbe();
  feed('data: a\r\n\r');
  expect(texts()).toEqual(['data: a\r\n\r']);
  feed('\ndata: b\r');
  expect(texts().length).toBe(1);
  feed('\n\r');
  expect(texts()).toEqual(['data: a\r\n\r', '\ndata: b\r\n\r']);
  feed('\n');
  expect(held()).toEqual(['\n']);
  splitter.end();
  expect(texts().at(-1)).toBe('\n');
});

test('an empty chunk does not part a CR from its LF', () => {
  const { feed, texts, held } = createProbe();
  feed('data: a\r');
  feed('');
  feed('\n');
  expect(texts()).toEqual([]);
  expect(held()).toEqual(['data: a\r\n']);
});

test('a block has the time of the read that brought its last byte', () => {
  const { blocks, feed, splitter } = createProbe();
  feed('a', 1);
  feed('\n\nb\n\nc', 2);
  feed('\n', 3);
  feed('\nd', 4);
  splitter.end();
  expect(blocks.map(({ payload, at }) => [payload.toString(), at])).toEqual([
    ['a\n\n', 2],
    ['b\n\n', 2],
    ['c\n\n', 4],
    ['d', 4],
  ]);
});

test('payloads, joined, are the bytes that came in', () => {
  const input = fc
    .array(fc.oneof(anyBytes, fc.uint8Array({ maxLength: 20 })), { maxLength: 6 })
    .map((list) => Buffer.concat(list))
    .chain((bytes) => fc.tuple(fc.constant(bytes), cutsOf(bytes.length)));
  fc.assert(
    fc.property(input, ([bytes, cuts]) => {
      const blocks = splitBlocks(cutAt(bytes, cuts));
      expect(blocks.map(({ payload }) => payload).join('')).toBe(bytes.toString('latin1'));
    }),
    { numRuns: scale(300) },
  );
});

test('blocks are what the grammar of event streams says', () => {
  const end = String.raw`(?:\r\n|\n|\r(?!\n))`;
  const grammar = new RegExp(`${end}*(?:[^\\r\\n]+${end})+${end}`, 'g');
  fc.assert(
    fc.property(anyBytes, (bytes) => {
      const whole = bytes.toString('latin1').match(grammar) ?? [];
      const blocks = splitBlocks([bytes]);
      expect(blocks.slice(0, whole.length).map(({ payload }) => payload)).toEqual([...whole]);
      expect(blocks.length - whole.length).toBe(whole.join('').length < bytes.length ? 1 : 0);
    }),
    { numRuns: scale(500) },
  );
});

test('the cut of the bytes shows nowhere but between the CR and LF of an empty line', () => {
  fc.assert(
    fc.property(cutBytes, ([bytes, cuts]) => {
      const blocks = splitBlocks(cutAt(bytes, cuts));
      const whole = splitBlocks([bytes]);
      expect(mendCuts(blocks)).toEqual(whole);
      if (!splitsCrLf(bytes, cuts)) expect(blocks).toEqual(whole);
    }),
    { numRuns: scale(1000) },
  );
});

test('the cut of the bytes does not show where the bound truncates', () => {
  fc.assert(
    fc.property(cutBytes, fc.nat({ max: 12 }), ([bytes, cuts], maxBytes) => {
      fc.pre(!splitsCrLf(bytes, cuts));
      expect(splitBlocks(cutAt(bytes, cuts), maxBytes)).toEqual(splitBlocks([bytes], maxBytes));
    }),
    { numRuns: scale(500) },
  );
});

test('a block at the bound is kept whole, one beyond it keeps its beginning and its exact size', () => {
  feedEveryWay(
    '12345\n\n123456\n\n1\n\n12345678',
    [
      plainBlock('12345\n\n'),
      { ...plainBlock('123456\n'), size: 8, truncated: true },
      plainBlock('1\n\n'),
      { ...plainBlock('1234567', false), size: 8, truncated: true },
    ],
    7,
  );
});

test('a block that outgrew the bound is told whole before it is given out, whatever the cut', () => {
  fc.assert(
    fc.property(cutBytes, fc.nat({ max: 12 }), ([bytes, cuts], maxBytes) => {
      let told: Buffer[] = [];
      const whole: Buffer[] = [];
      const splitter = createSseSplitter({
        maxBytes,
        onBlock: ({ payload, size, truncated }) => {
          const all = Buffer.concat(told);
          told = [];
          expect(truncated).toBe(size > maxBytes);
          expect(all.length).toBe(truncated ? size : 0);
          if (truncated) expect(payload.equals(all.subarray(0, maxBytes))).toBe(true);
          whole.push(truncated ? all : payload);
        },
        onOversize: (piece) => told.push(Buffer.from(piece)),
        onSkip: () => expect.fail('nothing was lost'),
      });
      for (const chunk of cutAt(bytes, cuts)) splitter.feed(Buffer.from(chunk), 0);
      splitter.end();
      expect(Buffer.concat(whole).equals(bytes)).toBe(true);
    }),
    { numRuns: scale(500) },
  );
});

test('what was kept of an oversize block is told first, then each piece as it comes', () => {
  const { oversize, feed } = createProbe(8);
  const told = () => oversize.splice(0).map((bytes) => bytes.toString());
  feed('data: ');
  feed('1');
  expect(told()).toEqual([]);
  feed('234');
  expect(told()).toEqual(['data: 12', '34']);
  feed('5\n');
  expect(told()).toEqual(['5\n']);
  feed('\ndata: too long\n\n');
  expect(told()).toEqual(['\n', 'data: to', 'o long\n\n']);
});

test('no more is held than the bound', () => {
  const { feed, held, blocks } = createProbe(5);
  for (let i = 0; i < 100; i += 1) feed('abc');
  expect(held().join('')).toBe('abcab');
  feed('\n\n');
  expect(blocks.map(({ payload, size }) => [payload.toString(), size])).toEqual([['abcab', 302]]);
  for (let i = 0; i < 100; i += 1) feed('\n');
  expect(held().join('')).toBe('\n'.repeat(5));
});

test('a small piece is held as a copy, a large one by reference', () => {
  const { splitter } = createProbe();
  const large = Buffer.alloc(64 * KB, 0x78);
  splitter.feed(large, 0);
  splitter.feed(large.subarray(0, 100), 0);
  expect(splitter.held().map(({ length, buffer }) => [length, buffer === large.buffer])).toEqual([
    [64 * KB, true],
    [100, false],
  ]);
});

test('an unfinished block is held as pieces, and those that were looked at stay as they are', () => {
  const { feed, held, texts, splitter } = createProbe();
  expect(held()).toEqual([]);
  feed('data: ');
  feed('a');
  expect(held()).toEqual(['data: a']);
  feed('');
  feed('b\n');
  expect(held()).toEqual(['data: a', 'b\n']);
  feed('\nid');
  expect(held()).toEqual(['id']);
  splitter.end();
  expect(held()).toEqual([]);
  splitter.end();
  expect(texts()).toEqual(['data: ab\n\n', 'id']);
});

test('a block within one chunk is not copied', () => {
  const { blocks, splitter } = createProbe();
  const chunk = Buffer.from('data: a\n\ndata: b\n\n');
  splitter.feed(chunk, 0);
  expect(blocks.map(({ payload }) => payload.buffer === chunk.buffer)).toEqual([true, true]);
});

test('no byte of a long data line is searched twice for the same line end, and each chunk is held once', () => {
  const { blocks, splitter } = createProbe(16 * MB);
  const count = 128;
  const chunks = Array.from({ length: count }, (_, i) => {
    const chunk = Buffer.alloc(64 * KB, 0x78);
    if (i === 0) chunk.write('data: ');
    if (i === count - 1) chunk.write('\n\n', chunk.length - 2);
    return chunk;
  });
  const searched = countSearched(chunks);
  for (const [i, chunk] of chunks.entries()) {
    expect(splitter.held().length).toBe(i);
    splitter.feed(chunk, 0);
  }
  expect(splitter.held()).toEqual([]);
  expect(searched()).toBe(2 * count * 64 * KB);
  expect(blocks.map(({ size, truncated, isComplete }) => [size, truncated, isComplete])).toEqual([
    [8 * MB, false, true],
  ]);
  const [{ payload } = { payload: Buffer.alloc(0) }] = blocks;
  expect(payload.equals(Buffer.concat(chunks))).toBe(true);
  expect(readSse(payload).data?.length).toBe(8 * MB - 'data: \n\n'.length);
});

test('no byte is searched twice where every line ends the same way', () => {
  for (const lineEnd of ['\n', '\r', '\r\n']) {
    const chunk = Buffer.from(`:${lineEnd}`.repeat(10_000));
    const searched = countSearched([chunk]);
    createProbe().splitter.feed(chunk, 0);
    expect(searched()).toBeLessThanOrEqual(2 * chunk.length);
  }
});

test('a gap gives the block in progress out and skips to the end of the next', () => {
  const { blocks, feed, splitter, skippedBytes } = createProbe();
  feed('data: a\n\ndata: b', 7);
  splitter.gap();
  expect(splitter.held()).toEqual([]);
  feed('xx\n', 8);
  feed('\ndata: c\n\n', 9);
  expect(blocks).toEqual([
    { at: 7, payload: Buffer.from('data: a\n\n'), size: 9, truncated: false, isComplete: true },
    { at: 7, payload: Buffer.from('data: b'), size: 7, truncated: true, isComplete: false },
    { at: 9, payload: Buffer.from('data: c\n\n'), size: 9, truncated: false, isComplete: true },
  ]);
  expect(skippedBytes()).toBe('xx\n\n'.length);
});

test('a gap between blocks gives nothing out, but the next block may lack its beginning', () => {
  const { texts, feed, splitter, skippedBytes } = createProbe();
  feed('data: a\n\n');
  splitter.gap();
  feed('data: b\r\n\r\ndata: c\r\n\r\n');
  expect(texts()).toEqual(['data: a\n\n', 'data: c\r\n\r\n']);
  expect(skippedBytes()).toBe('data: b\r\n\r\n'.length);
});

test('a line end after a gap ends a line of which nothing is known', () => {
  for (const lineEnd of ['\n', '\r\n', '\r']) {
    const { texts, feed, splitter } = createProbe();
    feed('data: a\r');
    splitter.gap();
    feed(`${lineEnd}data: rest${lineEnd}${lineEnd}data: c${lineEnd}${lineEnd}`);
    expect(texts()).toEqual(['data: a\r', `data: c${lineEnd}${lineEnd}`]);
  }
});

test('an LF after a gap does not belong to the CR before it', () => {
  const { texts, feed, splitter, skippedBytes } = createProbe();
  feed('data: a\r');
  splitter.gap();
  feed('\n\ndata: c\n\n');
  expect(texts()).toEqual(['data: a\r', 'data: c\n\n']);
  expect(skippedBytes()).toBe(2);
});

test('empty lines after what was skipped stand at the front of the next block', () => {
  const { texts, feed, splitter } = createProbe();
  splitter.gap();
  feed('data: b\n\n\n\ndata: c\n\n');
  expect(texts()).toEqual(['\n\ndata: c\n\n']);
});

test('an end while bytes are skipped gives nothing out', () => {
  const { texts, feed, splitter, skippedBytes } = createProbe();
  splitter.gap();
  feed('data: a\n');
  splitter.gap();
  feed('data: b\n');
  splitter.end();
  expect(texts()).toEqual([]);
  expect(skippedBytes()).toBe(16);
});

test('every byte around gaps is either in a block or counted as skipped', () => {
  const pieces = fc.array(fc.constantFrom('a', 'data: b\n', '\n', '\r\n', '\r', 'GAP'));
  fc.assert(
    fc.property(pieces, fc.nat({ max: 20 }), (script, maxBytes) => {
      const { blocks, feed, splitter, skippedBytes } = createProbe(maxBytes);
      for (const step of script) {
        if (step === 'GAP') splitter.gap();
        else feed(step);
      }
      splitter.end();
      const inBlocks = blocks.reduce((sum, { size }) => sum + size, 0);
      expect(inBlocks + skippedBytes()).toBe(script.filter((step) => step !== 'GAP').join('').length);
    }),
    { numRuns: scale(300) },
  );
});

test('a message has its event, its id and its data', () => {
  expect(read('event: message\nid: 7\ndata: {"jsonrpc":"2.0"}\n\n')).toEqual({
    ...NOTHING,
    event: 'message',
    id: '7',
    data: '{"jsonrpc":"2.0"}',
  });
});

test('an endpoint event is read, and is no message', () => {
  const block = Buffer.from('event: endpoint\r\ndata: /messages?sessionId=1\r\n\r\n');
  const fields = readSse(block);
  expect(fields.event).toBe('endpoint');
  expect(fields.data?.toString()).toBe('/messages?sessionId=1');
  expect(isMessageEvent(fields)).toBe(false);
});

test('a priming event has empty data and is no message', () => {
  const fields = readSse(Buffer.from('id: 1\nretry: 500\ndata: \n\n'));
  expect(fields).toEqual({ ...NOTHING, id: '1', retry: '500', data: Buffer.alloc(0) });
  expect(isMessageEvent(fields)).toBe(false);
});

test('a retry alone is read', () => {
  expect(read('retry: 3000\n\n')).toEqual({ ...NOTHING, retry: '3000' });
});

test('a retry is the text as it was sent, the last one of several', () => {
  expect(read('retry:007\n\n').retry).toBe('007');
  expect(read('retry: 99999999999999999999\n\n').retry).toBe('99999999999999999999');
  expect(read('retry:  5s \n\n').retry).toBe(' 5s ');
  expect(read('retry\n\n').retry).toBe('');
  expect(read('retry: 1\nretry: 2\n\n').retry).toBe('2');
});

test('an id or an event without data is read', () => {
  expect(read('id: 5\n\n')).toEqual({ ...NOTHING, id: '5' });
  expect(read('event: ping\n\n')).toEqual({ ...NOTHING, event: 'ping' });
});

test('an empty id is not the same as none, an empty event type is', () => {
  expect(read('id\n\n').id).toBe('');
  expect(read('id:\n\n').id).toBe('');
  expect(read('event:\n\n').event).toBe(null);
  expect(read('event: a\nevent\n\n').event).toBe(null);
});

test('an id with a NUL does not count', () => {
  expect(read('id: 1\0\ndata: x\n\n')).toEqual({ ...NOTHING, data: 'x' });
  expect(read('id: 1\nid: 2\0\n\n').id).toBe('1');
});

test('the last of several ids and events counts', () => {
  expect(read('id: 1\nevent: a\nid: 2\nevent: b\n\n')).toEqual({ ...NOTHING, id: '2', event: 'b' });
});

test('a comment is seen, beside fields and alone', () => {
  expect(read(': ping\n\n')).toEqual({ ...NOTHING, hasComment: true });
  expect(read(':\n\n').hasComment).toBe(true);
  expect(read('data: : no comment\n\n').hasComment).toBe(false);
  expect(read('data: x\n:data: y\n\n')).toEqual({ ...NOTHING, data: 'x', hasComment: true });
});

test('unknown fields, and names in other letters or with spaces, say nothing', () => {
  expect(read('DATA: x\n data: x\ndata : x\ndataset: x\ndatas\nevents: x\nid x\nx\n\n')).toEqual(NOTHING);
});

test('a block that broke off is read up to where it broke off', () => {
  expect(read('id: 1\ndata: {"a"')).toEqual({ ...NOTHING, id: '1', data: '{"a"' });
  expect(read('data: x\nid: 1')).toEqual({ ...NOTHING, id: '1', data: 'x' });
  expect(read('data: x\r')).toEqual({ ...NOTHING, data: 'x' });
  expect(read('dat')).toEqual(NOTHING);
  expect(read('')).toEqual(NOTHING);
});

test('empty lines in front do not hide a block, and what stands after its own is not read', () => {
  expect(read('\n\r\n\rdata: x\n\ndata: y\nid: 1\n\n')).toEqual({ ...NOTHING, data: 'x' });
});

test('a byte order mark at the beginning is skipped, elsewhere it is text', () => {
  expect(read('\uFEFFdata: x\n\n').data).toBe('x');
  expect(read('\uFEFF\ndata: x\n\n').data).toBe('x');
  expect(read('data: \uFEFFx\nid: \uFEFF1\n\n')).toEqual({ ...NOTHING, data: '\uFEFFx', id: '\uFEFF1' });
  expect(read('a: b\n\uFEFFdata: x\n\n').data).toBe(null);
  expect(read('\u00ef\u00bb\u00bfid: 1\n\n').id).toBe(null);
});

test('the examples of the WHATWG specification read as it says', () => {
  const bytes = Buffer.from(
    ': test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n' +
      'data: YHOO\ndata: +2\ndata: 10\n\ndata\n\ndata\ndata\n\ndata:test\n\ndata: test\n\ndata:',
  );
  expect(splitBlocks([bytes]).map(({ payload }) => read(payload))).toEqual([
    { ...NOTHING, hasComment: true },
    { ...NOTHING, data: 'first event', id: '1' },
    { ...NOTHING, data: 'second event', id: '' },
    { ...NOTHING, data: ' third event' },
    { ...NOTHING, data: 'YHOO\n+2\n10' },
    { ...NOTHING, data: '' },
    { ...NOTHING, data: '\n' },
    { ...NOTHING, data: 'test' },
    { ...NOTHING, data: 'test' },
    { ...NOTHING, data: '' },
  ]);
});

test('one data line is given as the bytes of the block, valid UTF-8 or not', () => {
  const noise = Buffer.from([0x00, 0xff, 0xfe, 0xc3, 0x28, 0x80, 0xef, 0xbb, 0xbf, 0x20]);
  const block = Buffer.concat([Buffer.from('id: 1\ndata: '), noise, Buffer.from('\n\n')]);
  const { data } = readSse(block);
  expect(data).toEqual(noise);
  expect(data?.buffer).toBe(block.buffer);
  expect(data?.byteOffset).toBe(block.byteOffset + 12);
});

test('several data lines are joined by LF, byte by byte', () => {
  const lineEnd = fc.constantFrom('\n', '\r', '\r\n');
  const line = fc.uint8Array({ maxLength: 12 }).map((bytes) => bytes.filter((b) => b !== 0x0a && b !== 0x0d));
  fc.assert(
    fc.property(fc.array(line, { minLength: 1 }), lineEnd, (lines, end) => {
      const parts = lines.flatMap((bytes) => [Buffer.from('data: '), Buffer.from(bytes), Buffer.from(end)]);
      const { data } = readSse(Buffer.concat([...parts, Buffer.from(end)]));
      const expected = lines.flatMap((bytes, i) => (i === 0 ? [...bytes] : [0x0a, ...bytes]));
      expect(data).toEqual(Buffer.from(expected));
    }),
  );
});

test('only one space before a value is left out, and no other white space', () => {
  expect(read('data:  x \nid:\t1\nevent: \n\n')).toEqual({ ...NOTHING, data: ' x ', id: '\t1' });
});

test('a message is what has data and no other event type', () => {
  const isMessage = (text: string) => isMessageEvent(readSse(Buffer.from(text)));
  expect(isMessage('data: x\n\n')).toBe(true);
  expect(isMessage('event:\ndata: x\n\n')).toBe(true);
  expect(isMessage('event: message\ndata: x\n\n')).toBe(true);
  expect(isMessage('event: Message\ndata: x\n\n')).toBe(false);
  expect(isMessage('event: message\n\n')).toBe(false);
  expect(isMessage('data:\n\n')).toBe(false);
  expect(isMessage(': x\n\n')).toBe(false);
  expect(isMessageEvent({ ...NOTHING, event: '', data: Buffer.from('x') })).toBe(true);
});

test('events, ids, data, retries and comments are those that a client reads from the whole stream', () => {
  const text = fc.stringMatching(/^[ a-c:0äß😀\uFEFF\0]{0,6}$/u);
  const line = fc.oneof(
    fc
      .tuple(fc.constantFrom('data', 'data', 'id', 'event', 'foo', ''), fc.constantFrom(':', ': '), text)
      .map((parts) => parts.join('')),
    fc.nat().map((ms) => `retry: ${ms}`),
    fc.constantFrom('data', 'id', 'event'),
  );
  const block = fc.array(line, { minLength: 1, maxLength: 6 }).map((lines) => [...lines, '']);
  const stream = fc
    .tuple(fc.array(block, { maxLength: 6 }), fc.constantFrom('\n', '\r', '\r\n'))
    .map(([blocks, end]) => Buffer.from(blocks.flatMap((lines) => lines.map((l) => l + end)).join('')))
    .chain((bytes) => fc.tuple(fc.constant(bytes), cutsOf(bytes.length)));
  fc.assert(
    fc.property(stream, ([bytes, cuts]) => {
      const { blocks, splitter } = createProbe();
      for (const chunk of cutAt(bytes, cuts)) splitter.feed(Buffer.from(chunk), 0);
      splitter.end();
      const fields = blocks.map(({ payload }) => readSse(payload));
      const events = fields
        .filter(({ data }) => data !== null)
        .map(({ event, id, data }) => ({ event, id, data: data?.toString() }));
      const client = readAsClient(bytes.toString());
      expect(events).toEqual(client.events);
      expect(fields.some(({ hasComment }) => hasComment)).toBe(client.hasComment);
      const retries = fields.flatMap(({ retry }) => (retry === null ? [] : [Number(retry)]));
      expect(retries.at(-1)).toBe(client.retry);
    }),
    { numRuns: scale(500) },
  );
});

function readAsClient(text: string) {
  const client = {
    events: [] as { event: string | null; id: string | null; data: string }[],
    hasComment: false,
    retry: undefined as number | undefined,
  };
  const parser = createParser({
    onEvent: ({ event = null, id = null, data }) => client.events.push({ event, id, data }),
    onComment: () => {
      client.hasComment = true;
    },
    onRetry: (ms) => {
      client.retry = ms;
    },
  });
  parser.feed(text);
  // It waits for an LF after a last CR.
  parser.feed('\n');
  return client;
}

test('a block of very many lines is read, whatever ends them', () => {
  for (const lineEnd of ['\n', '\r', '\r\n']) {
    const lines = `:${lineEnd}`.repeat(100_000) + `data:x${lineEnd}`.repeat(100_000);
    const { data, hasComment } = readSse(Buffer.from(`${lines}id: 1${lineEnd}${lineEnd}`));
    expect(hasComment).toBe(true);
    expect(data?.length).toBe(2 * 100_000 - 1);
  }
});
