/** Figures of an engine's sessions are those of the store that they come from, and take no payloads. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseFilter } from '../../src/inspect/filter/filter.ts';
import { openFor, SILENT } from '../../src/sources/open-for.ts';
import { openForReading, openStore } from '../../src/store/file/open.ts';
import { NO_NOTICES } from '../../src/store/keep/catch-up.ts';
import { withEngine } from '../support/engine.ts';
import { anyFilter, anySession, FILTERED_AT, recordingOf } from '../support/filters.ts';
import { expectSame, fleet, newStore, ship } from '../support/fleet.ts';
import { IS_FULL, inFull, scale } from '../support/scale.ts';
import { storeSession } from '../support/stored.ts';
import { tapedeckInProcess, tempStore } from '../support/tapedeck.ts';
import { importText } from '../support/text-recording.ts';

const TOOL = { name: 'a', description: 'words '.repeat(40), inputSchema: { type: 'object' } };

/** Lists of tools in one page and in a frame of several parts, calls with answers and without. */
const LINES = [
  '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools: [TOOL], nextCursor: 'x' } }),
  '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}',
  JSON.stringify({
    jsonrpc: '2.0',
    id: 2,
    result: { tools: [{ ...TOOL, name: 'b', description: 'z'.repeat(1_200_000) }] },
  }),
  '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}',
  `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"${'y'.repeat(50_000)}"}]}}`,
  '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"b"}}',
];

/** Halves and parts of what is in a store, by times of its frames. */
function timeFilters(file: string): string[] {
  const store = openForReading(file);
  const times = store.prepare<[], number>('SELECT at FROM frame ORDER BY at').pluck().all();
  store.close();
  const written = (share: number) =>
    `"${new Date((times[Math.floor(share * (times.length - 1))] ?? 0) / 1000).toISOString()}"`;
  return [
    `since=${written(0.5)}`,
    `until=${written(0.3)}`,
    `since=${written(0.2)} until=${written(0.7)}`,
    `(since=${written(0.1)} not name=none) (transport=stdio or transport=http)`,
    `not since=${written(0.6)}`,
    `since=${written(1)} name=none`,
  ];
}

