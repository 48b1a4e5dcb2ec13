/** `tapedeck wrap`: puts tapedeck before the servers of a client's config, or lists what there is. */
import { resolve } from 'node:path';
import type { CommandModule } from 'yargs';
import { TapedeckError } from '../errors.ts';
import { filled } from './record-options.ts';
import { DRY_RUN_OPTION, JSON_OPTION, SERVERS, TARGET } from './shared-options.ts';

type Options = {
  target: string | undefined;
  servers: string[];
  list: boolean;
  json: boolean;
  'dry-run': boolean;
  db: string | undefined;
};

export const wrapCommand: CommandModule<object, Options> = {
  command: 'wrap [target] [servers..]',
  describe: 'Put tapedeck before the servers in a client’s config',
  builder: (args) =>
    args
      .usage(
        '$0 wrap <client|file|all> [server…]\n$0 wrap --list\n\nEdits the client’s config so that it starts its servers through `tapedeck record`.\nNothing else in the file changes, and a copy is kept: `tapedeck unwrap` puts it back,\nbyte for byte.',
      )
      .positional('target', TARGET)
      .positional('servers', SERVERS)
      .options({
        list: {
          type: 'boolean',
          default: false,
          describe: 'Show the clients found, their servers, and which are wrapped',
        },
        json: { ...JSON_OPTION, describe: 'With --list: one JSON object a line' },
        'dry-run': DRY_RUN_OPTION,
        db: {
          type: 'string',
          requiresArg: true,
          coerce: (db: string | string[]) => (Array.isArray(db) ? db.at(-1) : db),
          describe: 'The store that the wrapped servers record into (default: as `record` has it)',
        },
      })
      .example('$0 wrap --list', 'Which clients and servers there are')
      .example('$0 wrap cursor', 'Wrap all servers of Cursor: of the user, and of the project in this folder')
      .example('$0 wrap claude-code github', 'Only this one')
      .example('$0 wrap ./mcp.json --dry-run', 'Show what would change in this file')
      .epilog(
        'URL servers get a local address in place of their own. They can be reached only while this runs:\n  tapedeck record --wrapped',
      ),
  async handler({ target, servers, list, json, db, 'dry-run': isDryRun }) {
    if (list || target === undefined) {
      if (servers.length > 0 || isDryRun || db !== undefined)
        throw new TapedeckError(
          'usage',
          'Expected a client or a file to wrap. Example: tapedeck wrap cursor',
        );
      const { printList } = await import('./wrap-list.ts');
      await printList(target, json);
      return;
    }
    if (json) throw new TapedeckError('usage', '`--json` goes with `--list`.');
    const file = filled('--db', db);
    const { wrapFiles } = await import('./wrap-files.ts');
    await wrapFiles(target, servers, { isDryRun, db: file === undefined ? null : resolve(file.trim()) });
  },
};
