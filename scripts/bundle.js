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
  'schema-thread': 'inspect/schema/schema-thread.js',
  'demo-server': 'cli/first/demo-server.js',
};

/** What a recording loads before it starts the server, in one file. */
const START = /[\\/]cli[\\/](main|record[\\/]stdio)\.js$/;

/** What is asked for most, with all that it loads, in one file too: thirty small ones took `show` a tenth of its time. */
const READ = /[\\/]cli[\\/]read[\\/](list|show)\.js$/;

const GROUPS = [
  { name: 'start', test: START, priority: 2 },
  { name: 'read', test: READ, priority: 1 },
];

/** One class for all that others import: what the library throws is a `TapedeckError` of `mcp-tapedeck`, too. */
const SHARED = { errors: 'errors.js' };

/**
 * The library stands in other people's programs. How long its import takes goes by how many files it loads: so it is one, that has
 * only the errors in common with the rest. The second is what it loads where its writer was lost.
 */
const LIBRARY = [{ record: 'record/record.js' }, { 'last-words': 'store/write/last-words.js' }];

/** What the writer's thread loads where some sessions are left out, or payloads of some frames. */
const RULES = [{ sampling: 'store/sample/sampling.js' }, { 'meta-for': 'store/sample/meta-for.js' }];

/** Threads share no memory with the rest, so they share no files either: one is loaded sooner than twenty. */
const THREADS = [
  { worker: 'store/record/worker.js' },
  { 'shared-worker': 'record/shared-worker.js' },
  { 'fast-reader': 'web/fast/thread.js' },
  { 'slow-reader': 'web/slow/thread.js' },
  { 'ask-reader': 'mcp/read/thread.js' },
  { 'sample-judge': 'inspect/sample/thread.js' },
  { 'ship-figures': 'ship/figures-thread.js' },
];

const TYPES = ['index.d.ts', 'kit/vitest.d.ts', 'record/record.d.ts'];

/** Returns the modules that are taken in. */
async function bundle(entries, codeSplitting, plugins = []) {
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, join(BUILD, file)])),
    platform: 'node',
    external: (name, importer) =>
      /^node:|^[a-z@]/.test(name) && name !== 'yargs' && !importer?.includes(MODULES),
    plugins: [yargsInside, localesInDist, ...plugins],
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

/** What is a file of its own in `dist` is loaded from there. */
function apart(...names) {
  const file = new RegExp(`[\\\\/](${names.join('|')})\\.js$`);
  return {
    name: 'apart',
    resolveId(name, importer) {
      const [, found] = (importer?.startsWith(BUILD) && file.exec(name)) || [];
      return found === undefined ? null : { id: `./${found}.js`, external: true };
    },
  };
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
const modules = await bundle(SHARED, false);
modules.push(...(await bundle(ENTRIES, { groups: GROUPS }, [apart('errors')])));
for (const entry of LIBRARY) modules.push(...(await bundle(entry, false, [apart('errors', 'last-words')])));
for (const rules of RULES) modules.push(...(await bundle(rules, false)));
for (const thread of THREADS)
  modules.push(...(await bundle(thread, false, [apart('worker', 'sampling', 'meta-for')])));
writeLicences(join(DIST, 'LICENSES.txt'), modules);
mkdirSync(join(DIST, 'locales'));
copyFileSync(join(ROOT, 'node_modules/yargs/locales/en.json'), join(DIST, 'locales/en.json'));
const copied = new Set();
for (const file of TYPES) copyTypes(join(BUILD, file));
