/** Opens a recording for a test, and joins the parts of the kit to a deck. */

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { now } from '../capture/clock.ts';
import { TapedeckError } from '../errors.ts';
import { readFaults } from '../fault/faults.ts';
import type { Place } from '../protocol/message/correlate.ts';
import { escapeText } from '../protocol/text.ts';
import { type CallLog, createCallLog } from '../replay/call-log.ts';
import type { Notice } from '../replay/match/compare.ts';
import { TEST_KIT_WORDS } from '../replay/match/hints.ts';
import { createMatching } from '../replay/match/matching.ts';
import type { MatchFunctions } from '../replay/match/recording-keys.ts';
import { createMock } from '../replay/mock.ts';
import type { Recording } from '../replay/recording/recording.ts';
import { openPlayback, type Playback } from '../sources/playback.ts';
import { isTextRecording, openRecordingSource } from '../sources/source.ts';
import { makeFolder } from '../store/file/path.ts';
import { replaceFile } from '../store/file/replace-file.ts';
import { NO_NOTICES } from '../store/keep/catch-up.ts';
import { assertAllUsed, assertCalled, assertNoMisses, assertNotCalled, assertOrder } from './assertions.ts';
import { type CallSheet, createCallSheet } from './call-sheet.ts';
import type { Deck, DeckOptions, FileUrl, RecordedCall } from './deck.ts';
import { createDoors, type Doors } from './doors.ts';
import { faultHint, withFaults } from './fault-hint.ts';
import { createOverrides, deckFunctions, type Overrides } from './functions.ts';
import { readSettings, type Settings, serverCommand } from './settings.ts';
import { createTraffic } from './traffic.ts';

/** The test's own timeout comes first. */
const LIVE_TIMEOUT_MS = 300_000;

/**
 * Opens a recording for a test. The mode says whether it is replayed, extended or made.
 *
 * @param recording The path of a text recording (`.ndjson`; relative to the working directory), a `file:` URL of one, or
 * a session of the store: an id, the beginning of one, a name, or `latest`.
 * @throws {TapedeckError} Where there is no such recording, where the file is broken (with its line), and for an option
 * that has no such value.
 */
export async function openRecording(recording: string | FileUrl, options: DeckOptions = {}): Promise<Deck> {
  const settings = readSettings(recording, options);
  const sheet = createCallSheet();
  const log = createCallLog('here', now, sheet.add);
  const notices: string[] = [];
  const functions = deckFunctions(
    { beforeStoring: settings.beforeStoring, matchBy: settings.matchCall },
    (what) => void notices.push(escapeText(what)),
  );
  const playback = await openPlayed(settings, functions.edit);
  if (playback.plan.plays) sayIfOld(settings, playback.recording.session.startedAt);
  try {
    const hint = faultHint(recording, options);
    return createDeck(settings, playback, sheet, log, functions, notices, hint);
  } catch (error) {
    playback.close();
    throw error;
  }
}

/** Once for each recording. */
const told = new Set<string>();

const DAY_MS = 24 * 60 * 60 * 1000;

function sayIfOld({ recording, maxAgeMs, upstream }: Settings, startedAt: number): void {
  const ageMs = (now() - startedAt) / 1000;
  if (maxAgeMs === null || ageMs <= maxAgeMs || told.has(recording)) return;
  told.add(recording);
  const days = Math.floor(ageMs / DAY_MS);
  const age = days === 0 ? 'less than a day' : `${days} ${days === 1 ? 'day' : 'days'}`;
  const how = upstream === null ? 'with the option `upstream` and ' : '';
  process.stderr.write(
    `tapedeck: ${escapeText(recording)} was recorded ${age} ago; ${how}TAPEDECK_MODE=all records it again.\n`,
  );
}

async function openPlayed(
  settings: Settings,
  edit: ReturnType<typeof deckFunctions>['edit'],
): Promise<Playback> {
  const { recording, db, mode, upstream, keepsFailures, redaction } = settings;
  const { signal } = new AbortController();
  const reading = { signal, onFrame() {}, notices: NO_NOTICES };
  try {
    const asksServer = mode !== 'none' && upstream !== null;
    if (asksServer && isTextRecording(recording)) makeFolder(dirname(recording), 0o777);
    return await openPlayback({
      ...{ recording, db, mode, keepsFailures, redaction, edit },
      openSource: () => openRecordingSource(recording, db, reading),
      server: asksServer ? upstream : null,
      timeoutMs: LIVE_TIMEOUT_MS,
      onCall() {},
      isHeld: true,
    });
  } catch (error) {
    throw error instanceof TapedeckError && error.code === 'not-found' ? notRecorded(settings, error) : error;
  }
}

function notRecorded({ recording, upstream }: Settings, cause: TapedeckError): TapedeckError {
  const what = isTextRecording(recording) ? `There is no recording at ${recording}.` : cause.message;
  const help =
    upstream === null
      ? 'To record one, name the real server in the option `upstream`.'
      : 'To record one, run the test with TAPEDECK_MODE=once; mode none makes none.';
  return new TapedeckError('not-found', `${what} ${help}`, { cause });
}

