/** A report that a command was asked to write beside its output. */
import { writeFileSync } from 'node:fs';
import { TapedeckError } from '../errors.ts';

/** Throws `TapedeckError` `usage` where the file cannot be written. */
export function writeReport(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new TapedeckError('usage', `The report cannot be written: ${(error as Error).message}.`);
  }
}
