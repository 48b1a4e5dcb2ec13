import { expect, test } from 'vitest';
import { type Fate, prepareFates } from '../../../src/inspect/verdict/fate.ts';
import { fateText } from '../../../src/inspect/view/fate.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { eachFrame } from '../../../src/store/read/frames.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import {
  body,
  callOf,
  closed,
  event,
  head,
  httpSession,
  posted,
  replies,
  resultOf,
  says,
  stdioSession,
} from '../../support/hand-made.ts';
import { storeOnce } from '../../support/once.ts';
import { importText } from '../../support/text-recording.ts';

/** All sessions of these tests. */
const shared = storeOnce(async (db) => openStore(db).close());

/** The fates of a session: by frame, in words. */
async function fatesOf(text: string): Promise<{ seq: number; fate: Fate; text: string }[]> {
  const store = openStore(await shared());
  const session = findSession(store, await importText(store, text));
  const fateOf = prepareFates(store, session);
  const found = [...eachFrame(store, session)].flatMap(({ seq, messages }) =>
    messages.flatMap((row) => {
      const fate = fateOf(row);
      return fate === null ? [] : [{ seq, fate, text: fateText(fate) }];
    }),
  );
  store.close();
  return found;
}

async function onlyFateOf(text: string): Promise<Fate & { seq: number; text: string }> {
  const found = await fatesOf(text);
  expect(found).toHaveLength(1);
  const [{ fate, ...where }] = found as [{ seq: number; fate: Fate; text: string }];
  return { ...fate, ...where };
}

const ask = says(1000, callOf(1, 'slow'));

const MODERN = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };

const cancels = (requestId: unknown) => ({ method: 'notifications/cancelled', params: { requestId } });

test('a call that was answered has no fate, however late the answer is, and whatever it says', async () => {
  const failed = { id: 2, error: { code: -32603, message: 'no' } };
  expect(
    await fatesOf(
      stdioSession([
        ask,
        replies(50_000, resultOf(1)),
        says(51_000, callOf(2, 'x')),
        replies(51_001, failed),
      ]),
    ),
  ).toEqual([]);
});

test('a server that never answers is told of, with how long it had, and how it ended', async () => {
  const fate = await onlyFateOf(stdioSession([ask], { serverClosedAt: 31_000 }));
  expect(fate).toMatchObject({
    verdict: 'no-answer',
    asked: 'server',
    by: 'server',
    waited: 30_000_000,
    readBy: null,
  });
  expect(fate.text).toBe('the server never answered it: after 30.0 s the server exited with 1');
});

