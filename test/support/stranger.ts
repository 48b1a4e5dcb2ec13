/** The package as a stranger gets it: packed, and installed into a folder of its own. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { HEAVY_MODULES } from './heavy.ts';
import { ROOT, tempFolder } from './tapedeck.ts';

const ROOT_MODULES = join(ROOT, 'node_modules');

/**
 * A folder with a `node_modules` in which mcp-tapedeck is what `npm pack` makes of it, with nothing besides but its own
 * dependencies and the packages named. These are the ones of this clone, so that nothing has to be downloaded or compiled.
 */
export function installPacked(packages: readonly string[]): string {
  const folder = tempFolder();
  tarball ??= pack();
  const own = join(folder, 'node_modules/mcp-tapedeck');
  mkdirSync(own, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', own, '--strip-components=1']);
  const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'));
  for (const name of new Set([...Object.keys(manifest.dependencies), ...packages])) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    const source = [ROOT_MODULES, HEAVY_MODULES].map((modules) => join(modules, name)).find(existsSync);
    if (source === undefined) throw new Error(`${name} is not installed`);
    symlinkSync(source, link, 'dir');
    linkPrograms(name, source, join(folder, 'node_modules/.bin'));
  }
  return folder;
}

let tarball: string | undefined;

/** Takes npm two seconds, so it is done once for all tests of a process. Returns the path. */
function pack(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tapedeck-pack-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
  execFileSync('npm', args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const [name = ''] = readdirSync(folder);
  return join(folder, name);
}

/** As npm does it. */
function linkPrograms(name: string, source: string, folder: string): void {
  const { bin = {} } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  const programs = typeof bin === 'string' ? { [name]: bin } : bin;
  mkdirSync(folder, { recursive: true });
  for (const [program, file] of Object.entries<string>(programs))
    symlinkSync(join(source, file), join(folder, program));
}
