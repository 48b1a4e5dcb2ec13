import type { Needs } from '../../engine/read/needs.ts';
import { TapedeckError } from '../../errors.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import type { ChangedTools } from '../../inspect/verdict/earlier.ts';
import { sessionLine } from '../../inspect/view/json.ts';
import { changedToolsLines, sessionTable } from '../../inspect/view/session.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import type { Store } from '../../store/file/open.ts';
import type { PeerKind } from '../../store/read/peers.ts';
import { type RunRow, runsOf } from '../../store/read/runs.ts';
import { eachSession, type SessionRow } from '../../store/read/sessions.ts';
import { asTyped, type Command, type Io } from '../io.ts';
import { FILTER_OPTION, JSON_OPTION, READ_OPTIONS, readFilter } from '../options.ts';
import { QUICK_FRAMES, withLineEnds, writeOutput } from '../output.ts';
import { withStore } from '../store.ts';

type Options = {
  db: string | undefined;
  filter: string | undefined;
  json: boolean;
  limit: number;
  by: PeerKind | 'run' | undefined;
};

export const listCommand: Command<Options> = {
  command: 'list',
  describe: 'List the recorded sessions, the newest first',
  builder: (args) =>
    args
      .options({
        ...READ_OPTIONS,
        filter: FILTER_OPTION,
        json: JSON_OPTION,
        by: {
          type: 'string',
          choices: ['server', 'client', 'run'] as const,
          describe: 'One line for each server, each client, or each run of a client with all its servers',
          requiresArg: true,
        },
        limit: {
          type: 'number',
          default: 50,
          describe: 'Show at most this many lines; 0 shows all',
          requiresArg: true,
        },
      })
      .check(({ limit }) => {
        if (Number.isInteger(limit) && limit >= 0) return true;
        throw new TapedeckError('usage', 'Expected a whole number after `--limit`. Example: --limit 20');
      })
      .example('$0 list', 'The newest 50 sessions')
      .example("$0 list --filter 'status~error since=today'", 'Sessions in which something failed today')
      .example('$0 list --by run', 'What each run of a client had to do with all its servers')
      .example('$0 list --by server', 'What ever ran here, what was seen last first')
      .example("$0 list --by client --filter 'since=7d'", 'The clients of the last seven days')
      .example('$0 list --limit 0 --json', 'All of them, for a program'),
  async run({ db, filter: written, json, limit, by }, io) {
    const filter = await readFilter(written);
    const most = limit > 0 ? limit : Number.POSITIVE_INFINITY;
    await withStore(
      io,
      db,
      wantedOf(filter, by, most),
      async (store) => {
        if (by === 'run') {
          const runs = runsOf(store, filter && (await sessionsOf(store, filter))).slice(0, most);
          await writeOutput(io, withLineEnds(await runLinesOf(io, runs, json)));
          return;
        }
        if (by !== undefined) {
          const among = filter && (await numbersOf(store, filter));
          await writeOutput(io, withLineEnds(await peerLinesOf(io, store, by, { among, most, json })));
          return;
        }
        const { changedTools } = await import('../../inspect/verdict/earlier.ts');
        const changed = changedTools(store);
        const rows = take(await sessionsOf(store, filter), most);
        const lines = json
          ? mapLines(rows, (row) => sessionLine(row, changed.get(row.id)))
          : tableLines(io, [...rows], filter !== undefined, changed);
        await writeOutput(io, withLineEnds(lines));
      },
      filter === undefined ? QUICK_FRAMES : undefined,
    );
  },
};

function wantedOf(filter: Filter | undefined, by: Options['by'], most: number): Needs {
  if (filter === undefined) return { of: 'rows', most: by === undefined ? most : Number.POSITIVE_INFINITY };
  if (by !== undefined) return { of: 'matches', filter, isList: true, withRuns: by === 'run' };
  return { of: 'matches', filter, isList: true, most };
}

async function sessionsOf(store: Store, filter: Filter | undefined): Promise<Iterable<SessionRow>> {
  if (filter === undefined) return eachSession(store);
  const { eachSessionWith } = await import('../../inspect/filter/sql.ts');
  return eachSessionWith(store, filter);
}

async function numbersOf(store: Store, filter: Filter): Promise<number[]> {
  const { prepareSessionTest } = await import('../../inspect/filter/sql.ts');
  const { candidates, holds } = prepareSessionTest(store, filter);
  return candidates.filter((number) => holds({ number }));
}

async function runLinesOf(io: Io, runs: readonly RunRow[], json: boolean): Promise<Iterable<string>> {
  const { runSummary, runTable } = await import('../../inspect/run/view.ts');
  if (json) return runs.map((run) => JSON.stringify(runSummary(run)));
  if (runs.length === 0) return ['No session tells which run of a client it belongs to.'];
  return runTable(runs, terminalStyle(io.stdout, io.env));
}

async function peerLinesOf(
  io: Io,
  store: Store,
  kind: PeerKind,
  { among, most, json }: { among: number[] | undefined; most: number; json: boolean },
): Promise<Iterable<string>> {
  const { peersOf } = await import('../../store/read/peers.ts');
  const { peerLine, peerTable } = await import('./peer-table.ts');
  const rows = peersOf(store, kind, among).slice(0, most);
  if (json) return rows.map((row) => peerLine(kind, row));
  if (rows.length === 0 && among !== undefined) return [NO_SESSION];
  return peerTable(kind, rows, terminalStyle(io.stdout, io.env));
}

const NO_SESSION = 'The filter holds for no session.';

function* tableLines(
  io: Io,
  rows: readonly SessionRow[],
  isFiltered: boolean,
  changed: ReadonlyMap<string, ChangedTools>,
): Generator<string> {
  if (rows.length === 0 && isFiltered) yield NO_SESSION;
  const style = terminalStyle(io.stdout, io.env);
  if (rows.length > 0 || !isFiltered) yield* sessionTable(rows, style);
  const advice = (id: string) => asTyped(io, `see: tapedeck check ${id} --severity note`);
  yield* changedToolsLines(rows, changed, style, advice);
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
