/** Which sessions are kept: the same ones wherever they pass, each whole or not at all. */
import { expect, test } from 'vitest';
import { openSpool } from '../../../src/store/file/open.ts';
import { spoolPath } from '../../../src/store/file/spool.ts';
import { drawOf } from '../../../src/store/sample/sampling.ts';
import { createTakeIn } from '../../../src/store/write/take-in.ts';
import {
  answered,
  asked,
  EVENT_STREAM,
  ended,
  JSON_TYPE,
  type Recording,
  rpc,
  startRecording,
} from '../../support/http-store.ts';
import { modernMeta } from '../../support/messages.ts';

const HALF = { rate: 0.5, keep: null };
const KEYS = Array.from({ length: 10_000 }, (_, i) => `key-${i}`);
const NAMES = KEYS.slice(0, 40);
const isKept = (key: string) => drawOf(key) < 0.5;

const withSession = (id: string) => [...JSON_TYPE, 'Mcp-Session-Id', id];
const INITIALIZE = rpc({
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
});
const call = (id: number, meta = {}) =>
  rpc({ id, method: 'tools/call', params: { name: 'x', arguments: {}, _meta: meta } });

test('a key has one draw for good, and another one for each purpose', () => {
  expect(drawOf('abc')).toBe(0.41101203705111544);
  expect(KEYS.filter((key) => drawOf(key) < 0.1)).toHaveLength(1027);
  expect(KEYS.filter(isKept)).toHaveLength(4945);
  expect(KEYS.filter((key) => drawOf(key) < 0.1 && drawOf(key, 'ship') < 0.1)).toHaveLength(103);
});

/** One client's session, from `initialize` to DELETE. `isSlow`: what came is stored before the answer to `initialize`. */
function converse(recording: Recording, first: number, name: string, isSlow: boolean): void {
  recording.feed(...asked(first, { path: `/mcp?${name}`, body: INITIALIZE }));
  if (isSlow) recording.save();
  recording.feed(
    ...answered(first, { headers: withSession(name), body: rpc({ id: 0, result: {} }) }),
    ended(first),
    ...asked(first + 1, { headers: withSession(name), body: call(1) }),
    ...answered(first + 1, { body: rpc({ id: 1, result: {} }) }),
    ended(first + 1),
    ...asked(first + 2, { method: 'DELETE', headers: withSession(name) }),
    ...answered(first + 2, {}),
    ended(first + 2),
  );
}

/** `/mcp?key-1` of the first exchange of each stored session. */
const stored = (recording: Recording) =>
  recording.all<{ path: string; frames: number; sample: number }>(
    `SELECT h.path, s.frames, s.sample FROM session AS s
       JOIN http_exchange AS h ON h.session = s.number AND h.number = 1 ORDER BY h.at`,
  );

test.each([false, true])(
  'a session by its id is stored whole or not at all, also where its answer is late: %s',
  async (isSlow) => {
    const recording = startRecording({ sampling: HALF });
    for (const [i, name] of NAMES.entries()) converse(recording, 1 + i * 3, name, isSlow);
    await recording.close();
    expect(stored(recording)).toEqual(
      NAMES.filter(isKept).map((name) => ({ path: `/mcp?${name}`, frames: 4, sample: 0.5 })),
    );
    expect(recording.intake.leftOut()).toBe(NAMES.filter((name) => !isKept(name)).length);
    expect(recording.all('SELECT 1 FROM session WHERE dropped > 0')).toEqual([]);
    // What was stored before the answer is gone for readers, and its rows are to follow.
    const left = recording.all('SELECT DISTINCT session FROM http_exchange').length;
    const hidden = recording.all('SELECT session FROM removal').length;
    expect(left - hidden).toBe(NAMES.filter(isKept).length);
    expect(hidden > 0).toBe(isSlow);
  },
);

