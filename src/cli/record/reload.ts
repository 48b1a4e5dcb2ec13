/**
 * SIGHUP reads the configuration file anew: redaction, retention, sampling and the log level, all or nothing. What else stands in the file
 * counts at the next start.
 */

import { parseArgs } from 'node:util';
import { readConfiguration, type Setting } from '../../config/file.ts';
import { type ConfigurationFile, findConfigurationFiles } from '../../config/location.ts';
import { TapedeckError } from '../../errors.ts';
import { withConfig } from '../config/words.ts';
import type { Io } from '../io.ts';
import { HTTP_OPTIONS } from './http-options.ts';
import {
  checkRecordOptions,
  checkRedaction,
  checkSampling,
  RECORD_OPTIONS,
  type RecordOptions,
} from './options.ts';

export type Reloaded = {
  options: RecordOptions;
  /** What was changed and counts at the next start only, by its name in the options. */
  later: string[];
};

const OPTIONS = { ...RECORD_OPTIONS, ...HTTP_OPTIONS, wrapped: { type: 'boolean' } } as const;

/** What may differ between two readings without a restart; the rest is compared. */
const RELOADED: readonly (keyof RecordOptions)[] = ['redaction', 'retention', 'sampling', 'log'];

/**
 * Reads the command line again, with what the configuration files say now. Throws `TapedeckError` with the place of what is
 * wrong; then everything is to stay as it is.
 */
export async function rereadOptions(
  io: Io,
  argv: readonly string[],
  before: RecordOptions,
): Promise<Reloaded> {
  const files = findConfigurationFiles(argv, io);
  const args = withConfig(argv, files, io.env);
  const { values } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const options = checkRecordOptions(values);
  await checkRedaction(options.redaction).catch((error) => blame(files, io.env, error));
  await checkSampling(options.sampling).catch((error) => blameFilter(files, io.env, error));
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

/** Throws the error with the place of the filter of `sample.keep`, where that stands in a file. */
function blameFilter(files: readonly ConfigurationFile[], env: NodeJS.ProcessEnv, error: Error): never {
  const settings = files.flatMap((file) => readConfiguration(file, env));
  const setting = settings.find(({ name }) => name === 'sample.keep');
  throw setting === undefined
    ? error
    : new TapedeckError('usage', `${setting.place}: ${error.message}`, { cause: error });
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
