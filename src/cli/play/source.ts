/** What `<recording>` names on a command line. Long work shows itself. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { TapedeckError } from '../../errors.ts';
import { openRecordingSource as open, type Source } from '../../sources/source.ts';
import { onStopSignals } from '../listening.ts';
import { createProgress, NOTICES } from '../output.ts';

export const RECORDING = {
  type: 'string',
  demandOption: true,
  describe: 'A session (an id, the beginning of one, a name, or latest), or a text recording (.ndjson)',
} as const;

/**
 * A text recording is read into a store of its own, of which nothing is left behind, however we end. Signals break the
 * reading off; else they are left alone, so that they end work on a large recording at once.
 */
export async function openSource(recording: string, db: string | undefined): Promise<Source> {
  const progress = createProgress('imported', null);
  const stopping = new AbortController();
  const stopped = new TapedeckError('stopped', 'Stopped before the recording was read.');
  const ignoreSignals = onStopSignals(() => stopping.abort(stopped));
  const { signal } = stopping;
  try {
    const source = await open(recording, db, { signal, onFrame: progress.advance, notices: NOTICES });
    // A signal that came while a recording was indexed, in one go, has waited for its turn.
    await nextTurn();
    signal.throwIfAborted();
    return source;
  } finally {
    ignoreSignals();
    progress.end();
  }
}