test('a later call that was answered proves that the request had come to the server', async () => {
  const later = [says(2000, callOf(2, 'quick')), replies(2001, resultOf(2))];
  const fate = await onlyFateOf(stdioSession([ask, ...later], { serverClosedAt: 31_000 }));
  expect(fate).toMatchObject({ verdict: 'no-answer', readBy: 2 });
  expect(fate.text).toMatch(/; it had come to the server, which answered #2 that came later$/);
  const others = later.map((line) => ({ ...line, client: 2 }));
  expect(await onlyFateOf(stdioSession([ask, ...others], { serverClosedAt: 31_000 }))).toMatchObject({
    readBy: null,
  });
  const earlier = [says(1, callOf(2, 'quick')), ask, replies(2001, resultOf(2))];
  expect(await onlyFateOf(stdioSession(earlier, { serverClosedAt: 31_000 }))).toMatchObject({ readBy: null });
});

test('an answer with the id as another type is named, and one that answers another call is not', async () => {
  const cancelled = says(3000, cancels(1));
  const fate = await onlyFateOf(stdioSession([ask, replies(1040, resultOf('1')), cancelled]));
  expect(fate).toMatchObject({ verdict: 'mismatched', by: 'server', waited: 40_000, answerSeq: 2 });
  expect(fate.text).toBe('the server answered it after 40 ms as #2, but with the id as another type');
  const other = [says(1001, callOf('1', 'x')), replies(1040, resultOf('1'))];
  expect(await onlyFateOf(stdioSession([ask, ...other, cancelled]))).toMatchObject({ verdict: 'cancelled' });
});

test('a client that ends its input before an answer ended the waiting itself', async () => {
  const ended = { clientClosedAt: 1500, serverClosedAt: 1600, endReason: 'client-closed', exitCode: 0 };
  const fate = await onlyFateOf(stdioSession([ask], ended));
  expect(fate).toMatchObject({ verdict: 'no-answer', by: 'client', waited: 500_000 });
  expect(fate.text).toBe('the server never answered it: after 500 ms the client ended its input');
});

test('a request that came when the server had closed its output is told apart', async () => {
  const fate = await onlyFateOf(stdioSession([ask], { serverClosedAt: 800 }));
  expect(fate).toMatchObject({ verdict: 'server-gone', by: 'server', gap: 200_000 });
  expect(fate.text).toBe('the server had closed its output 200 ms before it came');
});

test('who cancelled a call is told, and that the answer came all the same', async () => {
  const early = await onlyFateOf(stdioSession([ask, says(31_000, cancels(1))]));
  expect(early).toMatchObject({ verdict: 'cancelled', by: 'client', waited: 30_000_000, answerSeq: null });
  expect(early.text).toBe('the client cancelled it after 30.0 s, before an answer');
  const late = await onlyFateOf(stdioSession([ask, says(31_000, cancels(1)), replies(33_000, resultOf(1))]));
  expect(late).toMatchObject({ verdict: 'cancelled', answerSeq: 3, gap: 2_000_000 });
  expect(late.text).toBe('the client cancelled it after 30.0 s; the answer #3 came 2.0 s later');
});

test('a client that cancels what it was handed the answer to dropped it, unless the two crossed', async () => {
  const after = (ms: number) => stdioSession([ask, replies(2000, resultOf(1)), says(2000 + ms, cancels(1))]);
  const dropped = await onlyFateOf(after(4200));
  expect(dropped).toMatchObject({ seq: 3, verdict: 'dropped', by: 'client', answerSeq: 2, gap: 4_200_000 });
  expect(dropped.text).toBe('the client had been handed the answer #2 4.2 s before');
  expect(await onlyFateOf(after(3))).toMatchObject({ verdict: 'crossed', gap: 3000 });
});

test('a request that is cancelled and was never sent never came; an id counts, not its spelling', async () => {
  const never = await onlyFateOf(stdioSession([says(1, cancels(7))]));
  expect(never).toMatchObject({ verdict: 'never-came', by: 'client' });
  expect(never.text).toBe('the client never sent a request with this id');
  const spelled = `${stdioSession([]).trimEnd()}
{"ms":1,"channel":"stdin","text":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1.0,\\"method\\":\\"ping\\"}"}
{"ms":1,"channel":"stdout","text":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1.0,\\"result\\":{}}"}
{"ms":1,"channel":"stdin","message":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}}
`;
  expect((await fatesOf(spelled)).map(({ fate }) => fate.verdict)).toEqual(['crossed']);
  const lost = stdioSession([says(1, cancels(7))], { lost: { frames: 1, bytes: 10 } });
  expect(await fatesOf(lost)).toEqual([]);
});

test('where frames are missing or the recording was cut off, nothing is claimed', async () => {
  const doubtful = [
    stdioSession([ask], { serverClosedAt: 31_000, lost: { frames: 2, bytes: 20 } }),
    stdioSession([ask, { at: 2000, channel: 'stdout', text: '{"js', truncated: { size: 900 } }]),
  ];
  const whys = await Promise.all(doubtful.map(onlyFateOf));
  expect(whys.map(({ verdict, why }) => [verdict, why])).toEqual([
    ['unknown', 'frames of the session were lost: 2'],
    ['unknown', 'frames of the session were recorded cut: 1'],
  ]);
});

test('a question of the server that its client never answers is the same in reverse', async () => {
  const asked = replies(1000, { id: 1, method: 'elicitation/create', params: {} });
  const fate = await onlyFateOf(stdioSession([asked], { serverClosedAt: 4000 }));
  expect(fate).toMatchObject({ verdict: 'no-answer', asked: 'client', waited: 3_000_000 });
  expect(fate.text).toMatch(/^the client never answered it: after 3\.0 s/);
});

const call = callOf(1, 'slow');

test('over HTTP a server that cannot be reached, or breaks off, or ends without an answer is told apart', async () => {
  const why = 'cannot reach http://127.0.0.1:1: connect ECONNREFUSED';
  const away = httpSession(posted(1, 1000, call, head(1001, 502, 'text/plain'), closed(1002, 'proxy', why)));
  const broke = httpSession(posted(1, 1000, call, head(1001), closed(4000, 'server', 'aborted')));
  const empty = httpSession(posted(1, 1000, call, head(1001, 200, 'text/event-stream'), closed(4000)));
  const refused = httpSession(posted(1, 1000, call, head(1001, 404), closed(1002)));
  const fates = await Promise.all([away, broke, empty, refused].map(onlyFateOf));
  expect(fates.map(({ verdict, by, text }) => [verdict, by, text])).toEqual([
    ['not-forwarded', 'tapedeck', `it never reached the server: ${why}`],
    ['no-answer', 'server', 'the server never answered it: after 3.0 s it broke the connection off: aborted'],
    ['no-answer', 'server', 'the server never answered it: after 3.0 s it ended its answer, HTTP 200'],
    ['refused', 'server', 'the server refused it: HTTP 404'],
  ]);
});

test('over HTTP a client that leaves before the answer cancels from 2026-07-28 on, and before that only leaves', async () => {
  const left = (message: Record<string, unknown>) =>
    onlyFateOf(httpSession(posted(1, 1000, message, closed(31_000, 'client', 'gone'))));
  expect(await left(call)).toMatchObject({ verdict: 'client-left', by: 'client', waited: 30_000_000 });
  expect(await left(callOf(1, 'slow', {}, MODERN))).toMatchObject({ verdict: 'cancelled', by: 'client' });
});

test('over HTTP an answer that its client did not take whole is dropped; a stream may be left once it has answered', async () => {
  const dropped = await onlyFateOf(
    httpSession(posted(1, 1000, call, head(3000), body(3000, resultOf(1)), closed(3001, 'client', 'gone'))),
  );
  expect(dropped).toMatchObject({ verdict: 'dropped', by: 'client', waited: 2_000_000, answerSeq: 2 });
  expect(dropped.text).toBe('the answer #2 came after 2.0 s, and the client left before it had all of it');
  const stream = posted(1, 1000, call, head(1001, 200, 'text/event-stream'), event(3000, resultOf(1)));
  expect(await fatesOf(httpSession([...stream, { ...closed(3001, 'client'), http: 1 }]))).toEqual([]);
});

test('the answers of HTTP+SSE come on another stream; one that never does is waited for until the session ends', async () => {
  const legacy = { transport: 'sse', basis: 'sse-endpoint' };
  const accepted = posted(2, 1000, call, head(1001, 202), closed(1002));
  const fate = await onlyFateOf(httpSession(accepted, legacy));
  expect(fate).toMatchObject({
    verdict: 'no-answer',
    by: null,
    waited: 59_000_000,
    why: 'the session ended',
  });
});
