import { spawn as nodeSpawn } from 'node:child_process';
import { createRequire } from 'node:module';

/**
 * On Windows `npx` and its like are scripts that only a shell can start: cross-spawn knows how. Elsewhere it is not even
 * loaded. By `require`, because a module that awaits at its top could not be required itself.
 */
export const spawn: typeof nodeSpawn =
  process.platform === 'win32' ? createRequire(import.meta.url)('cross-spawn') : nodeSpawn;
