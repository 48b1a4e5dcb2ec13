/** Set up before unit tests: what would start a process throws. */
import child from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

for (const name of ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'] as const) {
  Object.assign(child, {
    [name]: () => {
      throw new Error('A unit test starts no process. Take this file out of UNIT in vitest.config.ts.');
    },
  });
}
syncBuiltinESMExports();
