/** What keeps an engine: partitions ahead, strange clocks, the end of what is old, the index of texts. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TABLES } from '../../src/engine/tables.ts';
import {
  daysAgo,
  engineOfGroup,
  newEngine,
  plantSession,
  rowCounts,
  weekOf,
  withEngine,
} from '../support/engine.ts';
import { inFull, scale } from '../support/scale.ts';
import { tapedeckInProcess } from '../support/tapedeck.ts';

async function maintain(url: string, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await tapedeckInProcess(['engine', 'maintain', '--to', url, ...words]);
  expect([code, stderr]).toEqual([0, '']);
  return stdout.toString();
}

withEngine('engine maintain and drop', () => {
  const engineHere = engineOfGroup();

  test('has partitions eight weeks ahead, and does nothing the second time', async () => {
    const engine = engineHere();
    const { owner, url, query } = engine;
    expect(await maintain(url)).toBe('');
    const last = weekOf(daysAgo(-7 * 7));
    for (const { name } of TABLES) await query(`DROP TABLE tapedeck.${name}_${last.replaceAll('-', '')}`);
    const far = await plantSession(owner, { day: last });
    expect(await maintain(url)).toBe(`${last}  made the partitions of this week\n`);
    expect(await rowCounts(engine, far)).toEqual({});
    expect(await maintain(url)).toBe('');
  });

  test('gives what strange clocks have brought partitions of its own', async () => {
    const engine = engineHere();
    const days = ['2099-12-31', '1916-02-29', '1969-12-31'];
    const planted = [];
    for (const day of days) planted.push(await plantSession(engine.owner, { day }));
    expect((await maintain(engine.url)).match(/made/g)).toHaveLength(3);
    for (const session of planted) {
      expect(await rowCounts(engine, session)).toEqual({});
      const [row] = await engine.query(
        'SELECT tableoid::regclass::text AS part, day::text FROM tapedeck.frame WHERE session = $1',
        [session.session],
      );
      const digits = weekOf(session.day).replaceAll('-', '');
      expect(row).toEqual({ part: `tapedeck.frame_${digits}`, day: session.day });
    }
    for (const { name } of TABLES)
      expect(await engine.query(`SELECT FROM tapedeck.${name}_default`)).toEqual([]);
  });

  inFull('takes a year of strange clocks at once, and the rest the next time', async () => {
    const engine = await newEngine();
    await engine.query(
      `INSERT INTO tapedeck.session (session, day)
       SELECT gen_random_uuid(), '1950-01-02'::date + 7 * n FROM generate_series(0, 53) AS n`,
    );
    expect(await maintain(engine.url)).toMatch(/(?:.* made .*\n){52}2 weeks of strange clocks are left/);
    expect(await maintain(engine.url)).toMatch(/^(?:.* made .*\n){2}$/);
  });

  test('deletes weeks that are over, keeps errors, and spares a week of which more may come', async () => {
    const engine = engineHere();
    const [old, older, oldest] = [daysAgo(100), daysAgo(110), daysAgo(120)];
    for (const day of [old, older, oldest]) await engine.query('SELECT tapedeck.add_week($1)', [day]);
    const young = await plantSession(engine.owner, { day: daysAgo(50) });
    const gone = await plantSession(engine.owner, { day: old });
    const failed = await plantSession(engine.owner, { day: old, errors: 2 });
    const open = await plantSession(engine.owner, { day: older, sealed_at: null, host: 'lap\u001btop' });
    const beside = await plantSession(engine.owner, { day: older });
    await plantSession(engine.owner, { day: oldest });

    const age = ['--older-than', '90d', '--keep-errors'];
    const printed = await maintain(engine.url, ...age);
    const weeks = [oldest, older, old].map(weekOf);
    expect(printed.split('\n').filter((line) => weeks.includes(line.split(' ')[0] ?? ''))).toEqual([
      `${weeks[0]}  deleted 1 session`,
      expect.stringMatching(RegExp(`^${weeks[1]}  stays: 1 session of lap\\S+top may still grow`)),
      `${weeks[2]}  deleted 1 session, kept 1`,
    ]);
    expect(printed).not.toContain('\u001b');
    for (const session of [young, failed, open, beside]) expect(await rowCounts(engine, session)).toEqual({});
    expect(Object.values(await rowCounts(engine, gone))).toEqual(TABLES.map(() => 0));

    const again = await maintain(engine.url, ...age, '--json');
    expect(
      again
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    ).toEqual([{ step: 'unsealed', week: weeks[1], sessions: 1, hosts: ['lap\u001btop'] }]);

    // A host that was away for long still brings what it has, in its week.
    const late = await plantSession(engine.owner, { day: oldest });
    await plantSession(engine.owner, { day: old });
    expect(await maintain(engine.url)).toContain(`${weeks[0]}  made`);
    expect(await rowCounts(engine, late)).toEqual({});
    expect(await maintain(engine.url, '--older-than', '90d')).toMatch(
      RegExp(`${weeks[0]}  deleted 1 session\n.*stays.*\n${weeks[2]}  deleted 2 sessions\n`),
    );
  });

  test('keeps what a filter may hold for, beside what has errors', async () => {
    const engine = engineHere();
    const day = daysAgo(140);
    await engine.query('SELECT tapedeck.add_week($1)', [day]);
    const incident = await plantSession(engine.owner, { day, labels: '{"incident":"it\'s 7"}' });
    const slow = await plantSession(engine.owner, { day }, { latency: 5_000_000 });
    const failed = await plantSession(engine.owner, { day, errors: 1 });
    const gone = await plantSession(engine.owner, { day, name: 'incident' });
    const filter = `label~"INCIDENT=it's" or (dur>4s name=text)`;
    const words = ['--older-than', '130d', '--keep-errors', '--keep', filter];
    expect(await maintain(engine.url, ...words)).toContain(`${weekOf(day)}  deleted 1 session, kept 3\n`);
    for (const session of [incident, slow, failed]) expect(await rowCounts(engine, session)).toEqual({});
    expect(Object.values(await rowCounts(engine, gone))).toEqual(TABLES.map(() => 0));
    expect(await maintain(engine.url, ...words)).not.toContain(weekOf(day));
    const slip = await tapedeckInProcess(['engine', 'maintain', '--to', engine.url, '--keep', 'dur>1s']);
    expect(slip.stderr).toContain('`--keep` goes with `--older-than`');
    const wrong = await tapedeckInProcess([
      'engine',
      'maintain',
      '--to',
      engine.url,
      '--older-than',
      '9d',
      '--keep',
      'x=1',
    ]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('Expected a field')]);
  });

  test('waits for writers, and lets them go first', async () => {
    const engine = engineHere();
    const day = daysAgo(100);
    await engine.query('SELECT tapedeck.add_week($1)', [day]);
    const { session } = await plantSession(engine.owner, { day });
    await engine.owner.query('BEGIN');
    await engine.owner.query('UPDATE tapedeck.session SET sealed_at = NULL WHERE session = $1', [session]);
    const running = maintain(engine.url, '--older-than', '90d');
    await expect
      .poll(
        async () =>
          (await engine.query("SELECT FROM pg_locks WHERE NOT granted AND mode LIKE '%Exclusive%'")).length,
      )
      .toBeGreaterThan(0);
    await engine.owner.query('COMMIT');
    expect(await running).toContain('may still grow');
    expect(await engine.query('SELECT FROM tapedeck.frame WHERE session = $1', [session])).toHaveLength(1);
  });

  test('indexes texts of weeks that are over, whatever bytes they are, and a search finds them by it', async () => {
    const engine = engineHere();
    const day = daysAgo(21);
    await engine.query('SELECT tapedeck.add_week($1)', [day]);
    const hostile = Buffer.from([0, 0xff, 0xc3, 0x28, 0x5c, 0x25, 0]);
    const payload = Buffer.concat([Buffer.from('{"name":"Glühwein"}'), hostile]);
    await plantSession(engine.owner, { day }, { payload });
    expect(await maintain(engine.url, '--text-index')).toContain(
      `${weekOf(day)}  indexed the texts of this week`,
    );
    expect(await maintain(engine.url, '--text-index')).toBe('');
    const digits = weekOf(day).replaceAll('-', '');
    const sql = `SELECT seq FROM tapedeck.frame_${digits}
      WHERE tapedeck.payload_text(payload) LIKE '%' || tapedeck.payload_text(convert_to('HWEIN', 'UTF8')) || '%'`;
    expect(await engine.query(sql)).toEqual([{ seq: '0' }]);
    await engine.query('SET enable_seqscan = off');
    const plan = await engine.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${sql}`);
    await engine.query('RESET enable_seqscan');
    expect(plan.map((row) => row['QUERY PLAN']).join('\n')).toContain(`frame_${digits}_text`);
  });

  test('the text of an index is made of any bytes, and no longer than it should be', async () => {
    const engine = engineHere();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        const [row] = await engine.query<{ text: string }>('SELECT tapedeck.payload_text($1) AS text', [
          Buffer.from(bytes),
        ]);
        const ascii = [...bytes].map((byte) => String.fromCharCode(byte)).join('');
        const written = ascii
          .replaceAll('\\', '\\\\')
          .replaceAll(/[\0\x80-\xff]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`);
        expect(row?.text).toBe(written.replaceAll(/[A-Z]/g, (one) => one.toLowerCase()));
      }),
      { numRuns: scale(200, 30) },
    );
    const long = Buffer.alloc(100_000, 'A');
    const [row] = await engine.query('SELECT length(tapedeck.payload_text($1)) AS length', [long]);
    expect(row).toEqual({ length: 32_768 });
  });

  test('is for who may: others are told so', async () => {
    const engine = engineHere();
    const url = await engine.login('tapedeck_ship');
    const { code, stderr } = await tapedeckInProcess(['engine', 'maintain', '--to', url]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/lets us do nothing: .*tapedeck_admin.* \(42501\)/),
    ]);
    const admin = await engine.login('tapedeck_admin');
    expect(await maintain(admin)).toBe('');
    const slip = await tapedeckInProcess(['engine', 'maintain', '--to', admin, '--keep-errors']);
    expect(slip.stderr).toContain('`--keep-errors` goes with `--older-than`');
  });

  test('drop asks before it deletes everything, and leaves other schemas alone', async () => {
    const engine = engineHere();
    await plantSession(engine.owner);
    await engine.query('CREATE TABLE other (name text)');
    const unasked = await tapedeckInProcess(['engine', 'drop', '--to', engine.url]);
    expect([unasked.code, unasked.stderr]).toEqual([
      2,
      expect.stringMatching(/deletes \d+ sessions of .* Expected --yes/),
    ]);
    const terminal = { isTTY: true };
    const no = await tapedeckInProcess(['engine', 'drop', '--to', engine.url], { terminal, stdin: '\n' });
    expect([no.code, no.stderr]).toEqual([0, expect.stringContaining('nothing is changed')]);
    expect(await engine.query('SELECT FROM tapedeck.session')).not.toEqual([]);
    const yes = await tapedeckInProcess(['engine', 'drop', '--to', engine.url, '--yes']);
    expect([yes.code, yes.stderr]).toEqual([0, expect.stringContaining('with the schema')]);
    expect(
      await engine.query("SELECT to_regnamespace('tapedeck') AS schema, to_regclass('other')::text AS other"),
    ).toEqual([{ schema: null, other: 'other' }]);
  });
});
