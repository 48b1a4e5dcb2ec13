import { spawn as nodeSpawn } from 'node:child_process';
import { createRequire } from 'node:module';

/**
 * On Windows `npx` and its like are scripts that only a shell can start: cross-spawn knows how. Elsewhere it is not even
 * loaded. By `require`, because a module that awaits at its top could not be required itself.
 */
export const spawn: typeof nodeSpawn =
  process.platform === 'win32' ? createRequire(import.meta.url)('cross-spawn') : nodeSpawn;

/** `command` with Node's error, in words for its user. */
export function whyNotStarted(command: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT')
    return `cannot start \`${command}\`: no such command. Is it installed, and on the PATH?`;
  if (code === 'EACCES')
    return `cannot start \`${command}\`: it is not an executable file, or access is denied.`;
  return `cannot start \`${command}\`: ${message}`;
}
