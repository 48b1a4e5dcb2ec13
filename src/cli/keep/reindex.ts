import { formatCount } from '../../inspect/view/text.ts';
import { eachSession, findSession, stateOf } from '../../store/read/sessions.ts';
import { reindexSession } from '../../store/write/index.ts';
import { type Command, say } from '../io.ts';
import { DB_OPTION } from '../options.ts';
import { withWritableStore } from '../store.ts';

type Options = { session: string | undefined; db: string | undefined };

const ON_ITS_HOST = 'Run it on the host that has recorded the session, and ship that again.';

export const reindexCommand: Command<Options> = {
  command: 'reindex [session]',
  describe: 'Rebuild the index of messages from the recorded frames',
  builder: (args) =>
    args
      .positional('session', { type: 'string', describe: 'An id, a name or latest; all sessions without it' })
      .options({ db: DB_OPTION })
      .example('$0 reindex', 'After an update that reads messages better'),
  run: ({ session: reference, db }, io) =>
    withWritableStore(io, db, ON_ITS_HOST, (store) => {
      // The recorder of an open session is at work on its index itself.
      const closed = () => [...eachSession(store)].filter((session) => stateOf(session) !== 'open');
      const sessions = reference === undefined ? closed() : [findSession(store, reference)];
      for (const { number } of sessions) reindexSession(store, number);
      say(io, `indexed ${formatCount(sessions.length, 'session')}`);
    }),
};
