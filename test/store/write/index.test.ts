/** An index is made while others write: the store is locked only while its rows are, and nothing gets in that was masked meanwhile. */

import { setFlagsFromString } from 'node:v8';
import { expect, onTestFinished, test } from 'vitest';
import type { FrameWithReading } from '../../../src/protocol/message/conversation.ts';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { beginRedaction } from '../../../src/store/keep/redaction-state.ts';
import { eachBareFrame } from '../../../src/store/read/frames.ts';
import {
  createIndexer,
  type Indexer,
  type PreparedIndex,
  prepareIndex,
  restartIndexer,
} from '../../../src/store/write/index.ts';
import { raiseRevision } from '../../../src/store/write/revision.ts';
import { storeSession } from '../../support/stored.ts';
import { tempStore } from '../../support/tapedeck.ts';

const LINES = Array.from({ length: 100 }, (_, i) => [
  `{"jsonrpc":"2.0","id":${i},"method":"tools/call","params":{"name":"tool-${i % 3}"}}`,
  `{"jsonrpc":"2.0","id":${i},"result":{}}`,
]).flat();

const LONG_MS = 60_000;

/** A session that is not indexed, two connections to its store, and its rows as they should become. */
function setUp(): { ours: Store; other: Store; session: number; wanted: unknown[] } {
  const db = tempStore();
  const ours = openStore(db, { busyMs: 0 });
  const other = openStore(db, { busyMs: 0 });
  onTestFinished(() => {
    other.close();
    ours.close();
  });
  const session = storeSession(ours, { lines: LINES });
  const wanted = rowsOf(ours);
  ours.exec('DELETE FROM message; UPDATE session SET indexed = 0, exchanges = 0');
  return { ours, other, session, wanted };
}

function rowsOf(store: Store): unknown[] {
  return [
    ...store.prepare('SELECT * FROM message ORDER BY session, seq, n').all(),
    store.prepare('SELECT indexed, exchanges, unanswered FROM session').get(),
  ];
}

/** Remembers all frames, as of a recorder, each of which does this when it is read. */
function remember(
  indexer: Indexer,
  store: Store,
  session: number,
  onRead: () => void,
  { from = 1, to = LINES.length } = {},
): void {
  const frames = [...eachBareFrame(store, session)].slice(from - 1, to).map(
    (frame): FrameWithReading => ({
      ...frame,
      get payload() {
        onRead();
        return frame.payload;
      },
    }),
  );
  indexer.remember(frames, from);
}

function write(store: Store): void {
  store.prepare("INSERT OR REPLACE INTO label VALUES (1, 'by', 'other')").run();
}

/** Until nothing is left; begun anew where that is called for. */
function complete(indexer: Indexer, session: number, index: PreparedIndex): void {
  let at = indexer;
  do if (at.isSpoiled()) at = restartIndexer(session, index);
  while (!at.advance(LONG_MS));
}

test.each(['remembered', 'read back'])(
  'others write while messages are read out of frames that are %s',
  (how) => {
    const { ours, other, session, wanted } = setUp();
    let reads = 0;
    const onRead = () => {
      reads += 1;
      write(other);
    };
    const index = prepareIndex(ours);
    const watched: PreparedIndex = {
      ...index,
      framesAfter(...place) {
        const frames = index.framesAfter(...place);
        if (frames.length > 0) onRead();
        return frames;
      },
    };
    const indexer = createIndexer(session, watched);
    if (how === 'remembered') remember(indexer, ours, session, onRead);
    complete(indexer, session, watched);
    expect(reads).toBeGreaterThan(1);
    expect(rowsOf(ours)).toEqual(wanted);
  },
);

test('what was found while the store is locked is written once it is free', () => {
  const { ours, other, session, wanted } = setUp();
  const index = prepareIndex(ours);
  const indexer = createIndexer(session, index);
  let reads = 0;
  remember(indexer, ours, session, () => {
    reads += 1;
  });
  other.exec('BEGIN IMMEDIATE');
  for (let i = 0; i < 3; i += 1) expect(() => indexer.advance(LONG_MS)).toThrow(/locked/);
  const readOnce = reads;
  other.exec('COMMIT');
  expect(indexer.isSpoiled()).toBe(false);
  complete(indexer, session, index);
  expect(reads).toBe(readOnce);
  expect(rowsOf(ours)).toEqual(wanted);
});

