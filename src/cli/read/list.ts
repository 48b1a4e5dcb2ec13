import { TapedeckError } from '../../errors.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import { sessionLine } from '../../inspect/view/json.ts';
import { sessionTable } from '../../inspect/view/session.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import type { Store } from '../../store/file/open.ts';
import { eachSession, type SessionRow } from '../../store/read/sessions.ts';
import type { Command, Io } from '../io.ts';
import { DB_OPTION, FILTER_OPTION, JSON_OPTION, readFilter } from '../options.ts';
import { QUICK_FRAMES, withLineEnds, writeOutput } from '../output.ts';
import { withStore } from '../store.ts';

type Options = { db: string | undefined; filter: string | undefined; json: boolean; limit: number };

export const listCommand: Command<Options> = {
  command: 'list',
  describe: 'List the recorded sessions, the newest first',
  builder: (args) =>
    args
      .options({
        db: DB_OPTION,
        filter: FILTER_OPTION,
        json: JSON_OPTION,
        limit: {
          type: 'number',
          default: 50,
          describe: 'Show at most this many sessions; 0 shows all',
          requiresArg: true,
        },
      })
      .check(({ limit }) => {
        if (Number.isInteger(limit) && limit >= 0) return true;
        throw new TapedeckError('usage', 'Expected a whole number after `--limit`. Example: --limit 20');
      })
      .example('$0 list', 'The newest 50 sessions')
      .example("$0 list --filter 'status~error since=today'", 'Sessions in which something failed today')
      .example('$0 list --limit 0 --json', 'All of them, for a program'),
  async run({ db, filter: written, json, limit }, io) {
    const filter = await readFilter(written);
    await withStore(
      io,
      db,
      async (store) => {
        const rows = take(await sessionsOf(store, filter), limit > 0 ? limit : Number.POSITIVE_INFINITY);
        const lines = json ? mapLines(rows, sessionLine) : tableLines(io, [...rows], filter !== undefined);
        await writeOutput(io, withLineEnds(lines));
      },
      filter === undefined ? QUICK_FRAMES : undefined,
    );
  },
};

async function sessionsOf(store: Store, filter: Filter | undefined): Promise<Iterable<SessionRow>> {
  if (filter === undefined) return eachSession(store);
  const { eachSessionWith } = await import('../../inspect/filter/sql.ts');
  return eachSessionWith(store, filter);
}

function tableLines(io: Io, rows: readonly SessionRow[], isFiltered: boolean): Iterable<string> {
  if (rows.length === 0 && isFiltered) return ['The filter holds for no session.'];
  return sessionTable(rows, terminalStyle(io.stdout, io.env));
}

function* take(rows: Iterable<SessionRow>, count: number): Generator<SessionRow> {
  let left = count;
  for (const row of rows) {
    if (left === 0) return;
    left -= 1;
    yield row;
  }
}

function* mapLines(rows: Iterable<SessionRow>, line: (row: SessionRow) => string): Generator<string> {
  for (const row of rows) yield line(row);
}
