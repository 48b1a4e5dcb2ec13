import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { FORMATS } from '../../src/export/formats.ts';
import type { SessionStart } from '../../src/store/file/columns.ts';
import { openForReading, openStore, type Store } from '../../src/store/file/open.ts';
import { findSession } from '../../src/store/read/sessions.ts';
import { insertSession } from '../../src/store/write/rows.ts';
import { doWork } from '../../src/web/params.ts';
import { createAnswerOutlet } from '../../src/web/reader-thread.ts';
import { EXPORT_FILES } from '../../src/web/slow/export.ts';
import { SLOW_WORKS } from '../../src/web/slow/works.ts';
import type { Emit, Params, Work } from '../../src/web/work.ts';
import { storeOnce } from '../support/once.ts';
import { sample } from '../support/scale.ts';
import { tapedeckInProcess } from '../support/tapedeck.ts';
import { exportText, importText } from '../support/text-recording.ts';

const NAMES = ['everything-stdio', 'everything-http', 'modern-http'];

const copy = storeOnce(async (db) => {
  const store = openStore(db);
  for (const name of NAMES) await importText(store, readFileSync(`recordings/${name}.ndjson`));
  store.close();
});

let db = '';

beforeEach(async () => {
  db = await copy();
});

function open(): Store {
  const store = openForReading(db);
  onTestFinished(() => void store.close());
  return store;
}

type Line = Record<string, unknown>;

type Asked = { params?: Record<string, string>; isLeft?: () => boolean };

async function ask(
  work: keyof typeof SLOW_WORKS,
  { params = {}, isLeft = () => false }: Asked,
): Promise<string[]> {
  const pieces: string[] = [];
  const emit: Emit = async (piece) => void (typeof piece === 'string' && pieces.push(piece));
  await SLOW_WORKS[work](open(), params, emit, isLeft);
  return pieces;
}

async function linesOf(work: keyof typeof SLOW_WORKS, params: Record<string, string>): Promise<Line[]> {
  return (await ask(work, { params })).map((line) => JSON.parse(line));
}

