/** How large answers are, whatever was recorded, and that nothing is lost between their pages. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf } from '../support/documents.ts';
import { callOf, type Line, replies, resultOf, says, stdioSession } from '../support/hand-made.ts';
import { askStore, everythingSaid, type Json, storeOfTexts } from '../support/mcp.ts';
import { IS_FULL, inFull, scale } from '../support/scale.ts';
import { ROOT } from '../support/tapedeck.ts';

const text = (value: string) => ({ content: [{ type: 'text', text: value }] });

test('an answer about anything has at most 20 kB', async () => {
  const quotes = '"\\'.repeat(40_000);
  const many = Object.fromEntries(
    Array.from({ length: scale(3000) }, (_, i) => [`argument-${i}`, '\u0001é😀"']),
  );
  const lines: Line[] = [
    says(1, callOf('i'.repeat(50_000), 't'.repeat(200_000), many)),
    replies(2, resultOf('i'.repeat(50_000), text(quotes))),
    {
      at: 3,
      channel: 'stdout',
      base64: Buffer.from([0xff, 0xfe, ...Buffer.alloc(90_000, 0xee)]).toString('base64'),
    },
    { at: 4, channel: 'stderr', text: '\u001b[31m'.repeat(30_000) },
    says(5, { method: 'm'.repeat(70_000), params: {} }),
    {
      at: 6,
      channel: 'stdin',
      text: `[${Array.from({ length: scale(400) }, (_, i) => `{"jsonrpc":"2.0","id":${i},"method":"ping"}`).join(',')}]`,
    },
    {
      at: 7,
      channel: 'stdin',
      text: `{"jsonrpc":"2.0","id":12345678901234567890,"method":"${'['.repeat(2000)}"}`,
    },
    { at: 8, channel: 'stdin', text: `${'['.repeat(20_000)}` },
    replies(9, { id: 'x', error: { code: -1, message: quotes } }),
  ];
  const labels = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`l${i}`, 'v'.repeat(300)]));
  const header = {
    name: 'n'.repeat(5000),
    target: 'x'.repeat(90_000),
    labels,
    command: ['node', ...Array(500).fill('w'.repeat(400))],
  };
  const db = await storeOfTexts(stdioSession(lines, header));
  const agent = await askStore(db);
  // Each answer is measured where it arrives.
  const { sessions } = await agent.recorded('list_sessions');
  if (IS_FULL) await everythingSaid(agent, sessions[0]?.session ?? 'latest');
  for (const name of ['get_session', 'list_calls', 'stats', 'check', 'search']) await agent.call(name);
  for (const seq of [1, 2, 3, 4]) await agent.call('get_frame', { seq });
  await agent.call('get_call', { seq: 2 });
});

test('a session that was never redacted has its own labels and command', async () => {
  const texts = ['one', 'two'].map((name) =>
    stdioSession([says(1, callOf(1, name, {})), replies(2, resultOf(1, text(name)))], {
      ...{ name, labels: { of: name }, command: ['node', `${name}.js`] },
    }),
  );
  const agent = await askStore(await storeOfTexts(...texts));
  for (const name of ['one', 'two'])
    expect(await agent.recorded('get_session', { session: name })).toMatchObject({
      session: { name, labels: { of: name }, command: ['node', `${name}.js`] },
    });
});

test('the pages of a list have every call once, in order', async () => {
  const count = scale(3000, 250);
  const calls = Array.from({ length: count }, (_, i) => [
    says(10 + 2 * i, callOf(i, `tool-${i % 7}`)),
    replies(11 + 2 * i, resultOf(i)),
  ]).flat();
  const agent = await askStore(await storeOfTexts(stdioSession(calls, { endedAt: 100_000 })));
  const seqs: number[] = [];
  let pages = 0;
  for (let cursor: string | undefined = ''; cursor !== undefined; pages += 1) {
    const args: Json = { limit: 200, ...(cursor === '' ? {} : { cursor }) };
    const { structuredContent } = await agent.call('list_calls', args);
    const found: Json[] = structuredContent?.recorded['calls'] ?? [];
    seqs.push(...found.map(({ seq }) => seq));
    cursor = structuredContent?.cursor;
    if (cursor !== undefined)
      expect(structuredContent?.leftOut?.join()).toContain('ask again with this cursor');
  }
  expect(seqs).toEqual(Array.from({ length: count }, (_, i) => 1 + 2 * i));
  expect(pages).toBeGreaterThan(2);
});

inFull.each([true, false])(
  'the pages of a search have every frame once, with an index: %s',
  async (keepsIndex) => {
    const lines = Array.from({ length: 90 }, (_, i) => says(i, callOf(i, 'find', { word: `needle ${i}` })));
    const other = says(1, callOf(1, 'other'));
    const db = await storeOfTexts(
      stdioSession(lines),
      stdioSession([other], {}, 9000),
      stdioSession([...lines.slice(0, 40), other], {}, 5000),
    );
    const agent = await askStore(db, { keepsIndex });
    const places: string[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const args: Json = { text: ['needle'], limit: 30, ...(cursor === '' ? {} : { cursor }) };
      const { structuredContent } = await agent.call('search', args);
      const hits: Json[] = structuredContent?.recorded['hits'] ?? [];
      places.push(...hits.map(({ session, seq }) => `${session} ${seq}`));
      cursor = structuredContent?.cursor;
    }
    expect(places).toHaveLength(130);
    expect(new Set(places).size).toBe(130);
  },
);

test('a large payload is read piece by piece, without cutting a character', async () => {
  const long = `{"jsonrpc":"2.0","id":1,"result":{"text":"${'é😀x'.repeat(20_000)}"}}`;
  const db = await storeOfTexts(stdioSession([{ at: 1, channel: 'stdout', text: long }]));
  const agent = await askStore(db);
  let read = '';
  for (let from: number | undefined = 0; from !== undefined; ) {
    const { payload } = await agent.recorded('get_frame', { seq: 1, from });
    expect(payload.bytes).toBe(Buffer.byteLength(long));
    read += payload.text;
    from = payload.next;
  }
  expect(read).toBe(long);
});

inFull('JSON is a value where that loses nothing, else the text as it passed', async () => {
  const exact = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const big = '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}';
  const agent = await askStore(
    await storeOfTexts(
      stdioSession([says(1, { id: 1, method: 'ping' }), { at: 2, channel: 'stdin', text: big }]),
    ),
  );
  expect((await agent.recorded('get_frame', { seq: 1 }))['payload'].message).toEqual(exact);
  expect((await agent.recorded('get_frame', { seq: 2 }))['payload'].text).toBe(big);
});

test('what is wrong with a question is said as the result of the tool', async () => {
  const agent = await askStore(await storeOfTexts(stdioSession([says(1, callOf(1, 'a'))])));
  const error = async (name: string, args: Json) => {
    const { isError, content } = await agent.call(name, args);
    expect(isError).toBe(true);
    return content[0]?.text;
  };
  expect(await error('list_calls', { filter: 'tol=x' })).toContain('Nearest: `tool`');
  expect(await error('search', { filter: 'dur>5' })).toContain('a duration with its unit');
  expect(await error('get_frame', { seq: 99 })).toContain('got 99');
  expect(await error('get_call', { seq: 99 })).toContain('See the tool list_calls');
  expect(await error('list_calls', { cursor: 'x' })).toContain('Expected the cursor of the answer before');
  expect(await error('list_sessions', { cursor: 'x' })).toContain('Expected the cursor of the answer before');
  expect(await error('stats', { session: 'latest', all: true })).toContain('got both');
  expect(await error('get_frame', { seq: 'one' })).toContain('seq');
});

test('a call without an answer tells what became of it, and what lay between a request and its answer', async () => {
  const lines = [
    says(1, callOf(1, 'slow', {}, { _meta: { progressToken: 'p' } })),
    replies(2, { method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } }),
    replies(3, resultOf(1)),
    says(4, callOf(2, 'lost')),
  ];
  const agent = await askStore(await storeOfTexts(stdioSession(lines, { serverClosedAt: 50_000 })));
  const done = await agent.recorded('get_call', { seq: 3 });
  expect(done['between']).toMatchObject([{ seq: 2, says: expect.stringContaining('progress') }]);
  expect(done['answer'].message.id).toBe(1);
  const lost = await agent.recorded('get_call', { seq: 4 });
  expect(lost['call'].outcome).toBe('unanswered');
  expect(lost['fate'].verdict).toBe('no-answer');
  const { failedCalls } = await agent.recorded('get_session');
  expect(failedCalls.map(({ seq }: Json) => seq)).toEqual([4]);
});

test('what the page shows of an answer is what an agent gets', async () => {
  const recording = readFileSync(join(ROOT, 'recordings/everything-stdio.ndjson'));
  const agent = await askStore(await storeOfTexts(recording));
  const { structuredContent } = await agent.call('list_calls', { filter: 'status=error' });
  const shown = blocksOf('docs/agents.md').find(({ text }) => text.includes('"note"'))?.text ?? '';
  const session = structuredContent?.recorded['session'];
  expect(JSON.parse(shown.replace(/"session": "\w+"/, `"session": "${session}"`))).toEqual(structuredContent);
});

test('each part of an answer that the page shows is in the answer that an agent gets', async () => {
  const named = ['everything-http', 'everything-stdio'].map((name) =>
    readFileSync(join(ROOT, `recordings/${name}.ndjson`)),
  );
  const agent = await askStore(await storeOfTexts(...named));
  const shown = blocksOf('docs/agents.md').filter(({ text }) => text.includes('"tool":'));
  expect(shown).toHaveLength(3);
  for (const { text } of shown) {
    const { tool, arguments: args = { session: 'everything-stdio' }, recorded } = JSON.parse(text);
    const answer = await agent.recorded(tool, args);
    // Of a list the page shows the first rows.
    for (const [key, value] of Object.entries<Json>(recorded))
      if (Array.isArray(value)) expect(answer[key].slice(0, value.length)).toMatchObject(value);
      else expect(answer[key]).toEqual(value);
  }
});

test('one text may be looked for without a list', async () => {
  const agent = await askStore(
    await storeOfTexts(stdioSession([says(1, callOf(1, 'find', { q: 'needle' }))])),
  );
  for (const text of ['NEEDLE', ['needle', 'find']])
    expect((await agent.recorded('search', { text }))['hits']).toHaveLength(1);
});

inFull('a question about a store that is not there yet is answered: there is nothing', async () => {
  const agent = await askStore('/nowhere/recordings.db');
  expect((await agent.recorded('list_sessions'))['sessions']).toEqual([]);
  expect((await agent.call('get_session')).isError).toBe(true);
});

test('figures of all sessions with a filter of frames come to all of them, asked as often as it says', async () => {
  const session = (i: number) => {
    const call = callOf(1, 'find', { word: i % 3 === 0 ? 'rare' : 'common' });
    return stdioSession([says(1, call), replies(2, resultOf(1))], { name: `s${i}` });
  };
  const db = await storeOfTexts(...Array.from({ length: scale(60, 12) }, (_, i) => session(i)));
  const agent = await askStore(db);
  let before = 0;
  for (let isAll = false; !isAll; ) {
    const { structuredContent } = await agent.call('stats', { all: true, filter: 'text~rare' });
    const recorded: Json = structuredContent?.recorded ?? {};
    const leftOut = structuredContent?.leftOut ?? [];
    const [, counted = 'all'] = /^Only (\d+) of \d+ sessions were counted/.exec(leftOut.join(' ')) ?? [];
    isAll = counted === 'all';
    const { count = 0 } = recorded['groups']?.[0] ?? {};
    expect(count).toBeGreaterThanOrEqual(before);
    before = count;
  }
  expect(before).toBe(scale(60, 12) / 3);
});