test.each(['remembered', 'stored'])(
  'frames that are %s after others were found, and before these were written, are indexed with them',
  (how) => {
    const { ours, other, session, wanted } = setUp();
    const index = prepareIndex(ours);
    const few = 20;
    let isFewStored = true;
    const growing: PreparedIndex = {
      ...index,
      framesAfter: (...place) => index.framesAfter(...place).filter(({ seq }) => !isFewStored || seq <= few),
    };
    const indexer = createIndexer(session, growing);
    remember(indexer, ours, session, () => {}, { to: few });
    other.exec('BEGIN IMMEDIATE');
    expect(() => indexer.advance(LONG_MS)).toThrow(/locked/);
    other.exec('COMMIT');
    isFewStored = false;
    if (how === 'remembered') remember(indexer, ours, session, () => {}, { from: few + 1 });
    expect(indexer.advance(LONG_MS)).toBe(true);
    expect(rowsOf(ours)).toEqual(wanted);
  },
);

test.each([
  ['remembered', 'before they are read'],
  ['remembered', 'before what was found is written'],
  ['read back', 'before what was found is written'],
])('nothing of frames that are %s gets into the index once they are masked, %s', (how, when) => {
  const { ours, other, session } = setUp();
  const index = prepareIndex(ours);
  const mask = () => {
    raiseRevision(other, session);
    const masked = "CAST(replace(CAST(payload AS TEXT), 'tool-1', 'masked') AS BLOB)";
    other.prepare(`UPDATE frame SET payload = ${masked}`).run();
  };
  const late: PreparedIndex = {
    ...index,
    transact(work) {
      if (when === 'before what was found is written') mask();
      return index.transact(work);
    },
  };
  const indexer = createIndexer(session, late);
  if (how === 'remembered') remember(indexer, ours, session, () => {});
  if (when === 'before they are read') mask();
  expect(indexer.advance(LONG_MS)).toBe(false);
  expect(indexer.isSpoiled()).toBe(true);
  expect(ours.prepare('SELECT count(*) FROM message').pluck().get()).toBe(0);
  complete(indexer, session, index);
  const targets = ours.prepare('SELECT DISTINCT target FROM message WHERE target IS NOT NULL ORDER BY 1');
  expect(targets.pluck().all()).toEqual(['masked', 'tool-0', 'tool-2']);
});

test('while a session is being redacted, nobody can change what is read', () => {
  const { ours, other, session, wanted } = setUp();
  beginRedaction(other, session, PLAIN_PROFILE);
  const index = prepareIndex(ours);
  let refused = 0;
  const watched: PreparedIndex = {
    ...index,
    framesAfter(...place) {
      expect(() => write(other)).toThrow(/locked/);
      refused += 1;
      return index.framesAfter(...place);
    },
  };
  complete(createIndexer(session, watched), session, watched);
  expect(refused).toBeGreaterThan(1);
  expect(rowsOf(ours)).toEqual(wanted);
});

/** Whether V8 compiles one and the same code for both. */
function isAlikeToV8(): (one: object, other: object) => boolean {
  setFlagsFromString('--allow-natives-syntax');
  return new Function('one', 'other', 'return %HaveSameMap(one, other)') as ReturnType<typeof isAlikeToV8>;
}

test('what is read back to be indexed is to V8 as what has just passed, so that it compiles what reads it once', () => {
  const { ours, session } = setUp();
  const isAlike = isAlikeToV8();
  const passed = Buffer.from(LINES.join('\n')).subarray(0, LINES[0]?.length);

  const [frame] = prepareIndex(ours).framesAfter(session, 0);
  expect(frame?.payload).toEqual(passed);
  expect(isAlike(frame?.payload ?? {}, passed)).toBe(true);
  const stored = ours.prepare('SELECT payload FROM frame').pluck().get() as Buffer;
  expect(isAlike(stored, passed), 'as better-sqlite3 gives it').toBe(false);
});
