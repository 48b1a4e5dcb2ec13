import { brotliCompressSync, constants, createGzip } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  answered,
  asked,
  EVENT_STREAM,
  ended,
  eventOf,
  leftByClient,
  rpc,
  startRecording,
} from '../../support/http-store.ts';

const CALL = rpc({ id: 1, method: 'tools/call', params: { name: 'x' } });
const FRAMES =
  'SELECT seq, at, channel, http, flags, size, CAST(payload AS TEXT) AS text, sha256 FROM frame ORDER BY seq';

type Row = {
  seq: number;
  at: number;
  channel: string;
  http: number;
  flags: string | null;
  size: number;
  text: string;
  sha256: string | null;
};
type Recording = ReturnType<typeof startRecording>;
const framesOf = ({ all }: Recording) => all<Row>(FRAMES);

describe('event streams', () => {
  test('become a frame for each event, with its time and its fields', async () => {
    const recording = startRecording();
    const body = [
      ': hi\n\n',
      `event: message\nid: 7\nretry: 10\n${eventOf({ id: 1, result: {} })}`,
      'id: 8\ndata:\n\n',
      'half',
    ];
    recording.feed(
      ...asked(1, { body: CALL }),
      ...answered(1, { headers: EVENT_STREAM, body }),
      leftByClient(1),
    );
    await recording.close();
    expect(framesOf(recording).slice(1)).toMatchObject([
      { at: 1011, flags: 'block', text: body[0] },
      { at: 1012, flags: null, text: body[1] },
      { at: 1013, flags: 'block', text: body[2] },
      { flags: 'block incomplete', text: 'half' },
    ]);
    expect(recording.all('SELECT seq, event, id, retry FROM sse_event ORDER BY seq')).toEqual([
      { seq: 3, event: 'message', id: '7', retry: '10' },
      { seq: 4, event: null, id: '8', retry: null },
    ]);
  });

  test('that hold no JSON are flagged', async () => {
    const recording = startRecording();
    recording.feed(
      ...asked(1, { body: CALL }),
      ...answered(1, { headers: EVENT_STREAM, body: ['data: {\n\n', 'data\n\n', 'no: field\n\n'] }),
      ended(1),
    );
    await recording.close();
    expect(recording.all('SELECT seq, problem FROM message WHERE problem IS NOT NULL')).toEqual([
      { seq: 2, problem: 'not-json' },
    ]);
  });

  test('in a coding are stored event by event, and say so when one comes out by itself', async () => {
    const recording = startRecording();
    const gzip = createGzip();
    const coded: Buffer[] = [];
    gzip.on('data', (bytes: Buffer) => coded.push(bytes));
    for (const n of [1, 2]) {
      gzip.write(eventOf({ method: 'notifications/message', params: { n } }));
      await new Promise<void>((done) => gzip.flush(constants.Z_SYNC_FLUSH, () => done()));
    }
    const [response, ...pieces] = answered(1, {
      headers: [...EVENT_STREAM, 'Content-Encoding', 'gzip'],
      body: coded,
    });
    recording.feed(...asked(1, { body: CALL }), response as never);
    recording.save();
    const before = recording.news();
    recording.feed(...pieces);
    await expect.poll(recording.news).toBeGreaterThan(before);
    recording.save();
    recording.feed(leftByClient(1));
    await recording.close();
    const events = framesOf(recording).filter(({ channel }) => channel === 'sse');
    expect(events.map(({ text }) => text)).toEqual(
      [1, 2].map((n) => eventOf({ method: 'notifications/message', params: { n } })),
    );
  });

  test('in a coding of the name of anything harm nothing', async () => {
    const recording = startRecording({ redaction: null });
    for (const [i, coding] of ['constructor', '__proto__', 'br'].entries()) {
      const headers = [...EVENT_STREAM, 'Content-Encoding', coding];
      const body = coding === 'br' ? brotliCompressSync(eventOf({ id: 1, result: {} })) : 'data: x\n\n';
      recording.feed(...asked(i + 1, { body: CALL }), ...answered(i + 1, { headers, body }), ended(i + 1));
    }
    await recording.close();
    const events = framesOf(recording).filter(({ channel }) => channel === 'sse');
    expect(events.map(({ flags, text }) => [flags, text])).toEqual([
      ['undecoded', 'data: x\n\n'],
      ['undecoded', 'data: x\n\n'],
      [null, eventOf({ id: 1, result: {} })],
    ]);
  });

  test('that change an event keep the original of that event alone', async () => {
    const recording = startRecording();
    const sent = Buffer.from('event: endpoint\ndata: http://a/x\n\ndata: {}\n\n');
    const passed = Buffer.from('event: endpoint\ndata: http://proxy/x\n\ndata: {}\n\n');
    recording.feed(
      ...asked(1, { method: 'GET', headers: ['Accept', 'text/event-stream'] }),
      ...answered(1, { headers: EVENT_STREAM }),
      { type: 'response-body', exchange: 1, at: 5, bytes: passed, original: sent },
      ended(1),
    );
    await recording.close();
    expect(framesOf(recording).map(({ text }) => text)).toEqual([
      'event: endpoint\ndata: http://proxy/x\n\n',
      'data: {}\n\n',
    ]);
    expect(recording.all('SELECT seq, CAST(original AS TEXT) AS original FROM frame_edit')).toEqual([
      { seq: 1, original: 'event: endpoint\ndata: http://a/x\n\n' },
    ]);
    expect(recording.all('SELECT basis, transport, end_reason AS reason FROM session')).toEqual([
      { basis: 'sse-endpoint', transport: 'sse', reason: 'server-closed' },
    ]);
  });

  test('that are resumed mark what comes again', async () => {
    const recording = startRecording();
    const [first, second] = [
      eventOf({ method: 'notifications/message' }, '1'),
      eventOf({ id: 1, result: {} }, '2'),
    ];
    recording.feed(
      ...asked(1, { body: CALL }),
      ...answered(1, { headers: EVENT_STREAM, body: first }),
      leftByClient(1),
    );
    const resume = ['Accept', 'text/event-stream', 'Last-Event-ID', '0'];
    recording.feed(
      ...asked(2, { method: 'GET', headers: resume }),
      ...answered(2, { headers: EVENT_STREAM, body: [first, second] }),
      ended(2),
    );
    await recording.close();
    expect(framesOf(recording).map(({ flags }) => flags)).toEqual([null, null, 'replayed', null]);
    expect(recording.all('SELECT exchanges, unanswered FROM session')).toEqual([
      { exchanges: 1, unanswered: 0 },
    ]);
  });
});
