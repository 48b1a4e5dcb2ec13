/** The entry: `record` goes the short way, so that the server is spawned at once; all else goes through yargs. */
import { findConfigFiles } from './config-location.ts';
import { readRecordFast } from './record-options.ts';

export async function main(argv: readonly string[]): Promise<void> {
  try {
    const words = await completed(argv);
    const fast = words[0] === 'record' ? readRecordFast(words.slice(1)) : undefined;
    if (fast !== undefined) await (await import('./record.ts')).record(fast);
    else await (await import('./commands.ts')).runCommand(words);
  } catch (error) {
    const { failure } = await import('./failure.ts');
    process.exitCode = failure(error);
  }
}

/** With what the configuration files say. */
async function completed(argv: readonly string[]): Promise<readonly string[]> {
  const files = findConfigFiles(argv);
  if (files.length === 0) return argv;
  return (await import('./config-words.ts')).withConfig(argv, files);
}
