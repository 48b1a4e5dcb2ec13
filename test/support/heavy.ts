/**
 * Programs of others that tapedeck is held against, too big for every clone: `npm ci --prefix test/heavy` installs them.
 * The full run uses them. There, tests that need them are skipped without them, but fail where `CI` is set.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { IS_FULL } from './scale.ts';
import { ROOT } from './tapedeck.ts';

export const HEAVY_MODULES = join(ROOT, 'test/heavy/node_modules');

export const heavyRequire = createRequire(join(ROOT, 'test/heavy/package.json'));

/** For `test.runIf`. */
export const runsHeavy = IS_FULL && (existsSync(HEAVY_MODULES) || process.env['CI'] !== undefined);
