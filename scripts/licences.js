// The licences of packages that are taken into what users get.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';

const MODULES = `${sep}node_modules${sep}`;

/** Writes the licence of each package that one of these modules belongs to. */
export function writeLicences(file, modules) {
  const folders = modules.filter((id) => id.includes(MODULES)).map(packageOf);
  const texts = [...new Set(folders)].sort().map(licenceOf);
  writeFileSync(file, texts.join(`\n${'-'.repeat(80)}\n\n`));
}

function packageOf(file) {
  const start = file.lastIndexOf(MODULES) + MODULES.length;
  const [first, second] = file.slice(start).split(sep);
  return join(file.slice(0, start), first.startsWith('@') ? join(first, second) : first);
}

function licenceOf(folder) {
  const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const names = ['LICENSE', 'LICENSE.txt', 'LICENSE.md', 'license'];
  const file = names.map((one) => join(folder, one)).find(existsSync);
  if (file === undefined) throw new Error(`${name} has no licence`);
  return `${name} ${version}\n\n${readFileSync(file, 'utf8')}`;
}
