/** A search of an engine asks the index of texts where there is one, and finds what a search of the store finds. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { connectEngine, readAddress } from '../../src/engine/connect.ts';
import { candidatesFor } from '../../src/engine/read/candidates.ts';
import { askTextIndex, textIndexSql } from '../../src/engine/read/text-index.ts';
import { parseFilter, textTerm } from '../../src/inspect/filter/filter.ts';
import { daysAgo, withEngine } from '../support/engine.ts';
import { expectSame, type Fleet, fleet, newStore, ship } from '../support/fleet.ts';
import { inFull } from '../support/scale.ts';
import { storeSession } from '../support/stored.ts';
import { tapedeckInProcess } from '../support/tapedeck.ts';

const TEXTS = [
  ...['Glühwein', 'STRASSE straße', '100%', 'a_b', String.raw`C:\temp\new`, 'İstanbul Kelvin \u212a'],
  ...['kiki', 'word word', '{"a":["%_%"]}', 'ß', 'nul \u0000 byte', 'backslash \\\\ twice', '🦊 fox'],
];

const frameWith = (text: string) => JSON.stringify({ jsonrpc: '2.0', method: 'm', params: { text } });

/** Beyond what the index has of a payload, beyond its first MiB, and across the two. */
const LARGE = [40_000, 1_100_000, 1_048_560].map((at) => frameWith(`${'.'.repeat(at)}Hidden needle here`));

const US_A_DAY = 86_400_000_000;

/** Sessions of three weeks: two of them over and with an index, and today. */
async function searched(): Promise<{ own: Fleet; file: string }> {
  const own = await fleet();
  const now = Date.now() * 1000;
  let count = 0;
  const file = newStore((store) => {
    for (const [i, days] of [30, 22, 21, 0].entries()) {
      const start = (more: object) => ({ at: now - days * US_A_DAY + 1e6 * ++count, ...more });
      storeSession(store, { start: start({ name: `plain${i}` }), lines: TEXTS.map(frameWith) });
      storeSession(store, { start: start({ name: `large${i}` }), lines: [LARGE[i % 3] ?? ''] });
      storeSession(store, {
        start: start({ name: `only${i}` }),
        lines: [frameWith(`only${i} BEAR${i}`), Buffer.from([0xff, 0x41, 0x42, 0x43, 0, 0x64])],
      });
    }
  });
  await ship(own, file);
  for (const _ of [1, 2])
    expect(
      await tapedeckInProcess(['engine', 'maintain', '--text-index', '--to', own.database.url]),
    ).toMatchObject({
      code: 0,
    });
  return { own, file };
}

const WORDS = [
  ...[
    'glühWEIN',
    'strasse',
    'STRASSE',
    '100%',
    '%',
    'a_b',
    'a%b',
    String.raw`c:\\temp`,
    '\\',
    'istanbul',
    'KELVIN',
  ],
  ...[
    'kiki',
    'iki',
    'k',
    'word',
    'hidden NEEDLE',
    'needle here"',
    'abc',
    'fox',
    '🦊',
    'bear1',
    'bear',
    'nowhere',
    ':',
  ],
];

withEngine('a search of an engine', () => {
  inFull('finds by the index what the store finds without one', async () => {
    const { own, file } = await searched();
    const words = fc.sample(fc.constantFrom(...WORDS), { numRuns: 60, seed: 3 });
    for (const word of new Set([...words, 'hidden needle', 'bear1']))
      await expectSame(own, file, ['search', '--limit', '0', '--', word]);
    await expectSame(own, file, ['search', 'needle', '--limit', '2']);
    await expectSame(own, file, [
      'search',
      '--filter',
      'not text~bear1 kind=notification',
      '--limit',
      '4',
      '--json',
    ]);
    await expectSame(own, file, [
      'search',
      'only',
      '--filter',
      'text~bear0 or (name=only3 text~bear3)',
      '--json',
    ]);

    const client = await connectEngine(readAddress(own.reader, {}));
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const known = await askTextIndex(client, textTerm('BEAR1'));
    // Its own, and the two with frames of several parts.
    expect(known.ranges.length).toBeGreaterThan(0);
    expect([...known.sessions.values()].map((keys) => keys.length)).toEqual([3]);
    // Whatever is said about it, it is no more than a candidate.
    const negated = parseFilter('not text~bear1', 0);
    const { rows } = await client.query<{ count: number }>(
      `SELECT count(*) FROM tapedeck.session AS s WHERE ${candidatesFor(negated, await askTextIndex(client, negated)).sql}`,
    );
    expect(rows[0]?.count).toBe(12);

    await client.query('COMMIT');
    // Of a few frames every plan is a good one.
    await own.database.query(
      `INSERT INTO tapedeck.frame (session, day, seq, size, payload) SELECT gen_random_uuid(), $1::date, i, 40,
         convert_to(md5(i::text), 'UTF8') FROM generate_series(1, 20000) AS i`,
      [known.ranges[0]?.[0]],
    );
    await own.database.query('ANALYZE tapedeck.frame');
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await client.query('SET LOCAL enable_seqscan = off');
    const plan = await client.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN ${textIndexSql(1, known.ranges)}`
        .replaceAll('$1::text', `'%bear1%'`)
        .replaceAll('$2::text', `'bear1'`),
    );
    const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n');
    const week = `frame_${known.ranges[0]?.[0].replaceAll('-', '')}`;
    expect(text).toContain(`${week}_text`);
    expect(text).toContain(`${week}_large`);
    expect(text).not.toMatch(/Seq Scan on frame_\d/);
    await client.end();
  });

  inFull('reads no payload where the index says that there is none', async () => {
    const { own } = await searched();
    await own.database.query('ANALYZE tapedeck.frame');
    const client = await connectEngine(readAddress(own.reader, {}));
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const filter = parseFilter(`text~"no such text" until=${daysAgo(10)}`, Date.now() * 1000);
    const { sql, values } = candidatesFor(filter, await askTextIndex(client, filter));
    const { rows } = await client.query<{ name: string }>(
      `SELECT s.name FROM tapedeck.session AS s WHERE s.day < '${daysAgo(10)}' AND ${sql}`,
      values,
    );
    // Those whose frames are of several parts: it may be across two of them.
    expect(rows.map(({ name }) => name).toSorted()).toEqual(['large1', 'large2']);
    await client.end();
  });
});
