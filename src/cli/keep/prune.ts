import type { Argv } from 'yargs';
import { checkRetention, type RawRetention, RETENTION_OPTIONS } from '../../config/sizes.ts';
import { TapedeckError } from '../../errors.ts';
import { departureLine, prunedLine, pruneTable } from '../../inspect/view/prune.ts';
import { formatCount, formatSize, terminalStyle } from '../../inspect/view/text.ts';
import { openForReading, openStore, type Store } from '../../store/file/open.ts';
import { openIndexed, takeInSpools } from '../../store/keep/catch-up.ts';
import { type Pruned, planPrune, prune, type Selection } from '../../store/keep/prune.ts';
import { candidates, isOpen, type Plan } from '../../store/keep/retention.ts';
import { bytesOnDisk } from '../../store/keep/scrub.ts';
import { findSession } from '../../store/read/sessions.ts';
import { type Command, type Io, say } from '../io.ts';
import { DB_OPTION, FILTER_OPTION, JSON_OPTION, readFilter } from '../options.ts';
import { createProgress, notices, sayFinished, withLineEnds, writeOutput } from '../output.ts';
import { writableStoreOf } from '../store.ts';

type Options = RawRetention & {
  sessions: string[];
  db: string | undefined;
  filter: string | undefined;
  keep: string | undefined;
  'dry-run': boolean;
  vacuum: boolean;
  everywhere: boolean;
  json: boolean;
};

export const pruneCommand: Command<Options> = {
  command: 'prune [sessions..]',
  describe: 'Delete sessions for good: old ones, the oldest ones, or those named',
  builder: (args: Argv) =>
    args
      .usage(
        '$0 prune [limits]\n$0 prune <session…>\n\nDeletes whole sessions, never one that is being recorded, and frees their space.\nNothing of them is left in the store’s files. It does not ask first.',
      )
      .positional('sessions', {
        type: 'string',
        array: true,
        default: [],
        describe: 'Ids, beginnings of ids, or names, in place of limits',
      })
      .options({
        ...limitOptions(),
        filter: {
          ...FILTER_OPTION,
          describe: 'Delete only sessions with frames that match this filter; without a limit, all of them',
        },
        keep: { ...FILTER_OPTION, describe: 'Keep sessions with frames that match this filter' },
        'dry-run': {
          type: 'boolean',
          default: false,
          describe: 'Show what would be deleted, and delete nothing',
        },
        vacuum: {
          type: 'boolean',
          default: false,
          describe:
            'Rewrite the whole store, even if recorders have to wait; needs twice its size of free disk space',
        },
        everywhere: {
          type: 'boolean',
          default: false,
          describe: 'Of a store that is shipped: delete them in the engine, too',
        },
        db: DB_OPTION,
        json: JSON_OPTION,
      })
      .example('$0 prune --older-than 30d --dry-run', 'What would be deleted')
      .example('$0 prune --older-than 30d --max-size 2gb --keep-errors', 'For a nightly job')
      .example(
        "$0 prune --older-than 7d --filter server=search --keep 'tool=pay or dur>10s'",
        'The old sessions of one server, except those that matter',
      )
      .example('$0 prune 4f2a staging', 'Two sessions, by id and by name') as Argv<Options>,
  async run(argv, io) {
    const path = writableStoreOf(io, argv.db, 'What an engine keeps is said on the engine.');
    // This command does not create a store. Frames that are not indexed yet may hold errors, or match a filter.
    const needsIndex = argv['keep-errors'] || argv.filter !== undefined || argv.keep !== undefined;
    await takeInSpools(path, notices(io));
    (needsIndex ? await openIndexed(path, notices(io)) : openForReading(path)).close();
    const isDry = argv['dry-run'];
    const store = isDry ? openForReading(path) : openStore(path, { isPatient: true });
    try {
      const selection = await select(store, argv);
      if (isDry) await writePlan(io, planPrune(store, selection), bytesOnDisk(store), argv.json);
      else
        await writePruned(
          io,
          argv.everywhere,
          pruneNow(io, store, selection, { isForced: argv.vacuum, isEverywhere: argv.everywhere }),
          argv.json,
        );
    } finally {
      store.close();
    }
  },
};

function pruneNow(io: Io, store: Store, selection: Selection, how: Parameters<typeof prune>[2]): Pruned {
  const progress = createProgress(io, 'redacted', null);
  const pruned = prune(store, selection, how, progress.advance);
  progress.end();
  sayFinished(io, pruned.redacted);
  return pruned;
}

/** If an option is given twice, the last one counts. */
function limitOptions() {
  const coerce = (value: unknown) => (Array.isArray(value) ? value.at(-1) : value);
  return Object.fromEntries(
    Object.entries(RETENTION_OPTIONS).map(([name, option]) => [
      name,
      { ...option, requiresArg: option.type === 'string', coerce },
    ]),
  );
}

