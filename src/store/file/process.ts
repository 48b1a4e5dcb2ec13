/** Facts about processes: who started us, and whether the recorder of an open session is still alive. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

type ProcessFacts = { parent: number; program: string; started: string };

/** A process that uses us. `started` in the platform's own words: without it, a pid that is used again would lie. */
export type ClientProcess = { pid: number; program: string; started: string };

/** Programs that only start others: the client is whoever called them. */
const LAUNCHERS =
  /^(?:sh|bash|dash|zsh|fish|env|nohup|setsid|sudo|timeout|npm|npx|npm exec.*|npx .*|pnpm|yarn|bunx|uvx|cmd\.exe)$/;

const MAX_LAUNCHERS = 6;

/** The process that uses us: the nearest ancestor that is no mere launcher. Null where the platform does not tell. */
export function findClient(parent: number): ClientProcess | null {
  let pid = parent;
  let found: ClientProcess | null = null;
  for (let i = 0; i < MAX_LAUNCHERS && pid > 0; i += 1) {
    const facts = readProcess(pid);
    if (facts === null) break;
    found = { pid, program: facts.program, started: facts.started };
    if (!LAUNCHERS.test(facts.program)) break;
    pid = facts.parent;
  }
  return found;
}

/** A process of this machine as a client. Null where the platform does not tell. */
export function clientAt(pid: number): ClientProcess | null {
  const facts = readProcess(pid);
  return facts && { pid, program: facts.program, started: facts.started };
}

/**
 * What names a process for good, on whatever machine it is read: a hash, so that a recording that is given away tells nothing of
 * the machine. Linux counts starts from the boot, so the boot belongs to it.
 */
export function processKey(host: string, { pid, started }: Pick<ClientProcess, 'pid' | 'started'>): string {
  const text = JSON.stringify([host, bootId(), pid, started]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

function bootId(): string {
  try {
    return process.platform === 'linux' ? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() : '';
  } catch {
    return '';
  }
}

/** When a process started, in the platform's own words: together with its pid it names the process for good. */
export function processStarted(pid: number): string | null {
  return readProcess(pid)?.started ?? null;
}

/** Whether the process is alive that had this pid and began at this time. */
export function isAlive(pid: number, started: string | null): boolean {
  const facts = readProcess(pid);
  if (facts !== null) return started === null || facts.started === started;
  if (process.platform === 'linux') return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM';
  }
}

function readProcess(pid: number): ProcessFacts | null {
  try {
    return process.platform === 'linux' ? readProc(pid) : readPs(pid);
  } catch {
    return null;
  }
}

/** Linux: /proc/<pid>/stat is `pid (program) state ppid … starttime …`, and a program's name may hold `) (`. */
function readProc(pid: number): ProcessFacts {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const nameEnd = stat.lastIndexOf(')');
  const fields = stat.slice(nameEnd + 2).split(' ');
  const name = stat.slice(stat.indexOf('(') + 1, nameEnd);
  return {
    parent: Number(fields[1]),
    program: name === NODE_MAIN_THREAD ? (programOf(pid) ?? name) : name,
    started: fields[19] ?? '',
  };
}

/** Newer Node names its threads, and Linux takes the name of the first for that of the process. */
const NODE_MAIN_THREAD = 'MainThread';

/** By its command line, or else by its executable. Null where neither may be read. */
function programOf(pid: number): string | null {
  const sources = [
    () => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0', 1)[0] ?? '',
    () => readlinkSync(`/proc/${pid}/exe`),
  ];
  for (const source of sources) {
    try {
      const name = basename(source());
      if (name !== '' && name !== NODE_MAIN_THREAD) return name;
    } catch {
      // It belongs to somebody else, or has just ended.
    }
  }
  return null;
}

/** So that every process reads the same start: `ps` tells it in the language and the time zone of who asks. */
const PS_ENV = { LC_ALL: 'C', TZ: 'UTC' };

/** Other Unixes, through `ps`. Windows has none: there the client stays unknown. */
function readPs(pid: number): ProcessFacts | null {
  if (process.platform === 'win32') return null;
  const line = execFileSync('ps', ['-o', 'ppid=,lstart=,comm=', '-p', String(pid)], {
    encoding: 'utf8',
    env: { ...process.env, ...PS_ENV },
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
  const match = /^(\d+)\s+(\w+\s+\w+\s+\d+\s+[\d:]+\s+\d+)\s+(.*)$/.exec(line);
  if (match === null) return null;
  const [, parent, started = '', command = ''] = match;
  return { parent: Number(parent), started, program: command.split('/').at(-1) ?? command };
}
