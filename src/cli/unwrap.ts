/** `tapedeck unwrap`: takes tapedeck out of a client's config again. */
import type { CommandModule } from 'yargs';
import { DRY_RUN_OPTION, SERVERS, TARGET } from './shared-options.ts';

type Options = { target: string; servers: string[]; 'dry-run': boolean };

export const unwrapCommand: CommandModule<object, Options> = {
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
      .example('$0 unwrap all', 'Everything that was ever wrapped'),
  async handler({ target, servers, 'dry-run': isDryRun }) {
    const { unwrapFiles } = await import('./wrap-files.ts');
    await unwrapFiles(target, servers, isDryRun);
  },
};
