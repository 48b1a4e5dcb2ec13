/** An error as the command line shows it: one line on stderr that says what to do, and an exit code. */
import { TapedeckError } from '../errors.ts';
import { troubleOf } from '../store/trouble.ts';

const BAD_USAGE = 2;

/** Prints the error; returns the exit code. */
export function failure(error: unknown): number {
  process.stderr.write(`tapedeck: ${textOf(error)}\n`);
  return BAD_USAGE;
}

function textOf(error: unknown): string {
  if (error instanceof TapedeckError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const isOperational = 'code' in error;
  return isOperational
    ? `the store cannot be used: ${troubleOf(error).text}`
    : `a bug in tapedeck: ${error.stack}`;
}
