/**
 * One thread for all recorders of a host: a server may open a session for each of its clients, and a thread for each would be many.
 * It starts with the first of them, keeps nothing alive, and hears nothing of the host's own preloads.
 */

import { existsSync } from 'node:fs';
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { FromWorker, SharedStart, SharedThread, WriterCall } from '../store/record/thread.ts';

type Running = {
  worker: Worker;
  deaths: Set<(why: string) => void>;
  /** Why it has ended, also where nobody could be told yet; null: it has not. */
  whyGone(): string | null;
};

/** A writer for HTTP has more objects a message than one for stdio (store/record/thread.ts), and this may be either. */
const YOUNG_MB = 32;

let running: Running | undefined;

export const hostThread: SharedThread = {
  begin(start, onMessage, onDeath) {
    running ??= run();
    const { worker, deaths, whyGone } = running;
    const { port1: port, port2 } = new MessageChannel();
    deaths.add(onDeath);
    port.on('message', (message: FromWorker) => onMessage(message));
    port.unref();
    worker.postMessage({ port: port2, start } satisfies WriterCall, [port2]);
    return {
      post: (message, transfer = []) => port.postMessage(message, transfer),
      terminate: () => worker.terminate(),
      whyGone,
      close() {
        deaths.delete(onDeath);
        port.close();
      },
    };
  },
};

/** Whoever puts a program into one file takes this module from its place. */
const NOT_THERE =
  'its file is not beside this module, which was probably bundled: leave mcp-tapedeck out of the bundle, as external';

const FILE = new URL('./shared-worker.js', import.meta.url);

function run(): Running {
  // A thread would say so later: a host that ends meanwhile would wait for it.
  if (!existsSync(FILE)) throw new Error(NOT_THERE);
  const deaths: Running['deaths'] = new Set();
  const { port1: said, port2: why } = new MessageChannel();
  const isGone = new Int32Array(new SharedArrayBuffer(4));
  // What a host loads before its own code is for that: instrumentation, a loader of TypeScript.
  const { NODE_OPTIONS: _, ...env } = process.env;
  const worker = new Worker(FILE, {
    ...{ workerData: { isGone, why } satisfies SharedStart, transferList: [why], execArgv: [], env },
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  worker.unref();
  let reason = 'its thread has ended';
  worker.on('error', (error) => {
    reason = error.message;
  });
  worker.on('exit', () => {
    running = undefined;
    for (const onDeath of deaths) onDeath(reason);
  });
  return {
    worker,
    deaths,
    whyGone() {
      if (Atomics.load(isGone, 0) === 0) return null;
      reason = receiveMessageOnPort(said)?.message ?? reason;
      return reason;
    },
  };
}
