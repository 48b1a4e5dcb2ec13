/**
 * The options of `record` for both transports, once (the ones for HTTP alone: http-options.ts): yargs builds its help and its complaints from this table, and the fast path reads
 * the same table with Node's own parser, because the server must be spawned before anything heavy is loaded.
 */

import { isatty } from 'node:tty';
import { parseArgs } from 'node:util';
import { CONFIG_OPTIONS, namesConfiguration } from '../../config/location.ts';
import {
  checkUpkeep,
  PACK_OPTION,
  type RawUpkeep,
  RETENTION_OPTIONS,
  readRate,
  readSize,
} from '../../config/sizes.ts';
import { TapedeckError } from '../../errors.ts';
import type { RawFaults } from '../../fault/faults.ts';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import { isEngineUrl, storePath } from '../../store/file/path.ts';
import type { UpkeepRules } from '../../store/keep/limits.ts';
import type { FrameRule } from '../../store/sample/meta-for.ts';
import type { SamplingRules } from '../../store/sample/sampling.ts';
import type { ShipSampling } from '../../store/sample/ship-sample.ts';
import { asksForFaults, FAULT_OPTIONS } from '../fault-options.ts';
import {
  checkShipSampling,
  type RawShipSampling,
  readShipSampling,
  SHIP_SAMPLING_OPTIONS,
} from '../ship-sampling.ts';
import { isLogLevel, type LogOptions } from './log.ts';

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
      'Record everything or stop: refuse to start without a store, wait for it, and end the traffic if it fails',
  },
  durable: { type: 'boolean', describe: 'Survive power loss too: every commit reaches the disk (slower)' },
  'max-frame': {
    type: 'string',
    describe: 'Record at most this much of a line, body or event (default 256mb); all of it is forwarded',
  },
  'max-queue': { type: 'string', describe: 'Memory for traffic that waits to be stored (default 256mb)' },
  sample: {
    type: 'string',
    describe: 'Record this share of the sessions, 10% or 0.1, each as a whole; the others pass as ever',
  },
  keep: {
    type: 'string',
    describe:
      'With --sample: record all, and once a session has ended keep it also if it has what this filter asks for',
  },
  'meta-for': {
    type: 'string',
    multiple: true,
    describe:
      'Keep no payloads of frames that this filter holds for, only sizes, times and hashes; may be repeated',
  },
  ...RETENTION_OPTIONS,
  'pack-after': PACK_OPTION,
  ...CONFIG_OPTIONS,
  ...FAULT_OPTIONS,
  'no-redact': { type: 'boolean', describe: 'Store secrets as they are' },
  'no-redact-rule': {
    type: 'string',
    multiple: true,
    describe: 'Leave out the rule with this id (see: tapedeck scan --rules); may be repeated',
  },
  'redact-rule': {
    type: 'string',
    multiple: true,
    describe: 'Redact also what this matches: id=/pattern/flags; may be repeated',
  },
  redact: {
    type: 'string',
    multiple: true,
    describe: 'Redact the value at this JSON path of every message, like $..card; may be repeated',
  },
  capture: {
    type: 'string',
    describe: 'full, or meta: no payloads at all, only sizes, times and hashes (default full)',
  },
  admin: {
    type: 'string',
    describe: 'Answer /healthz, /readyz and /metrics at this host:port, for those who operate it',
  },
  log: {
    type: 'string',
    describe: 'How it says what happens: text, or json, an object a line (default text)',
  },
  ship: {
    type: 'string',
    describe: 'Ship the store to this engine, postgres://…, in a process of its own (default: TAPEDECK_SHIP)',
  },
  'ship-unredacted': {
    type: 'boolean',
    describe: 'With --no-redact: ship it all the same, with its secrets',
  },
  ...SHIP_SAMPLING_OPTIONS,
  'insecure-engine': { type: 'boolean', describe: 'Reach the engine without checking its certificate' },
  'log-level': { type: 'string', describe: 'The least of debug, info, warn and error to say (default info)' },
} as const;

/** To where the store is shipped. */
export type RecordShipping = {
  url: string;
  isInsecure: boolean;
  isUnredacted: boolean;
  sampling: ShipSampling | null;
};

export type RecordOptions = {
  file: string | undefined;
  name: string | null;
  labels: [key: string, value: string][];
  isStrict: boolean;
  durable: boolean;
  maxFrameBytes: number;
  maxQueueBytes: number;
  /** What to prune in the background; null: nothing. */
  retention: UpkeepRules | null;
  /** Null: all sessions are kept. */
  sampling: SamplingRules | null;
  /** Null: with --no-redact. */
  redaction: RedactionProfile | null;
  /** Which frames are kept without their payloads, as `redaction.metaFor` says, once `withRules` has read that; null: none. */
  metaFor: FrameRule | null;
  /** As they were written; null: none. */
  faults: RawFaults | null;
  /** Null: it is not, unless the environment says so. */
  ship: string | null;
  isUnredactedShipped: boolean;
  isEngineInsecure: boolean;
  /** Null: all sessions are shipped. */
  shipSampling: ShipSampling | null;
  /** Where the admin port is to be, as it was written; null: nowhere. */
  admin: string | null;
  log: LogOptions;
};

