/** What a recorder does while others keep the store locked: into its own spool, and back as soon as there is room. */

import { existsSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { spoolPath, spoolsOf } from '../../../src/store/file/spool.ts';
import { createOutlet } from '../../../src/store/record/outlet.ts';
import { spoolSession, stdioIntake } from '../../support/spools.ts';
import { tempStore } from '../../support/tapedeck.ts';

/** A recorder whose store is open, and another one's connection to it. */
function setUp() {
  const db = tempStore();
  const other = openStore(db);
  vi.useFakeTimers();
  const intake = stdioIntake(null);
  const outlet = createOutlet({
    ...{ file: db, run: 'own', isDurable: false, walBytes: 1_000_000, isRedacted: false, intake },
    ...{ onStore: () => {}, onTrouble: () => {}, onNotice: () => {} },
  });
  onTestFinished(() => {
    outlet.close();
    vi.useRealTimers();
    other.close();
  });
  expect(outlet.open()).toBe(true);
  let at = 0;
  const pass = () => {
    at += 1000;
    intake.framer.feed({ kind: 0, owner: 0, at, bytes: Buffer.from('{"jsonrpc":"2.0","method":"x"}\n') });
    expect(outlet.save(false)).toBe(true);
  };
  return { db, other, outlet, pass };
}

function frames(store: Store): unknown {
  return store.prepare('SELECT count(*) FROM frame').pluck().get();
}

test('what went into a spool right after the start is taken in as soon as the store is free', () => {
  const { db, other, outlet, pass } = setUp();
  pass();
  other.exec('BEGIN IMMEDIATE');
  pass();
  expect(existsSync(spoolPath(db, 'own'))).toBe(true);
  other.exec('COMMIT');
  vi.advanceTimersByTime(100);
  expect(frames(other)).toBe(2);
  expect(outlet.store()).toBeDefined();
  expect(existsSync(spoolPath(db, 'own'))).toBe(false);
  pass();
  expect(frames(other)).toBe(3);
});

test('what others left behind waits until a recorder has been in the store for a while', () => {
  const { db, other, outlet, pass } = setUp();
  spoolSession(db, 'left', ['{"jsonrpc":"2.0","method":"left"}']).close();
  other.exec('BEGIN IMMEDIATE');
  pass();
  other.exec('COMMIT');
  vi.advanceTimersByTime(100);
  expect(outlet.store()).toBeDefined();
  expect(frames(other)).toBe(1);
  vi.advanceTimersByTime(3000);
  expect(frames(other)).toBe(2);
  expect(spoolsOf(db)).toEqual([]);
});
