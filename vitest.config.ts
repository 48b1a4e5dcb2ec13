import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Real processes on small machines: a deadline is for hangs, never a measure of speed.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
