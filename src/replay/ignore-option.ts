/** The options that make differences not count, as one would type them in a shell. */

import { jsonPathText } from '../protocol/json-path.ts';
import { targetParam } from '../protocol/methods.ts';
import type { Difference } from './diff.ts';
import type { Asked } from './key.ts';

/** Steps into params; null stands for every element of an array. */
export type Path = readonly (string | number | null)[];

/** One `--ignore` or `--ignore-tool` per difference; null where what differs is the target, which always counts. */
export function ignoreOptions(asked: Asked, differences: readonly Difference[]): string[] | null {
  const paths = withoutInner(differences.map(pathToIgnore));
  return paths.some(([first]) => first === undefined || first === targetParam(asked.method))
    ? null
    : paths.map((path) => ignoreOption(asked, path));
}

/** What has to be ignored so that a difference does not count: where an array has grown or shrunk, the whole array. */
export function pathToIgnore({ change, path }: Difference): Path {
  return change !== 'changed' && typeof path.at(-1) === 'number' ? path.slice(0, -1) : path;
}

/** Each path once, and none that leads into what another one leaves out. */
function withoutInner(paths: readonly Path[]): Path[] {
  const kept: Path[] = [];
  for (const path of paths.toSorted((a, b) => a.length - b.length)) {
    const isInner = kept.some((outer) => outer.every((step, i) => step === path[i]));
    if (!isInner) kept.push(path);
  }
  return kept;
}

export function ignoreOption({ method, target }: Asked, path: Path): string {
  const isOfTool = method === 'tools/call' && path[0] === 'arguments';
  // A name with `:$` in it could not be told from the path.
  if (isOfTool && target !== null && target !== '' && !target.includes(':$'))
    return `--ignore-tool ${shellQuoted(`${target}:${jsonPathText(path.slice(1))}`)}`;
  return `--ignore ${shellQuoted(jsonPathText(path))}`;
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
