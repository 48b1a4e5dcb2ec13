/** Long output to stdout, at the pace of its reader. */

import { writeFileSync } from 'node:fs';
import { TapedeckError } from '../errors.ts';
import { escapeText } from '../protocol/text.ts';
import type { OpenNotices } from '../sources/open-for.ts';
import { type Io, ignoreErrors, pathOf, say } from './io.ts';

const PIECE_CHARS = 64 * 1024;

/**
 * Writes the pieces to stdout. A reader that leaves early (`| head`) is no error: the rest is not even produced.
 */
export async function writeOutput(
  { stdout }: Io,
  pieces: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  let failed: NodeJS.ErrnoException | undefined;
  const onError = (error: Error) => {
    failed ??= error;
  };
  ignoreErrors(stdout);
  stdout.on('error', onError);
  const write = (text: string) => new Promise<void>((resolve) => stdout.write(text, () => resolve()));
  for await (const piece of Symbol.asyncIterator in pieces ? pieces : together(pieces)) {
    await write(piece);
    if (failed !== undefined) break;
  }
  stdout.off('error', onError);
  if (failed !== undefined && failed.code !== 'EPIPE') throw cannotWrite(failed);
}

/** Small pieces as larger ones. */
function* together(pieces: Iterable<string>): Generator<string> {
  let waiting = '';
  for (const piece of pieces) {
    waiting += piece;
    if (waiting.length < PIECE_CHARS) continue;
    yield waiting;
    waiting = '';
  }
  if (waiting !== '') yield waiting;
}

function cannotWrite(error: Error): TapedeckError {
  return new TapedeckError('io', `The output cannot be written: ${error.message}.`, { cause: error });
}

/** Ends each line. */
export function* withLineEnds(lines: Iterable<string>): Generator<string> {
  for (const line of lines) yield `${line}\n`;
}

/** Sessions whose redaction had been interrupted. */
export function sayFinished(io: Io, sessions: readonly string[]): void {
  for (const id of sessions) say(io, `finished the redaction of session ${id}, which had been interrupted`);
}

/** What is said when a store is opened for reading. Long work shows itself, to people only. */
/** So many frames are indexed before anybody wonders, in half a second or so. */
export const QUICK_FRAMES = 10_000;

export function notices(io: Io): OpenNotices {
  let said = 0;
  return {
    onPulled(bytes, total) {
      if (!io.stderr.isTTY || bytes - said < BYTES_BETWEEN) return;
      said = bytes;
      io.stderr.write(
        `\rtapedeck: fetched ${(bytes / 1e6).toFixed()} of ${(total / 1e6).toFixed()} MB …\u001b[K`,
      );
    },
    onCounted(sessions) {
      if (!io.stderr.isTTY) return;
      io.stderr.write(
        `\rtapedeck: fetched what counts of ${sessions.toLocaleString('en-US')} ${sessions === 1 ? 'session' : 'sessions'} …\u001b[K`,
      );
    },
    onFetched() {
      if (io.stderr.isTTY) io.stderr.write('\r\u001b[K');
    },
    onNote: (text) => say(io, escapeText(text)),
    onTakingIn(file) {
      if (io.stderr.isTTY) say(io, escapeText(`taking in what a recorder left in ${file} …`));
    },
    onWaiting(spools) {
      const whose = spools === 1 ? 'a recorder' : `${spools} recorders`;
      say(io, `what ${whose} could not store yet is not shown; it comes in once the store is free`);
    },
    onDamaged(file, why) {
      say(io, escapeText(`${file}, which a recorder left, cannot be taken in and stays there: ${why}`));
    },
    onIndexing({ id, frames }) {
      if (io.stderr.isTTY || frames > QUICK_FRAMES) say(io, `indexing ${frames} frames of session ${id} …`);
    },
    onLeftBehind(sessions) {
      const which = sessions.length === 1 ? `session ${sessions[0]?.id}` : `${sessions.length} sessions`;
      say(
        io,
        `${which} cannot be indexed at once, so some figures are low (≥). To index now: tapedeck stats --all`,
      );
    },
    onUnredacted({ id }, isAtWork) {
      const said = isAtWork
        ? `session ${id} is being redacted at the moment`
        : `the redaction of session ${id} was interrupted: it may hold secrets still. Finish it: tapedeck redact ${id}`;
      say(io, said);
    },
  };
}

/** Of what comes over a network. */
const BYTES_BETWEEN = 4 * 1024 * 1024;

export type ProgressLine = { advance(frames: number): void; end(): void };

const FRAMES_BETWEEN = 50_000;

/** How far long work is, on one line of a terminal. Of work that is done before that it says nothing. */
export function createProgress(io: Io, verb: string, total: number | null): ProgressLine {
  const of = total === null ? '' : ` of ${total.toLocaleString('en-US')}`;
  let said = 0;
  return {
    advance(frames) {
      if (frames - said < FRAMES_BETWEEN || !io.stderr.isTTY) return;
      said = frames;
      io.stderr.write(`\rtapedeck: ${verb} ${frames.toLocaleString('en-US')}${of} frames …`);
    },
    end() {
      if (said > 0) io.stderr.write('\n');
    },
  };
}

/** A report that a command was asked to write beside its output. */

/** Throws `TapedeckError` `io` where the file cannot be written. */
export function writeReport(io: Io, file: string, text: string): void {
  try {
    writeFileSync(pathOf(io, file), text);
  } catch (error) {
    throw new TapedeckError('io', `The report cannot be written: ${(error as Error).message}.`);
  }
}
