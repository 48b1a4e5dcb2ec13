// The processor time that a process has taken so far, user and system, of all of its threads: what a program costs, whatever
// else the machine does.
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** In microseconds, without the time of its children; null where the platform does not tell. */
export function processorTime(pid) {
  if (process.platform !== 'linux') return null;
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      // It has just ended.
    }
  }
  return nanoseconds / 1000;
}

/** The same of its first thread alone, which runs the program itself. */
export function ownTime(pid) {
  if (process.platform !== 'linux') return null;
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1000;
}

/** What all processors of the machine have done so far, in microseconds: for whoever, and nothing. */
export function machineTime() {
  const sum = { busy: 0, idle: 0 };
  for (const { times } of cpus()) {
    const { idle, ...others } = times;
    sum.idle += idle * 1000;
    sum.busy += Object.values(others).reduce((all, ms) => all + ms * 1000, 0);
  }
  return sum;
}

/** What it has in memory, in megabytes; null where the platform does not tell. */
export function memoryOf(pid) {
  if (process.platform !== 'linux') return null;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) / 1024;
}
