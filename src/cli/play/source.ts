/** Opens what `<recording>` names on a command line. Shows the progress of long work. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { TapedeckError } from '../../errors.ts';
import { escapeText } from '../../protocol/text.ts';
import { isTextRecording, openRecordingSource, type Source } from '../../sources/source.ts';
import { metaOnlyOf, metaOnlyText } from '../../store/read/meta-only.ts';
import { type Io, onStopSignals, pathOf, say, storeOf } from '../io.ts';
import { createProgress, notices } from '../output.ts';

export const RECORDING = {
  type: 'string',
  demandOption: true,
  describe: 'A session (an id, the beginning of one, a name, or latest), or a text recording (.ndjson)',
} as const;

/**
 * A text recording is read into a store of its own, which leaves nothing behind. Signals stop the reading. Afterwards they
 * are left alone, so that they end work on a large recording at once.
 */
export async function openSource(io: Io, recording: string, db: string | undefined): Promise<Source> {
  const progress = createProgress(io, 'imported', null);
  const stopping = new AbortController();
  const stopped = new TapedeckError('stopped', 'Stopped before the recording was read.');
  const ignoreSignals = onStopSignals(io, () => stopping.abort(stopped));
  const { signal } = stopping;
  try {
    const name = isTextRecording(recording) ? pathOf(io, recording) : recording;
    const source = await openRecordingSource(name, storeOf(io, db), {
      signal,
      onFrame: progress.advance,
      notices: notices(io),
      env: io.env,
      isInsecure: io.isInsecureEngine,
    });
    // A signal that came while a recording was indexed, in one go, has waited for its turn.
    await nextTurn();
    signal.throwIfAborted();
    return source;
  } finally {
    ignoreSignals();
    progress.end();
  }
}

/** What a recording of parsed messages costs: everything but these numbers is compared by value anyway. */
export function sayReserialised(io: Io, { basis }: { basis: string }): void {
  if (basis !== 'sdk-transport') return;
  say(
    io,
    'this recording comes from the transport of an SDK, which had parsed its messages: whole numbers beyond 2^53 and the order of keys are not those that passed',
  );
}

/** That calls of a recording cannot be played or compared, because their frames have no payload. */
export function sayMetaOnly(io: Io, { store, session }: Pick<Source, 'store' | 'session'>): void {
  const metaOnly = metaOnlyOf(store, session);
  if (metaOnly === null || metaOnly.frames === 0) return;
  say(
    io,
    escapeText(
      `session ${session.id} has ${metaOnlyText(metaOnly)}: it is as if these had not been recorded`,
    ),
  );
}

/** Opens all of them, for as long as `work` takes. */
export async function withSources<T>(
  io: Io,
  recordings: readonly string[],
  db: string | undefined,
  work: (sources: readonly Source[]) => T | Promise<T>,
): Promise<T> {
  const sources: Source[] = [];
  try {
    for (const recording of recordings) sources.push(await openSource(io, recording, db));
    return await work(sources);
  } finally {
    for (const { close } of sources) close();
  }
}
