/** The thread that decides which sessions of a store are kept once they have ended: for `record --keep` alone. */

import { Worker } from 'node:worker_threads';

export type SampleJudge = {
  /** Everything has ended: decides what is left, for so many milliseconds at most. What is not decided then, the next one does. */
  finish(maxMs: number): Promise<void>;
};

/** `file`: the path of the store. It never fails: undecided sessions are kept. */
export function startJudge(file: string): SampleJudge {
  const worker = new Worker(new URL('./sample-judge.js', import.meta.url), { workerData: { file } });
  const gone = new Promise<void>((resolve) => {
    worker.on('exit', () => resolve());
    worker.on('error', () => resolve());
  });
  worker.unref();
  return {
    async finish(maxMs) {
      worker.postMessage('end');
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, maxMs);
      });
      await Promise.race([gone, late]);
      clearTimeout(timer);
    },
  };
}

/** For a process that records into several stores: one for each. */
export type SampleJudges = { begin(file: string): void; finish(maxMs: number): Promise<unknown> };

export function createJudges(): SampleJudges {
  const judges = new Map<string, SampleJudge>();
  return {
    begin(file) {
      if (!judges.has(file)) judges.set(file, startJudge(file));
    },
    finish: (maxMs) => Promise.all([...judges.values()].map((judge) => judge.finish(maxMs))),
  };
}
