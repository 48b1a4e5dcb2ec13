import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { expect, onTestFinished, test } from 'vitest';
import type { Change } from '../../src/web/api.ts';
import { inFull } from '../support/scale.ts';
import { type Run, record, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';
import { startUi, storeOf, type Ui } from '../support/ui.ts';

type Stream = { changes: Change[]; lastId(): string; leave(): void };

/** Follows the changes until the test ends, or until it leaves. */
async function follow(ui: Ui, lastEventId?: string): Promise<Stream> {
  const left = new AbortController();
  const events: EventSourceMessage[] = [];
  const changes: Change[] = [];
  const answer = await fetch(`${ui.origin}/api/changes`, {
    signal: left.signal,
    headers: { ...ui.headers, ...(lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }) },
  });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  const parser = createParser({
    onEvent(event) {
      events.push(event);
      const change = JSON.parse(event.data) as Change;
      expect(event.event).toBe(change.kind);
      changes.push(change);
    },
  });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  const read = async () => {
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read())
      parser.feed(next.value);
  };
  read().catch(() => {});
  const leave = () => left.abort();
  onTestFinished(leave);
  await until('it has begun', () => changes.length > 0);
  return { changes, lastId: () => events.at(-1)?.id ?? '', leave };
}

const kindsOf = ({ changes }: Stream) => changes.map(({ kind }) => kind);

const has = ({ changes }: Stream, wanted: Partial<Change>) =>
  changes.some((change) =>
    Object.entries(wanted).every(([name, value]) => Reflect.get(change, name) === value),
  );

/** A server that answers each line. */
function recordEcho(db: string): Run & { say(count: number): void } {
  const run = record(db, ['echo.js']);
  let id = 0;
  const say = (count: number) => {
    for (let i = 0; i < count; i += 1) {
      id += 1;
      run.child.stdin.write(`{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`);
    }
  };
  return { ...run, say };
}

test('a store that is not there is empty, and what is recorded appears, grows, and ends; killed, it is cut off', async () => {
  const db = tempStore();
  const ui = await startUi(db);
  expect(await ui.json('/api/sessions')).toEqual({ sessions: [], next: null, total: 0 });
  const stream = await follow(ui);
  expect(stream.changes).toEqual([{ kind: 'begin', resumed: false }]);
  const one = recordEcho(db);
  one.say(3);
  await until('a session appears', () => has(stream, { kind: 'session' }));
  const { sessions } = await ui.json('/api/sessions');
  const id: string = sessions[0].session;
  expect(sessions).toMatchObject([{ state: 'open', endReason: null }]);
  await until('six frames', () => has(stream, { kind: 'frames', id, upTo: 6 }));
  expect((await ui.json(`/api/sessions/${id}/outline`)).seq).toEqual([1, 2, 3, 4, 5, 6]);
  one.say(1);
  await until('eight frames', () => has(stream, { kind: 'frames', id, upTo: 8 }));
  expect(kindsOf(stream)).not.toContain('ended');
  one.child.kill('SIGKILL');
  await until('it is cut off', () => has(stream, { kind: 'ended', id }));
  expect(await ui.json(`/api/sessions/${id}`)).toMatchObject({
    session: { state: 'cut-off' },
    ending: expect.stringContaining('cut off'),
  });
  const two = recordEcho(db);
  two.say(1);
  two.child.stdin.end();
  await two.ended;
  await until('another one has ended', () => kindsOf(stream).filter((kind) => kind === 'ended').length === 2);
});

test('a stream that was cut goes on without a gap, also when nobody listened meanwhile', async () => {
  const db = tempStore();
  const ui = await startUi(db);
  const stream = await follow(ui);
  const run = recordEcho(db);
  run.say(1);
  await until('two frames', () => has(stream, { kind: 'frames', upTo: 2 }));
  const seen = stream.lastId();
  stream.leave();
  run.say(5);
  run.child.stdin.end();
  await run.ended;
  const again = await follow(ui, seen);
  expect(again.changes[0]).toEqual({ kind: 'begin', resumed: true });
  await until('the end', () => kindsOf(again).includes('ended'));
  expect(has(again, { kind: 'frames', upTo: 12 })).toBe(true);
  expect(has(again, { kind: 'frames', upTo: 2 })).toBe(false);
  const third = await follow(ui, seen);
  await until('the same again', () => kindsOf(third).includes('ended'));
  expect(third.changes).toEqual(again.changes);
  const stranger = await follow(ui, 'abc-1');
  expect(stranger.changes).toEqual([{ kind: 'begin', resumed: false }]);
});

test('sessions that are pruned go, one that is asked for is not found, and the rest stays', async () => {
  const db = await storeOf('everything-stdio', 'everything-http');
  const ui = await startUi(db);
  const { session } = (await ui.json('/api/sessions?filter=transport%3Dstdio')).sessions[0];
  const stream = await follow(ui);
  const { code } = await tapedeckInProcess(['prune', session, '--db', db]);
  expect(code).toBe(0);
  await until('it goes', () => has(stream, { kind: 'pruned', id: session }));
  const gone = await ui.get(`/api/sessions/${session}/outline`);
  expect([gone.status, await gone.json()]).toMatchObject([404, { error: { code: 'not-found' } }]);
  expect(await ui.json('/api/sessions')).toMatchObject({ total: 1 });
});

inFull('what somebody has seen before it listens is followed from there', async () => {
  const db = await storeOf('everything-stdio');
  const ui = await startUi(db);
  await ui.json('/api/sessions');
  await tapedeckInProcess(['import', 'recordings/modern-http.ndjson', '--db', db]);
  const stream = await follow(ui);
  await until('the new one', () => kindsOf(stream).includes('session'));
});
