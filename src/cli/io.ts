/** What a command has of its process, so that it can also run as one of many inside another. */

import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { ArgumentsCamelCase, CommandModule } from 'yargs';
import { storePath } from '../store/file/path.ts';
import { typedName } from '../version.ts';

/** `process` is one. Everything is read where it is needed: opening stdin alone has effects. */
export type Io = {
  readonly stdin: Readable & { isTTY?: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: NodeJS.ProcessEnv;
  /** The working directory. Throws where it was removed. */
  cwd(): string;
  /** Whether the command was told to reach an engine beyond loopback without checking its certificate. */
  isInsecureEngine?: boolean;
  /** Undefined: 0. */
  exitCode?: NodeJS.Process['exitCode'];
  /** Ends a process at once, whatever is still open. Where there is none of its own the command returns instead. */
  exit(code: number): void;
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
};

/** `columns`: of a terminal. */
export type Output = Writable & { isTTY?: boolean; columns?: number };

/** A command as yargs reads it, and what it does. */
export type Command<Options = object> = Omit<CommandModule<object, Options>, 'handler'> & {
  run(options: ArgumentsCamelCase<Options>, io: Io): void | Promise<void>;
};

const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Calls back for every signal that asks the command to stop, with how many there were. Returns what ends that. `onHangUp`: SIGHUP
 * is none of them, and calls this.
 */
export function onStopSignals(io: Io, onSignal: (count: number) => void, onHangUp?: () => void): () => void {
  let count = 0;
  const listener = () => {
    count += 1;
    onSignal(count);
  };
  const heard = STOP_SIGNALS.map(
    (signal) => [signal, signal === 'SIGHUP' ? (onHangUp ?? listener) : listener] as const,
  );
  for (const [signal, hear] of heard) io.on(signal, hear);
  return () => {
    for (const [signal, hear] of heard) io.off(signal, hear);
  };
}

export function say(io: Io, text: string): void {
  io.stderr.write(`tapedeck: ${asTyped(io, text)}\n`);
}

/** Our own words to people: the commands in them, behind a colon, a semicolon or a backquote, as they are typed here. */
export function asTyped({ env }: Pick<Io, 'env'>, text: string): string {
  return text.replaceAll(/(?<=[:;] |`)tapedeck (?=[a-z-])/g, `${typedName(env)} `);
}

/** Neither in CI nor in a pipe somebody sits who sees what is printed as it comes, or wants a browser. */
export function isForPeople({ stdout, env }: Io): boolean {
  return stdout.isTTY === true && !env['CI'];
}

/** From now on it is no error that a reader has left. */
export function ignoreErrors(output: Output): void {
  if (!output.listeners('error').includes(ignore)) output.on('error', ignore);
}

function ignore(): void {}

/** How wide help is: on a narrow terminal as wide as that. */
export function helpWidth({ stdout }: Io): number {
  return Math.min(HELP_COLUMNS, stdout.columns || HELP_COLUMNS);
}

const HELP_COLUMNS = 80;

/** The store that `--db` names. */
export function storeOf(io: Io, db: string | undefined): string {
  return storePath(db, io.env, io.cwd());
}

/** A path of the command line. In the process's own folder it stays as it was written, for messages. */
export function pathOf(io: Pick<Io, 'cwd'>, file: string): string {
  const folder = io.cwd();
  return folder === process.cwd() ? file : resolve(folder, file);
}
