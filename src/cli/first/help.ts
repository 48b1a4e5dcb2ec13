/** `tapedeck --help`, which lists the commands by their purpose, and `tapedeck help <page>`, which shows a page of the docs. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIG_OPTIONS } from '../../config/location.ts';
import { TapedeckError } from '../../errors.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import { nearest } from '../../protocol/nearest.ts';
import { DOCS, typedName } from '../../version.ts';
import { type Command, helpWidth, type Io } from '../io.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { hanging, pageLines } from './page.ts';

/** The commands of a first day, as they are typed then. */
const FIRST_DAY: readonly (readonly [words: string, does: string])[] = [
  ['demo', 'See it at work, in seconds'],
  ['wrap all', 'Record the servers of your MCP clients'],
  ['record -- <command>', 'Or record one server, by its command or URL'],
  ['show', 'See what the client and the server said'],
  ['ui', 'See it in a browser'],
  ['check', 'Find what broke the protocol, and by whom'],
];

/** What is listed in one group of the help. */
export type CommandGroup = readonly [
  purpose: string,
  commands: readonly Pick<Command, 'command' | 'describe'>[],
];

export function frontPage(io: Io, groups: readonly CommandGroup[]): string[] {
  const name = typedName(io.env);
  const width = helpWidth(io);
  const rows = (list: readonly (readonly [string, string])[]) => {
    const column = Math.max(...list.map(([words]) => words.length)) + 4;
    return list.flatMap(([words, does]) => hanging(`  ${words}`.padEnd(column), does, width));
  };
  return [
    ...hanging('', `${name} <command>`, width),
    '',
    ...hanging('', 'Records the traffic between an MCP client and an MCP server, and shows it.', width),
    ...['', 'The first day:'],
    ...rows(FIRST_DAY.map(([words, does]) => [`${name} ${words}`, does])),
    ...groups.flatMap(([purpose, commands]) => [
      ...['', `${purpose}:`],
      ...rows(commands.map(({ command, describe }) => [String(command), String(describe)])),
    ]),
    ...['', 'Options:'],
    ...rows(OPTIONS),
    '',
    ...hanging('', `Options and examples of a command: ${name} <command> --help`, width),
    ...hanging('', `A page of the documentation: ${name} help <page>`, width),
    ...hanging('  ', `The pages: ${pageNames().join(', ')}`, width),
  ];
}

/** A command line with `$0` for the words that start tapedeck, and what it does. */
export type Example = readonly [command: string, does: string];

/** For the end of a command's help. A command that is too long for a line goes on in the next one, as a shell has it. */
export function exampleText(io: Io, examples: readonly Example[]): string {
  if (examples.length === 0) return '';
  const width = helpWidth(io);
  const lines = examples.flatMap(([command, does]) => [
    ...shellLines(command.replaceAll('$0', typedName(io.env)), width).map((line) => `  ${line}`),
    ...hanging('      ', does, width),
  ]);
  return ['\n\nExamples:', ...lines].join('\n');
}

/** Columns of an indent and of the mark that a line goes on. */
const AROUND_COMMAND = 4;

function shellLines(command: string, width: number): string[] {
  const words = command.match(/(?:'[^']*'|[^\s'])+/g) ?? [];
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length + 1 + AROUND_COMMAND <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(last === undefined ? word : `    ${word}`);
  }
  return lines.map((line, i) => (i < lines.length - 1 ? `${line} \\` : line));
}

const OPTIONS: readonly (readonly [string, string])[] = [
  ...Object.entries(CONFIG_OPTIONS).map(([name, { describe }]) => [`--${name}`, describe] as const),
  ['-h, --help', 'Show help'],
  ['-v, --version', 'Show the version'],
];

/** The names of the pages. Throws `TapedeckError` `io` where the package lacks them. */
export function pageNames(): string[] {
  try {
    const pages = readdirSync(DOCS).filter((name) => name.endsWith('.md'));
    return pages.map((name) => name.slice(0, -'.md'.length)).toSorted();
  } catch (error) {
    throw new TapedeckError(
      'io',
      `The pages of the documentation cannot be read: ${(error as Error).message}. Install mcp-tapedeck anew`,
    );
  }
}

type Options = { page: string | undefined };

export const helpCommand: Command<Options> = {
  command: 'help [page]',
  describe: 'Show a page of the documentation, or the help of a command',
  builder: (args) =>
    args
      .usage('$0 help [page]\n\nShows a page of the documentation, or the help of a command that has none.')
      .positional('page', { type: 'string', describe: `One of ${pageNames().join(', ')}; or a command` })
      .example('$0 help filter', 'The filter language')
      .example('$0 help list', 'The help of a command'),
  async run({ page = '' }, io) {
    const known = pageNames();
    if (!known.includes(page)) throw unknownPage(page, known);
    const { colors } = terminalStyle(io.stdout, io.env);
    const markdown = readFileSync(join(DOCS, `${page}.md`), 'utf8');
    await writeOutput(io, withLineEnds(pageLines(markdown, helpWidth(io), colors)));
  },
};

function unknownPage(page: string, known: readonly string[]): TapedeckError {
  const like = nearestFew(page, known);
  const guess = like.length === 0 ? '' : ` Did you mean ${like.join(' or ')}?`;
  return new TapedeckError(
    'usage',
    `Expected a command or a page after \`help\`, got \`${page}\`.${guess} The pages: ${known.join(', ')}. The commands: tapedeck --help`,
  );
}

const MOST_GUESSES = 3;

/** The nearest first. */
function nearestFew(written: string, known: readonly string[]): string[] {
  const found: string[] = [];
  for (let left = known; found.length < MOST_GUESSES; left = left.filter((one) => !found.includes(one))) {
    const next = nearest(written, left);
    if (next === null) break;
    found.push(next);
  }
  return found;
}
