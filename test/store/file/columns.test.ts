import { expect, test } from 'vitest';
import type { FramePart, HttpChannel, HttpMark, LineEnd } from '../../../src/protocol/wire/frame.ts';
import { clientIn, flagsOf, formOf } from '../../../src/store/file/columns.ts';
import { frameOf, httpFrameOf } from '../../support/messages.ts';

/** Every subset of some things. */
function subsets<T>(things: readonly T[]): T[][] {
  const sets: T[][] = [[]];
  for (const thing of things) sets.push(...sets.map((set) => [...set, thing]));
  return sets;
}

test('an ordinary frame has no flags', () => {
  expect(flagsOf(frameOf('stdout', 'x'))).toBeNull();
  expect(flagsOf(httpFrameOf('request', 'x'))).toBeNull();
  expect(flagsOf(httpFrameOf('response', 'x'))).toBeNull();
  expect(flagsOf(httpFrameOf('sse', 'x'))).toBeNull();
});

test('every form of a line is told by its flags, and found again', () => {
  const lineEnds: LineEnd[] = ['', '\n', '\r\n'];
  const parts: FramePart[] = ['line', 'lsp-header', 'lsp-body'];
  const seen = new Set<string | null>();
  for (const lineEnd of lineEnds) {
    for (const part of parts) {
      for (const truncated of [true, false]) {
        const flags = flagsOf({ ...frameOf('stdin', 'x', { part, truncated }), lineEnd });
        expect(formOf(flags, 'stdin')).toEqual({ lineEnd, part, truncated, marks: [] });
        seen.add(flags);
      }
    }
  }
  expect(seen.size).toBe(18);
});

test('every form of a body or event is told by its flags, and found again', () => {
  const forms: [HttpChannel, FramePart][] = [
    ['request', 'body'],
    ['request', 'foreign-body'],
    ['response', 'body'],
    ['response', 'foreign-body'],
    ['sse', 'event'],
    ['sse', 'block'],
  ];
  for (const [channel, part] of forms) {
    for (const marks of subsets<HttpMark>(['undecoded', 'wrong-type', 'incomplete', 'replayed'])) {
      for (const truncated of [true, false]) {
        const flags = flagsOf(httpFrameOf(channel, 'x', { part, truncated, marks }));
        expect(formOf(flags, channel)).toEqual({ lineEnd: '', part, truncated, marks });
      }
    }
  }
});

test('a client is told by its flag, whatever else there is to tell, and the first one has none', () => {
  for (const [flags, client] of [
    [flagsOf({ ...frameOf('stdin', 'x'), client: 2 }), 2],
    [flagsOf({ ...frameOf('stdin', 'x', { truncated: true }), lineEnd: '', client: 12 }), 12],
    [flagsOf({ ...httpFrameOf('sse', 'x'), client: 3 }), 3],
    [flagsOf(frameOf('stdin', 'x')), 1],
  ] as const) {
    expect(clientIn(flags)).toBe(client);
    expect(formOf(flags, 'stdin').client).toBe(client === 1 ? undefined : client);
  }
});
