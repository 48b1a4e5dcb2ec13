import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Frame } from '../../../src/protocol/wire/frame.ts';
import { createLineSplitter, oneLine } from '../../../src/protocol/wire/lines.ts';
import { cutAt, cutsOf, feedEveryWay, plainLine, splitLines } from '../../support/lines.ts';
import { scale } from '../../support/scale.ts';

const MB = 1024 * 1024;

/** A splitter whose lines, skipped bytes and calls can be looked at one by one. */
function createProbe(maxBytes = MB) {
  const lines: Frame[] = [];
  const skipped: number[] = [];
  const splitter = createLineSplitter({
    channel: 'stdout',
    maxBytes,
    onFrame: (frame) => lines.push(frame),
    onSkip: (bytes) => skipped.push(bytes),
  });
  const feed = (text: string, at = 0) => splitter.feed(Buffer.from(text), at);
  const texts = () => lines.map(({ payload }) => payload.toString());
  return { lines, skipped, splitter, feed, texts };
}

test('each newline ends a line', () => {
  feedEveryWay('{"a":1}\n{"b":2}\n', [plainLine('{"a":1}'), plainLine('{"b":2}')]);
});

test('no bytes are no lines', () => {
  feedEveryWay('', []);
});

test('a carriage return before the newline belongs to the line end', () => {
  feedEveryWay('one\r\ntwo\n\r\n', [plainLine('one', '\r\n'), plainLine('two'), plainLine('', '\r\n')]);
});

test('only the last of several carriage returns belongs to the line end', () => {
  feedEveryWay('one\r\r\n', [plainLine('one\r', '\r\n')]);
});

test('a lone carriage return is a part of the line', () => {
  feedEveryWay('a\rb\n\rc\nd\r', [plainLine('a\rb'), plainLine('\rc'), plainLine('d\r', '')]);
});

test('a byte order mark stays in the line', () => {
  feedEveryWay('\uFEFF{}\n{}\n', [plainLine('\uFEFF{}'), plainLine('{}')]);
});

test('blank lines are lines', () => {
  feedEveryWay('\n\n \n', [plainLine(''), plainLine(''), plainLine(' ')]);
});

test('what stands after the last newline is a line with an empty line end', () => {
  feedEveryWay('one\ntwo', [plainLine('one'), plainLine('two', '')]);
});

test('NUL bytes and invalid UTF-8 pass as they are', () => {
  const noise = Buffer.from([0x00, 0x41, 0x00, 0xff, 0xfe, 0xc3, 0x28, 0x80]);
  feedEveryWay(Buffer.concat([noise, Buffer.from('\n'), noise]), [plainLine(noise), plainLine(noise, '')]);
});

test('a character of several bytes may be cut anywhere', () => {
  const text = '{"text":"ä € 😀 \u2028"}';
  feedEveryWay(`${text}\n${text}\r\n`, [plainLine(text), plainLine(text, '\r\n')]);
});

test('a line at the bound is kept whole', () => {
  feedEveryWay('1234567\n1234567', [plainLine('1234567'), plainLine('1234567', '')], 7);
});

test('a line beyond the bound keeps its beginning and its exact size', () => {
  const cut = { ...plainLine('1234567'), size: 11, truncated: true };
  feedEveryWay('12345678901\nnext\n12345678901', [cut, plainLine('next'), { ...cut, lineEnd: '' }], 7);
});

test('the size of a truncated line counts every byte that is not in its line end', () => {
  for (const line of splitLines([Buffer.from('12345678\r\n1234567\r\n')], 4)) {
    expect(line.truncated).toBe(true);
    expect(line.payload).toBe('1234');
  }
  const whole = splitLines([Buffer.from('12345678\r\n1234567\r\n')], 4);
  expect(whole.reduce((sum, { size, lineEnd }) => sum + size + lineEnd.length, 0)).toBe(19);
});

test('a carriage return at the bound of a truncated line is no line end', () => {
  feedEveryWay('123\r5678\n', [{ ...plainLine('123\r'), size: 8, truncated: true }], 4);
});

test('a bound of nothing keeps no byte, but all sizes', () => {
  feedEveryWay('abc\n\n', [{ ...plainLine(''), size: 3, truncated: true }, plainLine('')], 0);
});

