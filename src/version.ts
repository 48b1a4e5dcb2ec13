/** This package: the folder above this file has its manifest, in `src`, in `build` and in `dist`. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

export const VERSION = manifest.version;

/** The path of the command line's program. */
export const BIN = fileURLToPath(new URL('../bin/tapedeck.js', import.meta.url));
