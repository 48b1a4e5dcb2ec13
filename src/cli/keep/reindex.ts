import type { CommandModule } from 'yargs';
import { formatCount } from '../../inspect/view/text.ts';
import { openForReading, openStore, storePath } from '../../store/file/open.ts';
import { eachSession, findSession, stateOf } from '../../store/read/sessions.ts';
import { reindexSession } from '../../store/write/index.ts';
import { DB_OPTION } from '../options.ts';

type Options = { session: string | undefined; db: string | undefined };

export const reindexCommand: CommandModule<object, Options> = {
  command: 'reindex [session]',
  describe: 'Rebuild the index of messages from the recorded frames',
  builder: (args) =>
    args
      .positional('session', { type: 'string', describe: 'An id, a name or latest; all sessions without it' })
      .options({ db: DB_OPTION })
      .example('$0 reindex', 'After an update that reads messages better'),
  handler({ session: reference, db }) {
    const path = storePath(db);
    // Opened for reading first: a store that is not there must not be made by this command.
    openForReading(path).close();
    const store = openStore(path, { isPatient: true });
    // The recorder of an open session is at work on its index itself.
    const closed = () => [...eachSession(store)].filter((session) => stateOf(session) !== 'open');
    const sessions = reference === undefined ? closed() : [findSession(store, reference)];
    for (const { number } of sessions) reindexSession(store, number);
    store.close();
    process.stderr.write(`tapedeck: indexed ${formatCount(sessions.length, 'session')}\n`);
  },
};
