/** The package as a stranger gets it: packed, and installed into a folder of its own. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT, tempFolder } from './tapedeck.ts';

const MODULES = join(ROOT, 'node_modules');

/**
 * A folder with a `node_modules` in which mcp-tapedeck is what `npm pack` makes of it, with nothing besides but its own
 * dependencies and the packages named. These are the ones of this clone, so that nothing has to be downloaded or compiled.
 */
export function installPacked(packages: readonly string[]): string {
  const folder = tempFolder();
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
  execFileSync('npm', pack, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  const own = join(folder, 'node_modules/mcp-tapedeck');
  mkdirSync(own, { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, tarball), '-C', own, '--strip-components=1']);
  const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'));
  for (const name of [...Object.keys(manifest.dependencies), ...packages]) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(MODULES, name), link, 'dir');
    linkPrograms(name, join(folder, 'node_modules/.bin'));
  }
  return folder;
}

/** As npm does it. */
function linkPrograms(name: string, folder: string): void {
  const { bin = {} } = JSON.parse(readFileSync(join(MODULES, name, 'package.json'), 'utf8'));
  const programs = typeof bin === 'string' ? { [name]: bin } : bin;
  mkdirSync(folder, { recursive: true });
  for (const [program, file] of Object.entries<string>(programs))
    symlinkSync(join(MODULES, name, file), join(folder, program));
}