async function select(store: Store, options: Options): Promise<Selection> {
  const { sessions, vacuum, everywhere: _, filter, keep, ...raw } = options;
  const limits = checkRetention(raw);
  const isChosen = limits !== null || filter !== undefined;
  if (sessions.length > 0 && (isChosen || keep !== undefined)) {
    throw new TapedeckError(
      'usage',
      'Expected either sessions or limits and filters, got both. Prune twice instead.',
    );
  }
  if (keep !== undefined && !isChosen) {
    throw new TapedeckError(
      'usage',
      "`--keep` goes with a limit or with `--filter`. Example: --older-than 30d --keep 'status~error'",
    );
  }
  if (!isChosen && sessions.length === 0 && !vacuum) {
    throw new TapedeckError(
      'usage',
      'Expected what to delete: a limit or sessions. Examples: tapedeck prune --older-than 30d --dry-run; tapedeck prune --max-size 2gb; tapedeck prune 4f2a',
    );
  }
  const mayGo = filter === undefined && keep === undefined ? null : await filtered(store, filter, keep);
  if (limits !== null) return { limits, mayGo };
  if (mayGo !== null) return { named: mayGo, reason: 'filter' };
  return { named: new Set(sessions.map((reference) => closedSession(store, reference))), reason: 'named' };
}

/** Only sessions that have ended: frames to come in the others might be what `--keep` asks for. */
async function filtered(
  store: Store,
  filter: string | undefined,
  keep: string | undefined,
): Promise<ReadonlySet<number>> {
  const { eachSessionWith } = await import('../../inspect/filter/sql.ts');
  const now = Date.now() * 1000;
  const ended = candidates(store).filter((session) => !isOpen(session, now));
  const numbersWith = async (text: string | undefined) => {
    const parsed = await readFilter(text);
    return parsed && new Set([...eachSessionWith(store, parsed)].map(({ number }) => number));
  };
  const chosen = await numbersWith(filter);
  const kept = await numbersWith(keep);
  const numbers = ended.map(({ number }) => number);
  return new Set(numbers.filter((number) => chosen?.has(number) !== false && kept?.has(number) !== true));
}

function closedSession(store: Store, reference: string): number {
  const { number, id } = findSession(store, reference);
  const session = candidates(store).find((candidate) => candidate.number === number);
  if (session !== undefined && isOpen(session, Date.now() * 1000)) {
    throw new TapedeckError(
      'busy',
      `Session ${id} is being recorded, and cannot be deleted before it has ended. See: tapedeck list`,
    );
  }
  return number;
}

async function writePlan(
  io: Io,
  { departures, excessBytes }: Plan,
  bytes: number,
  json: boolean,
): Promise<void> {
  if (json) {
    await writeOutput(io, withLineEnds(departures.map(departureLine)));
    return;
  }
  const sum = departures.reduce((total, one) => total + one.bytes, 0);
  const summary =
    departures.length === 0
      ? `Nothing would be deleted of ${formatSize(bytes)}.`
      : `${formatCount(departures.length, 'session')} would be deleted, about ${formatSize(sum)} of ${formatSize(bytes)}. Nothing was changed.`;
  await writeOutput(io, withLineEnds([...table(io, departures), summary]));
  sayExcess(io, excessBytes);
}

async function writePruned(io: Io, isEverywhere: boolean, pruned: Pruned, json: boolean): Promise<void> {
  const { departures, bytesBefore, bytesAfter, remains, excessBytes } = pruned;
  const summary = `${formatCount(departures.length, 'session')} deleted, ${formatSize(Math.max(0, bytesBefore - bytesAfter))} given back: the store takes ${formatSize(bytesAfter)}.`;
  const lines = json
    ? [...departures.map(departureLine), prunedLine(pruned)]
    : [...table(io, departures), summary];
  await writeOutput(io, withLineEnds(lines));
  for (const remain of remains) say(io, remain);
  sayShipped(io, departures, isEverywhere);
  sayExcess(io, excessBytes);
}

/** Deleting here deletes nothing in an engine. */
function sayShipped(io: Io, departures: Pruned['departures'], isEverywhere: boolean): void {
  const count = (what: 'sealed' | 'unshipped') =>
    departures.filter(({ session }) => session.shipping === what).length;
  const there = `${count('sealed')} of these sessions ${count('sealed') === 1 ? 'is' : 'are'}`;
  if (count('sealed') > 0)
    say(
      io,
      isEverywhere
        ? `${there} in the engine, too; the next \`tapedeck ship\` deletes what it has of them`
        : `${there} still in the engine; --everywhere deletes there, too`,
    );
  if (count('unshipped') > 0 && !isEverywhere)
    say(io, `${count('unshipped')} of these sessions had never been shipped; they count as lost`);
}

function table(io: Io, departures: Pruned['departures']): Iterable<string> {
  if (departures.length === 0) return [];
  return pruneTable(departures, Date.now() * 1000, terminalStyle(io.stdout, io.env));
}

function sayExcess(io: Io, bytes: number): void {
  if (bytes > 0) {
    say(
      io,
      `${formatSize(bytes)} stay above --max-size: sessions that are open, or not to be deleted, have them`,
    );
  }
}