/** Values as either parser returns them. */
export type RawRecordOptions = RawUpkeep &
  RawFaults &
  RawShipSampling & {
    db?: string | undefined;
    name?: string | undefined;
    label?: string[] | undefined;
    strict?: boolean | undefined;
    durable?: boolean | undefined;
    'max-frame'?: string | undefined;
    'max-queue'?: string | undefined;
    sample?: string | undefined;
    keep?: string | undefined;
    'meta-for'?: string[] | undefined;
    'no-redact'?: boolean | undefined;
    'no-redact-rule'?: string[] | undefined;
    'redact-rule'?: string[] | undefined;
    redact?: string[] | undefined;
    capture?: string | undefined;
    ship?: string | undefined;
    'ship-unredacted'?: boolean | undefined;
    'insecure-engine'?: boolean | undefined;
    admin?: string | undefined;
    log?: string | undefined;
    'log-level'?: string | undefined;
  };

export type RecordCommand = { options: RecordOptions; command: string; args: string[] };

/**
 * Reads `record`'s arguments without yargs. Undefined where anything is wrong with them: then yargs reads
 * them, with its help and its error texts.
 */
export function readRecordFast(argv: readonly string[]): RecordCommand | undefined {
  const dashes = argv.indexOf('--');
  const end = dashes === -1 ? commandIndex(argv) : dashes;
  const [command, ...args] = argv.slice(dashes === -1 ? end : dashes + 1);
  if (end === -1 || command === undefined) return undefined;
  try {
    const { values } = parseArgs({ args: argv.slice(0, end), options: RECORD_OPTIONS, strict: true });
    return { options: checkRecordOptions(values), command, args };
  } catch (error) {
    if (error instanceof TapedeckError) throw error;
    return undefined;
  }
}

/**
 * Where a command begins that has no `--` before it (some clients cut it off), or -1 where that is not clear: where the first
 * word may be an address, or an option of `record` stands after it, which may be meant for either.
 */
