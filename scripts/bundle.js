// Makes `dist` of `build`, which tsc has made of `src`: fewer files, so that every command starts sooner. All of its modules
// are in one folder, so that `import.meta.url` means the same in each. yargs is taken in, because its thirty files take a
// third of a short command's time; other packages stay packages.
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { rolldown } from 'rolldown';
import { yargsInside } from './yargs-inside.js';

const ROOT = resolve(import.meta.dirname, '..');
const BUILD = join(ROOT, 'build');
const DIST = join(ROOT, 'dist');
const MODULES = `${sep}node_modules${sep}`;

const LOCALES = "'../../../locales'";

/** What others import or start, by its name in `dist`. */
const ENTRIES = {
  main: 'cli/main.js',
  index: 'index.js',
  vitest: 'kit/vitest.js',
  'schema-thread': 'inspect/schema/schema-thread.js',
};

/** The writer's thread shares no memory with the rest, so it shares no files either: one is loaded sooner than twenty. */
const WRITER = { worker: 'store/record/worker.js' };

const TYPES = ['index.d.ts', 'kit/vitest.d.ts'];

/** Returns the folders of the packages that are taken in. */
async function bundle(entries, codeSplitting) {
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, join(BUILD, file)])),
    platform: 'node',
    external: (name, importer) =>
      /^node:|^[a-z@]/.test(name) && name !== 'yargs' && !importer?.includes(MODULES),
    plugins: [yargsInside, localesInDist],
  });
  const { output } = await build.write({
    dir: DIST,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    codeSplitting,
  });
  await build.close();
  const files = output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []));
  return files.filter((file) => file.includes(MODULES)).map(packageOf);
}

/** yargs finds its texts in `dist`. */
const localesInDist = {
  name: 'locales-in-dist',
  transform(code, id) {
    if (!id.endsWith(join('yargs/lib/platform-shims/esm.mjs'))) return null;
    if (!code.includes(LOCALES)) throw new Error(`${id} has no ${LOCALES}`);
    return code.replace(LOCALES, "'../locales'");
  },
};

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

/** With what they import. */
function copyTypes(file) {
  if (copied.has(file)) return;
  copied.add(file);
  const target = join(DIST, relative(BUILD, file));
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(file, target);
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.[jt]s['"]/g))
    copyTypes(join(dirname(file), `${name}.d.ts`));
}

rmSync(DIST, { recursive: true, force: true });
const folders = [
  // What a recording loads before it starts the server, in one file.
  ...(await bundle(ENTRIES, {
    groups: [{ name: 'start', test: /[\\/]cli[\\/](main|record[\\/]stdio)\.js$/ }],
  })),
  ...(await bundle(WRITER, false)),
];
writeFileSync(
  join(DIST, 'LICENSES.txt'),
  [...new Set(folders)]
    .sort()
    .map(licenceOf)
    .join(`\n${'-'.repeat(80)}\n\n`),
);
mkdirSync(join(DIST, 'locales'));
copyFileSync(join(ROOT, 'node_modules/yargs/locales/en.json'), join(DIST, 'locales/en.json'));
const copied = new Set();
for (const file of TYPES) copyTypes(join(BUILD, file));
