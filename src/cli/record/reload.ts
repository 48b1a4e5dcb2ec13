/**
 * SIGHUP reads the configuration file anew: redaction, retention, sampling, also of what is shipped, and the log level, all or nothing. What else stands in
 * the file counts at the next start.
 */

import { parseArgs } from 'node:util';
import { readConfiguration, type Setting } from '../../config/file.ts';
import { type ConfigurationFile, findConfigurationFiles } from '../../config/location.ts';
import { TapedeckError } from '../../errors.ts';
import { escapeText } from '../../protocol/text.ts';
import type { RecordingRules } from '../../store/record/thread.ts';
import { blameSetting } from '../config/blame.ts';
import { withConfig } from '../config/words.ts';
import type { Io } from '../io.ts';
import { checkShipSampling } from '../ship-sampling.ts';
import { FORWARD_OPTIONS } from './forward-options.ts';
import { HTTP_OPTIONS } from './http-options.ts';
import type { Log } from './log.ts';
import {
  checkRecordOptions,
  checkRedaction,
  checkSampling,
  RECORD_OPTIONS,
  type RecordOptions,
  readMetaFor,
  readRecordFast,
} from './options.ts';

type Reloaded = {
  options: RecordOptions;
  /** What was changed and counts at the next start only, by its name in the options. */
  later: string[];
};

const OPTIONS = {
  ...{ ...RECORD_OPTIONS, ...HTTP_OPTIONS, ...FORWARD_OPTIONS },
  wrapped: { type: 'boolean' },
} as const;

/** What may differ between two readings without a restart; the rest is compared. */
const RELOADED: readonly (keyof RecordOptions)[] = [
  ...(['redaction', 'retention', 'sampling', 'shipSampling', 'metaFor', 'log'] as const),
];

export type Reloading = {
  io: Io;
  log: Log;
  /** The words of the command line. */
  argv: readonly string[];
  /** As they were read when the recording began. */
  options: RecordOptions;
  recordings: readonly { setRules(rules: RecordingRules): void }[];
  /** Called with what counts from now on. */
  onRules?: (next: RecordOptions) => Promise<void>;
};

/** Lets the recordings go on by what the files say now, or says why all stays as it is. Never rejects. */
export async function reload({ io, log, argv, options, recordings, onRules }: Reloading): Promise<void> {
  try {
    const { options: next, later } = await rereadOptions(io, argv, options);
    for (const recording of recordings) recording.setRules(next);
    await onRules?.(next);
    log.setLevel(next.log.level);
    log.info(
      'reloaded',
      'the configuration was read anew: redaction, retention, sampling, what is shipped and log level count from now on',
    );
    if (later.length > 0)
      log.warn('restart-needed', `changed, and counts from the next start on: ${later.join(', ')}`);
  } catch (error) {
    log.error('not-reloaded', escapeText(`everything stays as it was: ${(error as Error).message}`));
  }
}

/**
 * Reads the command line again, with what the configuration files say now. Throws `TapedeckError` with the place of what is
 * wrong; then everything is to stay as it is.
 */
async function rereadOptions(io: Io, argv: readonly string[], before: RecordOptions): Promise<Reloaded> {
  const files = findConfigurationFiles(argv, io);
  const args = withConfig(argv, files, io.env);
  const read = readOptions(args);
  await checkRedaction(read.redaction).catch((error) => blame(files, io.env, error));
  await checkSampling(read.sampling).catch((error) => blameSetting(files, io.env, 'sample.keep', error));
  await checkShipSampling(read.shipSampling).catch((error) =>
    blameSetting(files, io.env, 'ship.keep', error),
  );
  const metaFor = await readMetaFor(read.redaction?.metaFor).catch((error) =>
    blameMetaFor(files, io.env, error),
  );
  const options = { ...read, metaFor };
  if ((options.redaction === null) !== (before.redaction === null)) {
    throw new TapedeckError(
      'refused',
      'redaction cannot be switched on or off while sessions are recorded: restart for that',
    );
  }
  const keys = (Object.keys(options) as (keyof RecordOptions)[]).filter((key) => !RELOADED.includes(key));
  const later = keys.filter((key) => JSON.stringify(options[key]) !== JSON.stringify(before[key]));
  if (options.log.isJson !== before.log.isJson) later.push('log');
  return { options, later };
}

/** Throws the error with the place of the filters of `sample.metaFor`, of which the first wrong one is to blame. */
async function blameMetaFor(
  files: readonly ConfigurationFile[],
  env: NodeJS.ProcessEnv,
  error: Error,
): Promise<never> {
  const settings = files.flatMap((file) => readConfiguration(file, env));
  for (const { name, values, place } of settings) {
    if (name !== 'sample.metaFor') continue;
    await readMetaFor(values).catch((own: Error) => {
      throw new TapedeckError('usage', `${place}: ${own.message}`, { cause: own });
    });
  }
  throw error;
}

/** As they were read at the start: what stands behind the command of a server or a client is not ours. */
function readOptions(args: readonly string[]): RecordOptions {
  const [command, ...words] = args;
  const ofStdio = command === 'record' ? readRecordFast(words) : undefined;
  if (ofStdio !== undefined) return ofStdio.options;
  const dashes = args.indexOf('--');
  const own = dashes === -1 ? [...args] : args.slice(0, dashes);
  return checkRecordOptions(parseArgs({ args: own, options: OPTIONS, allowPositionals: true }).values);
}

/** Throws the error with the place of the rule that it is about, where that stands in a file. */
async function blame(
  files: readonly ConfigurationFile[],
  env: NodeJS.ProcessEnv,
  error: Error,
): Promise<never> {
  const settings = files.flatMap((file) => readConfiguration(file, env));
  for (const setting of settings) {
    const isWrong = await isWrongRule(setting);
    if (isWrong) throw new TapedeckError('usage', `${setting.place}: ${error.message}`, { cause: error });
  }
  throw error;
}

async function isWrongRule({ name, values }: Setting): Promise<boolean> {
  const of = (wanted: string) => (name === wanted ? values : []);
  const alone = { without: of('redact.without'), rules: of('redact.rules'), paths: of('redact.paths') };
  return checkRedaction(alone).then(
    () => false,
    () => true,
  );
}
