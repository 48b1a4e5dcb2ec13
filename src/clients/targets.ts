/** Finds the files that a word on the command line names: a client's name, a path, or `all`. */

import { existsSync, realpathSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { TapedeckError } from '../errors.ts';
import { ANY_SECTIONS, CLIENTS, type Client, type Machine, placesOf, type Scope } from './clients.ts';
import type { ConfigFormat } from './config.ts';

export type Target = {
  /** Null for a file of no known client. */
  client: Client | null;
  scope: Scope;
  file: string;
  format: ConfigFormat;
  sections: readonly (readonly string[])[];
};

/** Means every client, and every file that was wrapped. */
export const ALL_TARGETS = 'all';

/**
 * The files that are there. `known`: files that were wrapped before, wherever they are. Throws `TapedeckError` `not-found`
 * where the word means nothing, or no file of the client is there.
 */
export function findTargets(word: string, machine: Machine, known: readonly string[]): Target[] {
  if (word === ALL_TARGETS) return allTargets(machine, known);
  const client = CLIENTS.find(({ id }) => id === word);
  if (client === undefined) return [fileTarget(word, machine)];
  const found = targetsOf(client, machine, known);
  if (found.length > 0) return found;
  const places = placesOf(client, machine).map(({ file }) => file);
  throw new TapedeckError(
    'not-found',
    `No config of ${client.title} was found. Looked for: ${places.join(', ')}`,
  );
}

export function allTargets(machine: Machine, known: readonly string[]): Target[] {
  const targets = CLIENTS.flatMap((client) => targetsOf(client, machine, known));
  const others = known.filter((file) => existsSync(file)).map((file) => fileTarget(file, machine));
  return distinct([...targets, ...others]);
}

/** The client's own files, and those of its projects that were wrapped. */
function targetsOf(client: Client, machine: Machine, known: readonly string[]): Target[] {
  const { format, sections } = client;
  const places = placesOf(client, machine).filter(({ file }) => existsSync(file));
  const projects = known.filter(
    (file) => existsSync(file) && client.project.some((path) => isAt(file, path)),
  );
  const all = [...places, ...projects.map((file) => ({ scope: 'project' as const, file }))];
  return distinct(all.map(({ scope, file }) => ({ client, scope, file, format, sections })));
}

function fileTarget(word: string, machine: Machine): Target {
  const file = resolve(machine.folder, word);
  if (!existsSync(file)) throw unknownTarget(word);
  const own = CLIENTS.flatMap((client) => targetsOf(client, machine, [file]));
  const known = own.find((target) => realpathSync(target.file) === realpathSync(file));
  const format = extname(file) === '.toml' ? 'toml' : 'json';
  return known === undefined
    ? { client: null, scope: 'file', file, format, sections: ANY_SECTIONS }
    : { ...known, file };
}

function isAt(file: string, projectPath: string): boolean {
  return file.replaceAll('\\', '/').endsWith(`/${projectPath}`);
}

function unknownTarget(word: string): TapedeckError {
  const names = CLIENTS.map(({ id }) => id).join(', ');
  return new TapedeckError(
    'not-found',
    `Expected a client or a file, got \`${word}\`: no such file. The clients: ${names}; or ${ALL_TARGETS}`,
  );
}

function distinct(targets: readonly Target[]): Target[] {
  const byPath = new Map<string, Target>();
  for (const target of targets) {
    const path = realpathSync(target.file);
    if (!byPath.has(path)) byPath.set(path, target);
  }
  return [...byPath.values()];
}
