import { defineConfig } from 'vitest/config';

/** Tests that start no process: `test/support/no-processes.ts` holds them to it. */
const UNIT = [
  'test/{readme,structure}.test.ts',
  'test/capture/http/*.test.ts',
  'test/clients/clients.test.ts',
  'test/conformance/*.test.ts',
  'test/export/{fixpoint,large,other-tools}.test.ts',
  'test/inspect/**/*.test.ts',
  'test/kit/{assertions,recording-path,transport}.test.ts',
  'test/protocol/**/*.test.ts',
  'test/replay/verify.test.ts',
  'test/replay/{live,match,play}/*.test.ts',
  'test/store/{http-fault,http-pruned}.test.ts',
  'test/store/file/{columns,open,secret}.test.ts',
  'test/store/keep/{pace,retention,scrub,search-index}.test.ts',
  'test/store/read/*.test.ts',
  'test/store/record/{batch,decode,http-bodies,http-frames,http-items,http-stream,ingest}.test.ts',
  'test/store/write/removal.test.ts',
];

/**
 * Tests of what takes time, which would measure the load of others: that all that is older than 100 ms is stored, that
 * nothing waits for longer than it is said to, that nothing takes more memory than it is said to.
 */
const ALONE = [
  'test/capture/http-flow.test.ts',
  'test/replay/long-recording.test.ts',
  'test/store/{http-kill,many}.test.ts',
];

/** Real processes on small machines: a deadline is for hangs, never a measure of speed. */
const DEADLINES = { testTimeout: 60_000, hookTimeout: 60_000 };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...DEADLINES,
          name: 'unit',
          include: UNIT,
          setupFiles: ['test/support/no-processes.ts'],
          pool: 'threads',
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...DEADLINES,
          name: 'process',
          include: ['test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...UNIT, ...ALONE],
          pool: 'forks',
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...DEADLINES,
          name: 'alone',
          include: ALONE,
          pool: 'forks',
          isolate: false,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
