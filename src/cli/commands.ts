/** The command line: every command with its options, help and examples. */
import yargs, { type CommandModule } from 'yargs';
import { TapedeckError } from '../errors.ts';
import { VERSION } from '../version.ts';
import { addCompletion, asksForCompletionHelp, COMPLETION_HELP, chooseShell } from './completion.ts';
import { CONFIG_OPTIONS } from './config-location.ts';
import { writeOutput } from './output.ts';
import { STDIN } from './shared-options.ts';

/** In the order in which `--help` lists them. */
export const COMMANDS: Readonly<Record<string, () => Promise<unknown>>> = {
  record: async () => (await import('./record-command.ts')).recordCommand,
  list: async () => (await import('./list.ts')).listCommand,
  show: async () => (await import('./show.ts')).showCommand,
  tail: async () => (await import('./tail.ts')).tailCommand,
  search: async () => (await import('./search.ts')).searchCommand,
  stats: async () => (await import('./stats.ts')).statsCommand,
  check: async () => (await import('./check.ts')).checkCommand,
  diff: async () => (await import('./diff.ts')).diffCommand,
  replay: async () => (await import('./replay.ts')).replayCommand,
  verify: async () => (await import('./verify.ts')).verifyCommand,
  export: async () => (await import('./export.ts')).exportCommand,
  import: async () => (await import('./import.ts')).importCommand,
  redact: async () => (await import('./redact.ts')).redactCommand,
  scan: async () => (await import('./scan.ts')).scanCommand,
  prune: async () => (await import('./prune.ts')).pruneCommand,
  reindex: async () => (await import('./reindex.ts')).reindexCommand,
  wrap: async () => (await import('./wrap.ts')).wrapCommand,
  unwrap: async () => (await import('./unwrap.ts')).unwrapCommand,
  config: async () => (await import('./config.ts')).configCommand,
};

/** Parses and runs one command line. Throws `TapedeckError` `usage` for one that cannot be understood. */
export async function runCommand(argv: readonly string[]): Promise<void> {
  if (asksForCompletionHelp(argv)) {
    await writeOutput([COMPLETION_HELP]);
    return;
  }
  const words = chooseShell(argv);
  const [command = ''] = words;
  const commands = await loadCommands(command);
  const parser = yargs()
    .scriptName('tapedeck')
    .usage('$0 <command>\n\nRecords the traffic between an MCP client and an MCP server, and shows it.')
    // `--no-edit` is an option like any other, and `--label a=b <url>` has one label.
    // Nor does an argument of a server's become a number: it may be 007.
    .parserConfiguration({
      'populate--': true,
      'boolean-negation': false,
      'greedy-arrays': false,
      'parse-positional-numbers': false,
    })
    .options(CONFIG_OPTIONS)
    .command([...commands])
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
  const texts = commands.map((module) => String(module.command));
  await addCompletion(parser, texts, words).parseAsync(
    words.map((word) => (command === 'import' && word === '-' ? STDIN : word)),
  );
}

/** The command of that name alone, so that it starts sooner; all of them where there is none. */
async function loadCommands(name: string): Promise<readonly CommandModule[]> {
  const only = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const wanted = only === undefined ? Object.values(COMMANDS) : [only];
  return (await Promise.all(wanted.map((load) => load()))) as CommandModule[];
}

/** What a command threw; for a command line that yargs cannot accept there is no error, or one of its own. */
function isCommandsOwn(error: Error | undefined): boolean {
  return error !== undefined && error.name !== 'YError';
}

function withHelpHint(message: string, argv: readonly string[]): string {
  const line = message.replaceAll('\n', ' ');
  if (line.includes('--help')) return line;
  const sentence = /[.?]$/.test(line) ? line : `${line}.`;
  const command = argv.find((word) => Object.hasOwn(COMMANDS, word));
  return `${sentence} See: tapedeck ${command === undefined ? '' : `${command} `}--help`;
}
