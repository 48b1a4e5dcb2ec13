import { setPriority } from 'node:os';
import type { Argv } from 'yargs';
import { TapedeckError } from '../../errors.ts';
import { formatCount, formatDuration, formatSize } from '../../inspect/view/text.ts';
import type { ShipStatus } from '../../ship/report.ts';
import type { ShipEnd, ShipperOptions } from '../../ship/shipper.ts';
import { openForReading, openStore } from '../../store/file/open.ts';
import { eachSession, findSession } from '../../store/read/sessions.ts';
import type { PrepareKept } from '../../store/sample/ship-sample.ts';
import { VERSION } from '../../version.ts';
import { type Command, type Io, onStopSignals, say, storeOf } from '../io.ts';
import { DB_OPTION, JSON_OPTION } from '../options.ts';
import { createProgress, withLineEnds, writeOutput } from '../output.ts';
import { rereadable } from '../record/options.ts';
import { ANOTHER_SHIPS, RECORDER_VARIABLE } from '../record/ship-child.ts';
import {
  checkShipSampling,
  type RawShipSampling,
  readShipSampling,
  SHIP_SAMPLING_OPTIONS,
} from '../ship-sampling.ts';
import { withWritableStore } from '../store.ts';
import { addressOf, ENGINE_OPTIONS, type RawEngine } from './address.ts';

type Options = RawEngine &
  RawShipSampling & {
    action: keyof typeof ACTIONS | undefined;
    sessions: string[];
    db: string | undefined;
    once: boolean;
    watch: boolean;
    'beside-recorders': boolean;
    imported: boolean;
    'ship-unredacted': boolean;
    tenant: string | undefined;
    json: boolean;
  };

export const shipCommand: Command<Options> = {
  command: 'ship [action] [sessions..]',
  describe: 'Ship the recordings of this host to an engine',
  builder: (args: Argv) =>
    args
      .usage(
        '$0 ship --to <url>\n$0 ship status\n$0 ship verify [session…] --to <url>\n$0 ship retry <session…>\n$0 ship forget\n\nBrings every frame of the store into a PostgreSQL that `tapedeck engine init` has set up, exactly once, and goes on with what is recorded, until it is stopped. Whatever is in the way is waited for.\n\nstatus: what is not there yet, what is in the way, what was refused or lost.\nverify: whether the engine has the same frames, and still has what is not here any more; exit code 1 where not.\nretry: ships sessions anew, as refused ones.\nforget: the store is not shipped any more; what the engine has stays there.',
      )
      .positional('action', { choices: Object.keys(ACTIONS), describe: 'Nothing: to ship' })
      .positional('sessions', {
        type: 'string',
        array: true,
        default: [],
        describe: 'Ids, beginnings of ids, or names',
      })
      .options({
        ...ENGINE_OPTIONS,
        once: {
          type: 'boolean',
          default: false,
          describe: 'Ship what is there, and end: exit code 0 if nothing is left',
        },
        watch: { type: 'boolean', default: false, describe: 'Go on until it is stopped, as without --once' },
        'beside-recorders': { type: 'boolean', default: false, hidden: true },
        imported: { type: 'boolean', default: false, describe: 'Ship sessions that came by `import`, too' },
        'ship-unredacted': {
          type: 'boolean',
          default: false,
          describe: 'Ship sessions that were recorded with --no-redact, too: with their secrets',
        },
        tenant: {
          type: 'string',
          requiresArg: true,
          describe: 'Mark the sessions with this, in the column `tenant`',
        },
        ...SHIP_SAMPLING_OPTIONS,
        db: DB_OPTION,
        json: JSON_OPTION,
      })
      .example(
        '$0 ship --to postgres://127.0.0.1/tapedeck --once',
        'What is there by now, as for a nightly job',
      )
      .example(
        '$0 ship --to postgres://127.0.0.1/tapedeck --once --ship-sample 5%',
        'Whatever has an error, and one in twenty of the other sessions',
      )
      .example('$0 ship status', 'How far it is, and what is in the way') as never,
  async run(options, io) {
    const { action, sessions, once, watch } = options;
    if (once && watch) throw new TapedeckError('usage', 'Expected either `--once` or `--watch`, got both.');
    if (sessions.length > 0 && action !== 'retry' && action !== 'verify')
      throw new TapedeckError('usage', 'Sessions go with `ship retry` and `ship verify` alone.');
    await (action === undefined ? ship(options, io) : ACTIONS[action](options, io));
  },
};

const ACTIONS = { status, verify, retry, forget };

