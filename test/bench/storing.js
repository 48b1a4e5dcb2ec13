// What storing costs by itself: the work of the writer's thread for HTTP exchanges, in a process with nothing else to do, so that the
// figure stands also where a machine is busy or changes its speed. Against the plainest recorder that reads what it stores.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { median, ratioRow } from './figures.js';
import { removeStore } from './stdio.js';
import { inTurn } from './turns.js';

const COMMITS = 400;
const WHO = ['tapedeck', 'least', 'reader'];

export async function benchStoring(folder, { storingRounds: rounds, progress }) {
  const times = Object.fromEntries(WHO.map((who) => [who, []]));
  for (let round = 0; round < rounds; round += 1) {
    progress(`storing round ${round + 1}`);
    for (const who of inTurn(WHO, round)) {
      const file = join(folder, `storing-${who}.db`);
      const script = join(import.meta.dirname, 'storing-run.js');
      const printed = execFileSync(process.execPath, [script, who, file, COMMITS], { encoding: 'utf8' });
      times[who].push(Number(printed));
      removeStore(file);
    }
  }
  const { tapedeck, least, reader } = times;
  const yardstick = `the plainest recorder that reads (${median(least).toFixed(1)} µs where it looks at nothing)`;
  return [ratioRow('storing an HTTP exchange: processor time', tapedeck, reader, { yardstick }, 'µs')];
}
