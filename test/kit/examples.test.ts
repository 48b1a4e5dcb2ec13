import { cpSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runsHeavy } from '../support/heavy.ts';
import { installPacked } from '../support/stranger.ts';
import { ROOT, start } from '../support/tapedeck.ts';

const EXAMPLES = join(ROOT, 'examples');
/** What each says when all of its tests have passed. */
const PASSED: [name: string, passed: RegExp][] = [
  ['vitest', /Tests +4 passed \(4\)/],
  ['jest', /Tests: +2 passed, 2 total/],
  ['node-test', /pass 2\n. fail 0/],
];

/** The examples in a folder of their own, with what they install, and with the packed package. */
function copyExample(name: string): string {
  const { devDependencies } = JSON.parse(readFileSync(join(EXAMPLES, name, 'package.json'), 'utf8'));
  const packages = Object.keys(devDependencies).filter((one) => one !== 'mcp-tapedeck');
  const folder = installPacked(packages);
  cpSync(EXAMPLES, join(folder, 'examples'), { recursive: true });
  const example = join(folder, 'examples', name);
  symlinkSync(join(folder, 'node_modules'), join(example, 'node_modules'), 'dir');
  return example;
}

async function npmTest(cwd: string, env: Record<string, string>): Promise<string> {
  const run = start('npm', ['test'], { cwd, env: { NO_COLOR: '1', NODE_OPTIONS: '', ...env } });
  run.child.stdin.end();
  const { code, stdout, stderr } = await run.ended;
  const output = stdout.toString() + stderr;
  expect(code, output).toBe(0);
  return output;
}

for (const [name, passed] of PASSED) {
  test.runIf(name !== 'jest' || runsHeavy)(
    `the example for ${name} passes with the packed package, and ends by itself`,
    async () => {
      const example = copyExample(name);
      expect(await npmTest(example, { CI: 'true' })).toMatch(passed);

      // Without its recordings it makes them, and passes with them.
      rmSync(join(example, '__recordings__'), { recursive: true });
      expect(await npmTest(example, { CI: '', TAPEDECK_MODE: '' })).toMatch(passed);
      expect(await npmTest(example, { CI: 'true' })).toMatch(passed);
    },
  );
}