async function ship(options: Options, io: Io): Promise<void> {
  const file = storeOf(io, options.db);
  const address = await addressOf(io, options);
  let sampling = readShipSampling(options);
  await checkShipSampling(sampling);
  openForReading(file).close();
  const stop = new AbortController();
  const argv = options.once ? null : rereadable(io);
  let reloading = Promise.resolve();
  const off = onStopSignals(
    io,
    () => stop.abort(),
    argv === null
      ? undefined
      : () => {
          reloading = reloading.then(() => reload(argv));
        },
  );
  async function reload(words: readonly string[]): Promise<void> {
    const { reloadShipping } = await import('./ship-reload.ts');
    await reloadShipping(io, words, options.to, (next) => {
      sampling = next;
    });
  }
  const progress = createProgress(io, 'shipped', null);
  const shipped = { frames: 0, bytes: 0 };
  const shipper: ShipperOptions = {
    ...{ file, address, isOnce: options.once, tenant: options.tenant ?? null, version: VERSION },
    ...{ imported: options.imported, unredacted: options['ship-unredacted'] },
    ...{ sampling: () => sampling, prepareKept },
    goesOn: () => true,
    onNotice: (text) => say(io, text),
    onShipped(frames, bytes) {
      shipped.frames += frames;
      shipped.bytes += bytes;
      progress.advance(shipped.frames);
    },
    signal: stop.signal,
  };
  try {
    const { runShipper } = await import('../../ship/shipper.ts');
    const end = options.once ? await runShipper(shipper) : await shipOn(options, io, shipper, runShipper);
    progress.end();
    if (end === null) return;
    const { frames, bytes } = shipped;
    say(io, `shipped ${formatCount(frames, 'frame')}, ${formatSize(bytes)}, to ${address.text}`);
    if (!options.once || sampling !== null) await sayLeft(io, file);
    if (options.once) io.exitCode = end.isDone && sayRefused(io, file) === 0 ? 0 : 1;
  } finally {
    off();
  }
}

const prepareKept: PrepareKept = async (store, filter) =>
  (await import('../../inspect/sample/judge.ts')).prepareKept(store, filter);

/** As the only one of this store. Null: another process is at it, which recorders need not be told. */
async function shipOn(
  options: Options,
  io: Io,
  shipper: ShipperOptions,
  run: (options: ShipperOptions) => Promise<ShipEnd>,
): Promise<ShipEnd | null> {
  const { takeShipperTurn, watchRecorders } = await import('../../ship/watch.ts');
  const isBeside = options['beside-recorders'];
  if (isBeside) setPriority(NICENESS);
  const store = openStore(shipper.file, { isPatient: true });
  const turn = takeShipperTurn(store);
  try {
    if (turn === null && isBeside) {
      io.exitCode = ANOTHER_SHIPS;
      return null;
    }
    if (turn === null)
      throw new TapedeckError('busy', 'Another tapedeck ships this store already. See: tapedeck ship status');
    const hasRecorders = isBeside
      ? watchRecorders(store, Number(io.env[RECORDER_VARIABLE] ?? process.ppid))
      : () => true;
    const goesOn = () => turn.renew() && hasRecorders();
    const end = await run({ ...shipper, goesOn });
    turn.end();
    if (!isBeside || !end.isDone || shipper.signal.aborted) return end;
    // What was recorded while we were ending: its shipper was told that we are at work. Two at once do no harm.
    return await run({ ...shipper, isOnce: true });
  } finally {
    turn?.end();
    store.close();
  }
}

const NICENESS = 10;

/** Says how far it has come, where it was stopped. */
async function sayLeft(io: Io, file: string): Promise<void> {
  const { shipStatus } = await import('../../ship/report.ts');
  const store = openForReading(file);
  try {
    const found = shipStatus(store);
    const { sessions = 0, frames = 0, bytes = 0 } = found?.backlog ?? {};
    const [undecided, out] = [found?.undecided.sessions ?? 0, found?.sampledOut.sessions ?? 0];
    if (out > 0) say(io, `${formatCount(out, 'session')} left out of the sample that is shipped`);
    if (undecided > 0) say(io, `${formatCount(undecided, 'session')} not decided yet, and not in the engine`);
    if (sessions === 0 && undecided === 0 && out === 0) say(io, 'the engine has every frame of the store');
    else if (sessions > 0)
      say(
        io,
        `${formatCount(frames, 'frame')} of ${formatCount(sessions, 'session')}, ${formatSize(bytes)}, are not in the engine yet`,
      );
  } finally {
    store.close();
  }
}

/** Says which sessions the engine does not get, and why. */
function sayRefused(io: Io, file: string): number {
  const store = openForReading(file);
  try {
    const refused = store
      .prepare<[], { id: string; reason: string }>(
        `SELECT s.id, p.reason FROM shipped AS p JOIN session AS s ON s.number = p.session
           WHERE p.state = 'refused' AND p.target = (SELECT target FROM shipper) ORDER BY s.started_at`,
      )
      .all();
    for (const { id, reason } of refused) say(io, `session ${id} is not shipped: ${reason}`);
    return refused.length;
  } finally {
    store.close();
  }
}