test('a recorder that comes late, or gets the rest of a session, decides alike', async () => {
  const recording = startRecording({ sampling: HALF });
  for (const [i, name] of NAMES.entries())
    recording.feed(
      ...asked(i + 1, { path: `/mcp?${name}`, headers: withSession(name), body: call(1) }),
      ...answered(i + 1, { body: rpc({ id: 1, result: {} }) }),
      ended(i + 1),
    );
  await recording.close();
  expect(stored(recording).map(({ path }) => path)).toEqual(
    NAMES.filter(isKept).map((name) => `/mcp?${name}`),
  );
});

test('what is left out while it goes into a spool is gone once that is taken in', async () => {
  const recording = startRecording({ sampling: HALF });
  const [stays = ''] = NAMES.filter(isKept);
  const [before = '', within = ''] = NAMES.filter((name) => !isKept(name));
  const begin = (exchange: number, name: string) =>
    asked(exchange, { path: `/mcp?${name}`, body: INITIALIZE });
  const name = (exchange: number, id: string) => [
    ...answered(exchange, { headers: withSession(id), body: rpc({ id: 0, result: {} }) }),
    ended(exchange),
  ];
  recording.feed(...begin(1, before), ...begin(2, stays));
  recording.save();
  const spool = openSpool(spoolPath(recording.db, 'x'), false);
  recording.intake.openSpool(spool);
  recording.feed(...begin(3, within));
  recording.save();
  recording.feed(...name(1, before), ...name(2, stays), ...name(3, within));
  recording.save();
  const marks = spool.prepare<[], [number, string]>('SELECT sample, sampling FROM session ORDER BY number');
  expect(marks.raw().all()).toEqual([
    [0, null],
    [0.5, null],
  ]);
  while (!createTakeIn(recording.store, spool).advance(1000));
  recording.intake.open(recording.store);
  spool.close();
  await recording.close();
  expect(stored(recording)).toEqual([{ path: `/mcp?${stays}`, frames: 2, sample: 0.5 }]);
  expect(recording.all('SELECT 1 FROM session WHERE dropped > 0')).toEqual([]);
});

test('a legacy SSE session is told by what its stream announces', async () => {
  const recording = startRecording({ sampling: HALF, target: 'http://127.0.0.1/sse' });
  for (const [i, name] of NAMES.entries()) {
    const [stream, post] = [1 + i * 2, 2 + i * 2];
    recording.feed(
      ...asked(stream, { method: 'GET', path: '/sse', headers: ['Accept', 'text/event-stream'] }),
      ...answered(stream, { headers: EVENT_STREAM, body: `event: endpoint\ndata: /messages?s=${name}\n\n` }),
    );
    recording.feed(
      ...asked(post, { path: `/messages?s=${name}`, body: INITIALIZE }),
      ...answered(post, { status: 202 }),
      ended(post),
      ended(stream),
    );
    recording.save();
  }
  await recording.close();
  const paths = recording.all<{ path: string }>(
    "SELECT path FROM http_exchange AS h JOIN session AS s ON s.number = h.session WHERE method = 'POST' ORDER BY h.at",
  );
  expect(paths.map(({ path }) => path)).toEqual(
    NAMES.filter((name) => isKept(`/messages?s=${name}`)).map((name) => `/messages?s=${name}`),
  );
});

test('sessions that nothing on the wire names are told by their own ids, and are whole or not there', async () => {
  const recording = startRecording({ sampling: HALF });
  const COUNT = 60;
  for (let i = 0; i < COUNT; i += 1) {
    const meta = modernMeta({ 'io.modelcontextprotocol/clientInfo': { name: `c${i}`, version: '1' } });
    for (const turn of [1, 2])
      recording.feed(
        ...asked(i * 2 + turn, { body: call(turn, meta) }),
        ...answered(i * 2 + turn, { body: rpc({ id: turn, result: {} }) }),
        ended(i * 2 + turn),
      );
    if (i % 7 === 0) recording.save();
  }
  await recording.close();
  const ids = recording.all<{ id: string; frames: number }>('SELECT id, frames FROM session');
  expect(ids.filter(({ id, frames }) => !isKept(id) || frames !== 4)).toEqual([]);
  expect(ids.length + recording.intake.leftOut()).toBe(COUNT);
});
