import { describe, expect, test } from 'vitest';
import type { HttpEvent } from '../../../src/protocol/wire/http-event.ts';
import type { HttpLoss } from '../../../src/store/record/http-items.ts';
import { createLosses, LostExchange } from '../../../src/store/record/http-recorder.ts';
import {
  answered,
  asked,
  EVENT_STREAM,
  ended,
  eventOf,
  leftByClient,
  rpc,
  STOPPED,
  startRecording,
} from '../../support/http-store.ts';

const CALL = rpc({ id: 1, method: 'tools/call', params: { name: 'x' } });
const lost = (exchange: number, side: HttpLoss['side'], pieces: number, bytes: number): HttpLoss => ({
  type: 'lost',
  exchange,
  at: 7,
  side,
  pieces,
  bytes,
});
const COUNTS = 'SELECT frames, dropped, dropped_bytes AS bytes, truncated FROM session';

describe('losses', () => {
  test('of one exchange are added up until they are told', () => {
    const told: HttpLoss[] = [];
    const losses = createLosses((loss) => told.push(loss));
    for (const bytes of [10, 20, 30])
      losses.add({ exchange: 1, at: bytes, side: 'response', pieces: 1, bytes });
    losses.add({ exchange: 2, at: 1, side: 'request', pieces: 1, bytes: 5 });
    losses.report(1);
    losses.report(1);
    losses.report(3);
    expect(told).toEqual([{ ...lost(1, 'response', 3, 60), at: 30 }]);
    losses.reportAll();
    expect(told.slice(1)).toEqual([{ ...lost(2, 'request', 1, 5), at: 1 }]);
  });

  test('of the two directions are told apart', () => {
    const told: HttpLoss[] = [];
    const losses = createLosses((loss) => told.push(loss));
    for (const side of ['request', 'response', 'response'] as const)
      losses.add({ exchange: 1, at: 7, side, pieces: 1, bytes: 1 });
    losses.reportAll();
    expect(told).toEqual([lost(1, 'request', 1, 1), lost(1, 'response', 2, 2)]);
  });

  test('of whole exchanges become one word', () => {
    const told: HttpLoss[] = [];
    const losses = createLosses((loss) => told.push(loss));
    for (const exchange of [3, 4, 5]) losses.add({ exchange, at: 7, side: 'exchange', pieces: 2, bytes: 10 });
    losses.report(4);
    expect(told).toEqual([]);
    losses.reportAll();
    losses.reportAll();
    expect(told).toEqual([lost(5, 'exchange', 6, 30)]);
  });
});

test('of an exchange that was lost whole each body counts once, and each piece of a stream', () => {
  const count = (...events: HttpEvent[]) => {
    const exchange = new LostExchange();
    for (const event of events) exchange.add(event);
    return [exchange.frames, exchange.bytes];
  };
  const body = ['ab', 'cd'];
  expect(count(...asked(1, { body }), ...answered(1, { body }), ended(1))).toEqual([2, 8]);
  expect(count(...asked(1, { body }), ...answered(1, { headers: EVENT_STREAM, body }), ended(1))).toEqual([
    3, 8,
  ]);
  expect(count(...asked(1, { body }), ...answered(1, { status: 202 }), ended(1))).toEqual([1, 4]);
  expect(count(...asked(1), leftByClient(1))).toEqual([1, 0]);
});