withEngine('figures of an engine', () => {
  test('are those of the store, of random sessions and filters', async () => {
    const own = await fleet();
    const file = tempStore();
    const store = openStore(file);
    const sessions = fc
      .sample(anySession, { numRuns: scale(40, 6), seed: 11 })
      .filter(({ lines }) => lines.length > 0);
    for (const [i, one] of sessions.entries()) await importText(store, recordingOf(one, i));
    storeSession(store, { start: { at: FILTERED_AT - 1e9 }, lines: LINES });
    store.close();
    await ship(own, file);
    expect(await expectSame(own, file, ['stats', '--all', '--json'])).toContain('"tools/call"');
    for (const by of ['tool', 'method', 'session'])
      await expectSame(own, file, ['stats', '--all', '--by', by]);
    for (const text of fc.sample(anyFilter, { numRuns: scale(16, 2), seed: 11 })) {
      // Ages are those of the moment at which the filter is read.
      if (/ago|now|since|until/.test(text)) continue;
      await expectSame(own, file, ['stats', '--all', '--json', '--filter', text]);
      await expectSame(own, file, ['list', '--json', '--filter', text]);
    }
    await expectSame(own, file, ['stats', '--json', '--filter', 'tool=a since=2026-01-01']);
    // Times cut through sessions, where calls are open too.
    for (const text of timeFilters(file))
      for (const by of IS_FULL ? ['tool', 'session'] : ['tool'])
        await expectSame(own, file, ['stats', '--all', '--json', '--by', by, '--filter', text]);
  });

  test('come without frames, but for sessions where these alone tell', async () => {
    const own = await fleet();
    const whole = LINES.slice(0, -1);
    const lost = `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"${'l'.repeat(99)}"}}`;
    const odd = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"\\u0000"}}';
    const answer = '{"jsonrpc":"2.0","id":9,"result":{"content":[]}}';
    const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}';
    const file = newStore((store) => {
      const add = (name: string, lines: string[], i: number) =>
        storeSession(store, { start: { name, at: FILTERED_AT + i * 1e9 }, lines });
      add('plain', whole, 0);
      add('lost', [...whole, lost], 1);
      add('odd', [...whole, odd, answer], 2);
      add('cancelled', [...whole, lost, cancel], 3);
      add('silent', ['{"jsonrpc":"2.0","method":"notifications/initialized"}'], 4);
    });
    await ship(own, file);
    const counted = async (filter: string) => {
      const opened = await openFor(
        own.reader,
        { of: 'matches', filter: parseFilter(filter, FILTERED_AT), isCounted: true },
        { notices: { ...NO_NOTICES, ...SILENT }, env: { ...process.env, ...own.env } },
      );
      const names = opened.store
        .prepare<[], [number, string, number]>(
          'SELECT number, name, (SELECT count(*) FROM message WHERE session = number) FROM session ORDER BY name',
        )
        .raw()
        .all()
        .map(([number, name, rows]) => `${name} ${opened.counted?.has(number) ? 'counted' : rows}`);
      opened.close();
      return names;
    };
    const all = ['cancelled 8', 'lost 7', 'odd 8', 'plain counted', 'silent counted'];
    expect(await counted('')).toEqual(all);
    expect(await counted('since=2001-01-01 not name=none')).toEqual(all);
    // The newest is always here; of it nothing counts.
    expect(await counted('(name=plain or name=lost) since=2001-01-01')).toEqual([
      'lost 7',
      'plain counted',
      'silent 0',
    ]);
    // More than times is about frames.
    expect(await counted('tool=a name=plain')).toEqual(['plain 6', 'silent 0']);
    for (const words of [[], ['--by', 'session'], ['--by', 'method'], ['--filter', 'since=2001-01-01']])
      await expectSame(own, file, ['stats', '--all', '--json', ...words]);
    for (const name of ['plain', 'lost', 'odd', 'cancelled', 'silent'])
      await expectSame(own, file, ['stats', name, '--json']);
  });

  inFull(
    'take the answers to tools/list of all payloads, and those of a session that has no whole index',
    async () => {
      const own = await fleet();
      const file = newStore((store) => {
        storeSession(store, { start: { name: 'listed' }, lines: LINES });
        // Its host cannot say whether it goes on.
        const number = storeSession(store, { start: { name: 'behind', at: 2e15 }, isOpen: true });
        store.prepare('UPDATE session SET indexed = 0 WHERE number = ?').run(number);
      });
      await ship(own, file);
      await expectSame(own, file, ['stats', 'listed']);
      const lengths = async (filter: string) => {
        const opened = await openFor(
          own.reader,
          { of: 'matches', filter: parseFilter(filter, 0), isCounted: true },
          { notices: { ...NO_NOTICES, ...SILENT }, env: { ...process.env, ...own.env } },
        );
        const rows = opened.store
          .prepare<[], { seq: number; length: number }>(
            `SELECT seq, length(payload) AS length FROM frame JOIN session ON number = session
           WHERE name = 'listed' AND length(payload) > 0 ORDER BY seq`,
          )
          .all();
        opened.close();
        return rows.map(({ seq }) => seq);
      };
      expect(await lengths('name=listed')).toEqual([1, 2, 3, 4]);
      expect(await lengths('tool=a')).toEqual([1, 2, 3, 4]);
      // A text is looked for here.
      expect(await lengths('text~yyyy')).toEqual([1, 2, 3, 4, 5, 6, 7]);
    },
  );

  inFull('are told to people as they come', async () => {
    const own = await fleet();
    await ship(
      own,
      newStore((store) => void storeSession(store)),
    );
    const { stderr } = await tapedeckInProcess(['stats', '--all', '--db', own.reader], {
      env: own.env,
      terminal: { isTTY: true },
    });
    expect(stderr).toBe('\rtapedeck: fetched what counts of 1 session …\u001b[K\r\u001b[K');
  });
});
