// Makes `dist` of `build`, which tsc has made of `src`: fewer files, so that every command starts sooner. All of its modules
// are in one folder, so that `import.meta.url` means the same in each. yargs is taken in, because its thirty files take a
// third of a short command's time; other packages stay packages.
import { copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { rolldown } from 'rolldown';
import { writeLicences } from './licences.js';
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
  record: 'record/record.js',
  'schema-thread': 'inspect/schema/schema-thread.js',
  'demo-server': 'cli/first/demo-server.js',
};

/** What the library has in common with that: it loads nothing else of the command line. With what they import. */
const SHARED =
  /[\\/](?:errors|version|capture[\\/]clock|config[\\/](?:sizes|labels|location)|protocol[\\/]text|store[\\/]file[\\/]path|store[\\/]record[\\/]recorder)\.js$/;

/** Threads share no memory with the rest, so they share no files either: one is loaded sooner than twenty. */
const THREADS = [
  { worker: 'store/record/worker.js' },
  { 'fast-reader': 'web/fast/thread.js' },
  { 'slow-reader': 'web/slow/thread.js' },
  { 'ask-reader': 'mcp/read/thread.js' },
  { 'sample-judge': 'inspect/sample/thread.js' },
];

const TYPES = ['index.d.ts', 'kit/vitest.d.ts', 'record/record.d.ts'];

/** Returns the modules that are taken in. */
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
  return output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []));
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
// What a recording loads before it starts the server, in one file.
const modules = await bundle(ENTRIES, {
  groups: [
    { name: 'recorder', test: SHARED, priority: 1 },
    { name: 'start', test: /[\\/]cli[\\/](main|record[\\/]stdio)\.js$/ },
  ],
});
for (const thread of THREADS) modules.push(...(await bundle(thread, false)));
writeLicences(join(DIST, 'LICENSES.txt'), modules);
mkdirSync(join(DIST, 'locales'));
copyFileSync(join(ROOT, 'node_modules/yargs/locales/en.json'), join(DIST, 'locales/en.json'));
const copied = new Set();
for (const file of TYPES) copyTypes(join(BUILD, file));
