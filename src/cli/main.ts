/** The entry: `record` goes the short way, so that the server is spawned at once, as `--version` does; all else goes through yargs. */

import { mkdirSync } from 'node:fs';
import module from 'node:module';
import { dirname } from 'node:path';
import { findConfigurationFiles } from '../config/location.ts';
import { TapedeckError } from '../errors.ts';
import { cacheFolder } from '../store/file/path.ts';
import { troubleOf } from '../store/file/trouble.ts';
import { VERSION } from '../version.ts';
import { type Io, say } from './io.ts';
import { writeOutput } from './output.ts';
import { asksForJson, createLog } from './record/log.ts';
import { readRecordFast } from './record/options.ts';

/**
 * Runs one command line, and sets the exit code of `io`. Never rejects. Any number may run in one process, each with an `io`
 * of its own; only `record -- <command>` takes the process itself.
 */
export async function main(argv: readonly string[], io: Io = process): Promise<void> {
  let words = argv;
  try {
    if (asksForVersion(argv)) {
      await writeOutput(io, [VERSION, '\n']);
      return;
    }
    words = await completed(argv, io);
    const fast = words[0] === 'record' ? readRecordFast(words.slice(1)) : undefined;
    if (fast !== undefined) await (await import('./record/stdio.ts')).record(fast);
    else {
      if (io === process) keepCompiled(io.env);
      await (await import('./commands.ts')).runCommand(words, io);
    }
  } catch (error) {
    io.exitCode = failure(io, error, asksForJson(words));
  }
}

function asksForVersion([word, ...more]: readonly string[]): boolean {
  return (word === '--version' || word === '-v') && more.length === 0;
}

/**
 * Lets Node keep what it compiles of the commands, in a folder that is the user's alone, where there can be one. Only Node 22
 * and newer can. Not for `record -- <command>`, which runs wherever a client starts it.
 */
function keepCompiled(env: NodeJS.ProcessEnv): void {
  const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => unknown };
  if (enableCompileCache === undefined || env['NODE_COMPILE_CACHE'] || env['NODE_DISABLE_COMPILE_CACHE'])
    return;
  const folder = cacheFolder(env);
  if (isThere(dirname(folder)) && isThere(folder)) enableCompileCache(folder);
}

/** Makes the folder if need be. Node's own way to make all folders of a path never ends in `/proc`. */
function isThere(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST';
  }
}

/** The command line, completed from the configuration files. */
async function completed(argv: readonly string[], io: Io): Promise<readonly string[]> {
  const files = findConfigurationFiles(argv, io);
  if (files.length === 0) return argv;
  return (await import('./config/words.ts')).withConfig(argv, files, io.env);
}

const BAD_USAGE = 2;

/** Prints the error; returns the exit code. */
function failure(io: Io, error: unknown, isJson: boolean): number {
  const text = textOf(error);
  const code = error instanceof TapedeckError ? error.code : 'internal';
  if (isJson)
    createLog({ isJson, level: 'error' }, io.env, (line) => void io.stderr.write(line)).error(
      'failed',
      text,
      { code },
    );
  else say(io, text);
  return BAD_USAGE;
}

function textOf(error: unknown): string {
  if (error instanceof TapedeckError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const isOperational = 'code' in error;
  return isOperational
    ? `the store cannot be used: ${troubleOf(error).text}`
    : `a bug in tapedeck: ${error.stack}`;
}
