import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { expect, test } from 'vitest';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import type { HttpEvent } from '../../../src/protocol/wire/http-event.ts';
import { openSpool, openStore, type Store } from '../../../src/store/file/open.ts';
import {
  lastSpoolOf,
  makeSpool,
  openLeftSpool,
  removeSpool,
  spoolPath,
  spoolsOf,
} from '../../../src/store/file/spool.ts';
import { NO_NOTICES, openIndexed, takeInSpools } from '../../../src/store/keep/catch-up.ts';
import { createBatcher, eachItem } from '../../../src/store/record/batch.ts';
import { appendHttpItem } from '../../../src/store/record/http-items.ts';
import { createIntake, type Intake } from '../../../src/store/record/intake.ts';
import { removeSession } from '../../../src/store/write/removal.ts';
import { createTakeIn } from '../../../src/store/write/take-in.ts';
import { STOPPED } from '../../support/http-store.ts';
import { saveIntake, stdioIntake } from '../../support/spools.ts';
import { tempStore } from '../../support/tapedeck.ts';

const START = {
  ...{ name: 'it', labels: [['team', 'search']] as [string, string][], cwd: null, at: 1, tapedeck: '0' },
  ...{ pid: process.pid, parentPid: process.ppid },
};

const startStdio = () => stdioIntake(PLAIN_PROFILE);

function startHttp(): Intake {
  const http = {
    basis: 'stateless',
    transport: 'http',
    target: 'http://127.0.0.1/mcp',
    command: null,
  } as const;
  return createIntake(
    { ...START, ...http },
    4 * 1024 * 1024,
    PLAIN_PROFILE,
    () => {},
    () => {},
  );
}

/** Some lines of 2 KB, one of 3 MB, one with a secret, and the beginning of another one. */
function feedStdio(intake: Intake, round: number): void {
  const secret = `sk-proj-${'A1b2C3d4'.repeat(6)}`;
  const lines = [
    ...Array.from(
      { length: 700 },
      (_, i) => `{"jsonrpc":"2.0","id":"${round}-${i}","method":"${'m'.repeat(2000)}"}`,
    ),
    `{"jsonrpc":"2.0","method":"large","params":{"text":"${'y'.repeat(3_000_000)}"}}`,
    `{"jsonrpc":"2.0","method":"secret","params":{"key":"${secret}"}}`,
    `{"unfinished ${round}`,
  ];
  intake.framer.feed({ kind: 0, owner: 0, at: round * 1000, bytes: Buffer.from(lines.join('\n')) });
}

function feedHttp(intake: Intake, round: number): void {
  const batcher = createBatcher((batch) => eachItem(batch, intake.framer.feed));
  for (let i = 0; i < 600; i += 1) {
    const [exchange, at] = [round * 1000 + i, round * 1_000_000 + i];
    const body = `{"jsonrpc":"2.0","id":${i},"method":"tools/list"}`;
    const headers = ['content-type', 'application/json', 'mcp-session-id', `session-${i % 3}`];
    const events: HttpEvent[] = [
      {
        ...{ type: 'request', exchange, at, method: 'POST', path: '/mcp', httpVersion: '1.1' },
        ...{ clientAddress: '127.0.0.1:1', rawHeaders: headers, edits: [] },
      },
      { type: 'request-body', exchange, at, bytes: Buffer.from(body) },
      { type: 'request-end', exchange, at, rawTrailers: [], isComplete: true },
      { type: 'response', exchange, at, status: 200, statusMessage: 'OK', rawHeaders: headers, edits: [] },
      { type: 'response-body', exchange, at, bytes: Buffer.from(`{"jsonrpc":"2.0","id":${i},"result":{}}`) },
    ];
    for (const event of events) appendHttpItem(batcher.append, event);
    // Some are open at the end of a round.
    if (i % 50 !== 0)
      appendHttpItem(batcher.append, {
        ...{ type: 'end', exchange, at, closedBy: 'server', error: null, isComplete: true, rawTrailers: [] },
      });
  }
  batcher.flush();
}

/** All that a store has of sessions, without what each store numbers for itself. */
function contentOf(store: Store): Record<string, unknown[]> {
  const session = '(SELECT id FROM session WHERE number = t.session) AS session';
  const all = (table: string, columns: string, order: string) =>
    store.prepare(`SELECT ${session}, ${columns} FROM ${table} AS t ORDER BY t.session, ${order}`).all();
  const facts = `name, basis, transport, target, frames, bytes, truncated, dropped, ended_at, end_reason, indexed,
    exchanges, unanswered`;
  return {
    session: store.prepare(`SELECT ${facts} FROM session ORDER BY number`).all(),
    label: all('label', 'key, value', 'key').map((row) => ({ ...(row as object), session: '' })),
    frame: all('frame', 'seq, at, channel, size, flags, payload, http, sha256', 'seq'),
    part: all('frame_part', 'seq, part, bytes', 'seq, part'),
    redaction: all('frame_redaction', 'seq, rules', 'seq'),
    unfinished: all('unfinished', 'channel, part, at, bytes, http', 'channel, http, part'),
    exchange: all(
      'http_exchange',
      'number, method, path, request_headers, status, ended_at, ended_after',
      'number',
    ),
    message: all('message', 'seq, n, kind, method, relation, to_seq, outcome', 'seq, n'),
  };
}

