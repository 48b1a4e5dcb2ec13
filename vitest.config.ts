import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Each test starts several processes: files side by side would measure each other's load.
    fileParallelism: false,
    // Real processes on small machines: a deadline is for hangs, never a measure of speed.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
