import { join } from 'node:path';
import envPaths from 'env-paths';

/** Where the store is: the `--db` option, else `TAPEDECK_DB`, else `recordings.db` in the platform's data directory. */
export function storePath(option: string | undefined): string {
  return (
    option ?? (process.env['TAPEDECK_DB'] || join(envPaths('tapedeck', { suffix: '' }).data, 'recordings.db'))
  );
}
