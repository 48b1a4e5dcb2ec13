/** `record` as yargs sees it: its help, and what is wrong with a command line that the fast path did not accept. */
import type { Argv, CommandModule } from 'yargs';
import { TapedeckError } from '../errors.ts';
import { checkRecordOptions, type RawRecordOptions, RECORD_OPTIONS } from './record-options.ts';

export const recordCommand: CommandModule<object, RawRecordOptions> = {
  command: 'record [command..]',
  describe: 'Stand between a client and a stdio server, and record what passes',
  builder: (args: Argv) =>
    args
      .usage(
        '$0 record [options] -- <command> [args…]\n\nStarts the server’s command and relays it, byte for byte.',
      )
      .options(yargsOptions())
      .example(
        '$0 record -- npx -y @modelcontextprotocol/server-everything',
        'In a client’s config, in place of the command',
      )
      .example(
        '$0 record --name staging --label team=search -- ./server',
        'Give the session a name and a label',
      )
      .epilog(
        'Exits with the server’s exit code, or dies by its signal; 127 if the command cannot be found.',
      ) as Argv<RawRecordOptions>,
  async handler(argv) {
    const words = argv as RawRecordOptions & { '--'?: string[]; command?: string[] };
    const [command, ...args] = words['--'] ?? [];
    const stray = words.command ?? [];
    if (command === undefined || stray.length > 0) throw missingDashes(stray);
    const { record } = await import('./record.ts');
    await record({ options: checkRecordOptions(argv), command, args });
  },
};

function missingDashes(words: string[]): TapedeckError {
  if (words.length === 0) {
    return new TapedeckError(
      'usage',
      'Expected the server’s command after `--`. Example: tapedeck record -- npx -y my-mcp-server',
    );
  }
  const command = words.join(' ');
  return new TapedeckError(
    'usage',
    `Expected \`--\` before the server’s command, got \`${command}\`. Try: tapedeck record -- ${command}`,
  );
}

function yargsOptions() {
  return Object.fromEntries(
    Object.entries(RECORD_OPTIONS).map(([name, option]) => [
      name,
      {
        type: option.type,
        array: 'multiple' in option,
        describe: option.describe,
        requiresArg: option.type === 'string',
      },
    ]),
  );
}
