import { join, resolve } from 'node:path';
import envPaths from 'env-paths';

/** The platform's folder for what a program keeps. */
export function dataFolder(): string {
  return envPaths('tapedeck', { suffix: '' }).data;
}

/** Where the store is: the `--db` option, else `TAPEDECK_DB`, else `recordings.db` in the platform's data directory. */
export function storePath(option: string | undefined): string {
  const file = option ?? (process.env['TAPEDECK_DB'] || join(dataFolder(), 'recordings.db'));
  // SQLite's driver trims names and takes `:memory:` for no file at all: what we make must be what it opens.
  return resolve(file.trim());
}
