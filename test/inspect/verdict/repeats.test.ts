import { expect, test } from 'vitest';
import { createRepeatReader } from '../../../src/inspect/verdict/repeats.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { eachFrame } from '../../../src/store/read/frames.ts';
import { prepareHttpSummary } from '../../../src/store/read/http.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import {
  body,
  callOf,
  closed,
  head,
  httpSession,
  posted,
  replies,
  resultOf,
  says,
  stdioSession,
} from '../../support/hand-made.ts';
import { tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

/** Which frame calls again what which frame had called. */
async function repeatsOf(text: string): Promise<[again: number, first: number, ms: number][]> {
  const store = openStore(tempStore());
  await importText(store, text);
  const session = findSession(store, 'latest');
  const summaryOf = prepareHttpSummary(store, session.number);
  const repeatsIn = createRepeatReader((number) => summaryOf(number)?.status ?? null);
  const found = [...eachFrame(store, session)].flatMap((frame) =>
    [...repeatsIn(frame)].map(([, { first, gap }]): [number, number, number] => [
      frame.seq,
      first.seq,
      gap / 1000,
    ]),
  );
  store.close();
  return found;
}

const pay = (id: number) => callOf(id, 'pay', { sum: 1 });

test('a call is repeated until an answer settles it; the latest open one is named', async () => {
  const calls = [
    says(1, pay(1)),
    says(31, pay(2)),
    says(41, pay(3)),
    replies(50, resultOf(3)),
    says(60, pay(4)),
  ];
  expect(await repeatsOf(stdioSession(calls))).toEqual([
    [2, 1, 30],
    [3, 2, 10],
    [5, 2, 29],
  ]);
  expect(await repeatsOf(stdioSession([says(1, pay(1)), replies(2, resultOf(1)), says(3, pay(2))]))).toEqual(
    [],
  );
});

test('over HTTP a call that its client left is repeated, one that was refused is not', async () => {
  const second = posted(2, 5000, pay(2), head(5001), body(5001, resultOf(2)), closed(5002));
  const left = posted(1, 1000, pay(1), closed(4000, 'client', 'gone'));
  const refused = posted(1, 1000, pay(1), head(1001, 503), closed(1002));
  expect(await repeatsOf(httpSession([...left, ...second]))).toEqual([[2, 1, 4000]]);
  expect(await repeatsOf(httpSession([...refused, ...second]))).toEqual([]);
});

test('show says so, for people and for programs, but not of a selection or where frames were lost', async () => {
  const calls = [says(1, pay(1)), says(31, pay(2))];
  async function shown(text: string, ...args: string[]): Promise<string> {
    const db = tempStore();
    const store = openStore(db);
    await importText(store, text);
    store.close();
    return (await tapedeckInProcess(['show', '--db', db, ...args])).stdout.toString();
  }
  const note = 'the call of #1 again, 30 ms later, before its fate was known';
  expect(await shown(stdioSession(calls))).toContain(`! ${note}\n`);
  expect(await shown(stdioSession(calls), '--json')).toContain('"repeats":{"seq":1,"afterMs":30}');
  expect(await shown(stdioSession(calls), '--filter', 'tool=pay')).not.toContain(note);
  expect(await shown(stdioSession(calls, { lost: { frames: 1, bytes: 9 } }))).not.toContain(note);
});
