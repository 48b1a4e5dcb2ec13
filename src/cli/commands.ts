/** The command line: every command with its options, help and examples. */

import type { Argv, CommandModule, FallbackCompletionFunction } from 'yargs';
import yargs from 'yargs';
import { CONFIG_OPTIONS } from '../config/location.ts';
import { TapedeckError } from '../errors.ts';
import { openForReading } from '../store/file/open.ts';
import { eachSession } from '../store/read/sessions.ts';
import { typedName, VERSION } from '../version.ts';
import type { CommandGroup, Example } from './first/help.ts';
import { type Command, helpWidth, type Io, isForPeople, storeOf } from './io.ts';
import { STDIN } from './options.ts';
import { withLineEnds, writeOutput } from './output.ts';

type Loaders = Readonly<Record<string, () => Promise<unknown>>>;

/** By their purpose, in the order in which `--help` lists them. */
const GROUPS: Readonly<Record<string, Loaders>> = {
  Begin: {
    demo: async () => (await import('./first/demo.ts')).demoCommand,
    help: async () => (await import('./first/help.ts')).helpCommand,
    config: async () => (await import('./config/config.ts')).configCommand,
  },
  Record: {
    record: async () => (await import('./record/command.ts')).recordCommand,
    run: async () => (await import('./run/run.ts')).runClientCommand,
    ca: async () => (await import('./run/ca.ts')).caCommand,
    wrap: async () => (await import('./wrap/wrap.ts')).wrapCommand,
    unwrap: async () => (await import('./wrap/wrap.ts')).unwrapCommand,
  },
  Look: {
    list: async () => (await import('./read/list.ts')).listCommand,
    show: async () => (await import('./read/show.ts')).showCommand,
    tail: async () => (await import('./read/tail.ts')).tailCommand,
    search: async () => (await import('./read/search.ts')).searchCommand,
    stats: async () => (await import('./read/stats.ts')).statsCommand,
    check: async () => (await import('./read/check.ts')).checkCommand,
    diff: async () => (await import('./read/diff.ts')).diffCommand,
    ui: async () => (await import('./view/ui.ts')).uiCommand,
    mcp: async () => (await import('./view/mcp.ts')).mcpCommand,
  },
  Test: {
    replay: async () => (await import('./play/replay.ts')).replayCommand,
    verify: async () => (await import('./play/verify.ts')).verifyCommand,
    ci: async () => (await import('./ci/command.ts')).ciCommand,
  },
  Keep: {
    export: async () => (await import('./keep/export.ts')).exportCommand,
    import: async () => (await import('./keep/import.ts')).importCommand,
    redact: async () => (await import('./keep/redact.ts')).redactCommand,
    scan: async () => (await import('./keep/scan.ts')).scanCommand,
    prune: async () => (await import('./keep/prune.ts')).pruneCommand,
    pack: async () => (await import('./keep/pack.ts')).packCommand,
    reindex: async () => (await import('./keep/reindex.ts')).reindexCommand,
  },
  Fleet: {
    ship: async () => (await import('./fleet/ship.ts')).shipCommand,
    pull: async () => (await import('./fleet/pull.ts')).pullCommand,
    engine: async () => (await import('./fleet/engine.ts')).engineCommand,
  },
};

export const COMMANDS: Loaders = Object.assign({}, ...Object.values(GROUPS));

