/** The entry: `record` goes the short way, so that the server is spawned at once; all else goes through yargs. */
import { readRecordFast } from './record-options.ts';

export async function main(argv: readonly string[]): Promise<void> {
  try {
    const fast = argv[0] === 'record' ? readRecordFast(argv.slice(1)) : undefined;
    if (fast !== undefined) await (await import('./record.ts')).record(fast);
    else await (await import('./commands.ts')).runCommand(argv);
  } catch (error) {
    const { failure } = await import('./failure.ts');
    process.exitCode = failure(error);
  }
}
