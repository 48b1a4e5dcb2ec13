import { expect, test } from 'vitest';
import type { Outline } from '../../../src/web/api.ts';
import { SessionOutline } from '../../../src/web/page/session/outline.ts';
import { listRows, placeOf, type RowChoice } from '../../../src/web/page/session/rows.ts';
import { idleGaps, makeScale, rangeText, readRange, zoomed } from '../../../src/web/page/session/scale.ts';

type Message = {
  seq: number;
  at?: number;
  from?: 'client' | 'server';
  kind?: string;
  method?: string;
  relation?: string;
  toSeq?: number;
  http?: number;
  outcome?: string;
};

/** A slice of an outline with these messages. */
function sliceOf(messages: readonly Message[]): Outline {
  const strings: string[] = [];
  const text = (value: string | undefined) => (value === undefined ? -1 : strings.push(value) - 1);
  const column = <T>(of: (message: Message) => T) => messages.map(of);
  return {
    ...{ strings, next: null, seq: column(({ seq }) => seq), at: column(({ seq, at = seq * 1000 }) => at) },
    ...{ n: column(() => 0), size: column(() => 10), toN: column(() => 0), marks: column(() => 0) },
    ...{ http: column(({ http = 0 }) => http), toSeq: column(({ toSeq = 0 }) => toSeq) },
    ...{ latency: column(() => -1), client: column(() => 1), id: column(() => -1), target: column(() => -1) },
    channel: column(({ from = 'client' }) => text(from === 'client' ? 'stdin' : 'stdout')),
    kind: column(({ kind = 'request' }) => text(kind === '' ? undefined : kind)),
    method: column(({ method }) => text(method)),
    relation: column(({ relation }) => text(relation)),
    outcome: column(({ outcome }) => text(outcome)),
    problem: column(() => -1),
    text: column(() => -1),
  };
}

function outlineOf(...slices: readonly (readonly Message[])[]): SessionOutline {
  const outline = new SessionOutline();
  for (const slice of slices) outline.append(sliceOf(slice));
  return outline;
}

const ALL: RowChoice = { isRaw: false, isOpen: () => true, range: null, isSelected: null, events: [] };

function shown(outline: SessionOutline, choice: Partial<RowChoice> = {}): string[] {
  const { index, level } = listRows(outline, { ...ALL, ...choice });
  return index.map(
    (i, row) => `${'.'.repeat((level[row] ?? 1) - 1)}${i < 0 ? 'event' : outline.number('seq', i)}`,
  );
}

const answer = (seq: number, toSeq: number, more: Partial<Message> = {}): Message => {
  return { seq, toSeq, from: 'server', kind: 'result', relation: 'reply', outcome: 'ok', ...more };
};

test('a call is one row, with what came up in it below, whatever slice it came in', () => {
  const messages: Message[] = [
    { seq: 1 },
    { seq: 2, from: 'server', kind: 'notification', relation: 'progress', toSeq: 1 },
    { seq: 3, from: 'server', method: 'sampling/createMessage' },
    { seq: 4, from: 'server', kind: 'notification', method: 'notifications/message' },
    answer(5, 3, { from: 'client' }),
    answer(6, 1),
    { seq: 7, from: 'server', kind: 'notification', method: 'notifications/message' },
  ];
  const expected = ['1', '.2', '.3', '.4', '7'];
  expect(shown(outlineOf(messages))).toEqual(expected);
  expect(shown(outlineOf(...messages.map((one) => [one])))).toEqual(expected);
  expect(shown(outlineOf(messages), { isOpen: () => false })).toEqual(['1', '7']);
  expect(shown(outlineOf(messages), { isRaw: true })).toEqual(['1', '2', '3', '4', '5', '6', '7']);
});

test('what the server asks belongs to no call where several are open, unless its HTTP exchange says so', () => {
  const open: Message[] = [
    { seq: 1, http: 1 },
    { seq: 2, http: 2 },
  ];
  const asked: Message = { seq: 3, from: 'server', method: 'roots/list' };
  expect(shown(outlineOf([...open, asked]))).toEqual(['1', '2', '3']);
  expect(shown(outlineOf([...open, { ...asked, http: 1 }]))).toEqual(['1', '.3', '2']);
});

test('several rounds are one call, which ends with the answer of the last', () => {
  const outline = outlineOf([
    { seq: 1 },
    answer(2, 1, { outcome: 'input-required' }),
    { seq: 3, relation: 'round', toSeq: 1 },
    answer(4, 3),
  ]);
  expect(shown(outline, { isOpen: () => false })).toEqual(['1']);
  expect(outline.endOf(0)).toBe(4000);
});

test('a filter keeps a call for the sake of its answer and of what came up in it', () => {
  const outline = outlineOf([
    { seq: 1 },
    { seq: 2, from: 'server', kind: 'notification', relation: 'progress', toSeq: 1 },
    answer(3, 1),
    { seq: 4 },
    answer(5, 4),
  ]);
  const only = (...seqs: number[]) =>
    shown(outline, { isOpen: () => false, isSelected: (seq) => seqs.includes(seq) });
  expect(only(2)).toEqual(['1']);
  expect(only(5)).toEqual(['4']);
  expect(shown(outline, { range: [4500, 9000], isOpen: () => false })).toEqual(['4']);
  const rows = listRows(outline, { ...ALL, isOpen: () => false });
  expect([0, 1, 2, 3, 4].map((i) => placeOf(outline, rows, i, false))).toEqual([0, 0, 0, 1, 1]);
});

test('what is no message stands between the messages, at its time', () => {
  const outline = outlineOf([{ seq: 1 }, answer(2, 1), { seq: 3 }]);
  expect(shown(outline, { events: [{ at: 500 }, { at: 2500 }, { at: 9000 }] })).toEqual([
    ...['event', '1', 'event', '3', 'event'],
  ]);
});

test('idle times are folded, and each moment keeps its place in order', () => {
  const outline = outlineOf([
    { seq: 1, at: 0 },
    answer(2, 1, { at: 3_000_000 }),
    { seq: 3, at: 10_000_000 },
    answer(4, 3, { at: 10_100_000 }),
  ]);
  expect(idleGaps(outline)).toEqual([[3_000_000, 10_000_000]]);
  const scale = makeScale([0, 10_100_000], idleGaps(outline));
  expect(scale.folds.map(({ micros }) => micros)).toEqual([7_000_000]);
  expect(scale.x(0)).toBe(0);
  expect(scale.x(10_100_000)).toBe(1);
  expect(scale.x(3_000_000)).toBeGreaterThan(0.9);
  for (const x of [0.1, 0.5, 0.95, 0.99]) expect(scale.x(scale.at(x))).toBeCloseTo(x, 6);
});

test('a part of the times is in the address, and zooming out of it comes to the whole', () => {
  expect(readRange('100-300')).toEqual([100_000, 300_000]);
  for (const wrong of ['', 'x', '5', '9-3', '-']) expect(readRange(wrong)).toBeNull();
  expect(rangeText([100_000, 300_000])).toBe('100-300');
  expect(zoomed([100_000, 300_000], 200_000, 0.5, [0, 1_000_000])).toEqual([150_000, 250_000]);
  expect(zoomed([100_000, 300_000], 200_000, 10, [0, 1_000_000])).toBeNull();
});