/** Parses and runs one command line. Throws `TapedeckError` `usage` for one that cannot be understood. */
export async function runCommand(argv: readonly string[], io: Io): Promise<void> {
  if (await isAnswered(argv, io)) return;
  const asked = await withoutPage(argv);
  if (asksForCompletionHelp(asked)) {
    await writeOutput(io, [COMPLETION_HELP]);
    return;
  }
  const { words, shell } = readShell(asked, io.env);
  const [command = ''] = words;
  const examples: Example[] = [];
  const commands = (await loadCommands(command)).map((one) => moduleOf(one, io, examples));
  const parser = inShell(shell, () => yargs())
    .scriptName(nameFor(words, io))
    // All that we say is English, whatever the shell's locale is.
    .locale('en')
    // `--no-edit` is an option like any other, and `--label a=b <url>` has one label.
    // Nor does an argument of a server's become a number: it may be 007.
    .parserConfiguration({
      'populate--': true,
      'boolean-negation': false,
      'greedy-arrays': false,
      'parse-positional-numbers': false,
    })
    .options(CONFIG_OPTIONS)
    .command(commands)
    .demandCommand(1, 'Expected a command. See: tapedeck --help')
    .recommendCommands()
    .strict()
    .version(VERSION)
    .alias({ h: 'help', v: 'version' })
    .wrap(helpWidth(io))
    // Thrown, not printed: yargs would otherwise run the command all the same.
    .fail((message, error) => {
      throw isCommandsOwn(error)
        ? error
        : new TapedeckError('usage', withHelpHint(message ?? error.message, argv));
    });
  const texts = commands.map((module) => String(module.command));
  let output = '';
  // The words of a command line that is to be completed come behind an option.
  const isForPage = words[0]?.startsWith('-') && words.slice(1, -1).includes('help');
  const pages = isForPage ? (await import('./first/help.ts')).pageNames() : [];
  await addCompletion(io, parser, texts, words, pages).parseAsync(
    words.map((word) => (command === 'import' && word === '-' ? STDIN : word)),
    // With a callback yargs neither prints nor ends the process.
    (_error: unknown, _argv: unknown, text: string) => {
      output = text;
    },
  );
  if (output !== '' && words.some((word) => HELP.has(word)))
    output += (await import('./first/help.ts')).exampleText(io, examples);
  if (output !== '') await writeOutput(io, [output, '\n']);
}

const HELP = new Set(['help', '--help', '-h']);

/** Completion is for who has installed it; all else that help shows can be typed where it is shown. */
function nameFor(words: readonly string[], io: Io): string {
  const isCompletion = words[0] === 'completion' || words[0] === '--get-yargs-completions';
  return isCompletion ? 'tapedeck' : typedName(io.env);
}

/** What needs no command: nothing was typed, or help is asked for in general. */
async function isAnswered(words: readonly string[], io: Io): Promise<boolean> {
  if (words.length === 0 && isForPeople(io) && io.stdin.isTTY === true) {
    await (await import('./first/overview.ts')).showOverview(io);
    return true;
  }
  if (!words.every((word) => HELP.has(word))) return false;
  const groups = Object.entries(GROUPS).map(async ([purpose, loaders], i): Promise<CommandGroup> => {
    const commands = (await Promise.all(Object.values(loaders).map((load) => load()))) as Command[];
    return [purpose, i === 0 ? [...commands, COMPLETION] : commands];
  });
  const { frontPage } = await import('./first/help.ts');
  await writeOutput(io, withLineEnds(frontPage(io, await Promise.all(groups))));
  return true;
}

/** `help list` is `list --help`, because no page has this name. */
async function withoutPage(words: readonly string[]): Promise<readonly string[]> {
  const [command, page = '', ...more] = words;
  const isCommand = Object.hasOwn(COMMANDS, page) || page === 'completion';
  if (command !== 'help' || !isCommand) return words;
  const { pageNames } = await import('./first/help.ts');
  return pageNames().includes(page) ? words : [page, '--help', ...more];
}

/** Examples are kept for us: yargs would cut them into columns, so that they could not be copied. */
function moduleOf({ run, ...module }: Command, io: Io, examples: Example[]): CommandModule {
  const { builder } = module;
  const build = (args: Argv) => {
    const example = (...one: Example) => {
      examples.push(one);
      return args;
    };
    Object.assign(args, { example });
    return typeof builder === 'function' ? (builder(args) as Argv) : args;
  };
  return {
    ...module,
    builder: build,
    handler: (argv) => {
      io.isInsecureEngine = argv['insecure-engine'] === true;
      return run(argv, io);
    },
  };
}

/** Commands with two names, of which the help lists the other one. */
const OTHER_NAMES: Readonly<Record<string, string>> = { view: 'ui' };