async function run(...args: string[]): Promise<Line[]> {
  const { stdout } = await tapedeckInProcess([...args, '--db', db, '--json']);
  return stdout
    .toString()
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** By the runs of `select`. */
async function selected(session: string, filter: string): Promise<number[]> {
  const lines = await linesOf('select', { session, filter });
  const runs = lines.flatMap((line) => (line['runs'] ?? []) as [number, number][]);
  const seqs = runs.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
  expect(lines.at(-1)).toEqual({ done: true, count: seqs.length });
  return seqs;
}

describe('a filter', () => {
  const filters = [
    '',
    'tool=echo',
    'status~error',
    'kind=request dur>1ms',
    'tool~long',
    'text~/a.*tape/i',
    'http=200',
  ];

  test.each(filters)('%j selects the frames that `show --filter` shows', async (filter) => {
    for (const name of NAMES) {
      const shown = await run('show', name, '--filter', filter);
      expect(await selected(name, filter)).toEqual(shown.map(({ seq }) => seq));
    }
  });

  test('with a slip in it is answered by the sentence of the command line', async () => {
    await expect(ask('select', { params: { session: 'latest', filter: 'tol=echo' } })).rejects.toThrow(
      'Expected a field at column 1 of the filter, got `tol`. Nearest: `tool`.',
    );
  });
});

describe('search', () => {
  const hits = (lines: readonly Line[]) =>
    lines.flatMap(({ hit }) => (hit === undefined ? [] : [hit as Line]));
  const placesOf = (found: readonly Line[]) => found.map(({ session, seq }) => `${session} ${seq}`).sort();

  test.each(['no', undefined])(
    'finds what `search` finds, each session named once (index: %s)',
    async (index) => {
      const params = { q: 'Hello', filter: 'kind=result', ...(index === undefined ? {} : { index }) };
      const lines = await linesOf('search', params);
      expect(placesOf(hits(lines))).toEqual(
        placesOf(await run('search', 'Hello', '--filter', 'kind=result')),
      );
      const named = lines.flatMap(({ session }) => (session === undefined ? [] : [session as Line]));
      expect(new Set(named.map(({ session }) => session))).toEqual(
        new Set(hits(lines).map(({ session }) => session)),
      );
      expect(lines.at(-1)).toEqual({ done: true, hits: hits(lines).length, more: false });
      expect(hits(lines)[0]).toMatchObject({ outcome: 'ok', line: expect.stringContaining('result') });
      expect(hits(lines)[0]?.['excerpts']).toEqual([[expect.any(String), 'Hello', expect.any(String)]]);
    },
  );

  test('says that there is more than it was asked for', async () => {
    const lines = await linesOf('search', { filter: 'kind=request', limit: '3' });
    expect(lines.at(-1)).toEqual({ done: true, hits: 3, more: true });
  });

  test('ends when its client has left', async () => {
    let asked = 0;
    const busy = { params: { q: 'a', index: 'no' }, isLeft: () => ++asked > 0 };
    const until = performance.now() + 25;
    const emit = async () => {
      // A slice is over when so much time has passed.
      while (performance.now() < until);
    };
    const work = SLOW_WORKS.search(open(), busy.params, emit, busy.isLeft);
    await expect(work).rejects.toThrow('The client has gone.');
  });
});

test.each([
  ['search', { filter: 'tool=echo', index: 'no' }],
  ['select', { session: 'everything-stdio', filter: 'tool=echo' }],
] as const)('%s lets go what it found before it looks for more', async (work, params) => {
  const pieces: (string | null)[] = [];
  const emit: Emit = async (piece) => void pieces.push(piece === null ? null : String(piece));
  await SLOW_WORKS[work](open(), params, emit, () => false);
  const lastFound = pieces.findLastIndex((piece) => piece !== null && /"hit":|"runs":/.test(piece));
  expect(lastFound).toBeGreaterThanOrEqual(0);
  expect(pieces[lastFound + 1]).toBeNull();
});

test('lines go out together, and at once where more may take long', async () => {
  const sent: string[] = [];
  const order = { job: 1, form: 'ndjson', left: new Int32Array(new SharedArrayBuffer(4)) } as const;
  const outlet = createAnswerOutlet(order, (message) => {
    if (message.type === 'piece') sent.push(Buffer.from(message.bytes).toString());
  });
  vi.spyOn(performance, 'now').mockReturnValue(0);
  onTestFinished(() => void vi.restoreAllMocks());
  await outlet.emit('1');
  await outlet.emit('2');
  expect(sent).toEqual([]);
  await outlet.emit(null);
  await outlet.emit(null);
  expect(sent).toEqual(['1\n2\n']);
  outlet.end();
  expect(sent).toEqual(['1\n2\n', '']);
});

test('check finds what `check` finds, in its words', async () => {
  const store = openStore(db);
  const session = {
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'x',
    startedAt: '2026-11-20T10:00:00.000000Z',
  };
  const lines = ['{"jsonrpc":"1.0","id":1,"method":"ping"}', 'no JSON'].map((text) => ({
    ms: 1,
    channel: 'stdout',
    text,
  }));
  await importText(
    store,
    [{ tapedeck: 1, session }, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''),
    'faulty',
  );
  store.close();
  const [answer] = await linesOf('check', { session: 'faulty' });
  const found = (answer?.['findings'] ?? []) as Line[];
  const printed = await run('check', 'faulty', '--severity', 'note');
  expect(printed.length).toBeGreaterThan(0);
  expect(found.map(({ text, ...finding }) => finding)).toEqual(expect.arrayContaining(printed));
  expect(found).toHaveLength(printed.length);
  for (const { text, expected, seen } of found) expect(text).toBe(`expected ${expected}, saw ${seen}`);
});

test('HTTP exchanges of a filter are those that carried a frame of it, page by page', async () => {
  const session = 'everything-http';
  const filter = 'method=tools/call';
  const wanted = (await run('show', session, '--filter', filter)).map(
    ({ http }) => (http as { exchange: number }).exchange,
  );
  const found: number[] = [];
  for (let after: string | null = '0'; after !== null; ) {
    const page = JSON.parse(
      (await ask('http-exchanges', { params: { session, filter, limit: '2', after } })).join(''),
    );
    expect(page.http.length).toBeLessThanOrEqual(2);
    found.push(...page.http.map(({ http }: { http: number }) => http));
    after = page.next === null ? null : String(page.next);
  }
  expect(found).toEqual([...new Set(wanted)].sort((a, b) => a - b));
  expect(found.length).toBeGreaterThan(2);
});

test('a session that is asked for with its findings says how many `check` has', async () => {
  const params = { session: 'everything-stdio' };
  const { rules } = JSON.parse((await ask('check', { params })).join(''));
  const count = rules.reduce((sum: number, rule: { count: number }) => sum + rule.count, 0);
  expect(count).toBeGreaterThan(0);
  const whole = JSON.parse((await ask('session', { params: { ...params, findings: '1' } })).join(''));
  expect(whole).toMatchObject({ session: { name: 'everything-stdio' }, findings: count });
  expect(JSON.parse((await ask('session', { params })).join('')).findings).toBeNull();
});

describe('stats', () => {
  type View = Line & { filter: string; bars: (Line & { filter: string; count: number })[]; count: number };
  const partOf = (lines: readonly Line[], name: string) =>
    lines.find((line) => name in line)?.[name] as never;

  async function requests(session: string, filter: string): Promise<number> {
    const shown = await selected(session, `(${filter || 'kind=request'}) kind=request`);
    return shown.length;
  }

  test.each(['tool', 'method', 'session'])('by %s are those of `stats`', async (by) => {
    const lines = await linesOf('stats', { by });
    const { groups, total } = partOf(lines, 'stats') as { groups: View[]; total: Line };
    const printed = await run('stats', '--all', '--by', by);
    expect(total).toEqual(printed.pop());
    expect(groups.map(({ filter, bars, ...group }) => group)).toEqual(
      printed.map(({ histogram, ...group }) => group),
    );
  });

  test('have for each group, bar and stretch of time the filter that selects exactly its calls', async () => {
    for (const session of NAMES) {
      const lines = await linesOf('stats', { session });
      const { all, groups } = partOf(lines, 'stats') as { all: View; groups: View[] };
      for (const { kind, count, filter, bars } of groups.filter((group) => group['kind'] === 'request')) {
        expect([kind, filter, await requests(session, filter)]).toEqual([kind, filter, count]);
        for (const bar of bars)
          expect([bar.filter, await requests(session, `${filter} ${bar.filter}`)]).toEqual([
            bar.filter,
            bar.count,
          ]);
      }
      const { bars } = partOf(lines, 'overTime') as { bars: (Line & { filter: string })[] };
      const counts = await Promise.all(bars.map(({ filter }) => requests(session, filter)));
      expect(counts).toEqual(bars.map(({ calls }) => calls));
      expect(counts.reduce((sum, one) => sum + one, 0)).toBe(all.count);
    }
  });

  test('of a filter count the calls that it leaves', async () => {
    const lines = await linesOf('stats', { filter: 'tool=echo' });
    const { all, total } = partOf(lines, 'stats') as { all: View; total: Line | null };
    const { bars } = partOf(lines, 'overTime') as { bars: Line[] };
    expect(total).toBeNull();
    expect(all.count).toBe(2);
    expect(bars.reduce((sum, { calls }) => sum + Number(calls), 0)).toBe(2);
  });
});

test('diff compares as `diff` does, with its rules', async () => {
  const [a, b] = ['everything-stdio', 'everything-http'];
  const lines = await linesOf('diff', { a, b, ignore: '$.nothing\n$.neither', 'ignore-result': '$.content' });
  const { text, ...summary } = lines.at(-1) ?? {};
  const rules = ['--ignore', '$.nothing', '--ignore', '$.neither', '--ignore-result', '$.content'];
  const printed = await run('diff', a, b, ...rules);
  expect([...lines.slice(0, -1), summary]).toEqual(printed.filter(({ type }) => type !== 'bytes'));
  expect(text).toMatch(/^\d+ calls equal/);
});

describe('completions', () => {
  const complete = async (marked: string, session?: string) => {
    const filter = marked.replace('|', '');
    const params = { filter, at: String(marked.indexOf('|')), ...(session === undefined ? {} : { session }) };
    const [answer] = await linesOf('complete', params);
    return ((answer?.['words'] ?? []) as { text: string; about: string }[]).map(({ text }) => text);
  };

  test('are the values that this store has, the frequent and the fitting first', async () => {
    expect(await complete('tool=ec|')).toEqual(['echo']);
    expect(await complete('tool=sum|')).toEqual(['get-sum']);
    expect(await complete('name=|')).toEqual(expect.arrayContaining(NAMES));
    expect(await complete('http=2|')).toEqual(['200', '202']);
    expect(await complete('code=|')).toContain('-32602');
    expect((await complete('method=to|'))[0]).toBe('tools/call');
  });

  test('are also those of a session that many newer ones follow, and of traces', async () => {
    const store = openStore(db);
    const start: SessionStart = {
      ...{ name: null, labels: [], basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'] },
      ...{ cwd: null, at: Date.now() * 1000, host: 'here', pid: 7, processStarted: '7', tapedeck: '0' },
      ...{ clientPid: null, clientProgram: null },
    };
    for (let i = 0; i < 100; i += 1) insertSession(store, start);
    store.exec("INSERT INTO trace VALUES (1, 1, '4bf92f3577b34da6a3ce929d0e0e4736', '0000000000000001')");
    store.close();
    expect(await complete('tool=ec|')).toEqual(['echo']);
    expect(await complete('trace=4b|')).toEqual(['4bf92f3577b34da6a3ce929d0e0e4736']);
    expect(await complete('trace=4b|', 'modern-http')).toEqual([]);
  });

  test('are those of one session, where one is looked at', async () => {
    expect(await complete('http=|', 'everything-stdio')).toEqual([]);
  });
});

test('an export is what `export` writes', async () => {
  for (const format of Object.keys(FORMATS)) {
    expect(EXPORT_FILES).toHaveProperty(format);
    const { stdout } = await tapedeckInProcess(['export', 'everything-http', '--format', format, '--db', db]);
    const pieces = await ask('export', { params: { session: 'everything-http', format } });
    expect(pieces.join('')).toBe(stdout.toString());
  }
  await expect(ask('export', { params: { session: 'latest', format: 'gif' } })).rejects.toThrow(
    /Expected one of/,
  );
});

describe('a snippet', () => {
  const copied = async (as: string, name: string, seq: number): Promise<string> => {
    const [answer] = await linesOf('snippet', { session: name, seq: String(seq), as });
    return answer?.['text'] as string;
  };
  const seqOf = async (name: string, filter: string): Promise<number> =>
    (await selected(name, filter))[0] ?? 0;

  test('as JSON and as raw text is what `show --json` has', async () => {
    const [frame] = await run('show', 'everything-stdio', '--filter', 'tool=echo kind=result');
    const seq = Number(frame?.['seq']);
    expect(JSON.parse(await copied('json', 'everything-stdio', seq))).toEqual(frame);
    expect(await copied('raw', 'everything-stdio', seq)).toBe(frame?.['text']);
    expect(await copied('link', 'everything-stdio', seq)).toBe(`/s/${frame?.['session']}/f/${seq}`);
  });

  test('as a line is one of the text recording, but for its time', async () => {
    const seq = await seqOf('everything-stdio', 'tool=echo kind=result');
    const { ms, ...line } = JSON.parse(await copied('ndjson', 'everything-stdio', seq));
    const recorded = exportText(open(), 'everything-stdio')
      .split('\n')
      .map((text) => (text === '' ? {} : JSON.parse(text)));
    expect(ms).toBeGreaterThan(0);
    expect(recorded).toContainEqual(expect.objectContaining(line));
  });

  test('as `verify` names the server and the call', async () => {
    const { id } = findSession(open(), 'everything-stdio');
    const line = await copied(
      'verify',
      'everything-stdio',
      await seqOf('everything-stdio', 'tool=echo kind=result'),
    );
    expect(line).toContain(`tapedeck verify ${id} --only echo --db ${db} -- node `);
    const http = await copied(
      'verify',
      'everything-http',
      await seqOf('everything-http', 'method=tools/list'),
    );
    expect(http).toMatch(/^tapedeck verify \w+ http:\S+ --only tools\/list --db /);
    vi.stubEnv('npm_lifecycle_event', 'npx');
    vi.stubEnv('npm_lifecycle_script', 'mcp-tapedeck ui');
    const byNpx = await copied(
      'verify',
      'everything-http',
      await seqOf('everything-http', 'method=tools/list'),
    );
    vi.unstubAllEnvs();
    expect(byNpx).toBe(`npx mcp-${http}`);
  });

  test('as curl is one command, or begins as the session did', async () => {
    const modern = await copied('curl', 'modern-http', await seqOf('modern-http', 'kind=request'));
    expect(modern.match(/^curl /gm)).toHaveLength(1);
    const legacy = await copied(
      'curl',
      'everything-http',
      await seqOf('everything-http', 'tool=echo kind=result'),
    );
    expect(legacy.match(/^curl /gm)).toHaveLength(3);
    expect(legacy).toContain('"$session"');
    await expect(copied('curl', 'everything-stdio', 1)).rejects.toThrow('curl speaks HTTP');
  });

  test('of an HTTP exchange without a frame is its request as curl', async () => {
    const { number } = findSession(open(), 'everything-http');
    const bare = open()
      .prepare<[number], number>(
        `SELECT number FROM http_exchange AS e WHERE session = ? AND method = 'DELETE'
         AND NOT EXISTS (SELECT 1 FROM frame WHERE session = e.session AND http = e.number)`,
      )
      .pluck()
      .get(number);
    const params = { session: 'everything-http', number: String(bare) };
    const { text } = JSON.parse((await ask('http-snippet', { params })).join(''));
    expect(text).toMatch(/^# exchange|curl --silent/);
    expect(text).toContain("--request 'DELETE'");
    await expect(ask('http-snippet', { params: { ...params, number: '999' } })).rejects.toThrow(/exchange/);
  });

  test('as a test has the call and what was answered', async () => {
    const code = await copied('test', 'everything-stdio', await seqOf('everything-stdio', 'tool=echo'));
    expect(code).toContain(`client.callTool({\n    "name": "echo",`);
    expect(code).toContain('"text": "Echo: Hello, tape."');
    const refused = await copied(
      'test',
      'everything-stdio',
      await seqOf('everything-stdio', 'prompt~no-such'),
    );
    expect(refused).toContain('.rejects.toMatchObject({ code: -32602 })');
    const initialize = await seqOf('everything-stdio', 'method=initialize');
    await expect(copied('test', 'everything-stdio', initialize)).rejects.toThrow(
      'Expected a call that tests make',
    );
  });
});

/** Whether the WAL can be carried over to its end: not while a statement reads on. */
function canCheckpoint(writer: Store): boolean {
  writer.exec('UPDATE session SET dropped_bytes = dropped_bytes + 1');
  const [found] = writer.pragma('wal_checkpoint(TRUNCATE)') as { busy: 0 | 1 }[];
  return found?.busy === 0;
}

const [STDIO, HTTP] = ['everything-stdio', 'everything-http'];

const SOME = 'kind!=error';

const HELD_APART: readonly [work: keyof typeof SLOW_WORKS, params: Record<string, string>][] = [
  ['check', { session: HTTP }],
  ['check', { session: STDIO }],
  ['export', { session: HTTP, format: 'markdown', filter: SOME }],
  ['export', { session: HTTP, format: 'mermaid', filter: SOME }],
  ['export', { session: HTTP, format: 'otlp', filter: SOME }],
  ['export', { session: HTTP, format: 'har' }],
  ['export', { session: HTTP, format: 'curl' }],
  ['export', { session: HTTP, format: 'ndjson', filter: SOME }],
  ['diff', { a: STDIO, b: HTTP }],
  ['stats', {}],
  ['search', { q: 'Hello', index: 'no' }],
  ['select', { session: STDIO, filter: 'kind=request' }],
];

test.each(sample(HELD_APART))('%s %o has no statement open while others are let in', async (work, params) => {
  const writer = openStore(db);
  onTestFinished(() => void writer.close());
  writer.pragma('busy_timeout = 0');
  const store = open();
  const held = store.prepare('SELECT seq FROM frame').iterate();
  held.next();
  expect(canCheckpoint(writer)).toBe(false);
  held.return?.();

  // Each step takes longer than a slice may.
  let now = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 25;
    return now;
  });
  onTestFinished(() => clock.mockRestore());
  const found: boolean[] = [];
  const look = () => void (found.length < 20 && found.push(canCheckpoint(writer)));
  await SLOW_WORKS[work](
    store,
    params,
    async () => look(),
    () => {
      look();
      return false;
    },
  );
  expect(found.length).toBeGreaterThan(1);
  expect(found).not.toContain(false);
});

test('what breaks because its session was removed meanwhile is not found, or answered of the one that has the name now', async () => {
  const store = open();
  const [session = '', other = ''] = NAMES;
  const broken = new RangeError('the store has no session 1');
  const prune = async () => {
    const { code } = await tapedeckInProcess(['prune', '--filter', `name=${session}`, '--db', db]);
    expect(code).toBe(0);
  };
  const breakAfter = (act: () => Promise<unknown>, params: Params, told: (string | object | null)[] = []) => {
    let attempts = 0;
    const work: Work = async (given, { session: name = '' }, emit) => {
      attempts += 1;
      if (attempts > 1) return emit(findSession(given, name).id);
      await act();
      throw broken;
    };
    return doWork(
      work,
      store,
      params,
      async (piece) => void told.push(piece),
      () => false,
    );
  };
  const before = findSession(store, session).id;
  const told: string[] = [];
  await breakAfter(
    async () => {
      await prune();
      await tapedeckInProcess(['import', `recordings/${session}.ndjson`, '--db', db]);
    },
    { session },
    told,
  );
  expect(told).toEqual([findSession(store, session).id]);
  expect(told).not.toEqual([before]);
  const [again = ''] = told;
  const nothing = async () => {};
  await expect(breakAfter(nothing, { session: again })).rejects.toBe(broken);
  await expect(breakAfter(nothing, {})).rejects.toBe(broken);
  await expect(breakAfter(prune, { session: again })).rejects.toMatchObject({ code: 'not-found' });
  await expect(breakAfter(nothing, { a: other, b: session })).rejects.toMatchObject({ code: 'not-found' });
});
