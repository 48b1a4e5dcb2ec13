/** Where configuration files are. Asked before anything is started, so this imports next to nothing. */

import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { configFolder, homeFolder } from '../store/file/path.ts';

export const PROJECT_FILE = 'tapedeck.config.json';

/** Where a command runs. `cwd` throws where the folder was removed. */
type Surroundings = { readonly env: NodeJS.ProcessEnv; cwd(): string };

/** `isOwn`: it is the user's, not one that came with a project. */
export type ConfigurationFile = { path: string; isOwn: boolean };

export const CONFIG_OPTIONS = {
  config: { type: 'string', describe: 'Read this configuration file, and no other' },
  'no-config': { type: 'boolean', describe: 'Read no configuration file' },
} as const;

/** The user's own file, whether it is there or not. */
export function ownConfigPath(env: NodeJS.ProcessEnv = process.env): string {
  return join(configFolder(env), 'config.json');
}

/** The files that count for this command line; what a later one says counts before what an earlier one says. */
export function findConfigurationFiles(
  argv: readonly string[],
  { env, cwd }: Surroundings,
): ConfigurationFile[] {
  const dashes = argv.indexOf('--');
  const words = dashes === -1 ? argv : argv.slice(0, dashes);
  if (words.includes('--no-config')) return [];
  const named = namedFile(words);
  if (named !== undefined) return [{ path: resolve(cwd(), named), isOwn: true }];
  return filesFor(workingFolder(cwd), env);
}

/** The same where there is no command line, from this folder upward. */
export function filesFor(folder: string | null, env: NodeJS.ProcessEnv): ConfigurationFile[] {
  const own = ownConfigPath(env);
  const project = findProjectFile(folder, env);
  const files: ConfigurationFile[] = existsSync(own) ? [{ path: own, isOwn: true }] : [];
  if (project !== null && project !== own) files.push({ path: project, isOwn: false });
  return files;
}

/** Whether the command line says which file it is, and no other. */
export function namesConfiguration(argv: readonly string[]): boolean {
  const dashes = argv.indexOf('--');
  const words = dashes === -1 ? argv : argv.slice(0, dashes);
  return !words.includes('--no-config') && namedFile(words) !== undefined;
}

/** Given twice, the last one counts, as for every other option. */
function namedFile(words: readonly string[]): string | undefined {
  const at = words.findLastIndex((word) => word === '--config' || word.startsWith('--config='));
  if (at === -1) return undefined;
  return words[at]?.startsWith('--config=') ? words[at].slice('--config='.length) : words[at + 1];
}

/** The nearest one from the working directory upward, within the repository or the home folder. */
function findProjectFile(from: string | null, env: NodeJS.ProcessEnv): string | null {
  const home = homeFolder(env);
  for (let folder = from; folder !== null; ) {
    const file = join(folder, PROJECT_FILE);
    if (existsSync(file)) return file;
    const isTop = folder === home || existsSync(join(folder, '.git'));
    const parent = dirname(folder);
    folder = isTop || parent === folder ? null : parent;
  }
  return null;
}

/** Null where the folder was removed. */
function workingFolder(cwd: () => string): string | null {
  try {
    return cwd();
  } catch {
    return null;
  }
}