function commandIndex(argv: readonly string[]): number {
  const { tokens } = parseArgs({
    args: [...argv],
    options: RECORD_OPTIONS,
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const first = tokens.find(({ kind }) => kind === 'positional');
  if (first?.kind !== 'positional' || isAddress(first.value) || first.value.includes('://')) return -1;
  const isForEither = (word: string) =>
    word.startsWith('--') && (word.slice(2).split('=', 1)[0] as string) in RECORD_OPTIONS;
  return argv.slice(first.index).some(isForEither) ? -1 : first.index;
}

/**
 * The command line that SIGHUP reads anew: where it names its configuration file, and no terminal is there, which sends the same
 * signal when it is closed. Null: SIGHUP is a signal like others.
 */
export function rereadable(io: unknown): readonly string[] | null {
  const argv = process.argv.slice(2);
  const hasTerminal = isatty(0) || isatty(2);
  return io === process && namesConfiguration(argv) && !hasTerminal ? argv : null;
}

/** `http://…`, or what looks more like a host with a port than like a command. */
export function isAddress(word: string): boolean {
  return /^https?:/i.test(word) || /^(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5}(?:[/?#]|$)/i.test(word);
}

/** To where the store is shipped, by the command line or the environment; null: nowhere. */
export function shippingOf(
  { ship, isEngineInsecure, isUnredactedShipped, shipSampling: sampling }: RecordOptions,
  env: NodeJS.ProcessEnv,
): RecordShipping | null {
  const url = ship ?? env['TAPEDECK_SHIP'] ?? '';
  if (url === '') return null;
  return { url, isInsecure: isEngineInsecure, isUnredacted: isUnredactedShipped, sampling };
}

/** So many bytes may wait to be shipped before the oldest go; null: no limit. */
export function unshippedLimit({ retention }: RecordOptions): number | null {
  return retention?.maxUnshippedBytes ?? retention?.maxBytes ?? null;
}

/** Checks and completes the options. Throws `TapedeckError` `usage`. */
export function checkRecordOptions(raw: RawRecordOptions): RecordOptions {
  return {
    file: checkedStore(raw.db),
    name: filled('--name', raw.name) ?? null,
    labels: (raw.label ?? []).map(readLabel),
    isStrict: raw.strict ?? false,
    durable: raw.durable ?? false,
    maxFrameBytes: readSize('--max-frame', raw['max-frame'] ?? '256mb'),
    maxQueueBytes: readSize('--max-queue', raw['max-queue'] ?? '256mb'),
    retention: checkUpkeep(raw),
    sampling: readSampling(raw),
    redaction: readRedaction(raw),
    metaFor: null,
    faults: readFaultOptions(raw),
    ship: filled('--ship', raw.ship) ?? null,
    isUnredactedShipped: raw['ship-unredacted'] ?? false,
    isEngineInsecure: raw['insecure-engine'] ?? false,
    shipSampling: readShipSampling(raw),
    admin: filled('--admin', raw.admin) ?? null,
    log: readLog(raw),
  };
}

function readSampling({ sample, keep: written }: RawRecordOptions): SamplingRules | null {
  const keep = filled('--keep', written) ?? null;
  if (sample === undefined && keep === null) return null;
  if (sample === undefined)
    throw new TapedeckError(
      'usage',
      'Expected `--sample` with `--keep`, for how many of the other sessions stay. Example: --sample 10% --keep status~error',
    );
  const rate = readRate('--sample', sample);
  if (rate > 0 || keep !== null) return { rate, keep };
  throw new TapedeckError(
    'usage',
    `Expected a share above 0 after \`--sample\`, got \`${sample}\`: nothing would be recorded. Example: --sample 1%`,
  );
}

function readLog({ log = 'text', 'log-level': level = 'info' }: RawRecordOptions): LogOptions {
  if (log !== 'text' && log !== 'json')
    throw new TapedeckError('usage', `Expected text or json after \`--log\`, got \`${log}\`.`);
  if (!isLogLevel(level))
    throw new TapedeckError(
      'usage',
      `Expected debug, info, warn or error after \`--log-level\`, got \`${level}\`.`,
    );
  return { isJson: log === 'json', level };
}

/** They are read where they are carried out; whether they may be, is said at once. */
function readFaultOptions(raw: RawRecordOptions): RawFaults | null {
  if ((raw.fault ?? []).length > 0 && raw.strict)
    throw new TapedeckError(
      'usage',
      'Expected either `--strict` or `--fault`, got both: nothing that is strict changes traffic on purpose.',
    );
  return asksForFaults(raw) ? raw : null;
}

function readRedaction(raw: RawRecordOptions): RedactionProfile | null {
  const given = [raw['no-redact-rule'] ?? [], raw['redact-rule'] ?? [], raw.redact ?? []] as const;
  const [without, rules, paths] = given;
  const capture = readCapture(raw.capture);
  const metaFor = raw['meta-for'] ?? [];
  const isGiven = [...given, metaFor].some((values) => values.length > 0) || capture.capture === 'meta';
  if (raw['no-redact'] && !isGiven) return null;
  if (raw['no-redact']) {
    throw new TapedeckError('usage', 'Expected either `--no-redact` or what to redact, got both.');
  }
  return { without, rules, paths, ...capture, ...(metaFor.length > 0 && { metaFor: [...new Set(metaFor)] }) };
}

function readCapture(text = 'full'): Pick<RedactionProfile, 'capture'> {
  if (text === 'full') return {};
  if (text === 'meta') return { capture: 'meta' };
  throw new TapedeckError('usage', `Expected full or meta after \`--capture\`, got \`${text}\`.`);
}

/** Throws `TapedeckError` `usage`. The rules are loaded only to check some: the server is to be spawned at once. */
export async function checkRedaction(redaction: RedactionProfile | null): Promise<void> {
  const { without, rules, paths } = redaction ?? { without: [], rules: [], paths: [] };
  if (without.length + rules.length + paths.length === 0) return;
  const { readProfile } = await import('../../protocol/redact/profile.ts');
  readProfile(without, rules, paths);
}

/** Reads what takes more than a parser of the command line. Throws `TapedeckError` `usage`. */
export async function withRules(options: RecordOptions): Promise<RecordOptions> {
  await checkRedaction(options.redaction);
  await checkSampling(options.sampling);
  await checkShipSampling(options.shipSampling);
  return { ...options, metaFor: await readMetaFor(options.redaction?.metaFor) };
}

/** Throws `TapedeckError` `usage`. The filter language is loaded only where there is a filter. */
export async function readMetaFor(filters: readonly string[] | undefined): Promise<FrameRule | null> {
  if (filters === undefined) return null;
  const { readFrameRule } = await import('../../inspect/filter/frame-rule.ts');
  return readFrameRule(filters);
}

/** Throws `TapedeckError` `usage`. The filter language is loaded only to check a filter. */
export async function checkSampling(sampling: SamplingRules | null): Promise<void> {
  if (sampling?.keep == null) return;
  const { parseFilter } = await import('../../inspect/filter/filter.ts');
  parseFilter(sampling.keep, Date.now() * 1000);
}

export function filled(option: string, value: string | undefined): string | undefined {
  if (value === '')
    throw new TapedeckError('usage', `Expected a value after \`${option}\`, got an empty one.`);
  return value;
}

/** Refuses an engine, which hosts write to by shipping alone. Throws `TapedeckError` `usage`. */
export function checkedStore(db: string | undefined): string | undefined {
  const file = filled('--db', db);
  if (isEngineUrl(storePath(file)))
    throw new TapedeckError(
      'usage',
      'Expected the file of a store to record into, got the URL of an engine, from --db, TAPEDECK_DB or your configuration. Record into a file, and ship that.',
    );
  return file;
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

/** What is said when recording has trouble. */
export function troubleText(text: string, isStrict: boolean): string {
  return `${text}. ${isStrict ? 'Stopping, because of --strict.' : 'Traffic goes on; what cannot be recorded is counted.'}`;
}
