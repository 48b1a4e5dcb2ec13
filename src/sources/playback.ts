/** Opens a recording by its mode: to be played, to be extended with a live server's answers, or to be made. */

import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { now } from '../capture/clock.ts';
import { TapedeckError } from '../errors.ts';
import {
  heldTape,
  removeFrames,
  tapeAsFile,
  tapeAsSession,
  tapeBehindFile,
  tapeBehindSession,
} from '../export/tape.ts';
import { createSecretNumbers, NUMBERED_KEY } from '../protocol/redact/numbers.ts';
import { joinProfiles, PLAIN_PROFILE, type RedactionProfile } from '../protocol/redact/profile.ts';
import { createRedactor } from '../protocol/redact/redactor.ts';
import { commandLine } from '../protocol/text.ts';
import type { BlockForm } from '../replay/live/episode.ts';
import type { Live } from '../replay/live/live.ts';
import {
  createLiveRecorder,
  type LiveRecorderEnd,
  type LiveRecorderOptions,
  type Mode,
  type ModePlan,
  planMode,
} from '../replay/live/recorder.ts';
import { framesOfCalls, type Recording, readRecording } from '../replay/recording/recording.ts';
import type { SessionStart } from '../store/file/columns.ts';
import { openStore, openTemporaryStore, type Store } from '../store/file/open.ts';
import { isEngineUrl, storePath } from '../store/file/path.ts';
import { processStarted } from '../store/file/process.ts';
import { checkReplaceable } from '../store/file/replace-file.ts';
import { createDigest, createPassingDigest } from '../store/file/secret.ts';
import { findSession, type SessionRow, sessionDetails, stateOf } from '../store/read/sessions.ts';
import type { Tape } from '../store/write/import.ts';
import {
  createFrameRedactor,
  redactionColumn,
  redactionColumnOf,
  redactStart,
} from '../store/write/redaction.ts';
import { insertSession } from '../store/write/rows.ts';
import type { Connect } from '../talk/server.ts';
import { VERSION } from '../version.ts';
import { isTextRecording, type Source } from './source.ts';

/** A live server, and how a recording names it. */
export type LiveTarget = { connect: Connect; url: URL | null; command: readonly string[] | null };

type PlaybackOptions = Pick<LiveRecorderOptions, 'timeoutMs' | 'keepsFailures' | 'onCall' | 'edit'> & {
  /** The path of a text recording, or a session of the store `db`. */
  recording: string;
  db: string | undefined;
  openSource: () => Promise<Source>;
  mode: Mode;
  /** What is redacted besides what the recording says: in live requests, and in all that is added. */
  redaction: RedactionProfile;
  /** The live server for modes that ask one. Without it nothing is asked, whatever the mode. */
  server: LiveTarget | null;
  /** Nothing is stored before `finish`, so that `discard` leaves everything as it was. */
  isHeld?: boolean;
};

/** A recording that is being played, added to, or made. */
export type Playback = {
  recording: Recording;
  plan: ModePlan;
  live: Live | undefined;
  /** Null where no server can be asked. */
  finish: (() => Promise<LiveRecorderEnd>) | null;
  /** In place of `finish`: what was held is not stored. Null where no server can be asked. */
  discard: (() => Promise<void>) | null;
  /** Removes calls of the script from the recording; null where it is no text recording that is only played. */
  prune: ((calls: readonly number[]) => void) | null;
  close(): void;
};

const DEFAULT_PATH = '/mcp';

/** Throws `TapedeckError` for a recording or a server that cannot be used in this mode. */
export async function openPlayback(options: PlaybackOptions): Promise<Playback> {
  const { server, recording: name, timeoutMs, keepsFailures, onCall, edit } = options;
  if (server === null) return playAlone(await options.openSource(), planMode('none', true), options);
  const source = await openIfThere(options);
  const plan = planMode(options.mode, source !== null);
  if (source !== null && !plan.asks) return playAlone(source, plan, options);
  if (isTextRecording(name)) checkReplaceable(name);
  else if (isEngineUrl(name) || isEngineUrl(storePath(options.db))) refuseEngine(options.mode, source);
  else if (source !== null) refuseOpen(source.session);
  const opened =
    source !== null && plan.plays ? openToAdd(options, source) : openToRecord(options, server, source);
  const { recording, form, close } = opened;
  const tape = redacting(options.isHeld ? heldTape(opened.tape) : opened.tape, opened);
  const deck = createLiveRecorder({
    ...{ tape, form, timeoutMs, now, keepsFailures, onCall, edit },
    played: plan.plays ? recording : null,
    connect: server.connect,
    replaces: source !== null && !plan.plays,
  });
  return { recording, plan, ...deck, prune: null, close };
}

function playAlone(
  { store, session, keyStores, close }: Source,
  plan: ModePlan,
  { recording: path, redaction }: PlaybackOptions,
): Playback {
  const recording = readRecording(store, session, keyStores, redaction);
  const prune = (calls: readonly number[]) =>
    removeFrames(path, store, session, framesOfCalls(recording, calls));
  return { recording, plan, ...NOTHING_LIVE, prune: isTextRecording(path) ? prune : null, close };
}

const NOTHING_LIVE = { live: undefined, finish: null, discard: null };

/** Null where the recording does not exist and may be made. */
async function openIfThere({ recording, openSource }: PlaybackOptions): Promise<Source | null> {
  if (isTextRecording(recording)) return existsSync(recording) ? openSource() : null;
  try {
    return await openSource();
  } catch (error) {
    // `latest` cannot name a new recording.
    if (error instanceof TapedeckError && error.code === 'not-found' && recording !== 'latest') return null;
    throw error;
  }
}

