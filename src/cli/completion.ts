/** Completion in the shell: commands, options and their choices by yargs; names of sessions from the store. */
import type { Argv, FallbackCompletionFunction } from 'yargs';
import { TapedeckError } from '../errors.ts';
import { storePath } from '../store/location.ts';
import { openForReading } from '../store/open.ts';
import { eachSession } from '../store/reader.ts';

/** How commands call what may be a session. */
const TAKES_SESSION = /[<[](?:sessions?|recordings?|a)\b/;
const MAX_SESSIONS = 50;
const SHELLS = ['bash', 'zsh', 'fish'];

/**
 * `commands` are the command strings, such as `show [session]`. The words of a command line that is to be completed come
 * as `--get-yargs-completions tapedeck show …`; from fish without the program's name.
 */
export function addCompletion<T>(
  parser: Argv<T>,
  commands: readonly string[],
  words: readonly string[],
): Argv<T> {
  const ofSessions = new Set(commands.filter((text) => TAKES_SESSION.test(text)).map(nameOf));
  const command = words.slice(1).find((word) => commands.some((text) => nameOf(text) === word)) ?? '';
  const complete: FallbackCompletionFunction = (current, argv, defaults, done) => {
    defaults((error, found = []) => {
      if (error) throw error;
      const { db } = argv as { db?: string };
      if (current.startsWith('-')) done(found);
      else if (words.slice(1, -1).includes('completion')) done(SHELLS);
      // What yargs knows to stand there is a command, or a choice of an option.
      else if (!ofSessions.has(command) || found.some((one) => !one.startsWith('-'))) done(found);
      else done(orElse(sessionNames(db), found));
    });
  };
  return parser.completion(
    'completion',
    'Print the script that completes commands: completion bash|zsh|fish',
    complete,
  );
}

/** Names of sessions leave no room for options, which begin with a hyphen anyway. */
function orElse(names: readonly string[], found: string[]): string[] {
  return names.length > 0 ? [...names] : found;
}

function nameOf(command: string): string {
  return command.split(' ')[0] ?? '';
}

/** What yargs has no help for: it takes `completion` for the script, whatever else is there. */
export const COMPLETION_HELP = `tapedeck completion <shell>

Print the script that completes commands, options and the names of sessions. A shell is bash, zsh or fish.

Examples:
  tapedeck completion bash >> ~/.bashrc
  tapedeck completion zsh >> ~/.zshrc
  tapedeck completion fish > ~/.config/fish/completions/tapedeck.fish
`;

export function asksForCompletionHelp([command, ...words]: readonly string[]): boolean {
  return command === 'completion' && words.some((word) => word === '--help' || word === '-h');
}

/**
 * yargs goes by the shell of the environment; `completion zsh` says it outright. Gives what is left for yargs to read.
 * Throws `TapedeckError` `usage` for another shell.
 */
export function chooseShell(argv: readonly string[]): readonly string[] {
  const [command, shell] = argv;
  if (command !== 'completion' || shell === undefined || shell.startsWith('-')) return argv;
  if (!SHELLS.includes(shell))
    throw new TapedeckError('usage', `Expected ${SHELLS.join(', ')} after \`completion\`, got \`${shell}\`.`);
  process.env['SHELL'] = shell;
  delete process.env['ZSH_NAME'];
  return ['completion'];
}

/** `latest`, and the names of the newest sessions, ids where they have none. A store that cannot be read completes nothing. */
function sessionNames(db: string | undefined): string[] {
  const names = new Set(['latest']);
  try {
    const store = openForReading(storePath(db));
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