test('a Content-Length block at the start of the stream frames by length', () => {
  feedEveryWay('Content-Length: 9\r\n\r\n{"id":1}\n', [
    plainLine('Content-Length: 9', '\r\n', 'lsp-header'),
    plainLine('', '\r\n', 'lsp-header'),
    plainLine('{"id":1}\n', '', 'lsp-body'),
  ]);
});

test('several Content-Length blocks follow one another without newlines', () => {
  feedEveryWay('content-length:2\n\n{}Content-Length: 5\n\n[1,2]CONTENT-LENGTH: 4 \n\nnull', [
    plainLine('content-length:2', '\n', 'lsp-header'),
    plainLine('', '\n', 'lsp-header'),
    plainLine('{}', '', 'lsp-body'),
    plainLine('Content-Length: 5', '\n', 'lsp-header'),
    plainLine('', '\n', 'lsp-header'),
    plainLine('[1,2]', '', 'lsp-body'),
    plainLine('CONTENT-LENGTH: 4 ', '\n', 'lsp-header'),
    plainLine('', '\n', 'lsp-header'),
    plainLine('null', '', 'lsp-body'),
  ]);
});

test('a Content-Length block may have further header fields', () => {
  feedEveryWay('Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}', [
    plainLine('Content-Length: 2', '\r\n', 'lsp-header'),
    plainLine('Content-Type: application/vscode-jsonrpc; charset=utf-8', '\r\n', 'lsp-header'),
    plainLine('', '\r\n', 'lsp-header'),
    plainLine('{}', '', 'lsp-body'),
  ]);
});

test('blank lines before the first Content-Length header do not hide it', () => {
  feedEveryWay('\r\n\nContent-Length: 2\r\n\r\n{}', [
    plainLine('', '\r\n'),
    plainLine(''),
    plainLine('Content-Length: 2', '\r\n', 'lsp-header'),
    plainLine('', '\r\n', 'lsp-header'),
    plainLine('{}', '', 'lsp-body'),
  ]);
});

test('an empty Content-Length body does not end the framing', () => {
  feedEveryWay('Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n{}', [
    plainLine('Content-Length: 0', '\r\n', 'lsp-header'),
    plainLine('', '\r\n', 'lsp-header'),
    plainLine('Content-Length: 2', '\r\n', 'lsp-header'),
    plainLine('', '\r\n', 'lsp-header'),
    plainLine('{}', '', 'lsp-body'),
  ]);
});

test('a body longer than the bound is framed by its length all the same', () => {
  feedEveryWay(
    `Content-Length: 100\n\n${'x'.repeat(100)}Content-Length: 2\n\n{}`,
    [
      plainLine('Content-Length: 100', '\n', 'lsp-header'),
      plainLine('', '\n', 'lsp-header'),
      { ...plainLine('x'.repeat(70), '', 'lsp-body'), size: 100, truncated: true },
      plainLine('Content-Length: 2', '\n', 'lsp-header'),
      plainLine('', '\n', 'lsp-header'),
      plainLine('{}', '', 'lsp-body'),
    ],
    70,
  );
});

test('a body that the stream breaks off is still a body', () => {
  feedEveryWay('Content-Length: 10\n\n{"id"', [
    plainLine('Content-Length: 10', '\n', 'lsp-header'),
    plainLine('', '\n', 'lsp-header'),
    plainLine('{"id"', '', 'lsp-body'),
  ]);
});

test('a Content-Length line after the first line is a line like any other', () => {
  feedEveryWay('{}\nContent-Length: 2\n\n{}\n', [
    plainLine('{}'),
    plainLine('Content-Length: 2'),
    plainLine(''),
    plainLine('{}'),
  ]);
});

test('a normal line breaks a Content-Length block off, and with it the framing', () => {
  feedEveryWay('Content-Length: 2\n{"id":1}\n{"id":2}\nContent-Length: 2\n\n{}', [
    plainLine('Content-Length: 2', '\n', 'lsp-header'),
    plainLine('{"id":1}'),
    plainLine('{"id":2}'),
    plainLine('Content-Length: 2'),
    plainLine(''),
    plainLine('{}', ''),
  ]);
});