/** Nothing is added to what hosts have shipped. */
function refuseEngine(mode: Mode, source: Source | null): never {
  source?.close();
  throw new TapedeckError(
    'refused',
    `A session of an engine is only played: mode \`${mode}\` may add to it. Play it with mode none, or export it and add to the file.`,
  );
}

function refuseOpen(session: SessionRow): void {
  if (stateOf(session) !== 'open') return;
  throw new TapedeckError(
    'busy',
    `Session ${session.id} is still being recorded: nothing can be added to it before its end.`,
  );
}

/** How a live server's answers are redacted. `profile`: null stores secrets. `digest` makes the digits of placeholders. */
type TapeRedaction = { profile: RedactionProfile | null; digest: (secret: string) => string };

type RecordingTarget = TapeRedaction & {
  recording: Recording;
  tape: Tape;
  form: BlockForm;
  close: () => void;
};

function openToAdd(
  { recording: path, db, redaction: more }: PlaybackOptions,
  { store, session, keyStores, close }: Source,
): RecordingTarget {
  const recording = readRecording(store, session, keyStores, more);
  const { redaction } = sessionDetails(store, session.number);
  const hasMore = more.rules.length + more.paths.length > 0;
  const profile = redaction === null && !hasMore ? null : joinProfiles(redaction ?? PLAIN_PROFILE, more);
  const number = recording.script.size === 0 ? null : recording.script.httpExchangeOf(0);
  const target = number === null ? undefined : recording.httpExchange(number)?.path;
  const form: BlockForm =
    session.transport === 'stdio' ? { type: 'stdio' } : { type: 'http', path: target ?? DEFAULT_PATH };
  if (isTextRecording(path)) {
    const { basis, transport } = session as Pick<SessionStart, 'basis' | 'transport'>;
    const start = { ...bareStart(null), redaction: null, basis, transport, target: session.target };
    const tape = tapeBehindFile(path, store, start);
    const digest = recording.numbers?.assign ?? createDigest(keyStores[0] ?? store);
    return { recording, form, close, tape, profile, digest };
  }
  const writable = openStore(storePath(db));
  const tape = tapeBehindSession(writable, session.number);
  const digest = recording.numbers?.assign ?? createDigest(writable);
  return { recording, form, tape, profile, digest, close: closing(writable, close) };
}

function openToRecord(
  { recording: path, db, redaction: profile }: PlaybackOptions,
  target: LiveTarget,
  old: Source | null,
): RecordingTarget {
  const passing = openTemporaryStore();
  const recording = emptyRecording(passing);
  const { url } = target;
  const form: BlockForm =
    url === null ? { type: 'stdio' } : { type: 'http', path: url.pathname + url.search };
  const close = closing(passing, old?.close ?? (() => {}));
  if (isTextRecording(path)) {
    const digest = createSecretNumbers(createPassingDigest()).assign;
    const keyed = { profile, digest };
    const redaction = redactionColumnOf(NUMBERED_KEY, profile);
    const start = { ...redacted(bareStart(target), keyed), redaction, name: old?.session.name ?? null };
    const tape = tapeAsFile(path, passing, start, old !== null);
    return { recording, form, close, tape, ...keyed };
  }
  const store = openStore(storePath(db));
  const keyed = { profile, digest: createDigest(store) };
  const redaction = redactionColumn(store, profile);
  const start = { ...redacted(bareStart(target), keyed), redaction, name: path };
  const tape = tapeAsSession(store, start, old?.session.number ?? null);
  return { recording, form, tape, ...keyed, close: closing(store, close) };
}

function closing(store: Store, close: () => void): () => void {
  return () => {
    store.close();
    close();
  };
}

/** The recording that is played where there is none: empty, for clients of every era, or of this one. */
export function emptyRecording(
  store: Store,
  spoken: Partial<Pick<SessionRow, 'era' | 'protocolVersion'>> = {},
): Recording {
  const { id } = insertSession(store, { ...bareStart(null), redaction: null });
  return readRecording(store, { ...findSession(store, id), era: 'dual', ...spoken });
}

function redacted<T extends BareStart>(start: T, { profile, digest }: TapeRedaction): T {
  return profile === null ? start : redactStart(start, createRedactor(profile, digest));
}

type BareStart = Omit<SessionStart, 'redaction'>;

function bareStart(target: LiveTarget | null): BareStart {
  const { url = null, command = null } = target ?? {};
  return {
    name: null,
    labels: [],
    // A first guess: its replay hands out session ids.
    basis: url === null ? 'stdio-process' : 'session-header',
    transport: url === null ? 'stdio' : 'http',
    target: url === null ? commandLine(command ?? []) : url.href,
    command,
    cwd: null,
    at: now(),
    host: hostname(),
    pid: process.pid,
    processStarted: processStarted(process.pid),
    clientPid: null,
    clientProgram: null,
    tapedeck: VERSION,
  };
}

/** Redacts a live server's answers before they are stored, as `record` does. */
function redacting(tape: Tape, { profile, digest }: TapeRedaction): Tape {
  if (profile === null) return tape;
  const redact = createFrameRedactor(createRedactor(profile, digest));
  return { ...tape, add: ({ frames, exchanges }) => tape.add({ frames: frames.map(redact), exchanges }) };
}
