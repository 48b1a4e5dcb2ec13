/** Opens a link in the user's browser. */

import spawn from 'cross-spawn';

/**
 * By the command of `BROWSER`, else as the platform does it. Returns why that failed; null where it did not. The browser outlives
 * us.
 */
export async function openBrowser(link: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  const [command = '', ...args] = commandFor(env);
  return new Promise((resolve) => {
    const child = spawn(command, [...args, link], { detached: true, stdio: 'ignore', env });
    child.on('error', (error) => resolve(`${command}: ${error.message}`));
    child.on('exit', (code) => resolve(code === 0 ? null : `${command} ended with ${code}`));
    child.unref();
    // What runs for longer is a browser. Nobody who ends the viewer waits for that.
    setTimeout(() => resolve(null), WAIT_MS).unref();
  });
}

/** So long an opener may take to say that it cannot. */
const WAIT_MS = 1000;

/**
 * `BROWSER` may have arguments of its own, and several commands separated by colons, of which the first counts. Windows has no
 * such variable: a path there has a colon, and often a space.
 */
function commandFor(env: NodeJS.ProcessEnv): readonly string[] {
  const own = process.platform === 'win32' ? '' : env['BROWSER']?.split(':')[0]?.trim();
  if (own) return own.replaceAll('%s', '').trim().split(/\s+/);
  switch (process.platform) {
    case 'darwin':
      return ['open'];
    case 'win32':
      return ['rundll32', 'url.dll,FileProtocolHandler'];
    default:
      return ['xdg-open'];
  }
}
