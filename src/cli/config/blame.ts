import { readConfiguration } from '../../config/file.ts';
import type { ConfigurationFile } from '../../config/location.ts';
import { TapedeckError } from '../../errors.ts';

/** Throws the error with the place of the setting that it is about, where that stands in a file. `name` as `ship.keep`. */
export function blameSetting(
  files: readonly ConfigurationFile[],
  env: NodeJS.ProcessEnv,
  name: string,
  error: Error,
): never {
  const settings = files.flatMap((file) => readConfiguration(file, env));
  const setting = settings.find((one) => one.name === name);
  throw setting === undefined
    ? error
    : new TapedeckError('usage', `${setting.place}: ${error.message}`, { cause: error });
}
