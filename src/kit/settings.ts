/** The options that a recording is opened with, each with its value. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TapedeckError } from '../errors.ts';
import type { MatchingOptions } from '../replay/matching.ts';
import type { Speed } from '../replay/mock.ts';
import { MODES } from '../replay/mode.ts';
import type { DeckOptions, FileUrl, RecordMode } from './deck.ts';
import { isTextRecording } from './source.ts';
import { readUpstream, type Server } from './upstream.ts';

export type Settings = MatchingOptions & {
  /** An absolute path, or a session. */
  recording: string;
  db: string | undefined;
  mode: RecordMode;
  /** Null where none was given. */
  upstream: Server | null;
  keepsFailures: boolean;
  speed: Speed;
};

const REPEATS = ['error', 'last', 'cycle'] as const;

/** Throws `TapedeckError` `usage` for a value that an option does not have. */
export function readSettings(given: string | FileUrl, options: DeckOptions): Settings {
  const { db, ignore = [], ignoreTool = [], repeat = 'error', speed = 'fast' } = options;
  if (!REPEATS.includes(repeat)) throw wrongOption('repeat', REPEATS.join(', '), repeat);
  const factor = speed === 'recorded' ? 1 : speed;
  if (factor !== 'fast' && !(Number.isFinite(factor) && factor > 0))
    throw wrongOption('speed', 'fast, recorded or a number above 0', speed);
  const upstream = readUpstream(options.upstream);
  return {
    recording: readRecording(given),
    db,
    mode: chooseMode(options.mode, process.env, upstream !== null),
    upstream,
    keepsFailures: options.recordFailures ?? false,
    ...{ ignore, ignoreTool, repeat, speed: factor },
  };
}

function readRecording(given: string | FileUrl): string {
  const text = typeof given === 'string' ? given : given.href;
  const name = text.startsWith('file:') ? fileURLToPath(text) : text;
  return isTextRecording(name) ? resolve(name) : name;
}

/** The mode asked for, else `TAPEDECK_MODE`, else `none` where `CI` is set; `none` too where there is nothing to ask. */
export function chooseMode(
  option: string | undefined,
  { TAPEDECK_MODE = '', CI = '' }: NodeJS.ProcessEnv,
  hasUpstream: boolean,
): RecordMode {
  if (option !== undefined) {
    const mode = readMode(option, 'the option `mode`');
    if (!hasUpstream && (mode === 'all' || mode === 'new_episodes'))
      throw new TapedeckError(
        'usage',
        `Expected the option \`upstream\`, the server that mode ${mode} asks, got none.`,
      );
    return hasUpstream ? mode : 'none';
  }
  const byDefault = isSet(CI) ? 'none' : 'once';
  const mode = TAPEDECK_MODE === '' ? byDefault : readMode(TAPEDECK_MODE, '`TAPEDECK_MODE`');
  return hasUpstream ? mode : 'none';
}

/** Some set it to say no. */
function isSet(text: string): boolean {
  return !['', '0', 'false'].includes(text.toLowerCase());
}

function readMode(text: string, where: string): RecordMode {
  const mode = MODES.find((known) => known === text);
  if (mode !== undefined) return mode;
  throw new TapedeckError('usage', `Expected ${MODES.join(', ')} as ${where}, got ${JSON.stringify(text)}.`);
}

function wrongOption(name: string, expected: string, got: unknown): TapedeckError {
  return new TapedeckError(
    'usage',
    `Expected ${expected} as the option \`${name}\`, got ${JSON.stringify(got)}.`,
  );
}