/** The content with ids by their order, because each run makes its own. */
function comparable(content: Record<string, unknown[]>): unknown {
  const ids = new Map<string, string>();
  const text = JSON.stringify(content, (_, value) =>
    value?.type === 'Buffer' ? Buffer.from(value).toString('latin1').length : value,
  );
  const named = text.replaceAll(/(?<=masked-|:)[0-9a-f]{12}/g, '…').replace(/"[0-9a-f]{12}"/g, (id) => {
    if (!ids.has(id)) ids.set(id, `"id ${ids.size}"`);
    return ids.get(id) as string;
  });
  return JSON.parse(named);
}

/** The same traffic all into a store. */
async function expected(
  startIntake: () => Intake,
  feed: (intake: Intake, round: number) => void,
): Promise<unknown> {
  const db = tempStore();
  const store = openStore(db);
  const intake = startIntake();
  intake.open(store);
  for (const round of [1, 2]) {
    feed(intake, round);
    saveIntake(intake);
  }
  intake.end(STOPPED);
  store.close();
  const read = await openIndexed(db, NO_NOTICES);
  const content = comparable(contentOf(read));
  read.close();
  return content;
}

const KINDS = [
  ['stdio', startStdio, feedStdio],
  ['HTTP', startHttp, feedHttp],
] as const;

/** The first part of the traffic is in a store, the second one in the recorder's spool. */
function halfInSpool(startIntake: (typeof KINDS)[number][1], feed: (typeof KINDS)[number][2]) {
  const db = tempStore();
  const store = openStore(db);
  const intake = startIntake();
  intake.open(store);
  feed(intake, 1);
  saveIntake(intake);
  const spool = openSpool(spoolPath(db, 'run'), false);
  intake.openSpool(spool);
  feed(intake, 2);
  saveIntake(intake);
  return { db, store, intake, spool };
}

test.each(KINDS)(
  'what is in a spool by %s comes into the store once, whenever taking in is broken off',
  async (_, startIntake, feed) => {
    const wanted = await expected(startIntake, feed);
    const { db, store, intake, spool } = halfInSpool(startIntake, feed);
    intake.end(STOPPED);
    spool.close();
    let breaks = 0;
    for (let isAll = false; !isAll; breaks += 1) {
      // Somebody else each time, who gets one transaction further.
      const left = openLeftSpool(spoolPath(db, 'run')) as Store;
      const taking = createTakeIn(store, left);
      for (let i = 0; i <= breaks && !isAll; i += 1) isAll = taking.advance(0);
      left.close();
    }
    expect(breaks).toBeGreaterThan(1);
    // And one who finds what was taken in, but not removed.
    await takeInSpools(db, NO_NOTICES);
    expect(spoolsOf(db)).toEqual([]);
    store.close();
    const read = await openIndexed(db, NO_NOTICES);
    expect(comparable(contentOf(read))).toEqual(wanted);
    read.close();
  },
);

test.each(KINDS)(
  'a recorder by %s goes back to the store, and indexes what came by the spool',
  async (_, startIntake, feed) => {
    const wanted = await expected(startIntake, feed);
    const db = tempStore();
    const intake = startIntake();
    // No store at all yet.
    const spool = openSpool(spoolPath(db, 'run'), false);
    intake.openSpool(spool);
    feed(intake, 1);
    saveIntake(intake);
    const store = openStore(db);
    const taking = createTakeIn(store, spool);
    while (!taking.advance(0));
    intake.open(store);
    removeSpool(spool);
    feed(intake, 2);
    saveIntake(intake);
    intake.end(STOPPED);
    while (!intake.index(1000));
    expect(comparable(contentOf(store))).toEqual(wanted);
    store.close();
    expect(readdirSync(dirname(db))).toEqual([basename(db)]);
  },
);

/** Of each session how many frames are there, and how many are told to be missing before the last one. */
function completeness(store: Store): Record<string, unknown>[] {
  return store
    .prepare<[], Record<string, unknown>>(
      `SELECT frames > 0 AS hasFrames, dropped > 0 AS hasLoss, end_reason AS end,
         frames + dropped = (SELECT max(seq) FROM frame WHERE session = number) AS isWhole,
         frames = (SELECT count(*) FROM frame WHERE session = number) AS isCounted FROM session`,
    )
    .all();
}

