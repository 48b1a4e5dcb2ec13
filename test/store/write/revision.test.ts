import { expect, test } from 'vitest';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { createTurn, waitForTurn } from '../../../src/store/file/turn.ts';
import { redactSession } from '../../../src/store/keep/redact.ts';
import { appendTo, replaceSession } from '../../../src/store/write/import.ts';
import { reindexSession } from '../../../src/store/write/index.ts';
import { storeSession } from '../../support/stored.ts';
import { tempStore } from '../../support/tapedeck.ts';

function planted() {
  const store = openStore(tempStore());
  const [first, second] = [1e15, 1e15 + 1e9].map((at) => storeSession(store, { start: { at } })) as [
    number,
    number,
  ];
  return { store, first, second };
}

const revisionOf = (store: Store, session: number) =>
  store.prepare('SELECT revision FROM session WHERE number = ?').pluck().get(session);

test('every store has an identity of its own, a UUID', () => {
  const ids = [1, 2].map(() => {
    const store = openStore(tempStore());
    return String(store.prepare('SELECT id FROM identity').pluck().get());
  });
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(ids[0]).not.toBe(ids[1]);
});

test('redaction after the fact and what is added raise the revision of their session alone', () => {
  const { store, first, second } = planted();
  const turn = createTurn(store);
  waitForTurn(turn);
  redactSession(store, first, PLAIN_PROFILE, turn, () => {});
  turn.end();
  expect(revisionOf(store, first)).toBe(1);
  appendTo(store, first).add({ frames: [], exchanges: [] });
  expect([revisionOf(store, first), revisionOf(store, second)]).toEqual([2, 0]);
  store.close();
});

test('an index that comes out as it was leaves the revision, another one raises it', () => {
  const { store, first } = planted();
  reindexSession(store, first);
  reindexSession(store, first);
  expect(revisionOf(store, first)).toBe(0);
  store.prepare("UPDATE message SET target = 'as an older version read it' WHERE session = ?").run(first);
  reindexSession(store, first);
  expect(revisionOf(store, first)).toBe(1);
  store.close();
});

test('what was shipped of a session in whose place another comes is taken back', () => {
  const { store, first, second } = planted();
  store
    .prepare(
      `INSERT INTO shipped (target, session, key, revision, seq, frames, bytes, indexed, digest, state, at)
         VALUES ('engine', ?, 'the key', 0, 1, 1, 1, 0, x'', 'open', 0)`,
    )
    .run(first);
  replaceSession(store, first, second);
  expect(store.prepare('SELECT target, key, day FROM withdrawal').all()).toEqual([
    { target: 'engine', key: 'the key', day: '2001-09-09' },
  ]);
  expect(revisionOf(store, second)).toBe(1);
  store.close();
});
