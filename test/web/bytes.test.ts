import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { storeOnce } from '../support/once.ts';
import { record, showFrames, until } from '../support/tapedeck.ts';
import { ask, startUi, storeOf, TOKEN } from '../support/ui.ts';

/** Three frames: a small line, one of 2.5 MiB with characters of three bytes, one that is no text at all. */
const LINES = [
  Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}'),
  Buffer.from(`{"jsonrpc":"2.0","method":"big","params":["${'€'.repeat(870_000)}"]}`),
  Buffer.from(
    randomBytes(90_000)
      .toString('latin1')
      .replaceAll(/[\n\r]/g, ' '),
    'latin1',
  ),
];

const largeStore = storeOnce(async (db) => {
  const run = record(db, ['cat.js'], ['--no-redact']);
  for (const line of LINES) run.child.stdin.write(Buffer.concat([line, Buffer.from('\n')]));
  await until('all came back', () => run.stdout().length === Buffer.concat(LINES).length + LINES.length);
  run.child.stdin.end();
  await run.ended;
});

const RANGES: [range: string, from: number, to: number | undefined, status: number][] = [
  ['bytes=0-0', 0, 1, 206],
  ['bytes=1048570-1048590', 1_048_570, 1_048_591, 206],
  ['bytes=2097152-', 2_097_152, undefined, 206],
  ['bytes=-7', -7, undefined, 206],
  ['bytes=5-99999999', 5, undefined, 206],
  ['bytes=9-3', 0, undefined, 200],
  ['bytes=0-1,5-6', 0, undefined, 200],
  ['lines=1-2', 0, undefined, 200],
];

test('the bytes of a frame come as they are, whole and by range', async () => {
  const ui = await startUi(await largeStore());
  for (const [i, line] of LINES.entries()) {
    const frames = await ui.json('/api/sessions/latest/frames');
    const { seq } = frames.frames.filter(({ channel }: { channel: string }) => channel === 'stdin')[i];
    const path = `/api/sessions/latest/frames/${seq}/bytes`;
    const whole = await ui.get(path);
    const got = Buffer.from(await whole.arrayBuffer());
    expect(got.equals(line)).toBe(true);
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': String(line.length),
      'content-disposition': expect.stringMatching(/^attachment; filename="[0-9a-f]{12}-\d+\.bin"$/),
    });
    if (i !== 1) continue;
    for (const [range, from, to, status] of RANGES) {
      const part = await ui.get(path, { Range: range });
      expect([range, part.status]).toEqual([range, status]);
      expect(Buffer.from(await part.arrayBuffer()).equals(line.subarray(from, to)), range).toBe(true);
    }
    const beyond = await ui.get(path, { Range: `bytes=${line.length}-` });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, `bytes */${line.length}`]);
  }
});

test('a large frame is cut where it is shown, at a whole character, with the hash of all of it', async () => {
  const db = await largeStore();
  const ui = await startUi(db);
  const { frames } = await ui.json('/api/sessions/latest/frames?limit=200');
  const shown = await showFrames(db);
  for (const { text, base64, cut, seq } of frames) {
    const one = await ui.json(`/api/sessions/latest/frames/${seq}`);
    const full = shown.find((frame) => frame.seq === seq);
    const bytes = Buffer.from(full?.text ?? full?.base64 ?? '', full?.text === undefined ? 'base64' : 'utf8');
    const line = LINES.find((known) => known.equals(bytes)) as Buffer;
    expect(one).toMatchObject({
      storedBytes: line.length,
      sha256: createHash('sha256').update(line).digest('hex'),
    });
    expect(one.encoding).toBe(line === LINES[2] ? 'binary' : 'utf-8');
    expect(cut).toBe(line === LINES[0] ? undefined : true);
    const beginning = base64 === undefined ? Buffer.from(text) : Buffer.from(base64, 'base64');
    expect(beginning.length).toBeGreaterThan(Math.min(line.length - 1, 64 * 1024 - 4));
    expect(line.subarray(0, beginning.length).equals(beginning)).toBe(true);
  }
});

test('HEAD says what GET would, without a body', async () => {
  const ui = await startUi(await largeStore());
  for (const path of ['/api/about', '/', '/api/sessions/latest/frames/1/bytes']) {
    const { 'content-length': length, 'content-type': type } = (await ask(ui, path, { headers: ui.headers }))
      .headers;
    const head = await ask(ui, path, { method: 'HEAD', headers: ui.headers });
    expect(head).toMatchObject({
      status: 200,
      text: '',
      headers: { 'content-type': type, 'content-length': length },
    });
  }
});

test('what has ended is not sent again to who has it, until it changes; what is recorded is never kept', async () => {
  const db = await storeOf('everything-stdio');
  const ui = await startUi(db);
  for (const path of ['', '/outline', '/frames', '/frames/3', '/frames/3/bytes', '/http']) {
    const first = await ui.get(`/api/sessions/latest${path}`);
    const etag = first.headers.get('etag') ?? '';
    expect([path, etag]).toEqual([path, expect.stringMatching(/^".+"$/)]);
    expect(first.headers.get('cache-control')).toBe('private, no-cache');
    await first.arrayBuffer();
    const again = await ui.get(`/api/sessions/latest${path}`, { 'If-None-Match': etag });
    expect([path, again.status, await again.text()]).toEqual([path, 304, '']);
    const other = await ui.get(`/api/sessions/latest${path}`, { 'If-None-Match': '"other"' });
    expect(other.status).toBe(200);
    await other.arrayBuffer();
  }
  const open = record(db, ['echo.js']);
  open.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  await until('it is recorded', async () => (await ui.json('/api/sessions')).sessions[0].frames === 2);
  const live = await ui.get('/api/sessions/latest/outline');
  expect([live.headers.get('etag'), live.headers.get('cache-control')]).toEqual([null, 'no-store']);
  await live.arrayBuffer();
});

test('a ticket is a download without the token, once', async () => {
  const ui = await startUi(await storeOf('everything-stdio'));
  const path = '/api/sessions/latest/frames/1/bytes';
  const { url } = await ui.json(`/api/ticket?for=${encodeURIComponent(path)}`);
  expect(url).toMatch(/^\/api\/download\/[\w-]{43}$/);
  expect((await ask(ui, `/api/ticket?for=${path}`)).status).toBe(401);
  const expected = await (await ui.get(path)).text();
  expect(await ask(ui, url, { headers: { 'Sec-Fetch-Site': 'cross-site' } })).toMatchObject({ status: 403 });
  expect(await ask(ui, url)).toMatchObject({ status: 200, text: expected });
  expect(await ask(ui, url)).toMatchObject({ status: 404 });
  for (const wrong of ['', '/', '/api/nothing', '//evil.example/x', 'https://evil.example/'])
    expect((await ui.get(`/api/ticket?for=${encodeURIComponent(wrong)}`)).status, wrong).toBe(400);
  expect(JSON.stringify(await ask(ui, '/'))).not.toContain(TOKEN);
});
