// How long short commands take, as whole processes, against a Node process that does nothing, in turn.
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ratioRow } from './figures.js';

const here = import.meta.dirname;
const bin = join(here, '../../bin/tapedeck.js');
const recording = join(here, '../../recordings/everything-stdio.ndjson');

const COMMANDS = [
  { what: '--version', args: [bin, '--version'], bound: { atMost: 2 } },
  { what: 'list, a small store', args: [bin, 'list'], bound: { atMost: 3 } },
];

export function benchStart(folder, { starts, progress }) {
  const env = { ...process.env, TAPEDECK_DB: join(folder, 'start.db') };
  execFileSync(process.execPath, [bin, 'import', recording], { env });
  progress('start: --version and list');
  const times = COMMANDS.map(() => ({ ours: [], theirs: [] }));
  for (let round = 0; round < starts; round += 1) {
    for (const [i, { args }] of COMMANDS.entries()) {
      times[i].theirs.push(timeOf(['-e', '0'], env));
      times[i].ours.push(timeOf(args, env));
    }
  }
  return COMMANDS.map(({ what, bound }, i) =>
    ratioRow(`start: ${what}`, times[i].ours, times[i].theirs, { ...bound, yardstick: '`node -e 0`' }, 'ms'),
  );
}

function timeOf(args, env) {
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { env });
  if (status !== 0) throw new Error(`${args.join(' ')} failed: ${stderr}`);
  return performance.now() - started;
}
