// Requests over some connections for some seconds: by wrk where it is installed, which takes the least of the machine,
// else by autocannon (`npm ci --prefix test/heavy`). BENCH_LOAD=autocannon chooses.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { classify, percentile } from './figures.js';
import { isInstalled } from './http-contestants.js';

/** The id, then the number of its text. */
const BODY =
  '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello %d"}}}';

/** What a call of this number says, where there are so many texts. */
export function textOf(number, texts) {
  return `hello ${number % texts}`;
}

export const generator = process.env.BENCH_LOAD ?? (isInstalled('wrk', '-v') ? 'wrk' : 'autocannon');

/**
 * Resolves with requests answered, their rate per second, p50 and p99 of their round trips in µs and their classes, and how
 * many failed. The calls say `texts` different things, in turn. `onEnded` is called once the last one is over: wrk takes 0.2
 * seconds more to put its figures together, and what a recorder does in this pause is not the cost of these requests.
 */
export function load(url, { connections, seconds, texts = 1, onEnded = () => {} }) {
  const by = generator === 'wrk' ? byWrk : byAutocannon;
  return by(url, connections, seconds, texts, onEnded);
}

async function byWrk(url, connections, seconds, texts, onEnded) {
  const script = join(import.meta.dirname, 'post.lua');
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, url];
  const env = { ...process.env, BENCH_BODY: BODY, BENCH_CONNECTIONS: connections, BENCH_TEXTS: texts };
  const running = promisify(execFile)('wrk', args, { env });
  // It says nothing before that: its output is no terminal.
  running.child.stdout.once('data', onEnded);
  const { stdout } = await running;
  const { timed, ...figures } = JSON.parse(stdout.split('\n').find((line) => line.startsWith('{')));
  if (timed !== figures.requests) {
    throw new Error(`wrk made ${figures.requests} requests, and gives the times of ${timed}`);
  }
  return figures;
}

async function byAutocannon(url, connections, seconds, texts, onEnded) {
  const autocannon = createRequire(new URL('../heavy/package.json', import.meta.url))('autocannon');
  const run = autocannon({
    url,
    connections,
    duration: seconds,
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    requests: Array.from({ length: texts }, (_, i) => ({
      body: BODY.replace('%d', '"[<id>]"').replace('%d', i),
    })),
    idReplacement: true,
  });
  // Its own percentiles are in whole milliseconds.
  const times = [];
  run.on('response', (_client, _status, _bytes, ms) => times.push(ms * 1000));
  const { duration, errors, non2xx } = await run;
  onEnded();
  return {
    rate: times.length / duration,
    requests: times.length,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    classes: classify(times),
    failed: errors + non2xx,
  };
}
