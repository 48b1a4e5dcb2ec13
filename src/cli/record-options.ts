/**
 * The options of `record`, once: yargs builds its help and its complaints from this table, and the fast path reads
 * the same table with Node's own parser, because the server must be spawned before anything heavy is loaded.
 */
import { parseArgs } from 'node:util';
import { TapedeckError } from '../errors.ts';

export const RECORD_OPTIONS = {
  db: {
    type: 'string',
    describe: 'The store to record into (default: TAPEDECK_DB, else the platform’s data folder)',
  },
  name: { type: 'string', describe: 'A name for the session, to find it by' },
  label: { type: 'string', multiple: true, describe: 'A label for the session, key=value; may be repeated' },
  strict: {
    type: 'boolean',
    describe:
      'Record everything or stop: refuse to start without a store, wait for it, end the server if it fails',
  },
  durable: { type: 'boolean', describe: 'Survive power loss too: every commit reaches the disk (slower)' },
  'max-frame': {
    type: 'string',
    describe: 'Record at most this much of one line (default 256mb); it is forwarded whole',
  },
  'max-queue': { type: 'string', describe: 'Memory for what waits to be stored (default 256mb)' },
} as const;

export type RecordOptions = {
  file: string | undefined;
  name: string | null;
  labels: [key: string, value: string][];
  isStrict: boolean;
  durable: boolean;
  maxFrameBytes: number;
  maxQueueBytes: number;
};

/** Values as either parser gives them. */
export type RawRecordOptions = {
  db?: string | undefined;
  name?: string | undefined;
  label?: string[] | undefined;
  strict?: boolean | undefined;
  durable?: boolean | undefined;
  'max-frame'?: string | undefined;
  'max-queue'?: string | undefined;
};

export type RecordCommand = { options: RecordOptions; command: string; args: string[] };

/**
 * Reads `record`'s arguments without yargs. Undefined where they are anything but plainly right: yargs then has the
 * word, with its help and its error texts.
 */
export function readRecordFast(argv: readonly string[]): RecordCommand | undefined {
  const dashes = argv.indexOf('--');
  const [command, ...args] = argv.slice(dashes + 1);
  if (dashes === -1 || command === undefined) return undefined;
  try {
    const { values } = parseArgs({ args: argv.slice(0, dashes), options: RECORD_OPTIONS, strict: true });
    return { options: checkRecordOptions(values), command, args };
  } catch (error) {
    if (error instanceof TapedeckError) throw error;
    return undefined;
  }
}

/** Checks and completes the options. Throws `TapedeckError` `usage`. */
export function checkRecordOptions(raw: RawRecordOptions): RecordOptions {
  return {
    file: filled('--db', raw.db),
    name: filled('--name', raw.name) ?? null,
    labels: (raw.label ?? []).map(readLabel),
    isStrict: raw.strict ?? false,
    durable: raw.durable ?? false,
    maxFrameBytes: readSize('--max-frame', raw['max-frame'] ?? '256mb'),
    maxQueueBytes: readSize('--max-queue', raw['max-queue'] ?? '256mb'),
  };
}

function filled(option: string, value: string | undefined): string | undefined {
  if (value === '')
    throw new TapedeckError('usage', `Expected a value after \`${option}\`, got an empty one.`);
  return value;
}

function readLabel(label: string): [string, string] {
  const at = label.indexOf('=');
  if (at < 1) {
    throw new TapedeckError(
      'usage',
      `Expected \`--label key=value\`, got \`${label}\`. Example: --label env=staging`,
    );
  }
  return [label.slice(0, at), label.slice(at + 1)];
}

const UNITS: Record<string, number> = { '': 1, b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

function readSize(option: string, text: string): number {
  const match = /^(\d+)\s*([kmg]?b?)$/i.exec(text);
  const unit = UNITS[(match?.[2] ?? '').toLowerCase().replace(/^([kmg])$/, '$1b')];
  const bytes = Number(match?.[1]) * (unit ?? Number.NaN);
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new TapedeckError(
      'usage',
      `Expected a size after \`${option}\`, got \`${text}\`. Examples: 512kb, 64mb, 1gb`,
    );
  }
  return bytes;
}
