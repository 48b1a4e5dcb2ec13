/** Lists what was called, by clients of this process and of the spawned ones. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Place } from '../protocol/message/correlate.ts';
import { escapeText } from '../protocol/text.ts';
import { type CallMiss, type CallPart, callLine } from '../replay/call-log.ts';
import type { Call, CallOutcome, Miss } from './deck.ts';

export type CallSheet = {
  add(part: CallPart): void;
  /** A new file, in which the processes of one command line log their calls. */
  newFile(): string;
  /** How many there are. */
  files(): number;
  calls(): readonly Call[];
  misses(): readonly Miss[];
  /** The places of the recorded calls that have answered. */
  played(): readonly Place[];
  /** Removes the files and keeps their content. */
  close(): void;
};

/** Everything known about a call. The request always comes first. */
type CallRecord = {
  /** ISO 8601, so that it sorts as text. */
  at: string;
  method: string;
  target: string | null;
  params?: unknown;
  recorded?: Place;
  outcome?: Exclude<CallOutcome, 'miss'>;
  miss?: CallMiss;
};

export function createCallSheet(): CallSheet {
  const own: string[] = [];
  let folder: string | null = null;
  let files = 0;

  function known(): CallRecord[] {
    const calls = new Map<string, Partial<CallRecord>>();
    for (const { call, ...part } of [...own, ...linesIn(folder)].flatMap(read))
      calls.set(call, Object.assign(calls.get(call) ?? {}, part));
    return ([...calls.values()] as CallRecord[]).toSorted(
      (a, b) => Number(a.at > b.at) - Number(a.at < b.at),
    );
  }

  return {
    add: (part) => own.push(callLine(part)),
    newFile() {
      folder ??= mkdtempSync(join(tmpdir(), 'tapedeck-'));
      files += 1;
      return join(folder, `calls-${files}.ndjson`);
    },
    files: () => files,
    calls: () => known().map(callOf),
    misses: () => known().flatMap(missOf),
    played: () => known().flatMap(({ recorded }) => recorded ?? []),
    close() {
      own.push(...linesIn(folder));
      if (folder !== null) rmSync(folder, { recursive: true, force: true });
      folder = null;
    },
  };
}

function linesIn(folder: string | null): string[] {
  if (folder === null) return [];
  return readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'));
}

/** Skips a line that is still being written, or that a killed process left unfinished. */
function read(line: string): (Partial<CallRecord> & { call: string })[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

function callOf({ method, target, params, recorded, outcome = 'unanswered', miss }: CallRecord): Call {
  return {
    method,
    target,
    params,
    outcome: miss === undefined ? outcome : 'miss',
    frame: recorded?.seq ?? null,
  };
}

function missOf(known: CallRecord): Miss[] {
  if (known.miss === undefined) return [];
  const { reason, line, report } = known.miss;
  const lines = report.trimEnd().split('\n').map(escapeText);
  return [{ call: callOf(known), reason, message: escapeText(line), report: lines.join('\n') }];
}