test('a normal line after a body ends the framing', () => {
  feedEveryWay('Content-Length: 2\n\n{}{"id":1}\nContent-Length: 2\n', [
    plainLine('Content-Length: 2', '\n', 'lsp-header'),
    plainLine('', '\n', 'lsp-header'),
    plainLine('{}', '', 'lsp-body'),
    plainLine('{"id":1}'),
    plainLine('Content-Length: 2'),
  ]);
});

test('what only looks like a Content-Length header is a line', () => {
  for (const text of ['Content-Length: x', 'Content-Length: -2', 'Content-Length 2', ' Content-Length: 2']) {
    feedEveryWay(`${text}\n\n{}`, [plainLine(text), plainLine(''), plainLine('{}', '')]);
  }
});

test('a line has the time of the read that brought its last byte', () => {
  const { lines, feed, splitter } = createProbe();
  feed('a', 1);
  feed('b\nc\nd', 2);
  feed('e\n', 3);
  feed('f', 4);
  splitter.end();
  expect(lines.map(({ payload, at }) => [payload.toString(), at])).toEqual([
    ['ab', 2],
    ['c', 2],
    ['de', 3],
    ['f', 4],
  ]);
});

test('an unfinished line is held as pieces, and those that were looked at stay as they are', () => {
  const { feed, splitter, texts } = createProbe();
  expect(splitter.held()).toEqual([]);
  feed('{"');
  feed('a"');
  expect(splitter.held().map(String)).toEqual(['{"a"']);
  feed('');
  feed(':1');
  expect(splitter.held().map((bytes) => Buffer.from(bytes).toString())).toEqual(['{"a"', ':1']);
  expect(texts()).toEqual([]);
  feed('}\n[');
  expect(splitter.held().map((bytes) => Buffer.from(bytes).toString())).toEqual(['[']);
  feed(']\n');
  expect(splitter.held()).toEqual([]);
  expect(texts()).toEqual(['{"a":1}', '[]']);
});

test('no more is held than the bound', () => {
  const { feed, splitter } = createProbe(5);
  for (let i = 0; i < 100; i += 1) feed('abc');
  expect(Buffer.concat(splitter.held()).toString()).toBe('abcab');
});

test('nothing is held after the end', () => {
  const { feed, splitter, texts } = createProbe();
  feed('abc');
  splitter.end();
  expect(splitter.held()).toEqual([]);
  splitter.end();
  expect(texts()).toEqual(['abc']);
});

test('a gap gives the line in progress out as truncated', () => {
  const { lines, feed, splitter } = createProbe();
  feed('whole\nbegi', 7);
  splitter.gap(false);
  feed('next\n', 8);
  expect(lines.map(({ payload, truncated, at }) => [payload.toString(), truncated, at])).toEqual([
    ['whole', false, 7],
    ['begi', true, 7],
    ['next', false, 8],
  ]);
});

test('a gap between lines gives nothing out', () => {
  const { feed, splitter, texts, skipped } = createProbe();
  splitter.gap(false);
  feed('one\n');
  splitter.gap(false);
  feed('two\n');
  expect(texts()).toEqual(['one', 'two']);
  expect(skipped).toEqual([]);
});

test('a gap that ends inside a line skips the rest of that line and counts it', () => {
  const { feed, splitter, texts, skipped } = createProbe();
  feed('one\ntw');
  splitter.gap(true);
  feed('xx');
  feed('yyy\nfour\n');
  expect(texts()).toEqual(['one', 'tw', 'four']);
  expect(skipped.reduce((sum, bytes) => sum + bytes, 0)).toBe('xxyyy\n'.length);
});

test('every byte after a gap is either in a line or counted as skipped', () => {
  const pieces = fc.array(fc.constantFrom('a', 'bc\n', '\n', '\r\n', 'Content-Length: 3\n', 'GAP', 'gap'));
  fc.assert(
    fc.property(pieces, (script) => {
      const { lines, skipped, feed, splitter } = createProbe();
      for (const step of script) {
        if (step.toLowerCase() === 'gap') splitter.gap(step === 'GAP');
        else feed(step);
      }
      splitter.end();
      const inLines = lines.reduce((sum, { size, lineEnd }) => sum + size + lineEnd.length, 0);
      const fed = script.filter((step) => step.toLowerCase() !== 'gap').join('').length;
      expect(inLines + skipped.reduce((sum, bytes) => sum + bytes, 0)).toBe(fed);
    }),
  );
});

