/**
 * A real PostgreSQL of the tests' own: Debian's binaries, a folder and a port that nobody else has, never root. It listens on
 * loopback and on a socket in its folder.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

export type Postgres = {
  port: number;
  /** Where its files are: `pg_hba.conf`, certificates. They belong to the user that it runs as. */
  data: string;
  /** The folder of its socket. */
  folder: string;
  /** The URL of a database, `postgres` where none is named; as the superuser where no user is. */
  url(database?: string, user?: string): string;
  /** Runs SQL as the superuser, and returns what psql prints of it, without heads. */
  sql(text: string, database?: string): string;
  /** Runs one of PostgreSQL's programs, such as pg_dump, as the user that the server runs as. */
  run(program: string, args: readonly string[]): string;
  /** Makes a file that PostgreSQL may read, as only its owner may. */
  own(path: string): void;
  /** Kills it as a crash would; its children end by themselves. */
  kill(): Promise<void>;
  /** Starts it again, after `kill` or `stop`. */
  start(): Promise<void>;
  /** Ends it in good order, its folder stays. */
  stop(): Promise<void>;
  /** Ends it and removes its folder. */
  remove(): Promise<void>;
};

export type PostgresOptions = {
  /** Settings of postgresql.conf. Without them nothing is synced: only a crash of the machine would tell. */
  settings?: Readonly<Record<string, string>>;
  /** How connections over TCP prove who they are. Without it they need not. */
  auth?: 'scram-sha-256';
};

/** The folder of PostgreSQL's programs; null where there is none. */
export function findPostgres(): string | null {
  const found = [configured(), ...debians(), ...(process.env['PATH'] ?? '').split(delimiter)];
  return found.find((folder) => folder !== null && existsSync(join(folder, 'initdb'))) ?? null;
}

function configured(): string | null {
  try {
    return execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return null;
  }
}

/** The newest first. */
function debians(): string[] {
  const versions = '/usr/lib/postgresql';
  if (!existsSync(versions)) return [];
  const numbers = readdirSync(versions).map(Number);
  return numbers.toSorted((a, b) => b - a).map((version) => join(versions, String(version), 'bin'));
}

const READY = /database system is ready to accept connections/;

/** Starts a server. Throws where there are no programs, or it does not start. */
export async function startPostgres({ settings = {}, auth }: PostgresOptions = {}): Promise<Postgres> {
  const bin = findPostgres();
  if (bin === null) throw new Error('no PostgreSQL: install it (Debian: postgresql)');
  const folder = mkdtempSync(join(tmpdir(), 'tapedeck-pg-'));
  const data = join(folder, 'data');
  const user = otherUser();
  if (user !== null) chownSync(folder, user.uid, user.gid);
  const port = await freePort();
  let child: ChildProcess | null = null;

  const command = (program: string, args: readonly string[]) =>
    asOrdinaryUser(join(bin ?? '', program), args);

  function run(program: string, args: readonly string[]): string {
    const [file, words] = command(program, args);
    return execFileSync(file, words, { encoding: 'utf8', cwd: folder, stdio: 'pipe', maxBuffer: 1 << 28 });
  }

  const quick = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', shared_buffers: '32MB' };
  const all = {
    ...quick,
    ...{ listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: folder },
    ...{ max_connections: '120', log_min_messages: 'log', timezone: 'America/St_Johns', ...settings },
  };

  async function start(): Promise<void> {
    // After a kill its children may have its memory for some moments more, and it refuses to start.
    const deadline = performance.now() + 30_000;
    for (;;) {
      const problem = await tryStart();
      if (problem === null) return;
      if (performance.now() > deadline) throw new Error(`PostgreSQL does not start: ${problem}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async function tryStart(): Promise<string | null> {
    const words = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const [file, args] = command('postgres', ['-D', data, ...words]);
    const started = spawn(file, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    const ready = new Promise<boolean>((resolve) => {
      started.stderr.on('data', (bytes) => {
        if (log.length < 65_536) log += bytes;
        if (READY.test(log)) resolve(true);
      });
      started.on('exit', () => resolve(false));
      started.on('error', () => resolve(false));
    });
    if (!(await ready)) return log;
    child = started;
    return null;
  }

  async function end(signal: 'SIGKILL' | 'SIGINT'): Promise<void> {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = once(ending, 'exit');
    ending.kill(signal);
    await exited;
  }

  const hosts = auth === undefined ? 'trust' : auth;
  const how = ['-U', 'postgres', '--auth-local=trust', `--auth-host=${hosts}`, '-E', 'UTF8', '--no-sync'];
  run('initdb', ['-D', data, ...how, '--locale=C']);
  await start();
  const atExit = () => child?.kill('SIGKILL');
  process.on('exit', atExit);
  return {
    ...{ port, data, folder, run, start },
    url: (database = 'postgres', as = 'postgres') => `postgres://${as}@127.0.0.1:${port}/${database}`,
    sql: (text, database = 'postgres') =>
      run('psql', [
        ...['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-h', folder, '-p', String(port)],
        ...['-U', 'postgres', '-d', database, '-c', text],
      ]).trim(),
    own(path) {
      if (user !== null) chownSync(path, user.uid, user.gid);
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGINT'),
    async remove() {
      await end('SIGKILL');
      process.off('exit', atExit);
      rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}

/** A command line for a program that refuses to run as root, as PostgreSQL does. */
export function asOrdinaryUser(path: string, args: readonly string[]): [file: string, args: string[]] {
  const user = otherUser();
  if (user === null) return [path, [...args]];
  const as = [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  return ['setpriv', [...as, '--', path, ...args]];
}

/** Whom PostgreSQL runs as where we are root; null: as we do. */
export function otherUser(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (which: string) =>
        Number(execFileSync('id', [which, name], { encoding: 'utf8', stdio: 'pipe' }));
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // There is no such user.
    }
  }
  throw new Error('PostgreSQL does not run as root, and there is no user `postgres` or `nobody`');
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
