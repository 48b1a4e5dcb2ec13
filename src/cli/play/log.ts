/** Reports what happens in `replay`: misses at once, what was added or withheld at the end, and everything in the report file. */

import { randomBytes } from 'node:crypto';
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { now } from '../../capture/clock.ts';
import { TapedeckError } from '../../errors.ts';
import { escapeText } from '../../protocol/text.ts';
import { type CallLog, type CallPart, callLine, createCallLog } from '../../replay/call-log.ts';
import type { Episode } from '../../replay/live/episode.ts';
import type { LiveRecorderEnd } from '../../replay/live/recorder.ts';
import type { Notice } from '../../replay/match/compare.ts';
import type { ReplayRefusal } from '../../replay/match/refusal.ts';
import { type Io, pathOf, say } from '../io.ts';

export type ReplayLog = {
  /** A request that was refused. */
  miss(refusal: ReplayRefusal): void;
  /** Anything else that was not as recorded. */
  notice(notice: Notice): void;
  /** A call that was put to the live server. `withheld`: why it is not added. */
  call(episode: Episode, withheld: string | null): void;
  /** How many there were. */
  misses(): number;
  /** Says at the end what was added to `recording`, and what was not; nothing where nothing was asked live. */
  list(recording: string, end: LiveRecorderEnd): void;
  /** Throws `TapedeckError` `io` where the report is not whole. */
  end(): void;
  /** Closes the report, whatever is in it. */
  close(): void;
};

/** At most this many calls are listed. The report has all. */
const MAX_LISTED = 200;

/** `isJson`: the report has one JSON object a line, for programs; else text, for people. */
export function createReplayLog(io: Io, file: string | undefined, isJson: boolean): ReplayLog {
  const report = createReport(file === undefined ? null : pathOf(io, file));
  const added: string[] = [];
  const withheld: string[] = [];
  let misses = 0;

  return {
    miss({ line, text, error }) {
      misses += 1;
      say(io, escapeText(line));
      if (isJson) report.write(jsonLine({ type: 'miss', ...error }));
      else report.write(`${misses === 1 ? '' : '\n'}${text.split('\n').map(escapeText).join('\n')}`);
    },
    notice({ line, text }) {
      misses += 1;
      say(io, escapeText(line));
      if (isJson) report.write(jsonLine({ type: 'notice', line, text }));
      else report.write(`${misses === 1 ? '' : '\n'}${text.split('\n').map(escapeText).join('\n')}`);
    },
    call(episode, why) {
      const { topic: asked, outcome, latencyMs, failure } = episode;
      const type = why === null ? 'added' : 'withheld';
      report.write(jsonLine({ type, ...asked, outcome, latencyMs, why: why ?? failure?.why ?? null }));
      const target = asked?.target == null ? '' : ` ${JSON.stringify(asked.target)}`;
      const latency = latencyMs === null ? '' : `, ${latencyMs.toFixed(2)} ms`;
      const line = escapeText(
        `${asked?.method}${target}: ${outcome}${latency}${why === null ? '' : `; ${why}`}`,
      );
      (why === null ? added : withheld).push(line);
    },
    misses: () => misses,
    list(recording, end) {
      if (end.added + end.withheld === 0) return;
      const name = escapeText(recording);
      const what = `${end.added} ${end.added === 1 ? 'call' : 'calls'}`;
      if (end.isLeft) say(io, `${name} stays as it was, because not every call was answered`);
      else say(io, `${what} added to ${name}`);
      sayAll(io, end.isLeft ? 'not added' : 'added', added);
      sayAll(io, 'withheld', withheld);
      if (end.withheld > 0) say(io, '--record-failures adds what was withheld, too');
    },
    end: report.end,
    close: report.close,
  };
}

function sayAll(io: Io, what: string, lines: readonly string[]): void {
  for (const line of lines.slice(0, MAX_LISTED)) say(io, `${what}: ${line}`);
  const more = lines.length - MAX_LISTED;
  if (more > 0) say(io, `${what}: ${more} more, which a --report has`);
}

function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

/** Writes at once, so that the file is complete even if this process is killed. */
function createReport(path: string | null) {
  const file = path === null ? null : openReport(path);
  let failed: unknown = null;
  return {
    write(text: string): void {
      if (file === null || failed !== null) return;
      try {
        writeSync(file, text);
      } catch (error) {
        failed = error;
      }
    },
    end(): void {
      if (failed !== null) throw cannotReport(failed);
    },
    close(): void {
      if (file !== null) closeSync(file);
    },
  };
}

function openReport(path: string): number {
  try {
    return openSync(path, 'w');
  } catch (error) {
    throw cannotReport(error);
  }
}

function cannotReport(error: unknown): TapedeckError {
  return new TapedeckError('io', `The report cannot be written: ${(error as Error).message}.`);
}

/** `replay --calls FILE`: what was called, for tests of the client. Many processes may share the file. */

/** `end` and `close` as those of `ReplayLog`. */
export type CallsFile = Partial<CallLog> & Pick<ReplayLog, 'end' | 'close'>;

/** Throws `TapedeckError` `io` for a file that cannot be written, at the end too. */
export function openCallsFile(io: Io, path: string | undefined): CallsFile {
  if (path === undefined) return { end() {}, close() {} };
  const file = openForAppending(pathOf(io, path));
  const name = `${process.pid}-${randomBytes(4).toString('hex')}`;
  let failed: unknown = null;

  /** Writes at once: by the time a client sees an answer, its call is in the file. */
  function write(part: CallPart): void {
    if (failed !== null) return;
    try {
      writeFileSync(file, `${callLine(part)}\n`);
    } catch (error) {
      failed = error;
    }
  }

  return {
    ...createCallLog(name, now, write),
    end() {
      if (failed !== null) throw cannotWrite(failed);
    },
    close: () => closeSync(file),
  };
}

function openForAppending(path: string): number {
  try {
    return openSync(path, 'a', 0o600);
  } catch (error) {
    throw cannotWrite(error);
  }
}

function cannotWrite(error: unknown): TapedeckError {
  return new TapedeckError('io', `The calls cannot be written: ${(error as Error).message}.`);
}