test('a gap inside a Content-Length body gives the body out as truncated', () => {
  const { lines, feed, splitter } = createProbe();
  feed('Content-Length: 9\n\n{"id"');
  splitter.gap(false);
  feed('{"id":2}\n');
  const last = lines.slice(-2).map(({ payload, part, truncated }) => [payload.toString(), part, truncated]);
  expect(last).toEqual([
    ['{"id"', 'lsp-body', true],
    ['{"id":2}', 'line', false],
  ]);
});

test('payloads and line ends, joined, are the bytes that came in', () => {
  const pieces = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc
      .constantFrom('\n', '\r\n', '\r', '{}', 'Content-Length: 3', 'X: y', '')
      .map((text) => Buffer.from(text)),
  );
  const input = fc
    .array(pieces, { maxLength: 12 })
    .map((list) => Buffer.concat(list))
    .chain((bytes) => fc.tuple(fc.constant(bytes), cutsOf(bytes.length)));
  fc.assert(
    fc.property(input, ([bytes, cuts]) => {
      const lines = splitLines(cutAt(bytes, cuts));
      const joined = lines.map(({ payload, lineEnd }) => payload + lineEnd).join('');
      expect(joined).toBe(bytes.toString('latin1'));
      expect(lines).toEqual(splitLines([bytes]));
    }),
    { numRuns: scale(500) },
  );
});

test('the cut of the bytes does not show where the bound truncates', () => {
  const input = fc
    .uint8Array({ maxLength: 60 })
    .map((bytes) => bytes.map((byte) => [0x0a, 0x0d, 0x61][byte % 3] ?? 0))
    .chain((bytes) => fc.tuple(fc.constant(bytes), cutsOf(bytes.length), fc.nat({ max: 8 })));
  fc.assert(
    fc.property(input, ([bytes, cuts, maxBytes]) => {
      expect(splitLines(cutAt(bytes, cuts), maxBytes)).toEqual(splitLines([bytes], maxBytes));
    }),
    { numRuns: scale(300) },
  );
});

test('no byte of a long line is searched twice, and each chunk is held once', () => {
  const { lines, splitter } = createProbe(64 * MB);
  const chunkSize = 64 * 1024;
  const count = 512;
  let searched = 0;
  const chunks = Array.from({ length: count }, () => {
    const chunk = Buffer.alloc(chunkSize, 0x78);
    const search = chunk.indexOf.bind(chunk);
    chunk.indexOf = (byte: string | number | Uint8Array, from = 0) => {
      searched += chunk.length - Number(from);
      return search(byte, Number(from));
    };
    return chunk;
  });
  for (const [i, chunk] of chunks.entries()) {
    splitter.feed(chunk, 0);
    expect(splitter.held().length).toBe(i + 1);
  }
  const held = splitter.held();
  expect(held.every((bytes, i) => bytes.buffer === chunks[i]?.buffer)).toBe(true);
  expect(searched).toBe(count * chunkSize);
  splitter.feed(Buffer.from('\n'), 0);
  expect(lines.map(({ size, truncated }) => [size, truncated])).toEqual([[count * chunkSize, false]]);
});

test('a line within one chunk is not copied', () => {
  const { lines, splitter } = createProbe();
  const chunk = Buffer.from('one\ntwo\n');
  splitter.feed(chunk, 0);
  expect(lines.every(({ payload }) => payload.buffer === chunk.buffer)).toBe(true);
});

test('a message becomes one line, whichever ends its lines have, and stays the same JSON', () => {
  const text = '{\r\n "a":\r"\\n",\n"b": [\n1]}';
  const line = oneLine(Buffer.from(text));
  expect(line.toString()).not.toMatch(/[\r\n]/);
  expect(line.length).toBe(text.length);
  expect(JSON.parse(line.toString())).toEqual({ a: '\n', b: [1] });
  const whole = Buffer.from('{"a":1}');
  expect(oneLine(whole)).toBe(whole);
});