function createDeck(
  settings: Settings,
  playback: Playback,
  sheet: CallSheet,
  log: CallLog,
  functions: MatchFunctions,
  notices: string[],
  hint: string | null,
): Deck {
  const { recording, live, plan } = playback;
  const { mode, speed } = settings;
  const matching = createMatching(recording, {
    ...settings,
    ...functions,
    words: TEST_KIT_WORDS,
    sharesClients: !plan.asks,
  });
  const recorded = createRecordedCalls(recording, matching.unasked());
  const onNotice = ({ text }: Notice) =>
    void notices.push(text.trimEnd().split('\n').map(escapeText).join('\n'));
  const events = { ...log, onNotice };
  const overrides = createOverrides();
  const override = overrides.answerTo;
  const traffic = createTraffic();
  const doors = createDoors(
    recording,
    () => traffic.watched(createMock({ recording, matching, speed, events, live, override })),
    settings.faults,
  );
  let closing: Promise<void> | null = null;
  let lastUnused: Deck['unused'] = [];
  /** Puts back what processes may have changed. */
  let restore = () => {};

  /** Once the recording is closed, it cannot be read any more. */
  function unused(): Deck['unused'] {
    return closing === null ? recorded.without(sheet.played()) : lastUnused;
  }

  /** The first call counts. */
  function end(finish: () => Promise<unknown>): Promise<void> {
    if (closing !== null) return closing;
    lastUnused = unused();
    closing = closeAll(doors, sheet, playback, finish);
    return closing;
  }

  const close = () =>
    end(async () => {
      await playback.finish?.();
      if (settings.pruneUnused && sheet.played().length > 0) playback.prune?.(recorded.left(sheet.played()));
    });

  async function discard(): Promise<void> {
    await playback.discard?.();
    restore();
  }

  const hinted = (assert: () => void) => withFaults(hint, assert);

  return {
    mode,
    transport: doors.transport,
    listen: doors.listen,
    command() {
      doors.refuseIfClosed();
      if (settings.faults !== null) readFaults(settings.faults, 'replay-stdio');
      refuseFunctions(settings, overrides);
      if (sheet.files() === 0 && playback.discard !== null) restore = restorerOf(settings.recording);
      return serverCommand(settings, plan.plays ? recording.session.id : null, sheet.newFile());
    },
    override(call, answer, { params, times = 1 } = {}) {
      if (sheet.files() > 0) throw cannotCall('`override`');
      overrides.add(call, answer, params, times);
    },
    get calls() {
      return sheet.calls();
    },
    get misses() {
      return sheet.misses();
    },
    get unused() {
      return unused();
    },
    notices,
    ...assertionsOf(sheet, notices, hinted),
    assertTraffic(assertions) {
      if (sheet.files() > 0) throw cannotCall('`assertTraffic`', 'keeps its messages to itself');
      hinted(() => traffic.assert(assertions));
    },
    assertAllUsed: (options) => hinted(() => assertAllUsed(unused(), options?.except ?? [])),
    close,
    discard: () => end(discard),
    [Symbol.asyncDispose]: close,
  };
}

function assertionsOf(
  sheet: CallSheet,
  notices: readonly string[],
  hinted: (assert: () => void) => void,
): Pick<Deck, 'assertCalled' | 'assertNotCalled' | 'assertOrder' | 'assertNoMisses'> {
  return {
    assertCalled: (...[call, params, options]) =>
      hinted(() => assertCalled(sheet.calls(), [call, params], options?.times ?? null)),
    assertNotCalled: (call, params) => hinted(() => assertNotCalled(sheet.calls(), [call, params])),
    assertOrder: (calls) => hinted(() => assertOrder(sheet.calls(), calls)),
    assertNoMisses: () => hinted(() => assertNoMisses(sheet.misses(), notices)),
  };
}

/** Throws `TapedeckError` `usage` for what only clients of this process can have. */
function refuseFunctions({ beforeStoring, matchCall }: Settings, overrides: Overrides): void {
  if (overrides.isUsed()) throw cannotCall('`override`');
  if (beforeStoring !== undefined) throw cannotCall('the option `beforeStoring`');
  if (matchCall !== undefined) throw cannotCall('the option `matchBy`');
}

function cannotCall(what: string, why = 'cannot call functions of the test'): TapedeckError {
  return new TapedeckError(
    'usage',
    `Expected no ${what} beside \`command\`, whose process ${why}. Use \`transport\` or \`listen\`.`,
  );
}

async function closeAll(
  doors: Doors,
  sheet: CallSheet,
  playback: Playback,
  finish: () => Promise<unknown>,
): Promise<void> {
  await doors.close();
  sheet.close();
  try {
    await finish();
  } finally {
    playback.close();
  }
}

/** Processes by `command` write the recording themselves. Of sessions in a store nothing is taken back. */
function restorerOf(recording: string): () => void {
  if (!isTextRecording(recording)) return () => {};
  const before = existsSync(recording) ? readFileSync(recording) : null;
  return () => {
    if (before === null) rmSync(recording, { force: true });
    else if (!existsSync(recording) || !readFileSync(recording).equals(before))
      replaceFile(recording, [before]);
  };
}

type RecordedCalls = {
  /** By their numbers in the script. */
  left(played: readonly Place[]): number[];
  without(played: readonly Place[]): readonly RecordedCall[];
};

/** `playable`: the calls that a client can ask for, by their numbers in the script. */
function createRecordedCalls({ script, load, read }: Recording, playable: readonly number[]): RecordedCalls {
  function callAt(place: Place): RecordedCall[] {
    const json = load(place);
    const message = read(json);
    if (message?.kind !== 'request') return [];
    const { canonical: method, details } = message;
    const { params } = JSON.parse(json.toString()) as { params?: unknown };
    return [{ method, target: details.target, params, frame: place.seq }];
  }

  function left(played: readonly Place[]): number[] {
    const places = new Set(played.map(keyOf));
    return playable.filter((call) => !places.has(keyOf(script.placeOf(call))));
  }

  return {
    left,
    without: (played) => left(played).map(script.placeOf).flatMap(callAt),
  };
}

function keyOf({ seq, n }: Place): string {
  return `${seq}.${n}`;
}
