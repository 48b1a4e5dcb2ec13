/** Opens a recording by its name: the path of a text recording, or a session of the store. */

import { createReadStream } from 'node:fs';
import { hostname } from 'node:os';
import { addAbortSignal } from 'node:stream';
import { readFailure, TapedeckError } from '../errors.ts';
import { readNdjson } from '../export/text/read.ts';
import { openForReading, openTemporaryStore, type Store } from '../store/file/open.ts';
import { isEngineUrl, storePath } from '../store/file/path.ts';
import { findSession, type SessionRow } from '../store/read/sessions.ts';
import { VERSION } from '../version.ts';
import { type OpenNotices, openFor } from './open-for.ts';

/** `keyStores`: stores that may hold the key of the recording's placeholders. */
export type Source = { store: Store; session: SessionRow; keyStores: Store[]; close: () => void };

type SourceOptions = {
  /** Stops the reading of a text recording. */
  signal: AbortSignal;
  /** Called with the number of frames read so far of a text recording. */
  onFrame: (count: number) => void;
  /** Called while a session of the store is indexed first. */
  notices: OpenNotices;
  env?: NodeJS.ProcessEnv;
  /** As for `openFor`. */
  isInsecure?: boolean | undefined;
};

/**
 * Reads a text recording into a store of its own, or fetches what is named from an engine: `postgres://…#session`, the newest one
 * without a name. Throws `TapedeckError` for a recording that is missing or broken.
 */
export async function openRecordingSource(
  recording: string,
  db: string | undefined,
  options: SourceOptions,
): Promise<Source> {
  if (isTextRecording(recording)) return openFile(recording, db, options);
  if (!isEngineUrl(recording)) return openSession(recording, storePath(db), options);
  const [url = recording, session = 'latest'] = recording.split('#');
  return openSession(decodeURIComponent(session), url, options);
}

export function isTextRecording(recording: string): boolean {
  return recording.endsWith('.ndjson');
}

async function openFile(
  file: string,
  db: string | undefined,
  { signal, onFrame }: SourceOptions,
): Promise<Source> {
  const store = openTemporaryStore();
  const importer = { host: hostname(), pid: process.pid, processStarted: null, tapedeck: VERSION };
  try {
    const source = addAbortSignal(signal, createReadStream(file));
    const id = await readNdjson(store, source, {
      ...{ file, name: null, importer, redaction: null, onFrame, signal },
    });
    const session = checkPayloads(findSession(store, id));
    const keyStores = storesThatAreThere(db);
    const close = () => [store, ...keyStores].forEach((one) => void one.close());
    return { store, session, keyStores, close };
  } catch (error) {
    store.close();
    signal.throwIfAborted();
    throw isFileError(error) ? cannotRead(file, error) : error;
  }
}

async function openSession(
  name: string,
  file: string,
  { notices, env, isInsecure }: SourceOptions,
): Promise<Source> {
  const { store, close } = await openFor(
    file,
    { of: 'sessions', references: [name] },
    { notices, isInsecure, ...(env && { env }) },
  );
  try {
    const session = checkPayloads(findSession(store, name));
    return { store, session, keyStores: [store], close };
  } catch (error) {
    close();
    throw error;
  }
}

/** Throws `TapedeckError` `refused` where there is nothing to play. */
function checkPayloads(session: SessionRow): SessionRow {
  if (session.capture === 'full') return session;
  throw new TapedeckError(
    'refused',
    `Session ${session.id} was recorded with --capture meta: it has sizes and times, and nothing that could be played.`,
  );
}

/** The user's store, from which the recording may have been exported. */
function storesThatAreThere(db: string | undefined): Store[] {
  try {
    return [openForReading(storePath(db))];
  } catch {
    // Without a usable store, placeholders are compared without the key.
    return [];
  }
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}

function cannotRead(file: string, error: NodeJS.ErrnoException): TapedeckError {
  return new TapedeckError(readFailure(error), `${file} cannot be read: ${error.message}.`, { cause: error });
}
