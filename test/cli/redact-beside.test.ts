import { expect } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { openRedactions } from '../../src/store/keep/redaction-state.ts';
import { inFull, scale } from '../support/scale.ts';
import { FAKE_SECRETS, storeHolds } from '../support/secrets.ts';
import { latestSession, record, tapedeck, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';

const CALLS = scale(20_000, 6000);
const { text: SECRET } = FAKE_SECRETS.find(({ rule }) => rule === 'github-token') ?? { text: '' };
const ROUNDS = 5;

/** A store with the session `long`, each frame of which has a secret in it. */
async function longStore(): Promise<string> {
  const { makeRecording } = await import('../bench/long-recording.js');
  const db = tempStore();
  const padding = 'x'.repeat(400);
  makeRecording(db, {
    name: 'long',
    calls: CALLS,
    textOf: (i: number) => `call ${i} with ${SECRET} ${padding}`,
  });
  return db;
}

function maskedFrames(db: string): number {
  const store = openStore(db);
  try {
    return openRedactions(store)[0]?.upTo ?? 0;
  } finally {
    store.close();
  }
}

/** Kills `redact` when it is somewhere within the frames. */
async function redactHalf(db: string): Promise<void> {
  const run = tapedeck(['redact', 'long', '--db', db]);
  await until('it is on its way', () => maskedFrames(db) > 1000);
  run.child.kill('SIGKILL');
  await run.ended;
  expect(maskedFrames(db)).toBeLessThan(2 * CALLS);
}

inFull(
  'what recorders record while a long session is masked is stored meanwhile',
  {
    timeout: 120_000,
  },
  async () => {
    const db = await longStore();
    const recorder = record(db, ['cat.js'], ['--strict']);
    const store = openStore(db);
    const stored = store.prepare("SELECT frames FROM session WHERE name IS NOT 'long'").pluck();
    const run = tapedeck(['redact', 'long', '--db', db]);
    await until('it is on its way', () => maskedFrames(db) > 1000);
    for (let i = 1; i <= ROUNDS; i += 1) {
      recorder.child.stdin.write(`{"jsonrpc":"2.0","id":${i},"method":"ping"}\n`);
      await until('it is stored', () => stored.get() === 2 * i);
    }
    expect(maskedFrames(db)).toBeGreaterThan(1000);
    expect(maskedFrames(db)).toBeLessThan(2 * CALLS);
    expect((await run.ended).stdout.toString()).toBe(
      `github-token        redacted in ${(2 * CALLS).toLocaleString('en-US')} frames\n`,
    );
    recorder.child.stdin.end();
    expect((await recorder.ended).code).toBe(0);
    expect(store.prepare('SELECT sum(dropped) FROM session').pluck().get()).toBe(0);
    store.close();
  },
);

inFull(
  'a redaction that was killed is told of, and finished by the next one',
  {
    timeout: 120_000,
  },
  async () => {
    const db = await longStore();
    const { session: id } = await latestSession(db);
    await redactHalf(db);
    const { stderr, code } = await tapedeckInProcess(['list', '--db', db]);
    expect([code, stderr]).toEqual([
      0,
      `tapedeck: the redaction of session ${id} was interrupted: it may hold secrets still. Finish it: tapedeck redact ${id}\n`,
    ]);
    const again = await tapedeckInProcess(['redact', id, '--db', db]);
    expect([again.code, again.stdout.toString(), again.stderr]).toEqual([
      0,
      'nothing to redact\n',
      `tapedeck: finished the redaction of session ${id}, which had been interrupted\n`,
    ]);
    expect(storeHolds(db, SECRET)).toBe(false);
    expect(await latestSession(db)).toMatchObject({ exchanges: CALLS + 1, unanswered: 0 });
    expect((await tapedeckInProcess(['list', '--db', db])).stderr).toBe('');
  },
);

inFull('prune finishes it too, with the rules that it was begun with', { timeout: 120_000 }, async () => {
  const db = await longStore();
  await redactHalf(db);
  const { code, stderr } = await tapedeckInProcess(['prune', '--older-than', '1000000d', '--db', db]);
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(
      /^tapedeck: finished the redaction of session [0-9a-f]{12}, which had been interrupted\n$/,
    ),
  ]);
  expect(storeHolds(db, SECRET)).toBe(false);
});