describe('in the store', () => {
  test('a body counts once, however many pieces of it were lost, and is never joined over the gap', async () => {
    const recording = startRecording();
    const [response, ...pieces] = answered(1, { body: ['begin', 'end'] });
    recording.feed(...asked(1, { body: CALL }), response as never, pieces[0] as never);
    recording.feed(lost(1, 'response', 3, 300), pieces[1] as never, lost(1, 'response', 1, 100), ended(1));
    await recording.close();
    // What came between the two gaps has no place in the frame, so it is lost too.
    expect(recording.all(COUNTS)).toEqual([{ frames: 2, dropped: 1, bytes: 403, truncated: 1 }]);
    expect(
      recording.all(
        "SELECT CAST(payload AS TEXT) AS text, size, flags, sha256 FROM frame WHERE channel = 'response'",
      ),
    ).toEqual([{ text: 'begin', size: 408, flags: 'truncated', sha256: null }]);
    expect(recording.all('SELECT response_bytes AS bytes FROM http_exchange')).toEqual([{ bytes: 408 }]);
  });

  test('a request of which bytes were lost is no message that could be read', async () => {
    const recording = startRecording();
    const [head, body, end] = asked(1, { body: CALL });
    recording.feed(head as never, lost(1, 'request', 1, 50), body as never, end as never, ended(1));
    await recording.close();
    expect(recording.all('SELECT kind, problem FROM message')).toEqual([
      { kind: 'invalid', problem: 'truncated' },
    ]);
  });

  test('what a stream cannot place after a gap is counted too', async () => {
    const recording = startRecording();
    const event = (n: number) => eventOf({ method: 'notifications/message', params: { n } });
    const [response, ...pieces] = answered(1, { headers: EVENT_STREAM, body: [1, 2, 3].map(event) });
    recording.feed(...asked(1, { body: CALL }), response as never, pieces[0] as never);
    recording.feed(lost(1, 'response', 2, 99), pieces[1] as never, pieces[2] as never, ended(1));
    await recording.close();
    const skipped = event(2).length;
    expect(recording.all(COUNTS)).toEqual([{ frames: 3, dropped: 2, bytes: 99 + skipped, truncated: 0 }]);
    expect(recording.all("SELECT CAST(payload AS TEXT) AS text FROM frame WHERE channel = 'sse'")).toEqual([
      { text: event(1) },
      { text: event(3) },
    ]);
  });

  test('whole exchanges count on a session, and leave none of their own where there is one', async () => {
    const recording = startRecording();
    recording.feed(
      ...asked(1, { body: CALL }),
      ...answered(1, { body: rpc({ id: 1, result: {} }) }),
      ended(1),
    );
    recording.feed(lost(9, 'exchange', 4, 1234));
    await recording.close();
    expect(recording.all(COUNTS)).toEqual([{ frames: 2, dropped: 4, bytes: 1234, truncated: 0 }]);
  });

  test('what is given up is counted, also on a session that had ended before', async () => {
    const recording = startRecording();
    const headers = ['Content-Type', 'application/json', 'Mcp-Session-Id', 'abc'];
    recording.feed(...asked(1, { body: CALL, headers }), ...answered(1, { body: 'x' }), ended(1));
    recording.save();
    recording.feed(...asked(2, { body: CALL, headers }), ...answered(2, { body: 'xyz' }), ended(2));
    recording.feed(...asked(3, { method: 'DELETE', headers }), ...answered(3, {}), ended(3));
    recording.intake.giveUp();
    await recording.close();
    expect(recording.all(COUNTS)).toEqual([{ frames: 2, dropped: 2, bytes: CALL.length + 3, truncated: 0 }]);
    expect(recording.all('SELECT end_reason AS reason FROM session')).toEqual([{ reason: 'deleted' }]);
  });

  test('what is given up before its session had a row is counted on a row of its own', async () => {
    const recording = startRecording();
    recording.feed(...asked(1, { body: CALL }), ended(1));
    recording.store.exec("CREATE TRIGGER full BEFORE INSERT ON frame BEGIN SELECT RAISE(ABORT, 'full'); END");
    expect(() => recording.save()).toThrow('full');
    recording.store.exec('DROP TRIGGER full');
    recording.intake.giveUp();
    recording.intake.end(STOPPED);
    expect(recording.all(COUNTS)).toEqual([{ frames: 0, dropped: 1, bytes: CALL.length, truncated: 0 }]);
    expect(recording.all('SELECT end_reason AS reason FROM session')).toEqual([{ reason: 'stopped' }]);
  });
});
