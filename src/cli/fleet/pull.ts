import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import type { Argv } from 'yargs';
import type { Needs } from '../../engine/read/needs.ts';
import { TapedeckError } from '../../errors.ts';
import { formatCount, formatSize } from '../../inspect/view/text.ts';
import { openFor } from '../../sources/open-for.ts';
import { openStore, type Store } from '../../store/file/open.ts';
import { isEngineUrl } from '../../store/file/path.ts';
import { type Command, type Io, pathOf, say } from '../io.ts';
import { FILTER_OPTION, READ_OPTIONS, readFilter } from '../options.ts';
import { readingOf } from '../store.ts';

type Options = {
  sessions: string[];
  from: string | undefined;
  filter: string | undefined;
  out: string;
};

export const pullCommand: Command<Options> = {
  command: 'pull [sessions..]',
  describe: 'Fetch sessions of an engine into a store of their own, a file',
  builder: (args: Argv) =>
    args
      .positional('sessions', {
        type: 'string',
        array: true,
        default: [] as string[],
        describe: 'Ids, beginnings of ids, host/id, names, or latest',
      })
      .options({
        from: {
          type: 'string',
          describe: 'The engine, postgres://user@host/database (default: TAPEDECK_DB)',
          requiresArg: true,
        },
        'insecure-engine': READ_OPTIONS['insecure-engine'],
        filter: { ...FILTER_OPTION, describe: 'In place of sessions by name: all with a frame that matches' },
        out: {
          type: 'string',
          alias: 'o',
          default: 'pulled.db',
          describe: 'The store to make, a file that is not there yet',
          requiresArg: true,
        },
      })
      .example(
        '$0 pull 4f2a staging --from postgres://127.0.0.1/tapedeck',
        'Two sessions, for: show --db pulled.db',
      )
      .example(
        "$0 pull --from postgres://127.0.0.1/tapedeck --filter 'status~error since=1d'",
        'All in which something failed',
      ) as Argv<Options>,
  async run({ sessions, from, filter: written, out }, io) {
    const filter = await readFilter(written);
    if (sessions.length > 0 === (filter !== undefined))
      throw new TapedeckError(
        'usage',
        'Expected either sessions or `--filter`. Example: tapedeck pull latest --from postgres://127.0.0.1/tapedeck',
      );
    const file = pathOf(io, out);
    if (existsSync(file))
      throw new TapedeckError(
        'usage',
        `Expected a file that is not there yet, got ${out}. Name another with --out.`,
      );
    const needs: Needs =
      filter === undefined ? { of: 'sessions', references: sessions } : { of: 'matches', filter };
    const opened = await openFor(engineOf(io, from), needs, readingOf(io));
    try {
      const wanted = await wantedOf(opened.store, sessions, filter);
      write(opened.store, file, wanted);
      const { frames } = countOf(file);
      say(
        io,
        `${formatCount(wanted.length, 'session')} with ${formatCount(frames, 'frame')} in ${out} (${formatSize(statSync(file).size)})`,
      );
    } finally {
      opened.close();
    }
  },
};

function engineOf(io: Io, from: string | undefined): string {
  const url = from ?? io.env['TAPEDECK_DB'] ?? '';
  if (isEngineUrl(url)) return url;
  throw new TapedeckError(
    'usage',
    'Expected an engine: --from postgres://user@host/database, or TAPEDECK_DB.',
  );
}

/** The numbers of the sessions that are meant: what was fetched besides stays behind. */
async function wantedOf(
  store: Store,
  references: readonly string[],
  filter: Awaited<ReturnType<typeof readFilter>>,
) {
  if (filter === undefined) {
    const { findSession } = await import('../../store/read/sessions.ts');
    return [...new Set(references.map((reference) => findSession(store, reference).number))];
  }
  const { eachSessionWith } = await import('../../inspect/filter/sql.ts');
  return [...eachSessionWith(store, filter)].map(({ number }) => number);
}

/** They were not recorded here: `imported_at` says so, and `ship` leaves them alone. */
function write(store: Store, file: string, wanted: readonly number[]): void {
  const numbers = JSON.stringify(wanted);
  for (const [table, number] of [
    ['message', 'session'],
    ['session', 'number'],
  ] as const)
    store
      .prepare(`DELETE FROM ${table} WHERE ${number} NOT IN (SELECT value FROM json_each(?))`)
      .run(numbers);
  store.prepare('UPDATE session SET imported_at = ? WHERE imported_at IS NULL').run(Date.now() * 1000);
  closeSync(openSync(file, 'wx', 0o600));
  store.prepare('VACUUM INTO ?').run(file);
  openStore(file).close();
}

function countOf(file: string): { frames: number } {
  const store = openStore(file);
  const frames = Number(store.prepare('SELECT count(*) FROM frame').pluck().get());
  store.close();
  return { frames };
}
