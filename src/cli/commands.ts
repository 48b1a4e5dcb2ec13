/** The command line: every command with its options, help and examples. */
import yargs from 'yargs';
import { TapedeckError } from '../errors.ts';
import { listCommand } from './list.ts';
import { recordCommand } from './record-command.ts';
import { reindexCommand } from './reindex.ts';
import { showCommand } from './show.ts';
import { VERSION } from './version.ts';

/** Parses and runs one command line. Throws `TapedeckError` `usage` for one that cannot be understood. */
export async function runCommand(argv: readonly string[]): Promise<void> {
  const parser = yargs()
    .scriptName('tapedeck')
    .usage('$0 <command>\n\nRecords the traffic between an MCP client and an MCP server, and shows it.')
    .parserConfiguration({ 'populate--': true })
    .command(recordCommand)
    .command(listCommand)
    .command(showCommand)
    .command(reindexCommand)
    .demandCommand(1, 'Expected a command. See: tapedeck --help')
    .recommendCommands()
    .strict()
    .version(VERSION)
    .alias({ h: 'help', v: 'version' })
    .wrap(Math.min(100, process.stdout.columns || 100))
    // A `fail` handler that only prints would let the command run all the same.
    .fail(false);
  try {
    await parser.parseAsync([...argv]);
  } catch (error) {
    throw isUsageError(error) ? new TapedeckError('usage', withHelpHint(error.message, argv)) : error;
  }
}

/** yargs throws plain errors of this name for what it cannot accept. */
function isUsageError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'YError';
}

function withHelpHint(message: string, argv: readonly string[]): string {
  const line = message.replaceAll('\n', ' ');
  if (line.includes('--help')) return line;
  const command = argv.find((word) => !word.startsWith('-'));
  return `${line}. See: tapedeck ${command === undefined ? '' : `${command} `}--help`;
}