/** The command of that name alone, so that it starts sooner; all of them where there is none. */
async function loadCommands(word: string): Promise<readonly Command[]> {
  const name = Object.hasOwn(OTHER_NAMES, word) ? (OTHER_NAMES[word] ?? '') : word;
  const only = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const wanted = only === undefined ? Object.values(COMMANDS) : [only];
  return (await Promise.all(wanted.map((load) => load()))) as Command[];
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

/** Completion in the shell: commands, options and their choices by yargs; names of sessions from the store. */

/** The positionals of commands that may be a session. */
const TAKES_SESSION = /[<[](?:sessions?|recordings?|a)\b/;

const MAX_SESSIONS = 50;

const SHELLS = ['bash', 'zsh', 'fish'];

const COMPLETION = {
  command: 'completion <shell>',
  describe: 'Print the script that completes commands in bash, zsh or fish',
};

/**
 * `commands` are the command strings, such as `show [session]`; `pages` those of the docs, where one is to be completed. The words of a
 * command line that is to be completed come as `--get-yargs-completions tapedeck show …`; from fish without the program's name.
 */
function addCompletion<T>(
  io: Io,
  parser: Argv<T>,
  commands: readonly string[],
  words: readonly string[],
  pages: string[],
): Argv<T> {
  const ofSessions = new Set(commands.filter((text) => TAKES_SESSION.test(text)).map(nameOf));
  const command = words.slice(1).find((word) => commands.some((text) => nameOf(text) === word)) ?? '';
  const complete: FallbackCompletionFunction = (current, argv, defaults, done) => {
    defaults((error, found = []) => {
      if (error) throw error;
      const { db } = argv as { db?: string };
      if (current.startsWith('-')) done(found);
      else if (words.slice(1, -1).includes('completion')) done(SHELLS);
      else if (pages.length > 0) done(pages);
      // yargs offers words here for a command or for a choice of an option.
      else if (!ofSessions.has(command) || found.some((one) => !one.startsWith('-'))) done(found);
      else done(orElse(sessionNames(io, db), found));
    });
  };
  return parser.completion('completion', COMPLETION.describe, complete);
}

/** Names of sessions leave no room for options, which begin with a hyphen anyway. */
function orElse(names: readonly string[], found: string[]): string[] {
  return names.length > 0 ? [...names] : found;
}

function nameOf(command: string): string {
  return command.split(' ')[0] ?? '';
}

/** yargs has no help for this command: it prints the script whatever the options are. */
const COMPLETION_HELP = `tapedeck completion <shell>

Print the script that completes commands, options and the names of sessions. A shell is bash, zsh or fish.

Examples:
  tapedeck completion bash >> ~/.bashrc
  tapedeck completion zsh >> ~/.zshrc
  tapedeck completion fish > ~/.config/fish/completions/tapedeck.fish
`;

function asksForCompletionHelp([command, ...words]: readonly string[]): boolean {
  return command === 'completion' && words.some((word) => word === '--help' || word === '-h');
}

/** Where yargs looks for the shell that completes. */
type Shell = { SHELL: string | undefined; ZSH_NAME: string | undefined };

/**
 * yargs goes by the shell of the environment; `completion zsh` says it outright. Returns the shell, and the words that are
 * left for yargs. Throws `TapedeckError` `usage` for another shell.
 */
function readShell(
  argv: readonly string[],
  { SHELL, ZSH_NAME }: NodeJS.ProcessEnv,
): { words: readonly string[]; shell: Shell } {
  const [command, shell] = argv;
  if (command !== 'completion' || shell === undefined || shell.startsWith('-'))
    return { words: argv, shell: { SHELL, ZSH_NAME } };
  if (!SHELLS.includes(shell))
    throw new TapedeckError('usage', `Expected ${SHELLS.join(', ')} after \`completion\`, got \`${shell}\`.`);
  return { words: ['completion'], shell: { SHELL: shell, ZSH_NAME: undefined } };
}

/** A parser looks at the environment of the process, once, when it is made: meanwhile that has this shell. */
function inShell<T>(shell: Shell, makeParser: () => T): T {
  const { SHELL, ZSH_NAME } = process.env;
  setShell(shell);
  try {
    return makeParser();
  } finally {
    setShell({ SHELL, ZSH_NAME });
  }
}

function setShell(shell: Shell): void {
  for (const [name, value] of Object.entries(shell)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

/** `latest`, and the names of the newest sessions, ids where they have none. A store that cannot be read completes nothing. */
function sessionNames(io: Io, db: string | undefined): string[] {
  const names = new Set(['latest']);
  try {
    const store = openForReading(storeOf(io, db));
    let count = 0;
    for (const { name, id } of eachSession(store)) {
      names.add(name ?? id);
      count += 1;
      if (count === MAX_SESSIONS) break;
    }
    store.close();
  } catch {
    return [];
  }
  // Another name would have to be quoted, each shell in its own way.
  return [...names].filter((name) => /^[\w./@-]+$/.test(name));
}