async function status({ db, json }: Options, io: Io): Promise<void> {
  const { shipStatus } = await import('../../ship/report.ts');
  const store = openForReading(storeOf(io, db));
  try {
    const found = shipStatus(store);
    if (json) await writeOutput(io, withLineEnds([JSON.stringify(found)]));
    else await writeOutput(io, withLineEnds(found === null ? [NOT_SHIPPED] : statusLines(found)));
  } finally {
    store.close();
  }
}

const NOT_SHIPPED = 'This store is not shipped to any engine. See: tapedeck ship --help';

/** `--json` has all of them. */
const GONE_SHOWN = 20;

function statusLines({
  target,
  pid,
  trouble,
  backlog,
  lagMs,
  undecided,
  sampledOut,
  sealed,
  refused,
  lost,
  gone,
}: ShipStatus): string[] {
  const size = ({ frames, bytes }: { frames: number; bytes: number }) =>
    `${formatCount(frames, 'frame')}, ${formatSize(bytes)}`;
  const age = lagMs === 0 ? '' : `, the oldest since ${formatDuration(lagMs)}`;
  return [
    `engine   ${target ?? 'none was reached yet'}`,
    `shipper  ${pid === null ? 'none is at work' : `process ${pid}`}`,
    `in the way  ${trouble ?? 'nothing'}`,
    `to ship  ${formatCount(backlog.sessions, 'session')}, ${size(backlog)}${age}`,
    ...(undecided.sessions > 0
      ? [`undecided  ${formatCount(undecided.sessions, 'session')}, ${size(undecided)}`]
      : []),
    ...(sampledOut.sessions > 0
      ? [`left out of the sample  ${formatCount(sampledOut.sessions, 'session')}, ${size(sampledOut)}`]
      : []),
    `sealed   ${formatCount(sealed, 'session')}`,
    `refused  ${formatCount(refused.length, 'session')}`,
    ...refused.map(({ session, reason }) => `  ${session}  ${reason}`),
    `lost     ${formatCount(lost.sessions, 'session')}, ${size(lost)}`,
    ...gone
      .slice(0, GONE_SHOWN)
      .map((one) => `  ${one.session}  of ${one.day}: the engine had it, and has lost ${size(one)}`),
    ...(gone.length > GONE_SHOWN ? [`  ${gone.length - GONE_SHOWN} more: see --json`] : []),
  ];
}

const WHERE_RECORDED = 'Run it on the host that records.';

async function retry({ db, sessions }: Options, io: Io): Promise<void> {
  if (sessions.length === 0)
    throw new TapedeckError('usage', 'Expected sessions after `ship retry`. See: tapedeck ship status');
  const { retrySession } = await import('../../ship/report.ts');
  await withWritableStore(io, db, WHERE_RECORDED, (store) => {
    for (const { number } of sessions.map((reference) => findSession(store, reference)))
      retrySession(store, number);
    say(io, `${formatCount(sessions.length, 'session')} will be shipped anew`);
  });
}

async function forget({ db }: Options, io: Io): Promise<void> {
  const { forgetEngine } = await import('../../ship/report.ts');
  await withWritableStore(io, db, WHERE_RECORDED, (store) => {
    say(io, forgetEngine(store) ? 'this store is not shipped any more' : 'this store was not shipped');
  });
}

const OTHER_FRAMES = 1;

async function verify(options: Options, io: Io): Promise<void> {
  const address = await addressOf(io, options);
  const { connectEngine } = await import('../../engine/connect.ts');
  const { engineError } = await import('../../engine/trouble.ts');
  const { verifyDeparted, verifySessions } = await import('../../ship/report.ts');
  const store = openForReading(storeOf(io, options.db));
  const client = await connectEngine(address, 'tapedeck ship');
  try {
    const chosen =
      options.sessions.length === 0
        ? [...eachSession(store)]
        : options.sessions.map((reference) => findSession(store, reference));
    const counts = new Map<string, number>();
    for await (const one of verifySessions(
      store,
      client,
      chosen.map(({ number }) => number),
    )) {
      counts.set(one.verdict, 1 + (counts.get(one.verdict) ?? 0));
      if (options.json) await writeOutput(io, withLineEnds([JSON.stringify(one)]));
      else if (one.verdict === 'different')
        await writeOutput(io, withLineEnds([`${one.session}: the engine has other frames`]));
    }
    if (options.sessions.length === 0)
      for await (const one of verifyDeparted(store, client)) {
        counts.set(one.verdict, 1 + (counts.get(one.verdict) ?? 0));
        const line = options.json
          ? JSON.stringify(one)
          : `${one.session}: the engine had it, and it is not here any more`;
        await writeOutput(io, withLineEnds([line]));
      }
    const words = [...counts].map(([verdict, count]) => `${count} ${verdict}`);
    say(io, `${formatCount(chosen.length, 'session')}: ${words.join(', ') || 'nothing to compare'}`);
    if (counts.has('different') || counts.has('lost')) io.exitCode = OTHER_FRAMES;
  } catch (error) {
    throw engineError(error, address.text);
  } finally {
    await client.end().catch(() => {});
    store.close();
  }
}