test.each(KINDS)(
  'a session by %s that was pruned while more of it was in a spool says what is missing',
  async (_, startIntake, feed) => {
    const { store, intake, spool } = halfInSpool(startIntake, feed);
    const sessions = store.prepare<[], number>('SELECT number FROM session').pluck().all();
    for (const session of sessions) removeSession(store, session);
    const taking = createTakeIn(store, spool);
    while (!taking.advance(0));
    const found = { hasFrames: 1, hasLoss: 1, isWhole: 1, isCounted: 1 };
    const all = (end: string | null) => sessions.map(() => ({ ...found, end }));
    expect(completeness(store)).toEqual(all(null));
    // Its recorder goes on in that row.
    intake.open(store);
    removeSpool(spool);
    feed(intake, 3);
    saveIntake(intake);
    intake.end(STOPPED);
    expect(completeness(store)).toEqual(all('stopped'));
    store.close();
  },
);

test.each(KINDS)(
  'a recorder by %s whose store is another one from now on mixes with nothing there, and says what is missing',
  async (_, startIntake, feed) => {
    const [first, second] = [openStore(tempStore()), openStore(tempStore())];
    const other = startIntake();
    other.open(second);
    feed(other, 1);
    saveIntake(other);
    const before = second.prepare('SELECT number, frames FROM session ORDER BY number').all();
    const intake = startIntake();
    intake.open(first);
    feed(intake, 1);
    saveIntake(intake);
    intake.open(second);
    feed(intake, 2);
    saveIntake(intake);
    intake.end(STOPPED);
    const after = second.prepare('SELECT number, frames FROM session ORDER BY number').all();
    expect(after.slice(0, before.length)).toEqual(before);
    const [whole, own] = [
      { hasFrames: 1, isWhole: 1, isCounted: 1 },
      { hasLoss: 1, end: 'stopped' },
    ];
    expect(completeness(second)).toEqual([
      ...before.map(() => ({ ...whole, hasLoss: 0, end: null })),
      ...before.map(() => ({ ...whole, ...own })),
    ]);
    first.close();
    second.close();
  },
);

test('a spool that its recorder has open is left to it, and one that is damaged stays', async () => {
  const db = tempStore();
  openStore(db).close();
  const spool = openSpool(spoolPath(db, 'run'), false);
  const told: unknown[] = [];
  const notices = {
    ...NO_NOTICES,
    onWaiting: (count: number) => void told.push(count),
    onDamaged: (file: string, why: string) => void told.push(basename(file), why),
  };
  await takeInSpools(db, notices);
  expect(told).toEqual([1]);
  spool.close();
  writeFileSync(spoolPath(db, 'run'), Buffer.alloc(50_000, 'rubbish'));
  await takeInSpools(db, notices);
  expect(told.slice(1)).toEqual(['recordings.db.spool-run', expect.stringMatching(/not an SQLite database/)]);
  expect(existsSync(spoolPath(db, 'run'))).toBe(true);
});

test('a spool that another process looks into while it is made is made under another name', () => {
  const db = tempStore();
  const other = openSpool(spoolPath(db, 'run'), false);
  const spool = makeSpool(db, 'run', false);
  expect(basename(spool.name)).toBe('recordings.db.spool-run.2');
  expect(lastSpoolOf(db, 'run')).toBe(spool.name);
  removeSpool(other);
  expect(spoolsOf(db)).toEqual([spool.name]);
  removeSpool(spool);
  expect(lastSpoolOf(db, 'run')).toBe(spoolPath(db, 'run'));
});

test('a store without a key gets that of the spool, and another one keeps its own', async () => {
  const placeholder = (store: Store) =>
    store
      .prepare<[], string>(
        'SELECT CAST(payload AS TEXT) FROM frame WHERE CAST(payload AS TEXT) LIKE \'%"secret"%\'',
      )
      .pluck()
      .all()
      .map((text) => /\[redacted:[^\]]+\]/.exec(text)?.[0]);
  const db = tempStore();
  const intake = startStdio();
  const spool = openSpool(spoolPath(db, 'run'), false);
  intake.openSpool(spool);
  feedStdio(intake, 1);
  saveIntake(intake);
  spool.close();
  await takeInSpools(db, NO_NOTICES);
  const again = startStdio();
  const store = openStore(db);
  again.open(store);
  feedStdio(again, 1);
  saveIntake(again);
  const [first, second, ...more] = placeholder(store);
  expect([first, more]).toEqual([second, []]);
  expect(store.prepare('SELECT count(DISTINCT redaction) FROM session').pluck().get()).toBe(1);
  store.close();
});
