/** `tapedeck wrap`: puts tapedeck before the servers of a client's config, or lists what there is. */

import { resolve } from 'node:path';
import { goneFiles, type ListedConfig, type ListedServer, listConfig } from '../../clients/list.ts';
import { allTargets, findTargets } from '../../clients/targets.ts';
import { TapedeckError } from '../../errors.ts';
import { clip, pad, terminalStyle, widthOf } from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';
import { asTyped, type Command, type Io, say } from '../io.ts';
import { thisKeeper, thisMachine } from '../machine.ts';
import { DRY_RUN_OPTION, JSON_OPTION, SERVERS, TARGET } from '../options.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { checkedStore } from '../record/options.ts';
import { NO_CLIENT, serverLabel, titleOf, unwrapFiles, wrapFiles } from './files.ts';

type Options = {
  target: string | undefined;
  servers: string[];
  list: boolean;
  json: boolean;
  'dry-run': boolean;
  db: string | undefined;
  'with-mcp': boolean;
};

export const wrapCommand: Command<Options> = {
  command: 'wrap [target] [servers..]',
  describe: 'Put tapedeck before the servers in a client’s config',
  builder: (args) =>
    args
      .usage(
        '$0 wrap <client|file|all> [server…]\n$0 wrap --list\n\nEdits the client’s config so that it starts its servers through `tapedeck record`. Nothing else in the file changes, and a copy is kept: `tapedeck unwrap` puts it back, byte for byte.',
      )
      .positional('target', TARGET)
      .positional('servers', SERVERS)
      .options({
        list: {
          type: 'boolean',
          default: false,
          describe: 'Show the clients found, their servers, and which are wrapped',
        },
        json: { ...JSON_OPTION, describe: 'With --list: one JSON object per line' },
        'dry-run': DRY_RUN_OPTION,
        'with-mcp': {
          type: 'boolean',
          default: false,
          describe: 'Add `tapedeck mcp` to the client too, so that its agent can look into the recordings',
        },
        db: {
          type: 'string',
          requiresArg: true,
          coerce: (db: string | string[]) => (Array.isArray(db) ? db.at(-1) : db),
          describe: 'The store that the wrapped servers record into (default: as `record` has it)',
        },
      })
      .example('$0 wrap --list', 'Which clients and servers there are')
      .example(
        '$0 wrap cursor',
        'Wrap all servers of Cursor, the user’s and those of the project in this folder',
      )
      .example('$0 wrap claude-code github', 'Only this one')
      .example('$0 wrap cursor --with-mcp', 'And let the agent look into what is recorded')
      .example('$0 wrap ./mcp.json --dry-run', 'Show what would change in this file')
      .epilog(
        'URL servers get a local address in place of their own. It can be reached only while this runs: $0 record --wrapped',
      ),
  async run({ target, servers, list, json, db, 'dry-run': isDryRun, 'with-mcp': withMcp }, io) {
    if (list || target === undefined) {
      if (servers.length > 0 || isDryRun || withMcp || db !== undefined)
        throw new TapedeckError(
          'usage',
          'Expected a client or a file to wrap. Example: tapedeck wrap cursor',
        );

      await printList(io, target, json);
      return;
    }
    if (json) throw new TapedeckError('usage', '`--json` goes with `--list`.');
    const file = db === undefined ? undefined : checkedStore(db);
    await wrapFiles(io, target, servers, {
      isDryRun,
      withMcp,
      db: file === undefined ? null : resolve(io.cwd(), file.trim()),
    });
  },
};

/** `tapedeck unwrap`: takes tapedeck out of a client's config again. */

type UnwrapOptions = { target: string; servers: string[]; 'dry-run': boolean };

export const unwrapCommand: Command<UnwrapOptions> = {
  command: 'unwrap <target> [servers..]',
  describe: 'Take tapedeck out of a client’s config again',
  builder: (args) =>
    args
      .usage(
        '$0 unwrap <client|file|all> [server…]\n\nPuts the file back as it was, byte for byte. Where it was edited since, only what\n`wrap` did is undone.',
      )
      .positional('target', { ...TARGET, demandOption: true })
      .positional('servers', SERVERS)
      .options({ 'dry-run': DRY_RUN_OPTION })
      .example('$0 unwrap cursor', 'All servers of Cursor, in every project where they were wrapped')
      .example('$0 unwrap cursor github', 'Only this one')
      .example('$0 unwrap all', 'Everything that is wrapped'),
  async run({ target, servers, 'dry-run': isDryRun }, io) {
    await unwrapFiles(io, target, servers, isDryRun);
  },
};

/** `tapedeck wrap --list`: the clients found, their servers, and which are wrapped. */

/** `word`: a client, a file or `all`; undefined for all. */
async function printList(io: Io, word: string | undefined, json: boolean): Promise<void> {
  const keeper = thisKeeper(io);
  const machine = thisMachine(io);
  const known = keeper.all().map(({ file }) => file);
  const targets = word === undefined ? allTargets(machine, known) : findTargets(word, machine, known);
  const configs = targets.map((target) => listConfig(target, keeper));
  await writeOutput(io, withLineEnds(json ? configs.flatMap(jsonLines) : configLines(io, configs)));
  for (const { file } of goneFiles(keeper))
    say(io, escapeText(`${file} was wrapped, and is gone. Its copy: ${keeper.folderOf(file)}`));
}

function jsonLines({ target, servers, problem }: ListedConfig): string[] {
  const { client, file, scope } = target;
  const config = { client: client?.id ?? null, file, scope };
  if (servers.length === 0) return [JSON.stringify({ ...config, server: null, problem })];
  return servers.map(({ name, path, transport, isWrapped, isDisabled, problem: trouble }) =>
    JSON.stringify({
      ...config,
      server: name,
      path,
      transport,
      wrapped: isWrapped,
      disabled: isDisabled,
      problem: trouble,
    }),
  );
}

/** For people: each config, and a line for each of its servers. */
export function configLines(io: Io, configs: readonly ListedConfig[]): string[] {
  if (configs.length === 0) return [asTyped(io, NO_CLIENT)];
  const { width } = terminalStyle(io.stdout, io.env);
  const names = configs.flatMap(({ servers }) => servers.map((server) => escapeText(serverLabel(server))));
  const column = Math.min(Math.max(0, ...names.map(widthOf)), Math.floor(width / 2));
  return configs.flatMap(({ target, servers, problem }) => [
    escapeText(titleOf(target)),
    ...(problem === null ? [] : [`  ${escapeText(problem)}`]),
    ...(problem === null && servers.length === 0 ? ['  no servers'] : []),
    ...servers.map((server) => serverLine(server, column)),
  ]);
}

function serverLine(server: ListedServer, column: number): string {
  const { transport, isWrapped, isDisabled, problem } = server;
  const name = pad(clip(escapeText(serverLabel(server)), column), column);
  const state = isWrapped ? 'wrapped' : transport === null ? 'cannot be wrapped' : 'not wrapped';
  const notes = [...(isDisabled ? ['disabled'] : []), ...(problem === null ? [] : [escapeText(problem)])];
  return `  ${name}  ${(transport ?? '').padEnd(5)}  ${[state, ...notes].join('; ')}`;
}
