import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Outline } from '../../src/web/api.ts';
import { type JsonFrame, payloadOf, showFrames, tapedeckInProcess } from '../support/tapedeck.ts';
import { startUi, storeOf } from '../support/ui.ts';

const RECORDINGS = ['everything-stdio', 'everything-http', 'modern-http'];

/** The rows of an outline, with their texts. */
function rowsOf({ strings, next: _, ...columns }: Outline): Record<string, unknown>[] {
  const texts = ['channel', 'kind', 'id', 'method', 'target', 'relation', 'outcome', 'problem', 'text'];
  return columns.seq.map((_seq, i) =>
    Object.fromEntries(
      Object.entries(columns).map(([name, column]) => {
        const value = column[i] as number;
        return [name, texts.includes(name) ? (strings[value] ?? null) : value];
      }),
    ),
  );
}

/** What an outline and `show --json` both say of a frame's messages. */
function factsOf(frame: JsonFrame): object[] {
  const { seq, channel, size, http } = frame;
  const own = { seq, channel, size, http: http?.exchange ?? 0 };
  if (frame.messages.length === 0)
    return [{ ...own, n: 0, kind: null, id: null, toSeq: null, latency: -1, problem: null }];
  return frame.messages.map((message, n) => ({
    ...own,
    ...{ n, kind: message.kind, id: message.id, toSeq: message.replyTo, problem: message.problem },
    latency: message.latencyMs === null ? -1 : Math.round(message.latencyMs * 1000),
  }));
}

test.each(RECORDINGS)('the outline of %s says what show --json says, in slices of any size', async (name) => {
  const db = await storeOf(name);
  const ui = await startUi(db);
  const expected = (await showFrames(db)).flatMap(factsOf);
  for (const limit of [1, 7, 5000]) {
    const rows: Record<string, unknown>[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const slice: Outline = await ui.json(`/api/sessions/latest/outline?after=${after}&limit=${limit}`);
      rows.push(...rowsOf(slice));
      after = slice.next;
    }
    expect(
      rows.map(({ seq, channel, size, http, n, kind, id, relation, toSeq, latency, problem }) => {
        return {
          seq,
          channel,
          size,
          http,
          n,
          kind,
          id,
          toSeq: relation === 'reply' ? toSeq : null,
          latency,
          problem,
        };
      }),
    ).toEqual(expected);
  }
});

test('frames are what show --json prints, page by page, each with what stands around it', async () => {
  const db = await storeOf('everything-http');
  const ui = await startUi(db);
  const expected = await showFrames(db);
  const frames: JsonFrame[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: { frames: JsonFrame[]; next: number | null } = await ui.json(
      `/api/sessions/latest/frames?after=${after}&limit=5`,
    );
    frames.push(...page.frames);
    after = page.next;
  }
  expect(frames).toEqual(expected);
  for (const frame of expected) {
    const one = await ui.json(`/api/sessions/latest/frames/${frame.seq}`);
    expect(one).toMatchObject(frame);
    expect(one.sha256).toBe(createHash('sha256').update(payloadOf(frame)).digest('hex'));
    expect(one.storedBytes).toBe(payloadOf(frame).length);
  }
});

test('HTTP exchanges are what show --json --http prints, each with its frames', async () => {
  const db = await storeOf('everything-http');
  const ui = await startUi(db);
  const { stdout } = await tapedeckInProcess(['show', '--json', '--http', '--db', db]);
  const expected = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const first = await ui.json('/api/sessions/latest/http?limit=3');
  const rest = await ui.json(`/api/sessions/latest/http?after=${first.next}&limit=500`);
  expect([...first.http, ...rest.http]).toEqual(expected);
  expect(rest.next).toBeNull();
  const frames = await showFrames(db);
  for (const { http } of expected) {
    const { frames: found } = await ui.json(`/api/sessions/latest/http/${http}`);
    expect(found).toEqual(frames.filter((frame) => frame.http?.exchange === http).map(({ seq }) => seq));
  }
});

test('sessions are what list --json prints, in any order, page by page, with a filter or without', async () => {
  const db = await storeOf(...RECORDINGS);
  const ui = await startUi(db);
  const { stdout } = await tapedeckInProcess(['list', '--json', '--db', db]);
  const expected = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const all = await ui.json('/api/sessions');
  expect(all).toMatchObject({ sessions: expected, next: null, total: 3 });
  const names: string[] = [];
  for (let after = ''; after !== 'null'; ) {
    const page = await ui.json(`/api/sessions?sort=name&limit=1${after === '' ? '' : `&after=${after}`}`);
    names.push(...page.sessions.map(({ name }: { name: string }) => name));
    expect(page.total).toBe(3);
    after = String(page.next);
  }
  expect(names).toEqual(['everything-http', 'everything-stdio', 'modern-http']);
  const found = await ui.json('/api/sessions?filter=transport%3Dstdio');
  expect(found).toMatchObject({ total: 1, sessions: [{ name: 'everything-stdio' }] });
  const wrong = await ui.get('/api/sessions?filter=tol%3Decho');
  expect([wrong.status, await wrong.json()]).toMatchObject([400, { error: { code: 'usage', at: 1 } }]);
});

test('a session says what it was, what its server offered and how it ended', async () => {
  const ui = await startUi(await storeOf('everything-stdio'));
  const session = await ui.json('/api/sessions/latest');
  expect(session).toMatchObject({
    session: { name: 'everything-stdio', state: 'client-closed' },
    losses: [],
    capabilities: { client: expect.stringContaining('{'), server: expect.stringContaining('tools') },
  });
  expect(session.offers.length).toBeGreaterThan(0);
  expect(session.offers[0]).toMatchObject({ kind: 'tool', name: 'echo', bytes: expect.any(Number) });
  const short = session.session.session.slice(0, 6);
  expect(await ui.json(`/api/sessions/${short}`)).toEqual(session);
  const none = await ui.get('/api/sessions/nothing-like-it');
  expect([none.status, await none.json()]).toMatchObject([404, { error: { code: 'not-found' } }]);
});
