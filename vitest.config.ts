import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { yargsInside } from './scripts/yargs-inside.js';
import { SecondAttempts } from './test/support/second-attempts.ts';

type ProjectConfig = NonNullable<TestProjectInlineConfiguration['test']>;
type Plugin = { name: string; enforce?: 'pre'; transform(code: string, id: string): string | null };

/** Tests that start no process: `test/support/no-processes.ts` holds them to it. */
const UNIT = [
  'test/{readme,structure}.test.ts',
  'test/capture/http/*.test.ts',
  'test/cli/keep/project-rules.test.ts',
  'test/cli/spools.test.ts',
  'test/ci/*.test.ts',
  'test/clients/clients.test.ts',
  'test/conformance/*.test.ts',
  'test/export/{fixpoint,large,other-tools,steady}.test.ts',
  'test/fault/{decide,lines,rule}.test.ts',
  'test/inspect/**/*.test.ts',
  'test/mcp/published.test.ts',
  'test/kit/{assertions,clients,faults,recording-path,traffic,transport}.test.ts',
  'test/protocol/**/*.test.ts',
  'test/replay/verify.test.ts',
  'test/replay/{live,match,play,stub}/*.test.ts',
  'test/store/{http-fault,http-pruned}.test.ts',
  'test/store/file/{columns,open,peer,secret}.test.ts',
  'test/store/sample/meta-for.test.ts',
  'test/store/keep/{pace,retention,scrub,search-index}.test.ts',
  'test/store/read/*.test.ts',
  'test/store/record/{batch,decode,http-bodies,http-frames,http-items,http-stream,outlet,soak}.test.ts',
  'test/store/write/{index,peers,removal,run,take-in}.test.ts',
  'test/survey/tables.test.ts',
  'test/web/slow-works.test.ts',
  'test/web/page/*.test.ts',
];

/**
 * Tests of what takes time, which would measure the load of others: that all that is older than 100 ms is stored, that
 * nothing waits for longer than it is said to, that nothing takes more memory or disk than it is said to.
 */
const ALONE = [
  'test/capture/http-flow.test.ts',
  'test/cli/view/ui-end.test.ts',
  'test/record/kill.test.ts',
  'test/replay/long-recording.test.ts',
  'test/store/{crowd,http-kill,many}.test.ts',
  'test/store/keep/upkeep.test.ts',
];

/** What needs a browser: all of them share one, and take turns. */
const BROWSER = ['test/web/browser/*.test.ts'];

/** What needs a PostgreSQL: all of them share one. */
const ENGINE = ['test/engine/*.test.ts'];

/** What other programs make of tapedeck, recordings that are large, and what another file shows with less. */
const FULL_ONLY = [
  'test/admin/guide.test.ts',
  'test/cli/{first/demo,play/suggest,redact-beside}.test.ts',
  'test/engine/{other-readers,read-cache,read-search,ship-conformance,ship-reload,tls}.test.ts',
  'test/fault/clients.test.ts',
  'test/fault/plans.test.ts',
  'test/http/inspector.test.ts',
  'test/kit/{examples,vitest}.test.ts',
  'test/record/kill.test.ts',
  'test/replay/{long-recording,model}.test.ts',
  'test/run/own-clients.test.ts',
  'test/store/keep/pack-readers.test.ts',
  'test/survey/run.test.ts',
  'test/web/browser/{copies,details,large,oauth,report,run,store}.test.ts',
];

const LEFT_OUT = ['**/node_modules/**', ...(process.env['TAPEDECK_TESTS'] === 'full' ? [] : FULL_ONLY)];

/** CI gives what fails by chance, on a machine that others use too, a second attempt, and prints its name. */
const RETRIES = Number(process.env['TEST_RETRIES'] ?? 0);

/** What the tests and all that they start put into the temporary folder, at full size. */
const TEMPORARY_BYTES = 6 * 1024 ** 3;

// Thousands of stores are made, and on a disk most of the time goes to waiting for it: they lie in memory where there is room.
if (process.env['TMPDIR'] === undefined && roomIn('/dev/shm') > TEMPORARY_BYTES)
  process.env['TMPDIR'] = '/dev/shm';

/** Free bytes; 0 where there is no such folder. */
function roomIn(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

/** Real processes on small machines, some days three times slower than others: a deadline is for hangs, never a measure of speed. */
const DEADLINES = { testTimeout: 180_000, hookTimeout: 180_000, expect: { poll: { timeout: 120_000 } } };

/** Node 20 reads no TypeScript: the threads that `src` starts are those of `dist`, which users have; so is the page. */
const distThreads: Plugin = {
  name: 'dist-threads',
  enforce: 'pre',
  transform(code, id) {
    const isOurs = id.startsWith(join(import.meta.dirname, 'src'));
    if (!isOurs || !/new Worker\(|'\.\/(?:web|report)'/.test(code)) return null;
    const inDist = (path: string) =>
      JSON.stringify(pathToFileURL(join(import.meta.dirname, 'dist', path)).href);
    return code.replace(
      /new URL\('\.\/([\w-]+\.js|web|report)', import\.meta\.url\)/g,
      (_, file) => `new URL(${inDist(file)})`,
    );
  },
};

/** Tests share modules with all that a worker runs: what a test changes in its process, it puts back. */
function project(
  name: string,
  groupOrder: number,
  own: ProjectConfig,
): { plugins: Plugin[]; test: ProjectConfig } {
  return {
    plugins: [distThreads, yargsInside],
    test: {
      ...{ ...DEADLINES, name, retry: RETRIES, isolate: false, maxWorkers: 4, sequence: { groupOrder } },
      server: { deps: { inline: [/[\\/]node_modules[\\/](yargs|cliui|wrap-ansi)[\\/]/] } },
      ...own,
    },
  };
}

export default defineConfig({
  test: {
    reporters: ['default', new SecondAttempts()],
    projects: [
      project('unit', 0, { include: UNIT, setupFiles: ['test/support/no-processes.ts'], pool: 'threads' }),
      project('process', 0, {
        include: ['test/**/*.test.ts'],
        exclude: [...LEFT_OUT, ...UNIT, ...ALONE, ...BROWSER, ...ENGINE],
        pool: 'forks',
      }),
      project('browser', 2, {
        include: BROWSER,
        exclude: LEFT_OUT,
        globalSetup: ['test/support/chromium.ts'],
        pool: 'forks',
        maxWorkers: 2,
      }),
      project('engine', 0, {
        include: ENGINE,
        exclude: LEFT_OUT,
        globalSetup: ['test/support/engine-server.ts'],
        pool: 'forks',
      }),
      project('alone', 1, { include: ALONE, exclude: LEFT_OUT, pool: 'forks', maxWorkers: 1 }),
    ],
  },
});
