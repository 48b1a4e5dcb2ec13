/**
 * The test kit for vitest: a `test` with the fixture `deck`, which opens the recording named after the test.
 * `recordingPath` returns where that is.
 */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunnerTestCase, type RunnerTestSuite, type TestAPI, test as vitestTest } from 'vitest';
import { TapedeckError } from '../errors.ts';
import type { Deck, DeckOptions, FileUrl, RecordMode } from './deck.ts';
import { faultHint } from './fault-hint.ts';
import { openRecording } from './open-recording.ts';
import { recordingFolder, recordingName } from './recording-path.ts';
import { chooseMode } from './settings.ts';

/** How the fixture `deck` opens its recording, and what it checks at the test's end. */
export type DeckFixtureOptions = DeckOptions & {
  /**
   * Replaces the recording named after the test: a path, a `file:` URL, or a session of the store. Several tests of a file may
   * name the same text recording, and run one after another: what the first one records, the others play and add to.
   */
  readonly recording?: string | FileUrl | undefined;
  /** Whether the test fails when a call had no recorded answer (default true). */
  readonly failOnMiss?: boolean | undefined;
};

/** The fixtures of `test`. */
export type DeckFixtures = {
  /** Set it for a file or a suite: `test.override({ deckOptions: { repeat: 'last' } })`. */
  deckOptions: DeckFixtureOptions;
  /** The recording of this test, opened; closed after it. */
  deck: Deck;
  /** Recordings of this test file that no test in it is named after, such as those of renamed tests. */
  orphans: readonly string[];
};

/** vitest's `test` with the fixtures `deck`, `deckOptions` and `orphans`. */
export const test: TestAPI<DeckFixtures> = vitestTest.extend<DeckFixtures>({
  deckOptions: {},
  async deck({ task, deckOptions }, use) {
    const { recording = ownRecording(task), failOnMiss = true, ...options } = deckOptions;
    const shared = deckOptions.recording === undefined ? null : sharedRecording(recording);
    const deck = await openRecording(recording, {
      ...options,
      // Other tests need the rest of it.
      ...(shared === null ? {} : { pruneUnused: false }),
      ...(shared?.isMadeHere() ? { mode: addingMode(options) } : {}),
    });
    try {
      await use(deck);
    } finally {
      if (await endWith(deck, task, failOnMiss, faultHint(recording, options))) shared?.stored(deck.mode);
    }
  },
  async orphans({ task }, use) {
    const folder = recordingFolder(task.file.filepath);
    const known = new Set(testsIn(task.file).map((one) => recordingName(namesOf(one))));
    const left = recordingsIn(folder).filter((name) => !known.has(name));
    await use(left.map((name) => join(folder, name)));
  },
});

/** Of a test that has failed, or is about to, nothing is stored: a half recording would fail every run after it. */
async function endWith(deck: Deck, task: Test, failOnMiss: boolean, hint: string | null): Promise<boolean> {
  const state = task.result?.state;
  const misses = failOnMiss && state !== 'skip' ? deck.misses.length + deck.notices.length : 0;
  const isAsExpected = (state === 'pass') !== (task.fails === true);
  if (isAsExpected && misses === 0) {
    await deck.close();
    return true;
  }
  const isMade =
    deck.mode !== 'none' && deck.calls.some(({ frame, outcome }) => frame === null && outcome !== 'miss');
  await deck.discard();
  if (hint !== null && !isAsExpected && state !== 'skip')
    process.stderr.write(`tapedeck: ${quoted(task)} has failed. ${hint}\n`);
  if (isMade)
    process.stderr.write(
      `tapedeck: ${quoted(task)} has failed, so what it recorded was not stored; its recording is as it was before the test.\n`,
    );
  if (misses > 0) deck.assertNoMisses();
  return false;
}

/** The recordings that tests of this file have made, or made again. */
const madeHere = new Set<string>();

/** Of a recording that several tests share, the first one makes it, and the others add to it. */
function sharedRecording(recording: string | FileUrl) {
  const name = typeof recording === 'string' ? recording : recording.href;
  const path = name.startsWith('file:') ? fileURLToPath(name) : name;
  const wasThere = existsSync(path);
  return {
    isMadeHere: () => madeHere.has(path),
    stored(mode: RecordMode): void {
      if (mode === 'all' || (mode === 'once' && !wasThere && existsSync(path))) madeHere.add(path);
    },
  };
}

function addingMode({ mode, upstream }: DeckOptions): RecordMode {
  const chosen = chooseMode(mode, process.env, upstream !== undefined);
  return chosen === 'once' || chosen === 'all' ? 'new_episodes' : chosen;
}

type Test = Readonly<RunnerTestCase>;

type Suite = Readonly<RunnerTestSuite>;

/** Throws `TapedeckError` `ambiguous` where another test of the file has the same recording. */
function ownRecording(task: Test): string {
  const name = recordingName(namesOf(task));
  const others = testsIn(task.file).filter((one) => one.id !== task.id);
  const other = others.find((one) => recordingName(namesOf(one)) === name);
  if (other === undefined) return join(recordingFolder(task.file.filepath), name);
  throw new TapedeckError(
    'ambiguous',
    `The tests ${quoted(task)} and ${quoted(other)} would share the recording ${name}. Rename one of them, or name its recording: test.override({ deckOptions: { recording: … } })`,
  );
}

function quoted(task: Test): string {
  return JSON.stringify(namesOf(task).join(' > '));
}

/** The names of its suites, from the outermost, and its own. */
function namesOf(task: Test): string[] {
  const names = [task.name];
  for (let suite = task.suite; suite !== undefined; suite = suite.suite) names.unshift(suite.name);
  return names;
}

function testsIn(suite: Suite): Test[] {
  return suite.tasks.flatMap((task) => (task.type === 'test' ? task : testsIn(task)));
}

function recordingsIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.ndjson'));
  } catch {
    return [];
  }
}
