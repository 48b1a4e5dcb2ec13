/** What is said of faults on purpose where a test has failed: with which of them, and how they come again. */

import { fileURLToPath } from 'node:url';
import { TapedeckError } from '../errors.ts';
import { commandLine, escapeText } from '../protocol/text.ts';
import type { DeckOptions, FileUrl } from './deck.ts';

/** The seed where none is given: each run has the same faults then. */
export const DEFAULT_SEED = 0;

/** Null where no faults were asked for. `recording`: as the deck was opened with it. */
export function faultHint(
  recording: string | FileUrl,
  { faults = [], seed = DEFAULT_SEED, db }: DeckOptions,
): string | null {
  if (faults.length === 0) return null;
  const given = typeof recording === 'string' ? recording : recording.href;
  const name = given.startsWith('file:') ? fileURLToPath(given) : given;
  const rules = faults.flatMap((fault) => ['--fault', fault]);
  const store = db === undefined ? [] : ['--db', db];
  const command = ['replay', name, ...store, ...rules, '--seed', String(seed), '--fault-plan'];
  return [
    `Faults were put in on purpose, seed ${seed}. The deck’s option \`seed: ${seed}\` puts in the same ones again.`,
    `Which recorded calls get them: npx mcp-tapedeck ${escapeText(commandLine(command))}`,
  ].join('\n');
}

/** Throws what `assert` throws, with the hint behind it. */
export function withFaults(hint: string | null, assert: () => void): void {
  try {
    assert();
  } catch (error) {
    if (hint === null || !(error instanceof TapedeckError)) throw error;
    throw new TapedeckError(error.code, `${error.message}\n${hint}`, { cause: error });
  }
}
