/** Where configuration files are. Asked before anything is started, so this imports next to nothing. */

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

export const PROJECT_FILE = 'tapedeck.config.json';

/** `isOwn`: it is the user's, not one that came with a project. */
export type ConfigFile = { path: string; isOwn: boolean };

export const CONFIG_OPTIONS = {
  config: { type: 'string', describe: 'Read this configuration file, and no other' },
  'no-config': { type: 'boolean', describe: 'Read no configuration file' },
} as const;

/** The user's own file, whether it is there or not. */
export function ownConfigPath(): string {
  return join(ownFolder(), 'config.json');
}

/** The same as `env-paths` gives, whose loading alone would keep the server's start waiting for some milliseconds. */
function ownFolder(): string {
  const { APPDATA, XDG_CONFIG_HOME } = process.env;
  switch (process.platform) {
    case 'darwin':
      return join(homedir(), 'Library', 'Preferences', 'tapedeck');
    case 'win32':
      return join(APPDATA || join(homedir(), 'AppData', 'Roaming'), 'tapedeck', 'Config');
    default:
      return join(XDG_CONFIG_HOME || join(homedir(), '.config'), 'tapedeck');
  }
}

/** The files that count for this command line; what a later one says counts before what an earlier one says. */
export function findConfigFiles(argv: readonly string[]): ConfigFile[] {
  const dashes = argv.indexOf('--');
  const words = dashes === -1 ? argv : argv.slice(0, dashes);
  if (words.includes('--no-config')) return [];
  const named = namedFile(words);
  if (named !== undefined) return [{ path: resolve(named), isOwn: true }];
  const own = ownConfigPath();
  const project = findProjectFile();
  const files: ConfigFile[] = existsSync(own) ? [{ path: own, isOwn: true }] : [];
  if (project !== null && project !== own) files.push({ path: project, isOwn: false });
  return files;
}

/** Given twice, the last one counts, as for every other option. */
function namedFile(words: readonly string[]): string | undefined {
  const at = words.findLastIndex((word) => word === '--config' || word.startsWith('--config='));
  if (at === -1) return undefined;
  return words[at]?.startsWith('--config=') ? words[at].slice('--config='.length) : words[at + 1];
}

/** The nearest one from the working directory upward, within the repository or the home folder. */
function findProjectFile(): string | null {
  for (let folder = workingFolder(); folder !== null; ) {
    const file = join(folder, PROJECT_FILE);
    if (existsSync(file)) return file;
    const isTop = folder === homedir() || existsSync(join(folder, '.git'));
    const parent = dirname(folder);
    folder = isTop || parent === folder ? null : parent;
  }
  return null;
}

/** Null where the folder was removed. */
function workingFolder(): string | null {
  try {
    return process.cwd();
  } catch {
    return null;
  }
}
