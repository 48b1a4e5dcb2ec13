/** The command line: every command with its options, help and examples. */
import yargs from 'yargs';
import { TapedeckError } from '../errors.ts';
import { listCommand } from './list.ts';
import { recordCommand } from './record-command.ts';
import { reindexCommand } from './reindex.ts';
import { showCommand } from './show.ts';
import { VERSION } from './version.ts';

/** Names that `--help` may follow. */
const COMMANDS = new Set(['record', 'list', 'show', 'reindex']);

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
    // Thrown, not printed: yargs would otherwise run the command all the same.
    .fail((message, error) => {
      throw isCommandsOwn(error)
        ? error
        : new TapedeckError('usage', withHelpHint(message ?? error.message, argv));
    });
  await parser.parseAsync([...argv]);
}

/** What a command threw; for a command line that yargs cannot accept there is no error, or one of its own. */
function isCommandsOwn(error: Error | undefined): boolean {
  return error !== undefined && error.name !== 'YError';
}

function withHelpHint(message: string, argv: readonly string[]): string {
  const line = message.replaceAll('\n', ' ');
  if (line.includes('--help')) return line;
  const sentence = /[.?]$/.test(line) ? line : `${line}.`;
  const command = argv.find((word) => COMMANDS.has(word));
  return `${sentence} See: tapedeck ${command === undefined ? '' : `${command} `}--help`;
}
