import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  answered,
  asked,
  ended,
  JSON_TYPE,
  leftByClient,
  rpc,
  startRecording,
} from '../../support/http-store.ts';

const CALL = rpc({ id: 1, method: 'tools/call', params: { name: 'x' } });
const RESULT = rpc({ id: 1, result: {} });
const FRAMES =
  'SELECT seq, at, channel, http, flags, size, CAST(payload AS TEXT) AS text, sha256 FROM frame ORDER BY seq';
const gzipped = ['Content-Type', 'application/json', 'Content-Encoding', 'gzip'];

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
const plain = (recording: Recording) =>
  framesOf(recording).map(({ channel, flags, text }) => [channel, flags, text]);
const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');

describe('bodies', () => {
  test('in pieces become one frame each, the request first, whatever is stored in between', async () => {
    const recording = startRecording();
    const [head, ...rest] = asked(1, { body: [CALL.slice(0, 9), CALL.slice(9)] });
    recording.feed(head as never);
    recording.save(true);
    for (const event of [
      ...rest,
      ...answered(1, { body: [RESULT.slice(0, 5), RESULT.slice(5)] }),
      ended(1),
    ]) {
      recording.feed(event);
      recording.save(true);
    }
    await recording.close();
    expect(framesOf(recording)).toMatchObject([
      { seq: 1, channel: 'request', http: 1, flags: null, at: 1002, text: CALL },
      { seq: 2, channel: 'response', http: 1, flags: null, at: 1500, text: RESULT },
    ]);
    expect(recording.all('SELECT * FROM unfinished')).toEqual([]);
    expect(recording.all('SELECT method, outcome, http FROM exchange')).toEqual([
      { method: 'tools/call', outcome: 'ok', http: 1 },
    ]);
  });

  test('that are not there make no frames', async () => {
    const recording = startRecording();
    recording.feed(
      ...asked(1, { body: rpc({ method: 'notifications/initialized' }) }),
      ...answered(1, { status: 202, headers: [] }),
      ended(1),
    );
    recording.feed(
      ...asked(2, { method: 'HEAD', headers: [] }),
      ...answered(2, { headers: ['Content-Length', '999', 'Content-Encoding', 'gzip'] }),
      ended(2),
    );
    recording.feed(...asked(3, { body: '' }), ...answered(3, { body: '' }), ended(3));
    await recording.close();
    expect(plain(recording)).toEqual([['request', null, rpc({ method: 'notifications/initialized' })]]);
    expect(recording.all('SELECT number, method, status FROM http_exchange ORDER BY number')).toEqual([
      { number: 1, method: 'POST', status: 202 },
      { number: 2, method: 'HEAD', status: 200 },
      { number: 3, method: 'POST', status: 200 },
    ]);
  });

  test('that are empty once they are decoded leave nothing unfinished', async () => {
    const recording = startRecording({ redaction: null });
    recording.feed(...asked(1, { headers: gzipped, body: CALL }).slice(0, 1));
    const coded = { type: 'request-body', exchange: 1, at: 2, bytes: gzipSync('') } as const;
    recording.feed(coded);
    recording.save(true);
    expect(recording.all('SELECT channel FROM unfinished')).toEqual([{ channel: 'request' }]);
    recording.feed({ type: 'request-end', exchange: 1, at: 3, rawTrailers: [], isComplete: true }, ended(1));
    await recording.close();
    expect(recording.all('SELECT channel FROM unfinished')).toEqual([]);
    expect(plain(recording)).toEqual([['request', null, '']]);
  });

  test('that are no JSON are flagged where messages were due, and left alone elsewhere', async () => {
    const recording = startRecording();
    recording.feed(
      ...asked(1, { body: 'a=b' }),
      ...answered(1, { status: 400, headers: ['Content-Type', 'text/plain'], body: 'Bad' }),
      ended(1),
    );
    recording.feed(
      ...asked(2, { body: CALL, headers: ['Content-Type', 'text/plain'] }),
      ...answered(2, { headers: ['Content-Type', 'text/html'], body: '<p>' }),
      ended(2),
    );
    recording.feed(
      ...asked(3, {
        path: '/token',
        headers: ['Content-Type', 'application/x-www-form-urlencoded'],
        body: 'grant_type=x',
      }),
      ...answered(3, { body: '{"token_type":"x"}' }),
      ended(3),
    );
    await recording.close();
    expect(plain(recording)).toEqual([
      ['request', null, 'a=b'],
      ['response', 'foreign-body', 'Bad'],
      ['request', 'wrong-type', CALL],
      ['response', 'wrong-type', '<p>'],
      ['request', 'foreign-body', 'grant_type=x'],
      ['response', 'foreign-body', '{"token_type":"x"}'],
    ]);
    expect(recording.all('SELECT seq, kind, problem FROM message ORDER BY seq')).toEqual([
      { seq: 1, kind: 'invalid', problem: 'not-json' },
      { seq: 3, kind: 'request', problem: 'wrong-type' },
      { seq: 4, kind: 'invalid', problem: 'not-json,wrong-type' },
    ]);
  });

  test('that break off are marked', async () => {
    const recording = startRecording();
    const [head, body] = asked(1, { body: CALL.slice(0, 9) });
    recording.feed(
      head as never,
      body as never,
      { type: 'request-end', exchange: 1, at: 5, rawTrailers: [], isComplete: false },
      leftByClient(1),
    );
    recording.feed(
      ...asked(2, { body: CALL }),
      ...answered(2, { body: RESULT.slice(0, 9) }),
      ended(2, { error: 'aborted', isComplete: false }),
    );
    await recording.close();
    expect(plain(recording)).toEqual([
      ['request', 'incomplete', CALL.slice(0, 9)],
      ['request', null, CALL],
      ['response', 'incomplete', RESULT.slice(0, 9)],
    ]);
    expect(recording.all('SELECT closed_by AS by, error FROM http_exchange ORDER BY number')).toEqual([
      { by: 'client', error: 'the client closed the connection' },
      { by: 'server', error: 'aborted' },
    ]);
  });

  test('above the bound are cut, with their size and the hash of the whole', async () => {
    const recording = startRecording({ redaction: null, maxFrameBytes: 100 });
    const large = Buffer.alloc(5000, 'xyz');
    recording.feed(
      ...asked(1, { body: [large.subarray(0, 40), large.subarray(40, 4900), large.subarray(4900)] }),
      ...answered(1, { body: [large.subarray(0, 100), large.subarray(100)] }),
      ended(1),
    );
    recording.feed(...asked(2, { body: large.subarray(0, 100) }), ended(2));
    await recording.close();
    const cut = { size: 5000, text: large.toString('latin1', 0, 100), sha256: sha256(large) };
    expect(framesOf(recording)).toMatchObject([
      { ...cut, channel: 'request', flags: 'truncated' },
      { ...cut, channel: 'response', flags: 'foreign-body truncated' },
      { size: 100, flags: null, sha256: null },
    ]);
    expect(recording.all('SELECT truncated, bytes FROM session')).toEqual([{ truncated: 2, bytes: 10_100 }]);
  });

  test('in a coding are stored without it, or as they are where that fails', async () => {
    const recording = startRecording({ maxFrameBytes: 1000, redaction: null });
    const bomb = gzipSync(Buffer.alloc(100_000, ' '));
    recording.feed(
      ...asked(1, { headers: gzipped, body: gzipSync(CALL) }),
      ...answered(1, { headers: gzipped, body: gzipSync(RESULT) }),
      ended(1),
    );
    recording.feed(
      ...asked(2, { headers: gzipped, body: 'plain' }),
      ...answered(2, { headers: [...JSON_TYPE, 'Content-Encoding', 'constructor'], body: RESULT }),
      ended(2),
    );
    recording.feed(...asked(3, { headers: gzipped, body: bomb }), ended(3));
    await recording.close();
    const frames = framesOf(recording);
    expect(frames.map(({ channel, flags, text }) => [channel, flags, text]).slice(0, 4)).toEqual([
      ['request', null, CALL],
      ['response', null, RESULT],
      ['request', 'undecoded', 'plain'],
      ['response', 'undecoded', RESULT],
    ]);
    expect(frames[4]).toMatchObject({ flags: 'undecoded', size: bomb.length });
  });

  test('that an edit changed have the original beside them', async () => {
    const recording = startRecording({ redaction: null });
    const [response] = answered(1);
    recording.feed(
      ...asked(1, { method: 'GET', path: '/.well-known/x', headers: [] }),
      { ...response, edits: [{ header: 'Content-Length', original: '6' }] } as never,
      {
        type: 'response-body',
        exchange: 1,
        at: 5,
        bytes: Buffer.from('edited'),
        original: Buffer.from('before'),
      },
      ended(1),
    );
    await recording.close();
    expect(recording.all('SELECT seq, CAST(original AS TEXT) AS original FROM frame_edit')).toEqual([
      { seq: 1, original: 'before' },
    ]);
    expect(recording.all('SELECT edits FROM http_exchange')).toEqual([
      { edits: '[{"side":"response","header":"Content-Length","original":"6"}]' },
    ]);
  });
});
