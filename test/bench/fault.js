// What faults on purpose cost a proxy that has none to put in: with a rule that never holds, against the same proxy without the
// option, which is the one that all other rows measure.
import { Agent } from 'node:http';
import { join } from 'node:path';
import { ratioRow } from './figures.js';
import { countRecorded, measure, TAPEDECK } from './forward.js';
import { startProgram, UPSTREAM } from './http-contestants.js';
import { removeStore } from './stdio.js';

/** Without the option first. */
const OPTIONS = {
  without: [],
  server: ['--fault', 'tool=nobody drop'],
  client: ['--fault', 'dir=client tool=nobody drop'],
};

export async function benchFault(folder, { httpRounds, httpSeconds, progress }) {
  const store = join(folder, 'fault.db');
  const results = Object.fromEntries(Object.keys(OPTIONS).map((name) => [name, []]));
  let [asked, recorded] = [0, 0];
  const upstream = await startProgram(UPSTREAM);
  try {
    for (let round = 0; round < httpRounds; round += 1) {
      progress(`fault round ${round + 1} of ${httpRounds}`);
      const names = Object.keys(OPTIONS);
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const options = ['--listen', '127.0.0.1:0', '--db', store, ...OPTIONS[name]];
        const proxy = await startProgram([...TAPEDECK, upstream.url, ...options]);
        const open = () => new Agent({ keepAlive: true });
        const { manyProcessor, requests } = await measure(proxy.url, open, proxy.processor, httpSeconds);
        await proxy.stop();
        results[name].push(manyProcessor);
        asked += requests;
        recorded += countRecorded(store);
        removeStore(store);
      }
    }
  } finally {
    await upstream.stop();
  }
  const loss = `Lost in these runs: ${asked - recorded} of ${asked.toLocaleString('en-US')} requests`;
  const row = (what, figures) => {
    const bound = { atMost: MOST, yardstick: 'no `--fault`' };
    const one = ratioRow(`faults, ${what}: processor time a request`, figures, results.without, bound, 'µs');
    return asked === recorded ? one : { ...one, met: 'LOST' };
  };
  return {
    loss,
    rows: [row('a rule that never holds', results.server), row('one with `dir=client`', results.client)],
  };
}

/** Nobody was promised how fast. It is missed: each message is put into an index of its own to be asked about there. */
const MOST = 3;
