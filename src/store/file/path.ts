/** Where things of the user are by default, and where the store is. Imports next to nothing, so that a server starts at once. */

import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

type Environment = NodeJS.ProcessEnv;

/** Whether a name of a store is the URL of an engine, on which the sessions of many hosts are, and no file. */
export function isEngineUrl(name: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(name.trim());
}

/** The name of a store as people and logs may see it: an engine's without its password. */
export function storeName(file: string): string {
  return isEngineUrl(file)
    ? file.replace(/(?<=:\/\/[^@/:]*:)[^@/]*(?=@)|(?<=[?&]password=)[^&#]*/g, '…')
    : file;
}

/**
 * Where the store is: the `--db` option, else `TAPEDECK_DB`, else `recordings.db` in the data folder. The URL of an engine stays as
 * it is. `folder`: the working directory.
 */
export function storePath(option: string | undefined, env: Environment = process.env, folder = ''): string {
  const file = option ?? (env['TAPEDECK_DB'] || join(dataFolder(env), 'recordings.db'));
  if (isEngineUrl(file)) return file.trim();
  // SQLite's driver trims names and takes `:memory:` for no file at all: what we make must be what it opens.
  return resolve(folder, file.trim());
}

/** As `os.homedir()` finds it, in this environment. */
export function homeFolder(env: Environment): string {
  return (process.platform === 'win32' ? env['USERPROFILE'] : env['HOME']) ?? homedir();
}

/** The platform's folder for what a program keeps. */
export function dataFolder(env: Environment): string {
  const home = homeFolder(env);
  switch (process.platform) {
    case 'darwin':
      return join(home, 'Library', 'Application Support', 'tapedeck');
    case 'win32':
      return join(env['LOCALAPPDATA'] || join(home, 'AppData', 'Local'), 'tapedeck', 'Data');
    default:
      return join(env['XDG_DATA_HOME'] || join(home, '.local', 'share'), 'tapedeck');
  }
}

/** The platform's folder for how a program is configured. */
export function configFolder(env: Environment): string {
  const home = homeFolder(env);
  switch (process.platform) {
    case 'darwin':
      return join(home, 'Library', 'Preferences', 'tapedeck');
    case 'win32':
      return join(env['APPDATA'] || join(home, 'AppData', 'Roaming'), 'tapedeck', 'Config');
    default:
      return join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'tapedeck');
  }
}

/** The platform's folder for what a program can make again. */
export function cacheFolder(env: Environment): string {
  const home = homeFolder(env);
  switch (process.platform) {
    case 'darwin':
      return join(home, 'Library', 'Caches', 'tapedeck');
    case 'win32':
      return join(env['LOCALAPPDATA'] || join(home, 'AppData', 'Local'), 'tapedeck', 'Cache');
    default:
      return join(env['XDG_CACHE_HOME'] || join(home, '.cache'), 'tapedeck');
  }
}

/** The folder for what was fetched of engines. */
export function fetchedFolder(env: Environment): string {
  return join(cacheFolder(env), 'engine');
}

/**
 * Makes a folder, and those it lies in. Returns whether it was not there. Node's own recursive `mkdir` never ends where a parent
 * is there and seems missing, as in /proc.
 */
export function makeFolder(folder: string, mode: number, withParents = true): boolean {
  try {
    mkdirSync(folder, { mode });
    return true;
  } catch (error) {
    if (existsSync(folder)) return false;
    const parent = dirname(folder);
    if (!withParents || (error as { code?: string }).code !== 'ENOENT' || parent === folder) throw error;
    makeFolder(parent, mode);
    // Once: somebody else may have made the parent meanwhile.
    return makeFolder(folder, mode, false);
  }
}
