/** `replay --calls FILE`: what was called, for whoever tests the client. Many processes may share the file. */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { now } from '../capture/clock.ts';
import { TapedeckError } from '../errors.ts';
import { type CallLog, type CallPart, callLine, createCallLog } from '../replay/call-log.ts';

/** Throws `TapedeckError` `usage` for a file that cannot be written, at the end too. */
export function openCallsFile(path: string | undefined): CallLog & { end(): void } {
  if (path === undefined) return { onMatch() {}, onRefusal() {}, watch: (mock) => mock, end() {} };
  const file = openForAppending(path);
  const name = `${process.pid}-${randomBytes(4).toString('hex')}`;
  let failed: unknown = null;

  /** At once: whoever has seen an answer finds its call in the file. */
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
      closeSync(file);
      if (failed !== null) throw cannotWrite(failed);
    },
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
  return new TapedeckError('usage', `The calls cannot be written: ${(error as Error).message}.`);
}
