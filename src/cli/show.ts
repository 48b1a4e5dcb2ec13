import type { CommandModule } from 'yargs';
import { frameBlock, sessionHeader, type ViewOptions } from '../inspect/conversation-view.ts';
import { frameLine } from '../inspect/json-lines.ts';
import { lookOf } from '../inspect/look.ts';
import { openIndexed } from '../store/catch-up.ts';
import { storePath } from '../store/location.ts';
import type { Store } from '../store/open.ts';
import { eachFrame, findSession, type SessionRow, unansweredPlaces } from '../store/reader.ts';
import { sayIndexing, withLineEnds, writeOutput } from './output.ts';
import { DB_OPTION, JSON_OPTION } from './shared-options.ts';

type Options = { session: string; db: string | undefined; json: boolean; full: boolean };

const PAYLOAD_LINES = 3;

export const showCommand: CommandModule<object, Options> = {
  command: 'show [session]',
  describe: 'Show one session as a conversation',
  builder: (args) =>
    args
      .positional('session', {
        type: 'string',
        default: 'latest',
        describe: 'An id, the beginning of one, a name, or latest',
      })
      .options({
        db: DB_OPTION,
        json: JSON_OPTION,
        full: {
          type: 'boolean',
          default: false,
          describe: `Show payloads whole, not just ${PAYLOAD_LINES} lines of each`,
        },
      })
      .example('$0 show', 'The newest session')
      .example('$0 show staging --full', 'A session by name, with all it said')
      .example('$0 show 4f --json | jq -r .text', 'The verbatim frames, for a program'),
  async handler({ session: reference, db, json, full }) {
    const store = openIndexed(storePath(db), sayIndexing);
    const session = findSession(store, reference);
    await writeOutput(json ? jsonPieces(store, session) : withLineEnds(conversation(store, session, full)));
    store.close();
  },
};

function* jsonPieces(store: Store, session: SessionRow): Generator<string> {
  for (const frame of eachFrame(store, session)) yield* frameLine(session.id, frame);
}

function* conversation(store: Store, session: SessionRow, full: boolean): Generator<string> {
  const look = lookOf(process.stdout);
  const options: ViewOptions = {
    look,
    payloadLines: full ? Number.POSITIVE_INFINITY : PAYLOAD_LINES,
    unanswered: unansweredPlaces(store, session),
  };
  yield* sessionHeader(session, look);
  for (const frame of eachFrame(store, session)) yield* frameBlock(session, frame, options);
}
