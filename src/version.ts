/** This package: the folder above this file has its manifest, in `src`, in `build` and in `dist`. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

export const VERSION = manifest.version;

/** The path of the command line's program. */
export const BIN = fileURLToPath(new URL('../bin/tapedeck.js', import.meta.url));

/** The folder with the pages of the documentation. */
export const DOCS = fileURLToPath(new URL('../docs', import.meta.url));

/** Folders of packages that were fetched for one run and may be deleted. */
const FETCHED = /[\\/](?:_npx|dlx(?:-[^\\/]*)?|bunx-[^\\/]*)[\\/]/;

/** Whether a program lies in a folder that npx, `pnpm dlx` or bunx made for it, so that it may be gone tomorrow. */
export function isFetched(program: string): boolean {
  return FETCHED.test(program);
}

/**
 * The words by which people start this program here. Where it is not installed that is npx with the package's name: `tapedeck`
 * alone is another package. For a package of the folder's own project npm says in the environment that npx runs it.
 */
export function typedName({
  npm_lifecycle_event: by,
  npm_lifecycle_script: what,
}: NodeJS.ProcessEnv): string {
  const isByNpx = isFetched(BIN) || (by === 'npx' && /^['"]?mcp-tapedeck\b/.test(what ?? ''));
  return isByNpx ? 'npx mcp-tapedeck' : 'tapedeck';
}
